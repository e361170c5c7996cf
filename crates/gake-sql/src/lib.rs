//! Plain statements over the text protocols of MySQL (and MariaDB) and PostgreSQL.
//!
//! A [`Dsn`] names a server, a [`SqlSession`] is a connection to it. Passwords are sent to other
//! machines only as a response to a challenge, or to a server whose certificate was checked.
//! Replies are bounded.

#![forbid(unsafe_code)]

mod dsn;
mod mysql;
mod postgres;
mod quote;
mod reply;
mod scram;
mod session;
mod stream;
mod typed;

pub use dsn::{Dsn, DsnError, LoginTls, ScriptLogin, SqlKind};
pub use quote::quoted;
pub use reply::Row;
pub use session::SqlSession;
pub use stream::{SqlStream, SqlTransport};
pub use typed::{ResultSet, SqlError, SqlValue, TypedSession};
