//! `users-db --db`: the same application on a real database, whose bound is its own.
//!
//! How long it takes to connect and for a statement is not known, so theory says what must hold on
//! every database: a row for each answer that was ok, and its bound named where it refuses. A
//! database that goes away is waited for; what it had is restored at the end.

use std::thread;
use std::time::{Duration, Instant};

use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_run::Interrupt;
use gake_sql::SqlKind;
use gake_text::units::count;

use super::bench::{Bench, Stopped};
use super::server::Server;
use super::theory;
use super::users_calibration::{Taken, calibrate, name as calibration};
use super::users_db::{posts, rows};
use crate::users::{UserStore, UsersBefore};
use gake_session::Failure;

/// The cure: fewer than any server allows by default, all kept.
const POOL: u64 = 50;
/// The same with more connections, where the database allows them.
const LARGE_POOL: u64 = 100;
/// Users of the calibration: as many as the pool has connections.
const USERS: u32 = 50;
/// The share of failed requests from which on their cause has to be named.
const MANY: f64 = 0.02;

/// MySQL's number of the error that its connections are used up (ER_CON_COUNT_ERROR), which
/// clients pass on; its text is in the server's language.
const CONNECTIONS_REFUSED: &str = "1040";

/// How long a database takes to close the connections of a process that has ended.
const CLOSING: Duration = Duration::from_secs(1);
/// How long a database that has gone away is waited for, and how often it is asked.
const RETURNING: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);

/// A database, as it is written and what that means.
struct Database<'a> {
    written: &'a str,
    store: &'a UserStore,
    /// Ends waiting for it.
    interrupt: Interrupt,
}

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

/// The steps of every run.
const SETTINGS: [Setting; 5] = [
    Setting { rate: 10, idle: 2, open: 0 },
    Setting { rate: 100, idle: 2, open: 0 },
    Setting { rate: 1_000, idle: 2, open: 0 },
    Setting { rate: 1_000, idle: 1_000, open: 0 },
    Setting { rate: 1_000, idle: POOL, open: POOL },
];

/// Further ones, without `--quick`.
const MORE: [Setting; 2] = [
    Setting { rate: 1_000, idle: 10_000, open: 0 },
    Setting { rate: 1_000, idle: LARGE_POOL, open: LARGE_POOL },
];

impl Setting {
    fn name(self) -> String {
        let open = if self.open > 0 { format!(", a pool of {}", self.open) } else { String::new() };
        format!("{}/s, idle {}{open}", count(self.rate.into()), count(self.idle))
    }

    /// A lab whose pool has these settings.
    fn server(self, database: &Database<'_>) -> Result<Server, Failure> {
        let flags = format!("--db-max-open {} --db-max-idle {}", self.open, self.idle);
        let name = match database.store {
            UserStore::Server(dsn) => dsn.database(),
            _ => None,
        };
        let name = name.map_or(String::new(), |name| format!("?dbname={name}"));
        Server::lab_on(&flags, database.written, &format!("'{}{name}'", database.store))
    }
}

/// Runs the steps on the database that is `written` so.
pub fn run(bench: &mut Bench<'_>, written: &str, store: &UserStore) -> Result<(), Stopped> {
    let mut settings = SETTINGS.to_vec();
    if !bench.quick() {
        settings.extend(MORE);
    }
    let names = settings.iter().map(|setting| setting.name());
    if !names.chain([calibration(USERS)]).any(|name| bench.wants(&name)) {
        return Ok(());
    }
    let database = Database { written, store, interrupt: bench.interrupt() };
    let before = UsersBefore::of(store).map_err(|why| {
        Failure::could_not(format!("{why} (without --db the database is a model)"))
    })?;
    let ended = steps(bench, &database, &settings);
    // Also after Ctrl-C: the rows are nobody's.
    thread::sleep(CLOSING);
    if let Err(why) = database.patiently(|| before.restore(store)) {
        bench.note(format!("the rows of this experiment are left in the database: {why}"));
    }
    ended
}

