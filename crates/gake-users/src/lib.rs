//! Databases of the lab's users service: SQLite in a file or in memory, MySQL, PostgreSQL.

#![forbid(unsafe_code)]

mod server;
mod sqlite;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gake_lab::{DatabaseKind, DatabaseModel, DatabaseModelError, RealDatabase};
use gake_sql::{Dsn, DsnError, SqlKind};

use server::UsersServer;
use sqlite::Sqlite;

/// The table, which `DELETE /users` empties: a name that applications do not use.
const TABLE: &str = "gake_users";

/// The value of `--db`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStore {
    /// `model:CONNECT,STATEMENT`.
    Model(DatabaseModel),
    /// `sqlite:FILE`; `None` is `sqlite::memory:`.
    Sqlite(Option<PathBuf>),
    /// `mysql://...` or `postgres://...`.
    Server(Dsn),
}

/// Why a text is not a [`UserStore`]. Never contains the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStoreError {
    /// Unknown kind.
    Form,
    /// An invalid model.
    Model(DatabaseModelError),
    /// An invalid DSN.
    Server(DsnError),
    /// No database: MySQL has no default.
    Nameless,
}

impl fmt::Display for UserStoreError {
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
    type Err = UserStoreError;

    fn from_str(text: &str) -> Result<Self, UserStoreError> {
        let (kind, rest) = text.split_once(':').ok_or(UserStoreError::Form)?;
        let server = |kind| {
            let dsn = Dsn::parse(kind, rest).map_err(UserStoreError::Server)?;
            if kind == SqlKind::MySql && dsn.database().is_none() {
                return Err(UserStoreError::Nameless);
            }
            Ok(Self::Server(dsn))
        };
        match kind {
            "model" => Ok(Self::Model(text.parse().map_err(UserStoreError::Model)?)),
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                "" => Err(UserStoreError::Form),
                ":memory:" => Ok(Self::Sqlite(None)),
                file => Ok(Self::Sqlite(Some(file.into()))),
            },
            "mysql" | "mariadb" => server(SqlKind::MySql),
            "postgres" | "postgresql" => server(SqlKind::Postgres),
            _ => Err(UserStoreError::Form),
        }
    }
}

impl fmt::Display for UserStore {
    /// The address, without credentials.
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
    /// Whether it is a MySQL server, which counts refused connections.
    pub fn is_mysql(&self) -> bool {
        matches!(self, Self::Server(dsn) if dsn.kind() == SqlKind::MySql)
    }

    /// Opens the database and creates the table if it is missing. Blocks for a few seconds at most.
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

/// The state of a store before rows are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStoreSnapshot {
    /// The greatest id; `None` without a table.
    last: Option<u64>,
    /// Whether the SQLite file existed.
    had_file: bool,
}

impl UserStoreSnapshot {
    /// Takes a snapshot. Blocks for a few seconds at most.
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

    /// Deletes the rows, or the table or file, added since. Does nothing for memory and models.
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

/// Removes an SQLite file with its write-ahead log.
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
    use expect_test::expect;

    use super::*;

    #[test]
    fn stores_are_parsed() {
        let of = |text: &str| text.parse::<UserStore>();
        assert!(matches!(of("model:1ms,2ms"), Ok(UserStore::Model(_))));
        assert_eq!(of("sqlite::memory:"), Ok(UserStore::Sqlite(None)));
        assert_eq!(of("sqlite:a.db"), Ok(UserStore::Sqlite(Some("a.db".into()))));
        assert_eq!(of("sqlite:///tmp/a.db"), Ok(UserStore::Sqlite(Some("/tmp/a.db".into()))));
        assert!(matches!(of("mysql://u:p@h/shop"), Ok(UserStore::Server(_))));
        assert!(matches!(of("postgres://u:p@h"), Ok(UserStore::Server(_))));
    }

    #[test]
    fn errors_do_not_contain_the_password() {
        let mut errors = String::new();
        for text in [
            "oracle://u:secret@h",
            "sqlite:",
            "mysql://u:secret@h",
            "mysql://u:secret@h:x/shop",
            "model:1ms",
        ] {
            let error = text.parse::<UserStore>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{text}: {error}");
            errors += &format!("{error}\n");
        }
        expect![[r#"
            write model:CONNECT,STATEMENT, sqlite:FILE, sqlite::memory:, mysql://USER:PASSWORD@HOST/DATABASE or postgres://USER:PASSWORD@HOST/DATABASE
            write model:CONNECT,STATEMENT, sqlite:FILE, sqlite::memory:, mysql://USER:PASSWORD@HOST/DATABASE or postgres://USER:PASSWORD@HOST/DATABASE
            name the database too: mysql://USER:PASSWORD@HOST/DATABASE, or ?dbname=DATABASE
            its port is not a number from 1 to 65535
            "model:1ms" is not a database: write model:CONNECT,STATEMENT, as in model:150ms,50ms
        "#]].assert_eq(&errors);
    }
}
