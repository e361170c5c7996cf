//! Databases behind the target: levels of their connections, read with their own
//! protocols.
//!
//! One connection is opened before the run and kept, so that a database without a free one can
//! still be asked.

mod status;

use std::time::Instant;

use gake_core::record::LevelUnit;
use gake_sql::{Dsn, SqlSession};

use crate::level::{FIRST, Level, PATIENCE, within};
use crate::rates::Rates;
use status::{Asking, Status};

/// Reads one database.
#[derive(Debug)]
pub(crate) struct Database {
    dsn: Dsn,
    asking: Option<Asking>,
    rates: Rates,
}

impl Database {
    pub(crate) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let asking = Some(Asking::open(dsn).await?);
        Ok(Self { dsn: dsn.clone(), asking, rates: Rates::default() })
    }

    /// The levels now. A connection that is lost is opened again the next time.
    pub(crate) async fn read(&mut self) -> Result<Vec<Level>, String> {
        let mut asking = match self.asking.take() {
            Some(asking) => asking,
            None => Asking::open(&self.dsn).await?,
        };
        let status = within(PATIENCE, asking.status()).await?;
        self.asking = Some(asking);
        Ok(levels(&status, Instant::now(), &mut self.rates))
    }
}

/// The first field of the first row that a statement gives. One connection is opened for it.
pub(crate) async fn first_field(dsn: &Dsn, statement: &str) -> Result<String, String> {
    let mut session = SqlSession::open(dsn).await?;
    let row = within(FIRST, session.rows(statement)).await?.into_iter().next();
    row.and_then(|row| row.into_iter().next()?)
        .ok_or_else(|| "the statement gives no row, or NULL".to_owned())
}

fn levels(status: &Status, now: Instant, rates: &mut Rates) -> Vec<Level> {
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
