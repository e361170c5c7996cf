//! Users in SQLite, in a file or in memory.
//!
//! SQLite blocks: each statement runs on a thread that may block, beside those that serve.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gake_lab::{UserConnection, UserDatabase, UserReply, UserRow, UserStatement};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::TABLE;

/// How long a connection waits for another one's lock.
const BUSY: Duration = Duration::from_secs(5);

/// A database of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    place: PathBuf,
    /// Memory is there for as long as a connection to it is.
    _anchor: Mutex<Connection>,
}

/// A connection; `None` while a statement has it, and after one that was given up.
#[derive(Debug)]
struct Pooled(Option<Connection>);

impl Sqlite {
    /// Opens a file, or memory without one; makes the table if there is none, and checks its columns.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        static MEMORIES: AtomicU64 = AtomicU64::new(0);
        // A name that begins with a slash is shared by the connections of a process.
        let memory = || format!("file:/users-{}?vfs=memdb", MEMORIES.fetch_add(1, Relaxed)).into();
        let place = path.map_or_else(memory, Path::to_path_buf);
        let connection = connect(&place)?;
        let create = format!(
            "PRAGMA journal_mode = WAL; \
             CREATE TABLE IF NOT EXISTS {TABLE} \
             (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, mail TEXT NOT NULL)"
        );
        connection.execute_batch(&create).map_err(said)?;
        let columns = format!("SELECT id, name, mail FROM {TABLE} WHERE 1 = 0");
        connection.prepare(&columns).map_err(|error| {
            format!("{error}; its table {TABLE} is not the lab's: rename it or drop it")
        })?;
        Ok(Self { place, _anchor: Mutex::new(connection) })
    }
}

/// The greatest id in the table of a file; `None` if there is no table.
pub fn last(path: &Path) -> Result<Option<u64>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(path)?;
    let exists = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let tables: i64 = connection.query_row(exists, [TABLE], |row| row.get(0)).map_err(said)?;
    if tables == 0 {
        return Ok(None);
    }
    let greatest = format!("SELECT COALESCE(MAX(id), 0) FROM {TABLE}");
    let last: i64 = connection.query_row(&greatest, [], |row| row.get(0)).map_err(said)?;
    Ok(Some(last.unsigned_abs()))
}

/// Deletes the rows with a greater id than `last`, or the table when there was none.
pub fn restore(path: &Path, last: Option<u64>) -> Result<(), String> {
    let statement = match last {
        Some(last) => format!("DELETE FROM {TABLE} WHERE id > {last}"),
        None => format!("DROP TABLE IF EXISTS {TABLE}"),
    };
    connect(path)?.execute_batch(&statement).map_err(said)
}

fn connect(place: &Path) -> Result<Connection, String> {
    // Only the lab's own memory is named by a URI: a file's name may hold anything.
    let uri = match place.starts_with("file:") {
        true => OpenFlags::SQLITE_OPEN_URI,
        false => OpenFlags::empty(),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | uri;
    let connection = Connection::open_with_flags(place, flags).map_err(said)?;
    connection.busy_timeout(BUSY).map_err(said)?;
    // Safe with a write-ahead log: after a loss of power the last rows may be missing, no others.
    connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(said)?;
    Ok(connection)
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err has it")]
fn said(error: rusqlite::Error) -> String {
    error.to_string()
}

/// Does what blocks on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}

impl UserDatabase for Sqlite {
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn UserConnection>, String>> {
        let place = self.place.clone();
        async move {
            let connection = blocking(move || connect(&place)).await?;
            Ok(Box::new(Pooled(Some(connection))) as Box<dyn UserConnection>)
        }
        .boxed()
    }
}

impl UserConnection for Pooled {
    fn execute(&mut self, statement: UserStatement) -> BoxFuture<'_, Result<UserReply, String>> {
        async move {
            let connection = self.0.take().ok_or("a statement on this connection was given up")?;
            let (connection, answer) = blocking(move || {
                let answer = execute(&connection, statement).map_err(said);
                Ok((connection, answer))
            })
            .await?;
            self.0 = Some(connection);
            answer
        }
        .boxed()
    }
}

fn execute(connection: &Connection, statement: UserStatement) -> rusqlite::Result<UserReply> {
    match statement {
        UserStatement::Insert { name, mail } => {
            let sql = format!("INSERT INTO {TABLE} (name, mail) VALUES (?1, ?2)");
            connection.prepare(&sql)?.execute(params![name, mail])?;
            let id = connection.last_insert_rowid().unsigned_abs();
            Ok(UserReply::Row(Some(UserRow { id, name, mail })))
        }
        UserStatement::Get(id) => {
            let sql = format!("SELECT id, name, mail FROM {TABLE} WHERE id = ?1");
            // No row has a greater one.
            let id = i64::try_from(id).unwrap_or(0);
            let user = connection.prepare(&sql)?.query_row([id], user).optional()?;
            Ok(UserReply::Row(user))
        }
        UserStatement::Count => {
            let sql = format!("SELECT COUNT(*) FROM {TABLE}");
            let count: i64 = connection.prepare(&sql)?.query_row([], |row| row.get(0))?;
            Ok(UserReply::Count(count.unsigned_abs()))
        }
        UserStatement::Clear => {
            connection.execute(&format!("DELETE FROM {TABLE}"), [])?;
            Ok(UserReply::Count(0))
        }
    }
}

fn user(row: &Row<'_>) -> rusqlite::Result<UserRow> {
    let id: i64 = row.get(0)?;
    Ok(UserRow { id: id.unsigned_abs(), name: row.get(1)?, mail: row.get(2)? })
}
