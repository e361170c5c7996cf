//! One connection to a database, whichever protocol it speaks.

use std::time::Duration;

use crate::dsn::{Dsn, SqlKind};
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::reply::Row;

/// How long opening a connection may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection. Whoever gives up waiting for an answer drops it: the next statement would
/// read the answer to the last one.
#[derive(Debug)]
pub struct SqlSession(Connection);

#[derive(Debug)]
enum Connection {
    MySql(MySql),
    Postgres(Postgres),
}

impl Drop for SqlSession {
    /// Says goodbye: a connection that is just closed counts as a client that broke down.
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
    /// In the server's own words where it answers.
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

    /// The rows that answer a statement.
    ///
    /// # Errors
    /// If the server refuses the statement, or the connection is lost.
    pub async fn rows(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        match &mut self.0 {
            Connection::MySql(session) => session.query(statement).await,
            Connection::Postgres(session) => session.query(statement).await,
        }
    }

    /// Inserts a row; returns the number that the server gave it. PostgreSQL tells it when the
    /// statement ends with `RETURNING` and the column.
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
            .ok_or_else(|| "it does not say which id the row has".to_owned())
    }
}
