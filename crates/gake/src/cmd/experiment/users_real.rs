//! `users-db --db`: the same application on a real database, whose bound is its own.
//!
//! How long it takes to connect and for a statement is not known, so theory says what must hold on
//! every database: a row for each answer that was ok, and its bound named where it refuses.

use std::time::Duration;

use gake_judge::units::count;
use gake_sql::SqlKind;

use super::bench::{Bench, Stopped};
use super::server::Server;
use super::theory;
use super::users_calibration::{Taken, calibrate, name as calibration};
use super::users_db::{posts, rows};
use crate::users::UserStore;

/// The cure: fewer than any server allows by default, all kept.
const POOL: u64 = 50;
/// Users of the calibration: as many as that.
const USERS: u32 = 50;
/// The share of failed requests from which on their cause has to be named.
const MANY: f64 = 0.02;

/// How long a database takes to close the connections of a process that has ended.
const CLOSING: Duration = Duration::from_secs(1);

/// A pool and the load on it.
#[derive(Clone, Copy, PartialEq)]
struct Setting {
    /// Requests a second.
    rate: u32,
    /// Connections kept idle.
    idle: u64,
    /// Connections opened at most; 0 is no bound.
    open: u64,
}

const SETTINGS: [Setting; 5] = [
    Setting { rate: 10, idle: 2, open: 0 },
    Setting { rate: 100, idle: 2, open: 0 },
    Setting { rate: 1_000, idle: 2, open: 0 },
    Setting { rate: 1_000, idle: 1_000, open: 0 },
    Setting { rate: 1_000, idle: POOL, open: POOL },
];

impl Setting {
    fn name(self) -> String {
        let open = if self.open > 0 { format!(", a pool of {}", self.open) } else { String::new() };
        format!("{}/s, idle {}{open}", count(self.rate.into()), count(self.idle))
    }

    /// A lab whose pool has these settings.
    fn server(self, written: &str, store: &UserStore) -> Result<Server, Stopped> {
        let flags = format!("--db-max-open {} --db-max-idle {}", self.open, self.idle);
        let name = match store {
            UserStore::Server(dsn) => dsn.database(),
            _ => None,
        };
        let name = name.map_or(String::new(), |name| format!("?dbname={name}"));
        Ok(Server::lab_on(&flags, written, &format!("'{store}{name}'"))?)
    }
}

/// Runs the steps on the database that is `written` so.
pub fn run(bench: &mut Bench<'_>, written: &str, store: &UserStore) -> Result<(), Stopped> {
    let names = SETTINGS.map(Setting::name);
    if !names.iter().chain([&calibration(USERS)]).any(|name| bench.wants(name)) {
        return Ok(());
    }
    let Some(taken) = rate(bench, written, store)? else { return Ok(()) };
    let mut last = None;
    for asked in SETTINGS {
        let setting = Setting { rate: taken.in_force(asked.rate), ..asked };
        if last != Some(setting) && bench.wants(&asked.name()) {
            step(bench, setting, written, store)?;
            last = Some(setting);
        }
    }
    Ok(())
}

/// What the service takes with the cure.
fn rate(bench: &mut Bench<'_>, written: &str, store: &UserStore) -> Result<Option<Taken>, Stopped> {
    let cured = Setting { rate: 0, idle: POOL, open: POOL };
    let server = cured.server(written, store)?;
    let before = server.number("/users/count", "count")?;
    let taken = calibrate(bench, &server, USERS, |summary| {
        let after = server.number("/users/count", "count")?;
        Ok(vec![rows(summary, after.saturating_sub(before))])
    })?;
    closing(server);
    Ok(taken)
}

/// Ends a lab, whose connections the database closes.
fn closing(server: Server) {
    drop(server);
    std::thread::sleep(CLOSING);
}

fn step(
    bench: &mut Bench<'_>,
    setting: Setting,
    written: &str,
    store: &UserStore,
) -> Result<(), Stopped> {
    let server = setting.server(written, store)?;
    let mut spec = posts(&server, setting.rate, bench.seconds(10.0, 4.0));
    let is_server = matches!(store, UserStore::Server(_));
    if is_server {
        spec.watch.push(written.to_owned());
    }
    let before = server.number("/users/count", "count")?;
    let summary = bench.fire(&spec)?;
    let after = server.number("/users/count", "count")?;
    let mut expectations = vec![rows(&summary, after.saturating_sub(before))];
    let counts = &summary.run.tally.counts;
    let failed = counts.failed as f64 / counts.due().max(1) as f64;
    // PostgreSQL does not count what it refuses; peaks between two samples are not seen.
    let counts_refusals = matches!(store, UserStore::Server(dsn) if dsn.kind() == SqlKind::MySql);
    if counts_refusals && failed > MANY {
        expectations.push(theory::cause(&summary, "db_connections_refused", &["db_pool_churn"]));
    }
    bench.step(setting.name(), &server, summary, expectations);
    closing(server);
    Ok(())
}
