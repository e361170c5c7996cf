//! The users service: rows behind a pool of connections to a database.
//!
//! The database is a model, which takes a time to connect and a time for a statement and refuses
//! connections over its bound, or a real one ([`UserDatabase`]). The pool is real in both cases, and
//! has the bounds and defaults of Go's `database/sql`: any number open, two kept idle.

mod error;
mod model;
mod pool;
mod real;
mod users;

use std::str::FromStr;
use std::time::Duration;

pub(crate) use pool::Pool;
pub use real::{RealDatabase, UserConnection, UserDatabase, UserReply, UserRow, UserStatement};
pub(crate) use users::{BODY_CAP, Users};

use crate::duration::{LONGEST, parse_duration};

/// Connections that the pool keeps idle when nothing else is said, as `database/sql` does.
const IDLE: usize = 2;

/// The database of the users service, and the pool in front of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// The database.
    pub kind: DatabaseKind,
    /// Connections that the pool opens at most; further requests wait. `None` is any number.
    pub max_open: Option<usize>,
    /// Connections that the pool keeps when nobody uses them; others are closed.
    pub max_idle: usize,
    /// How long a request waits for a connection of the pool; `None` is for ever.
    pub acquire_timeout: Option<Duration>,
    /// A connection that is older is not used again; `None` is for ever.
    pub lifetime: Option<Duration>,
    /// Every n-th row is acknowledged and lost; `None` loses none.
    pub lose_every: Option<u64>,
}

/// A model, or a database that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseKind {
    /// Nothing but times and a bound.
    Model(DatabaseModel),
    /// Whatever the program that starts the lab can open.
    Real(RealDatabase),
}

/// A database that does nothing but take its time and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseModel {
    /// How long it takes to open a connection.
    pub connect: Duration,
    /// How long a statement takes.
    pub statement: Duration,
    /// Connections that the database allows; `None` is any number.
    pub server_max: Option<usize>,
}

/// What is wrong with the text of a [`DatabaseModel`].
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
