//! A connection to a database of either protocol.

use std::time::Duration;

use crate::dsn::{Dsn, SqlKind};
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::reply::Row;
use crate::stream::{SqlStream, SqlTransport};

/// Time-out of opening a connection.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection. Drop it after a time-out: the next statement would read the reply to the
/// last.
#[derive(Debug)]
pub struct SqlSession(Connection);

#[derive(Debug)]
enum Connection {
    MySql(MySql<SqlStream>),
    Postgres(Postgres<SqlStream>),
}

impl Drop for SqlSession {
    /// Sends the protocol's goodbye: the server would count an aborted client.
    fn drop(&mut self) {
        match &self.0 {
            Connection::MySql(session) => session.stream.farewell(&[1, 0, 0, 0, 1]),
            Connection::Postgres(session) => session.stream.farewell(b"X\0\0\0\x04"),
        }
    }
}

impl SqlSession {
    /// Opens a connection within 5 s.
    ///
    /// # Errors
    /// The server's message, if it replied.
    pub async fn open(dsn: &Dsn) -> Result<Self, String> {
        let opened = async {
            Ok(Self(match dsn.kind {
                SqlKind::MySql => Connection::MySql(MySql::open(dsn).await?),
                SqlKind::Postgres => Connection::Postgres(Postgres::open(dsn).await?),
            }))
        };
        match tokio::time::timeout(OPEN_TIMEOUT, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no connection within {} s", OPEN_TIMEOUT.as_secs())),
        }
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// If the server rejects the statement, or the connection is lost.
    pub async fn rows(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        match &mut self.0 {
            Connection::MySql(session) => session.query(statement).await,
            Connection::Postgres(session) => session.query(statement).await,
        }
    }

    /// Inserts a row and returns its generated id. With PostgreSQL, the statement must end with
    /// `RETURNING` and the column.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub async fn insert(&mut self, statement: &str) -> Result<u64, String> {
        let rows = self.rows(statement).await?;
        if let Connection::MySql(session) = &self.0 {
            return Ok(session.last_id);
        }
        let field = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        field
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| "the server returned no id of the row".to_owned())
    }
}