fn steps(
    bench: &mut Bench<'_>,
    database: &Database<'_>,
    settings: &[Setting],
) -> Result<(), Stopped> {
    let taken = rate(bench, database)?;
    let mut last = None;
    for asked in settings {
        let setting = Setting { rate: taken.in_force(asked.rate), ..*asked };
        if last != Some(setting) && bench.wants(&asked.name()) {
            match step(bench, setting, database) {
                Err(Stopped::Failed(why)) => bench.missing(&setting.name(), &why),
                other => other?,
            }
            last = Some(setting);
        }
    }
    Ok(())
}

impl Database<'_> {
    /// Tries again for some time, for a database that comes back.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        let until = Instant::now() + RETURNING;
        loop {
            match attempt() {
                Err(_) if Instant::now() < until && !self.interrupt.came() => thread::sleep(AGAIN),
                other => return other,
            }
        }
    }

    /// A lab on it, and the rows that there are.
    fn started(&self, setting: Setting) -> Result<(Server, u64), Stopped> {
        let started = self.patiently(|| {
            let server = setting.server(self)?;
            let before = count_rows(&server)?;
            Ok((server, before))
        });
        started.map_err(|why| match self.interrupt.came() {
            true => Stopped::Interrupted,
            false => Stopped::Failed(why),
        })
    }

    /// What became of the rows of a run.
    fn judged(&self, summary: &Summary, server: &Server, before: u64) -> Expectation {
        let after = self.patiently(|| count_rows(server));
        rows(summary, before, after.map_err(|why| why.to_string()))
    }
}

fn count_rows(server: &Server) -> Result<u64, Failure> {
    server.number("/users/count", "count")
}

/// What the service takes with the cure.
fn rate(bench: &mut Bench<'_>, database: &Database<'_>) -> Result<Taken, Stopped> {
    // A database that is not there at the start is not waited for.
    let server = Setting { rate: 0, idle: POOL, open: POOL }.server(database)?;
    let before = count_rows(&server)?;
    let taken = calibrate(bench, &server, USERS, |summary| {
        Ok(vec![database.judged(summary, &server, before)])
    })?;
    closing(server);
    Ok(taken)
}

/// Ends a lab, whose connections the database closes.
fn closing(server: Server) {
    drop(server);
    thread::sleep(CLOSING);
}

fn step(bench: &mut Bench<'_>, setting: Setting, database: &Database<'_>) -> Result<(), Stopped> {
    let (server, before) = database.started(setting)?;
    let mut spec = posts(&server, setting.rate, bench.seconds(10.0, 4.0));
    if matches!(database.store, UserStore::Server(_)) {
        spec.watch.push(database.written.to_owned());
    }
    let summary = bench.fire(&spec)?;
    let mut expectations = vec![database.judged(&summary, &server, before)];
    expectations.extend(named(&summary, database.store));
    bench.step(setting.name(), &server, summary, expectations);
    closing(server);
    Ok(())
}

/// That the database's bound is named where it refuses.
fn named(summary: &Summary, store: &UserStore) -> Option<Expectation> {
    let counts = &summary.run.tally.counts;
    let failed = counts.failed as f64 / counts.due().max(1) as f64;
    // PostgreSQL does not count what it refuses; peaks between two samples are not seen.
    let counts_refusals = matches!(store, UserStore::Server(dsn) if dsn.kind() == SqlKind::MySql);
    // What failed for another reason, as when the database went away, names another cause.
    let refused = |text: &str| text.contains(CONNECTIONS_REFUSED);
    let is_refused = summary.run.bodies.by_count().first().is_some_and(|body| refused(&body.text));
    (counts_refusals && failed > MANY && is_refused)
        .then(|| theory::cause(summary, "db_connections_refused", &["db_pool_churn"]))
}
