//! Users in SQLite, in a file or in memory. Statements run on threads for blocking work.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gake_lab::{UserConnection, UserDatabase, UserReply, UserRow, UserStatement};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::TABLE;

/// Time that a connection waits for a lock.
const BUSY: Duration = Duration::from_secs(5);

/// An SQLite database.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    /// Keeps a database in memory alive.
    _anchor: Mutex<Connection>,
}

/// A connection; `None` while a statement runs, and after one was cancelled.
#[derive(Debug)]
struct SqliteConnection(Option<Connection>);

impl Sqlite {
    /// Opens a file, or memory without one; creates the table if it is missing, and checks its
    /// columns.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        static MEMORIES: AtomicU64 = AtomicU64::new(0);
        // With a slash, the connections of a process share the memory.
        let memory = || format!("file:/users-{}?vfs=memdb", MEMORIES.fetch_add(1, Relaxed)).into();
        if let Some(path) = path {
            create(path)?;
        }
        let path = path.map_or_else(memory, Path::to_path_buf);
        let connection = connect(&path)?;
        let create = format!(
            "PRAGMA journal_mode = WAL; \
             CREATE TABLE IF NOT EXISTS {TABLE} \
             (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, mail TEXT NOT NULL)"
        );
        connection.execute_batch(&create).map_err(text)?;
        let columns = format!("SELECT id, name, mail FROM {TABLE} WHERE 1 = 0");
        connection.prepare(&columns).map_err(|error| {
            format!("{error}: the table {TABLE} is not the lab's: rename it or drop it")
        })?;
        Ok(Self { path, _anchor: Mutex::new(connection) })
    }
}

/// Creates the file unless it exists: for its owner only, and never what a link points at.
fn create(path: &Path) -> Result<(), String> {
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.to_string()),
        Err(_) if !path.exists() => {
            Err("it is a symbolic link to a file that does not exist".to_owned())
        }
        _ => Ok(()),
    }
}

/// The greatest id in the table of a file; `None` without a table.
pub fn last(path: &Path) -> Result<Option<u64>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(path)?;
    let exists = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let tables: i64 = connection.query_row(exists, [TABLE], |row| row.get(0)).map_err(text)?;
    if tables == 0 {
        return Ok(None);
    }
    let greatest = format!("SELECT COALESCE(MAX(id), 0) FROM {TABLE}");
    let last: i64 = connection.query_row(&greatest, [], |row| row.get(0)).map_err(text)?;
    Ok(Some(last.unsigned_abs()))
}

/// Deletes rows with ids greater than `last`, or the table if `last` is `None`.
pub fn restore(path: &Path, last: Option<u64>) -> Result<(), String> {
    let statement = match last {
        Some(last) => format!("DELETE FROM {TABLE} WHERE id > {last}"),
        None => format!("DROP TABLE IF EXISTS {TABLE}"),
    };
    connect(path)?.execute_batch(&statement).map_err(text)
}

fn connect(path: &Path) -> Result<Connection, String> {
    // Only the name of the memory is a URI: a file may have any name.
    let uri = match path.starts_with("file:") {
        true => OpenFlags::SQLITE_OPEN_URI,
        false => OpenFlags::empty(),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | uri;
    let connection = Connection::open_with_flags(path, flags).map_err(text)?;
    connection.busy_timeout(BUSY).map_err(text)?;
    // With a write-ahead log, a power failure loses only the last rows.
    connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(text)?;
    Ok(connection)
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err has it")]
fn text(error: rusqlite::Error) -> String {
    error.to_string()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}

impl UserDatabase for Sqlite {
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn UserConnection>, String>> {
        let path = self.path.clone();
        async move {
            let connection = blocking(move || connect(&path)).await?;
            Ok(Box::new(SqliteConnection(Some(connection))) as Box<dyn UserConnection>)
        }
        .boxed()
    }
}

impl UserConnection for SqliteConnection {
    fn execute(&mut self, statement: UserStatement) -> BoxFuture<'_, Result<UserReply, String>> {
        async move {
            let connection = self.0.take().ok_or("a statement on this connection was cancelled")?;
            let (connection, reply) = blocking(move || {
                let reply = execute(&connection, statement).map_err(text);
                Ok((connection, reply))
            })
            .await?;
            self.0 = Some(connection);
            reply
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
            // Ids fit 63 bits.
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
