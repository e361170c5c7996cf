//! Databases for the lab's users service: a file or memory of SQLite, MySQL, PostgreSQL.

#![forbid(unsafe_code)]

mod server;
mod sqlite;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gake_lab::{BadDatabase, DatabaseKind, DatabaseModel, RealDatabase};
use gake_sql::{Dsn, DsnError, SqlKind};

use server::UsersServer;
use sqlite::Sqlite;

/// The table. Its name is the lab's own, for `DELETE /users` empties it.
const TABLE: &str = "gake_users";

/// Where users are kept, as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStore {
    /// `model:CONNECT,STATEMENT`.
    Model(DatabaseModel),
    /// `sqlite:FILE`; `None` is `sqlite::memory:`.
    Sqlite(Option<PathBuf>),
    /// `mysql://...` or `postgres://...`.
    Server(Dsn),
}

/// Why a text is no [`UserStore`]. It never holds the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadStore {
    /// Of no known kind.
    Form,
    /// A model with other than two times.
    Model(BadDatabase),
    /// A server that is written in another way.
    Server(DsnError),
    /// MySQL has no database to fall back on.
    Nameless,
}

impl fmt::Display for BadStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str(
                "write model:CONNECT,STATEMENT, sqlite:FILE, sqlite::memory:, \
                 mysql://USER:PASSWORD@HOST/DATABASE or postgres://USER:PASSWORD@HOST/DATABASE",
            ),
            Self::Model(error) => error.fmt(f),
            Self::Server(error) => error.fmt(f),
            Self::Nameless => f.write_str(
                "name the database too: mysql://USER:PASSWORD@HOST/DATABASE, or ?dbname=DATABASE",
            ),
        }
    }
}

impl FromStr for UserStore {
    type Err = BadStore;

    fn from_str(text: &str) -> Result<Self, BadStore> {
        let (kind, rest) = text.split_once(':').ok_or(BadStore::Form)?;
        let server = |kind| {
            let dsn = Dsn::parse(kind, rest).map_err(BadStore::Server)?;
            if kind == SqlKind::MySql && dsn.database().is_none() {
                return Err(BadStore::Nameless);
            }
            Ok(Self::Server(dsn))
        };
        match kind {
            "model" => Ok(Self::Model(text.parse().map_err(BadStore::Model)?)),
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                "" => Err(BadStore::Form),
                ":memory:" => Ok(Self::Sqlite(None)),
                file => Ok(Self::Sqlite(Some(file.into()))),
            },
            "mysql" | "mariadb" => server(SqlKind::MySql),
            "postgres" | "postgresql" => server(SqlKind::Postgres),
            _ => Err(BadStore::Form),
        }
    }
}

impl fmt::Display for UserStore {
    /// The place alone, without who asks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(_) => f.write_str("a model"),
            Self::Sqlite(None) => f.write_str("sqlite::memory:"),
            Self::Sqlite(Some(path)) => write!(f, "sqlite:{}", path.display()),
            Self::Server(dsn) => dsn.fmt(f),
        }
    }
}

impl UserStore {
    /// Whether it is a MySQL server, which counts the connections that it refuses.
    pub fn is_mysql(&self) -> bool {
        matches!(self, Self::Server(dsn) if dsn.kind() == SqlKind::MySql)
    }

    /// Opens it and makes the table if there is none. Blocks for some seconds at most.
    ///
    /// # Errors
    /// When it cannot be reached, or the table has other columns.
    pub fn open(&self) -> Result<DatabaseKind, String> {
        let real = match self {
            Self::Model(model) => return Ok(DatabaseKind::Model(*model)),
            Self::Sqlite(path) => Sqlite::open(path.as_deref()).map(RealDatabase::new),
            Self::Server(dsn) => UsersServer::open(dsn).map(RealDatabase::new),
        };
        real.map(DatabaseKind::Real).map_err(|error| format!("--db {self}: {error}"))
    }
}

/// A store before rows were added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsersBefore {
    /// The greatest id; `None` if there was no table.
    last: Option<u64>,
    /// Whether there was a file, if it is kept in one.
    had_file: bool,
}

impl UsersBefore {
    /// Looks at the store. Blocks for some seconds at most.
    ///
    /// # Errors
    /// When it cannot be reached or read.
    pub fn of(store: &UserStore) -> Result<Self, String> {
        let (last, had_file) = match store {
            UserStore::Model(_) | UserStore::Sqlite(None) => (Ok(None), false),
            UserStore::Sqlite(Some(path)) => (sqlite::last(path), path.exists()),
            UserStore::Server(dsn) => (server::last(dsn), false),
        };
        let last = last.map_err(|why| format!("--db {store}: {why}"))?;
        Ok(Self { last, had_file })
    }

    /// Deletes what was added since: the rows, or the table or file when it is new. Memory and models
    /// end with their process.
    ///
    /// # Errors
    /// When it cannot be reached or changed.
    pub fn restore(self, store: &UserStore) -> Result<(), String> {
        let restored = match store {
            UserStore::Model(_) | UserStore::Sqlite(None) => Ok(()),
            UserStore::Sqlite(Some(path)) if self.had_file => sqlite::restore(path, self.last),
            UserStore::Sqlite(Some(path)) => remove(path),
            UserStore::Server(dsn) => server::restore(dsn, self.last),
        };
        restored.map_err(|why| format!("--db {store}: {why}"))
    }
}

/// Removes a file of SQLite and what lies beside it.
fn remove(path: &Path) -> Result<(), String> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_told_apart() {
        let of = |text: &str| text.parse::<UserStore>();
        assert!(matches!(of("model:1ms,2ms"), Ok(UserStore::Model(_))));
        assert_eq!(of("sqlite::memory:"), Ok(UserStore::Sqlite(None)));
        assert_eq!(of("sqlite:a.db"), Ok(UserStore::Sqlite(Some("a.db".into()))));
        assert_eq!(of("sqlite:///tmp/a.db"), Ok(UserStore::Sqlite(Some("/tmp/a.db".into()))));
        assert!(matches!(of("mysql://u:p@h/shop"), Ok(UserStore::Server(_))));
        assert!(matches!(of("postgres://u:p@h"), Ok(UserStore::Server(_))));
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (text, told) in [
            ("oracle://u:secret@h", "sqlite:FILE"),
            ("sqlite:", "sqlite:FILE"),
            ("mysql://u:secret@h", "name the database"),
            ("mysql://u:secret@h:x/shop", "port"),
            ("model:1ms", "model:CONNECT,STATEMENT"),
        ] {
            let error = text.parse::<UserStore>().unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
