//! Databases behind the target: levels of their connections, read with their own
//! protocols.
//!
//! One connection is opened before the run and kept, so that a database without a free one can
//! still be asked. Only the text protocols are spoken. A password leaves this machine as an answer
//! to the server's challenge, and as a whole only to a server whose certificate was checked.

mod dsn;
mod md5;
mod mysql;
mod postgres;
mod reply;
mod scram;
mod stream;

use std::time::{Duration, Instant};

use gake_core::record::LevelUnit;

pub(crate) use dsn::Kind;
pub use dsn::{Dsn, DsnError};

use crate::rates::Rates;
use crate::sampler::Level;
use mysql::MySql;
use postgres::Postgres;

/// How long an answer may take: less than the time between two samples.
const TIMEOUT: Duration = Duration::from_millis(900);

/// How long opening a connection may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads one database.
#[derive(Debug)]
pub(crate) struct Database {
    dsn: Dsn,
    session: Option<Session>,
    rates: Rates,
}

/// An open connection.
#[derive(Debug)]
enum Session {
    MySql(MySql),
    Postgres(Postgres),
}

/// The status of a database; `None` where it reports nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Status {
    /// Connections open.
    open: Option<f64>,
    /// Connections that an application may have open.
    allowed: Option<f64>,
    /// The peak number of open connections since the server was started.
    open_max: Option<f64>,
    /// Connections refused for want of a free one since the server was started.
    refused: Option<f64>,
    /// Connections opened since the server was started.
    connects: Option<f64>,
    /// Connections that work on a statement, this one too.
    running: Option<f64>,
    /// Connections that wait for a lock.
    lock_waits: Option<f64>,
    /// Connections that wait for a disk.
    io_waits: Option<f64>,
    /// Statements since the server was started.
    statements: Option<f64>,
    /// Transactions since the server was started.
    transactions: Option<f64>,
}

impl Database {
    pub(crate) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let session = Some(Session::open(dsn).await?);
        Ok(Self { dsn: dsn.clone(), session, rates: Rates::default() })
    }

    /// The levels now. A connection that is lost is opened again the next time.
    pub(crate) async fn read(&mut self) -> Result<Vec<Level>, String> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::open(&self.dsn).await?,
        };
        let status = match tokio::time::timeout(TIMEOUT, session.status()).await {
            Ok(status) => status?,
            Err(_) => return Err(format!("no answer within {} ms", TIMEOUT.as_millis())),
        };
        self.session = Some(session);
        Ok(levels(&status, Instant::now(), &mut self.rates))
    }
}

/// The first field of the first row that a statement gives. One connection is opened for it.
pub(crate) async fn first_field(dsn: &Dsn, statement: &str) -> Result<String, String> {
    let mut session = Session::open(dsn).await?;
    let asked = async {
        Ok::<_, String>(match &mut session {
            Session::MySql(session) => session
                .query(statement)
                .await?
                .into_iter()
                .next()
                .and_then(|row| row.into_iter().next()),
            Session::Postgres(session) => {
                session.query(statement).await?.into_iter().next().flatten()
            }
        })
    };
    match tokio::time::timeout(OPEN_TIMEOUT, asked).await {
        Ok(field) => field?.ok_or_else(|| "the statement gives no row".to_owned()),
        Err(_) => Err(format!("no answer within {} s", OPEN_TIMEOUT.as_secs())),
    }
}

impl Session {
    async fn open(dsn: &Dsn) -> Result<Self, String> {
        let opened = async {
            Ok(match dsn.kind {
                Kind::MySql => Self::MySql(MySql::open(dsn).await?),
                Kind::Postgres => Self::Postgres(Postgres::open(dsn).await?),
            })
        };
        match tokio::time::timeout(OPEN_TIMEOUT, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no connection within {} s", OPEN_TIMEOUT.as_secs())),
        }
    }

    async fn status(&mut self) -> Result<Status, String> {
        match self {
            Self::MySql(session) => session.status().await,
            Self::Postgres(session) => session.status().await,
        }
    }
}

fn levels(status: &Status, now: Instant, rates: &mut Rates) -> Vec<Level> {
    let mut levels = Vec::new();
    for (name, value) in [
        ("db_open", status.open),
        ("db_max_connections", status.allowed),
        ("db_open_max", status.open_max),
        ("db_refused", status.refused),
        ("db_running", status.running),
        ("db_lock_waits", status.lock_waits),
        ("db_io_waits", status.io_waits),
    ] {
        levels.extend(value.map(|value| Level::new(name, LevelUnit::Count, value)));
    }
    if let (Some(open), Some(allowed @ 1.0..)) = (status.open, status.allowed) {
        levels.push(Level::new("db_connections", LevelUnit::Share, open / allowed));
    }
    for (name, total) in [
        ("db_connects", status.connects),
        ("db_statements", status.statements),
        ("db_transactions", status.transactions),
    ] {
        let rate = total.and_then(|total| rates.rate(name, now, total));
        levels.extend(rate.map(|rate| Level::new(name, LevelUnit::PerSecond, rate)));
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_database_says_becomes_levels_and_what_it_does_not_is_none() {
        let (now, mut rates) = (Instant::now(), Rates::default());
        let status = |connects| Status {
            open: Some(30.0),
            allowed: Some(40.0),
            connects: Some(connects),
            ..Status::default()
        };
        levels(&status(100.0), now, &mut rates);
        let second = levels(&status(150.0), now + Duration::from_secs(2), &mut rates);
        let named: Vec<_> = second.iter().map(|l| (l.name.as_str(), l.value)).collect();
        let expected = [
            ("db_open", 30.0),
            ("db_max_connections", 40.0),
            ("db_connections", 0.75),
            ("db_connects", 25.0),
        ];
        assert_eq!(named, expected);
    }
}
