//! Counting rows: in an SQLite file, or a source of `gake-watch`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use gake_watch::{CountError, CountSource};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// How long to wait for another connection's lock.
const BUSY: Duration = Duration::from_secs(5);

/// A source of a number of rows.
#[derive(Debug, PartialEq, Eq)]
pub enum RowSource {
    /// `sql:sqlite:FILE:SELECT ...`.
    Sqlite(PathBuf, String),
    /// A database server, or a field of an HTTP response.
    Other(CountSource),
}

/// Why a text does not name a source.
#[derive(Debug, PartialEq, Eq)]
pub enum BadRowSource {
    /// An SQLite file without a statement, or without a name.
    Sqlite,
    /// An in-memory database, which other processes cannot read.
    Memory,
    /// An unknown source.
    Other(CountError),
}

impl FromStr for RowSource {
    type Err = BadRowSource;

    fn from_str(text: &str) -> Result<Self, BadRowSource> {
        let Some(rest) = text.strip_prefix("sql:sqlite:") else {
            return Ok(Self::Other(text.parse().map_err(BadRowSource::Other)?));
        };
        let colon = CountSource::statement_at(rest).ok_or(BadRowSource::Sqlite)?;
        let (file, statement) = (&rest[..colon], rest[colon + 1..].trim());
        match file.strip_prefix("//").unwrap_or(file) {
            "" => Err(BadRowSource::Sqlite),
            ":memory:" => Err(BadRowSource::Memory),
            file => Ok(Self::Sqlite(file.into(), statement.to_owned())),
        }
    }
}

impl RowSource {
    /// Counts the rows. Blocks for some seconds at most, or for as long as SQLite takes for the
    /// statement.
    ///
    /// # Errors
    /// Why there is no number, in a sentence without passwords.
    pub fn read(&self) -> Result<u64, String> {
        match self {
            Self::Sqlite(file, statement) => first_number(file, statement),
            Self::Other(source) => source.read(),
        }
    }
}

/// The first field of the first row. The database is opened for reading only.
fn first_number(file: &Path, statement: &str) -> Result<u64, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let value = Connection::open_with_flags(file, flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        connection.query_row(statement, [], |row| row.get::<_, Value>(0))
    });
    let number = match value {
        Ok(Value::Integer(number)) => u64::try_from(number).ok(),
        Ok(Value::Text(text)) => text.trim().parse().ok(),
        Ok(_) => None,
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            return Err("the statement gives no row".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    number.ok_or_else(|| "the first field is not a number of rows".to_owned())
}

impl fmt::Display for RowSource {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file, statement) => write!(f, "sqlite:{}: {statement}", file.display()),
            Self::Other(source) => source.fmt(f),
        }
    }
}

impl fmt::Display for BadRowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("write sql:sqlite:FILE:SELECT COUNT(*) FROM TABLE"),
            Self::Memory => f.write_str(
                "sqlite::memory: belongs to the server's process: give it a file, or count with \
                 http:URL#FIELD",
            ),
            Self::Other(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_statement_are_separated() {
        let of = |text: &str| text.parse::<RowSource>();
        let statement = "SELECT COUNT(*) FROM t WHERE a = 'b:c'";
        for (text, file) in [("a:b.db", "a:b.db"), ("///tmp/a.db", "/tmp/a.db")] {
            let expected = RowSource::Sqlite(file.into(), statement.to_owned());
            assert_eq!(of(&format!("sql:sqlite:{text}:{statement}")), Ok(expected));
        }
        assert_eq!(of("sql:sqlite:a.db"), Err(BadRowSource::Sqlite));
        assert_eq!(of("sql:sqlite::SELECT 1"), Err(BadRowSource::Sqlite));
        assert_eq!(of("sql:sqlite::memory::SELECT 1"), Err(BadRowSource::Memory));
        assert!(matches!(of("sql:mysql://h:SELECT 1"), Ok(RowSource::Other(_))));
        assert!(matches!(of("sql:oracle:x:SELECT 1"), Err(BadRowSource::Other(_))));
    }

    #[test]
    fn rows_are_counted_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        let read = |statement: &str| RowSource::Sqlite(file.clone(), statement.to_owned()).read();
        assert!(read("SELECT 1").unwrap_err().contains("a.db"));
        assert!(!file.exists(), "a missing file is not created");
        let writer = Connection::open(&file).unwrap();
        let rows = "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)";
        writer.execute_batch(rows).unwrap();
        assert_eq!(read("SELECT COUNT(*) FROM t"), Ok(2));
        assert_eq!(read("WITH r AS (SELECT '7') SELECT * FROM r"), Ok(7));
        for (statement, reason) in [
            ("SELECT a FROM t WHERE a > 2", "no row"),
            ("SELECT 'many'", "not a number"),
            ("SELECT COUNT(*) FROM missing", "no such table"),
            ("WITH r AS (SELECT 1) INSERT INTO t SELECT * FROM r RETURNING a", "readonly"),
        ] {
            let error = read(statement).unwrap_err();
            assert!(error.contains(reason), "{statement}: {error}");
        }
        assert_eq!(read("SELECT COUNT(*) FROM t"), Ok(2));
    }
}
