//! Plain statements over the protocols of MySQL (and MariaDB) and PostgreSQL.
//!
//! A [`Dsn`] names a server, a [`SqlSession`] is one connection to it. Only the text protocols are
//! spoken. A password leaves this machine as an answer to the server's challenge, and as a whole
//! only to a server whose certificate was checked. Answers are bounded.

#![forbid(unsafe_code)]

mod dsn;
mod md5;
mod mysql;
mod postgres;
mod quote;
mod reply;
mod scram;
mod session;
mod stream;

pub use dsn::{Dsn, DsnError, SqlKind};
pub use quote::quoted;
pub use reply::Row;
pub use session::SqlSession;
