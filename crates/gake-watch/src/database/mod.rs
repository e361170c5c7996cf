//! Levels of the databases behind the target.
//!
//! One connection is opened before the run and kept, so that a database without free connections
//! can still be queried.

mod status;

use std::time::Instant;

use gake_core::record::LevelUnit;
use gake_sql::{Dsn, SqlSession};

use crate::level::{FIRST, Level, PATIENCE, within};
use crate::rates::CounterRates;
use status::{DatabaseStatus, StatusSession};

#[derive(Debug)]
pub(crate) struct DatabaseSource {
    dsn: Dsn,
    session: Option<StatusSession>,
    rates: CounterRates,
}

impl DatabaseSource {
    pub(crate) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let session = Some(StatusSession::open(dsn).await?);
        Ok(Self { dsn: dsn.clone(), session, rates: CounterRates::default() })
    }

    /// The levels now. After an error the next reading reconnects.
    pub(crate) async fn read(&mut self) -> Result<Vec<Level>, String> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => StatusSession::open(&self.dsn).await?,
        };
        let status = within(PATIENCE, session.status()).await?;
        self.session = Some(session);
        Ok(levels(&status, Instant::now(), &mut self.rates))
    }
}

/// The first field of the first row of a statement's result, on a new connection.
pub(crate) async fn first_field(dsn: &Dsn, statement: &str) -> Result<String, String> {
    let mut session = SqlSession::open(dsn).await?;
    let row = within(FIRST, session.rows(statement)).await?.into_iter().next();
    row.and_then(|row| row.into_iter().next()?)
        .ok_or_else(|| "the statement returns no row, or NULL".to_owned())
}

fn levels(status: &DatabaseStatus, now: Instant, rates: &mut CounterRates) -> Vec<Level> {
    let mut levels = Vec::new();
    for (name, value) in [
        ("db_open", status.open),
        ("db_max_connections", status.allowed),
        ("db_open_max", status.open_max),
        ("db_refused", status.refused),
        ("db_aborted", status.aborted),
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn known_status_values_become_levels() {
        let (now, mut rates) = (Instant::now(), CounterRates::default());
        let status = |connects| DatabaseStatus {
            open: Some(30.0),
            allowed: Some(40.0),
            connects: Some(connects),
            ..DatabaseStatus::default()
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
