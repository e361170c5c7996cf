//! The users service: rows behind a pool of database connections.
//!
//! The database is a model with fixed connect and statement times and a connection limit, or a real
//! one ([`UserDatabase`]). The pool is real in both cases, with the bounds and defaults of Go's
//! `database/sql`: unlimited open connections, two idle.

mod error;
mod model;
mod pool;
mod real;
mod users;

use std::str::FromStr;
use std::time::Duration;

pub(crate) use pool::ConnectionPool;
pub use real::{RealDatabase, UserConnection, UserDatabase, UserReply, UserRow, UserStatement};
pub(crate) use users::{BODY_CAP, UserService};

use crate::duration::{LONGEST, parse_duration};

/// Idle connections that the pool keeps by default, as `database/sql` does.
const IDLE: usize = 2;

/// The database of the users service and its connection pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// A model, or a real database.
    pub kind: DatabaseKind,
    /// Most open connections; further requests wait. `None` is unlimited.
    pub max_open: Option<usize>,
    /// Idle connections that are kept; more are closed.
    pub max_idle: usize,
    /// How long a request waits for a pooled connection; `None` is unlimited.
    pub acquire_timeout: Option<Duration>,
    /// A connection older than this is not reused; `None` is unlimited.
    pub lifetime: Option<Duration>,
    /// Acknowledge every n-th row without storing it; `None` loses none.
    pub lose_every: Option<u64>,
}

/// A model, or a real database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseKind {
    /// Fixed times and a connection limit.
    Model(DatabaseModel),
    /// A database opened by the program that starts the lab.
    Real(RealDatabase),
}

/// A modelled database: fixed times and a connection limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseModel {
    /// Time to open a connection.
    pub connect: Duration,
    /// Time to execute a statement.
    pub statement: Duration,
    /// Most connections that the database accepts; `None` is unlimited.
    pub server_max: Option<usize>,
}

/// The text is not a [`DatabaseModel`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a database: write model:CONNECT,STATEMENT, as in model:150ms,50ms")]
pub struct DatabaseModelError(String);

impl From<DatabaseKind> for DatabaseConfig {
    /// The pool has the defaults of Go's `database/sql`.
    fn from(kind: DatabaseKind) -> Self {
        Self {
            kind,
            max_open: None,
            max_idle: IDLE,
            acquire_timeout: None,
            lifetime: None,
            lose_every: None,
        }
    }
}

impl FromStr for DatabaseModel {
    type Err = DatabaseModelError;

    fn from_str(text: &str) -> Result<Self, DatabaseModelError> {
        let bad = || DatabaseModelError(text.to_owned());
        let times = text.strip_prefix("model:").and_then(|times| times.split_once(','));
        let (connect, statement) = times.ok_or_else(bad)?;
        let time = |text: &str| {
            let time = parse_duration(text).map_err(|_| bad())?;
            if time > LONGEST { Err(bad()) } else { Ok(time) }
        };
        Ok(Self { connect: time(connect)?, statement: time(statement)?, server_max: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_two_times_and_its_pool_the_defaults_of_go() {
        let model: DatabaseModel = "model:150ms,0s".parse().unwrap();
        assert_eq!((model.connect, model.statement), (Duration::from_millis(150), Duration::ZERO));
        let config = DatabaseConfig::from(DatabaseKind::Model(model));
        assert_eq!((config.max_open, config.max_idle), (None, 2));
        for text in ["", "model:", "model:1s", "model:x,1s", "sqlite:a", "model:1s,1000h"] {
            assert!(text.parse::<DatabaseModel>().is_err(), "{text}");
        }
    }
}
