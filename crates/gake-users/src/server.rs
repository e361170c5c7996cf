//! Users in MySQL or PostgreSQL.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gake_lab::{UserAnswer, UserConnection, UserDatabase, UserRow, UserStatement};
use gake_sql::{Dsn, Row, SqlKind, SqlSession, quoted};
use tokio::runtime::Builder;

use super::TABLE;

/// Time-out of creating and checking the table: another session may hold a lock.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time-out of deleting the rows of an experiment.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server with the table of users.
#[derive(Debug)]
pub struct UsersServer(Dsn);

#[derive(Debug)]
struct ServerConnection {
    session: SqlSession,
    kind: SqlKind,
}

impl UsersServer {
    /// Creates the table if it is missing, and checks its columns.
    pub fn open(dsn: &Dsn) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut session = SqlSession::open(dsn).await?;
            match tokio::time::timeout(PREPARE_TIMEOUT, prepare(&mut session, dsn.kind())).await {
                Ok(prepared) => prepared,
                Err(_) => Err(format!("no reply within {} s", PREPARE_TIMEOUT.as_secs())),
            }
        })?;
        Ok(Self(dsn.clone()))
    }
}

/// Checks the columns of the table, and creates it if that fails: the account may lack the right to
/// create tables.
async fn prepare(session: &mut SqlSession, kind: SqlKind) -> Result<(), String> {
    let columns = format!("SELECT id, name, mail FROM {TABLE} WHERE 1 = 0");
    if session.rows(&columns).await.is_ok() {
        return Ok(());
    }
    session.rows(&create(kind)).await?;
    session.rows(&columns).await.map(drop).map_err(|error| {
        format!("{error}: the table {TABLE} needs id, name and mail, which this account may read")
    })
}

fn create(kind: SqlKind) -> String {
    let (id, text) = match kind {
        SqlKind::MySql => {
            ("BIGINT UNSIGNED NOT NULL AUTO_INCREMENT", "VARCHAR(255) CHARACTER SET utf8mb4")
        }
        SqlKind::Postgres => ("BIGSERIAL", "VARCHAR(255)"),
    };
    format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} \
         (id {id} PRIMARY KEY, name {text} NOT NULL, mail {text} NOT NULL)"
    )
}

/// The greatest id in the table; `None` without a table.
pub fn last(dsn: &Dsn) -> Result<Option<u64>, String> {
    let exists = match dsn.kind() {
        SqlKind::MySql => format!(
            "SELECT COUNT(*) FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = '{TABLE}'"
        ),
        SqlKind::Postgres => {
            format!("SELECT CASE WHEN to_regclass('{TABLE}') IS NULL THEN 0 ELSE 1 END")
        }
    };
    if number(dsn, &exists)? == Some(0) {
        return Ok(None);
    }
    Ok(Some(number(dsn, &format!("SELECT MAX(id) FROM {TABLE}"))?.unwrap_or(0)))
}

/// Deletes rows with ids greater than `last`, or the table if `last` is `None`.
pub fn restore(dsn: &Dsn, last: Option<u64>) -> Result<(), String> {
    let statement = match last {
        Some(last) => format!("DELETE FROM {TABLE} WHERE id > {last}"),
        None => format!("DROP TABLE IF EXISTS {TABLE}"),
    };
    number(dsn, &statement).map(drop)
}

/// Executes a statement on a new connection; returns the first field of the first row, if it is a
/// number.
fn number(dsn: &Dsn, statement: &str) -> Result<Option<u64>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let rows = runtime.block_on(async {
        let mut session = SqlSession::open(dsn).await?;
        let rows = tokio::time::timeout(RESTORE_TIMEOUT, session.rows(statement));
        rows.await.map_err(|_| format!("no reply within {} s", RESTORE_TIMEOUT.as_secs()))?
    })?;
    Ok(rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()))
}

impl UserDatabase for UsersServer {
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn UserConnection>, String>> {
        let kind = self.0.kind();
        async move {
            let session = SqlSession::open(&self.0).await?;
            Ok(Box::new(ServerConnection { session, kind }) as Box<dyn UserConnection>)
        }
        .boxed()
    }
}

impl UserConnection for ServerConnection {
    fn execute(&mut self, statement: UserStatement) -> BoxFuture<'_, Result<UserAnswer, String>> {
        async move {
            Ok(match statement {
                UserStatement::Insert { name, mail } => {
                    let id = self.session.insert(&insert(self.kind, &name, &mail)).await?;
                    UserAnswer::Row(Some(UserRow { id, name, mail }))
                }
                UserStatement::Get(id) => {
                    let statement = format!("SELECT id, name, mail FROM {TABLE} WHERE id = {id}");
                    let rows = self.session.rows(&statement).await?;
                    UserAnswer::Row(rows.into_iter().next().and_then(user))
                }
                UserStatement::Count => {
                    let statement = format!("SELECT COUNT(*) FROM {TABLE}");
                    let rows = self.session.rows(&statement).await?;
                    let count = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
                    UserAnswer::Count(count.ok_or("the server returned no number of rows")?)
                }
                UserStatement::Clear => {
                    self.session.rows(&format!("DELETE FROM {TABLE}")).await?;
                    UserAnswer::Count(0)
                }
            })
        }
        .boxed()
    }
}

fn insert(kind: SqlKind, name: &str, mail: &str) -> String {
    let [name, mail] = [name, mail].map(|text| quoted(kind, text));
    let returning = match kind {
        SqlKind::MySql => "",
        SqlKind::Postgres => " RETURNING id",
    };
    format!("INSERT INTO {TABLE} (name, mail) VALUES ({name}, {mail}){returning}")
}

fn user(row: Row) -> Option<UserRow> {
    let mut fields = row.into_iter().flatten();
    Some(UserRow { id: fields.next()?.parse().ok()?, name: fields.next()?, mail: fields.next()? })
}
