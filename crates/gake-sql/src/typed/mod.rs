//! Statements with arguments, and results whose values have types: what scripts get.

mod binary;
mod mysql;
mod postgres;

use std::fmt;

use crate::dsn::{Dsn, SqlKind};
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::stream::{SqlStream, SqlTransport};

/// A value of a row, or an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// `NULL`.
    Null,
    /// An integer.
    Integer(i64),
    /// An integer that only MySQL's unsigned ones have.
    Unsigned(u64),
    /// A number.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(String),
    /// Bytes, or a text of a type that Go's drivers do not convert.
    Bytes(Vec<u8>),
    /// A date, a time or both, as the server writes it.
    Time(String),
}

/// The results of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultSet {
    /// The names of the columns of the first result that has some.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<SqlValue>>,
    /// Rows that the last statement affected.
    pub affected: u64,
    /// MySQL's last generated value.
    pub last_id: Option<u64>,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlError {
    /// The server refused the statement: the message of Go's driver.
    Refused(String),
    /// The connection is unusable.
    Lost(String),
    /// The caller has no room for the result; the connection is unusable.
    NoRoom,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Lost(why) => f.write_str(why),
            Self::NoRoom => f.write_str("the result is too large"),
        }
    }
}

impl From<String> for SqlError {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

/// Asked for room for more bytes of a result. Returns whether there is.
pub type Room<'a> = &'a mut dyn FnMut(usize) -> bool;

/// A connection of a script. Drop it after an error other than [`SqlError::Refused`], and when a
/// future of it was dropped.
#[derive(Debug)]
pub struct TypedSession<S: SqlTransport>(Connection<S>);

#[derive(Debug)]
enum Connection<S> {
    MySql(MySql<S>),
    Postgres(Postgres<S>),
}

impl TypedSession<SqlStream> {
    /// Connects to a server.
    ///
    /// # Errors
    /// The server's message, if it replied.
    pub async fn open(dsn: &Dsn) -> Result<Self, SqlError> {
        Self::start(SqlStream::open(dsn).await?, dsn).await
    }
}

impl<S: SqlTransport> TypedSession<S> {
    /// Logs in over an open connection.
    ///
    /// # Errors
    /// The server's message, if it replied.
    pub async fn start(transport: S, dsn: &Dsn) -> Result<Self, SqlError> {
        Ok(Self(match dsn.kind {
            SqlKind::MySql => Connection::MySql(MySql::start(transport, dsn).await?),
            SqlKind::Postgres => Connection::Postgres(Postgres::start(transport, dsn).await?),
        }))
    }

    /// Whether the server has closed the connection, which is idle.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.0 {
            Connection::MySql(session) => session.stream.has_ended(),
            Connection::Postgres(session) => session.stream.has_ended(),
        }
    }

    /// Executes a statement; with arguments it is prepared first.
    ///
    /// # Errors
    /// If the server rejects it, the connection is lost, or there is no room for the result.
    pub async fn execute(
        &mut self,
        statement: &str,
        arguments: &[SqlValue],
        room: Room<'_>,
    ) -> Result<ResultSet, SqlError> {
        match &mut self.0 {
            Connection::MySql(session) => session.execute(statement, arguments, room).await,
            Connection::Postgres(session) => session.execute(statement, arguments, room).await,
        }
    }
}

impl<S: SqlTransport> Drop for TypedSession<S> {
    /// Sends the protocol's goodbye: the server would count an aborted client.
    fn drop(&mut self) {
        match &self.0 {
            Connection::MySql(session) => session.stream.farewell(&[1, 0, 0, 0, 1]),
            Connection::Postgres(session) => session.stream.farewell(b"X\0\0\0\x04"),
        }
    }
}

/// Takes room for a row.
fn take_room(room: Room<'_>, bytes: usize, columns: usize) -> Result<(), SqlError> {
    let size = bytes.saturating_add(columns.saturating_mul(size_of::<SqlValue>()));
    if room(size) { Ok(()) } else { Err(SqlError::NoRoom) }
}
