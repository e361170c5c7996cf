//! `--db-url`: responses as rows of oha's table in an SQLite file.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gake_core::clock::SECOND;
use gake_core::record::{ExchangeEnd, Outcome};
use gake_core::spec::{RequestSource, RunSpec};
use gake_session::Failure;
use gake_wire::Location;
use rusqlite::{Connection, Statement, params};

use super::stats;
use crate::tool_run::OutcomeHandler;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS oha (
    url TEXT NOT NULL,
    start REAL NOT NULL,
    start_latency_correction REAL,
    end REAL NOT NULL,
    duration REAL NOT NULL,
    status INTEGER NOT NULL,
    len_bytes INTEGER NOT NULL,
    run INTEGER NOT NULL
)";

const INSERT: &str = "INSERT INTO oha VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// What is written of each response.
#[derive(Debug)]
pub struct Rows {
    /// The URLs, sent in turn.
    pub urls: Vec<String>,
    /// Whether latency counts from when a request was due.
    pub corrected: bool,
    /// The number of the run: when it started, in seconds of Unix time.
    pub run: i64,
}

/// An open file. The rows of a run are one transaction, as in oha: all of them are there, or none.
#[derive(Debug, Clone)]
pub struct Database(Arc<Mutex<Connection>>);

impl Database {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// When it cannot be written, or is no database.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.execute(TABLE, ())?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(connection)
        };
        open().map(|connection| Self(Arc::new(Mutex::new(connection)))).map_err(|why| fault(&why))
    }

    /// Writes the rows of every outcome.
    pub fn handler(&self, rows: Rows) -> OutcomeHandler {
        let database = self.clone();
        Box::new(move |outcomes| {
            let connection = database.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut insert = connection.prepare(INSERT).map_err(io::Error::other)?;
            let mut written = outcomes.iter().map(|outcome| rows.insert(&mut insert, outcome));
            written.try_for_each(|written| written.map_err(io::Error::other))
        })
    }

    /// Keeps the rows.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(&self) -> Result<(), Failure> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connection.execute_batch("COMMIT").map_err(|why| fault(&why))
    }
}

fn fault(why: &rusqlite::Error) -> Failure {
    Failure::could_not(format!("--db-url: {why}"))
}

/// The URLs of a run as oha stores them, in the order in which they are sent: of HTTP/1 what the
/// request line has.
pub fn urls(spec: &RunSpec) -> Vec<String> {
    let is_whole = spec.connection.http.is_multiplexed() || spec.connection.proxy.is_some();
    let shown = |url: String| match Location::parse(&url) {
        Ok(location) if !is_whole => location.target,
        _ => url,
    };
    let sources = spec.scenarios.iter().map(|scenario| &scenario.source);
    let urls = sources.flat_map(|source| match source {
        RequestSource::Requests(all) => all.iter().map(|request| request.url.clone()).collect(),
        RequestSource::Url(url) => vec![url.clone()],
        _ => Vec::new(),
    });
    urls.map(shown).collect()
}

impl Rows {
    fn insert(&self, insert: &mut Statement<'_>, outcome: &Outcome) -> rusqlite::Result<()> {
        let ExchangeEnd::Response(answer) = outcome.exchange.end else { return Ok(()) };
        let row = stats::row(outcome, self.corrected, answer.status, answer.body_bytes);
        let seconds = |nanos: u64| nanos as f64 / SECOND as f64;
        let at = outcome.arrival.number % self.urls.len().max(1) as u64;
        let url = usize::try_from(at).ok().and_then(|at| self.urls.get(at));
        let due = self.corrected.then(|| seconds(outcome.arrival.due));
        insert
            .execute(params![
                url,
                seconds(row.start),
                due,
                seconds(outcome.exchange.done),
                seconds(row.duration),
                row.status,
                i64::try_from(row.bytes).unwrap_or(i64::MAX),
                self.run,
            ])
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::{Exchange, ResponseSummary};
    use gake_core::work::Arrival;

    use super::*;

    fn answered(number: u64) -> Outcome {
        let answer = ResponseSummary { status: 201, body_bytes: 7 };
        Outcome {
            arrival: Arrival { number, due: SECOND / 2 },
            blocked: 0,
            fired: SECOND,
            exchange: Exchange {
                done: 3 * SECOND,
                end: ExchangeEnd::Response(answer),
                ..Exchange::unfinished(SECOND)
            },
        }
    }

    #[test]
    fn responses_are_rows_of_ohas_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        for (run, corrected) in [(1, false), (2, true)] {
            let database = Database::open(&path).unwrap();
            let urls = vec!["/a".to_owned(), "/b".to_owned()];
            let mut handler = database.handler(Rows { urls, corrected, run });
            let failed = Outcome { exchange: Exchange::unfinished(SECOND), ..answered(2) };
            handler(&[answered(0), answered(1), failed]).unwrap();
            database.finish().unwrap();
        }
        let connection = Connection::open(&path).unwrap();
        let mut select = connection.prepare("SELECT * FROM oha ORDER BY run, url").unwrap();
        let rows = select.query_map((), |row| {
            let times: (f64, Option<f64>, f64, f64) =
                (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            let numbers: [i64; 3] = [row.get(5)?, row.get(6)?, row.get(7)?];
            Ok((row.get::<_, String>(0)?, times, numbers))
        });
        let rows: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
        let row = |url: &str, due, duration, run| {
            (url.to_owned(), (1.0, due, 3.0, duration), [201, 7, run])
        };
        let expected = [
            row("/a", None, 2.0, 1),
            row("/b", None, 2.0, 1),
            row("/a", Some(0.5), 2.5, 2),
            row("/b", Some(0.5), 2.5, 2),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "text".repeat(1_000)).unwrap();
        assert!(format!("{:?}", Database::open(file.path()).unwrap_err()).contains("--db-url"));
    }
}
