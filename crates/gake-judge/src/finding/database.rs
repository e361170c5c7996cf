//! The database behind the target: refused connections, connections opened for each request, locks.

use gake_text::units;

use super::Finding;
use super::facts::{FAILURES_MIN, RunFacts};
use super::target::{at_share, used};

/// Share of its connections from which on a database has none left: it keeps a few for its owner.
const FULL: f64 = 0.97;
/// A pool churns that opens at least this many connections per response ...
const CHURN: f64 = 0.1;
/// ... and at least this many a second.
const CHURN_RATE_MIN: f64 = 10.0;
/// Locks are the limit when this share of the requests in flight waits for them.
const WAITING: f64 = 0.5;
/// Seconds that a closed connection stays in TIME-WAIT.
const TIME_WAIT: f64 = 60.0;

pub(super) fn refused(facts: &RunFacts<'_>) -> Option<Finding> {
    let errors = facts.counts().failed;
    if facts.of_sent(errors) < FAILURES_MIN {
        return None;
    }
    let counted = facts.growth("db_refused").filter(|refused| *refused >= 1.0);
    let full = facts.at_bound("db_connections", FULL);
    let mut evidence = match (&counted, &full) {
        (Some(refused), _) => match facts.growth("db_aborted") {
            Some(aborted) if aborted > *refused => format!(
                "the database refused at least {} connections, and {} connection attempts failed",
                units::count(*refused as u64),
                units::count(aborted as u64)
            ),
            _ => format!("the database refused {} connections", units::count(*refused as u64)),
        },
        (None, Some(full)) => format!(
            "the database had up to {} of its allowed connections open {}",
            units::percent(full.max),
            full.how_often()
        ),
        (None, None) => return None,
    };
    if let (Some(open), Some(most)) = (facts.most("db_open"), facts.most("db_max_connections")) {
        evidence.push_str(&format!(
            " (up to {} of {} allowed were open)",
            units::count(open as u64),
            units::count(most as u64)
        ));
    }
    evidence.push_str(&format!(
        ", while {} ({}) failed",
        units::plural(errors, "request"),
        units::percent(facts.of_sent(errors))
    ));
    let advice = "shrink the pools of all instances, or raise the database's max_connections";
    let check = "SHOW STATUS LIKE 'Connection_errors%', or count pg_stat_activity";
    Some(Finding::new("db_connections_refused", evidence, advice, check))
}

pub(super) fn churn(facts: &RunFacts<'_>) -> Option<Finding> {
    let rate = facts.rate();
    let (opened, what) = churn_sources(facts).into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    if opened < CHURN_RATE_MIN || opened < CHURN * rate {
        return None;
    }
    let evidence = format!(
        "{what}: {} per response, at {} responses/s",
        units::number(opened / rate.max(1e-9)),
        units::number(rate)
    );
    let advice = "let the pool keep its connections open (SetMaxIdleConns, minimumIdle)";
    let check = "SHOW STATUS LIKE 'Connections' twice; ss -tan state time-wait";
    Some(Finding::new("db_pool_churn", evidence, advice, check))
}

/// Connections opened or closed a second, by each source that counts them.
fn churn_sources(facts: &RunFacts<'_>) -> Vec<(f64, String)> {
    let mut sources = Vec::new();
    if let Some(rate) = facts.mean("db_pool_closed") {
        sources.push((rate, format!("the pool closed idle connections at {}", units::rate(rate))));
    }
    if let Some(rate) = facts.mean("db_connects") {
        sources.push((
            rate,
            format!("connections to the database were opened at {}", units::rate(rate)),
        ));
    }
    for gauge in facts.run.watched.gauges() {
        let Some(to) = gauge.name.strip_suffix(" time_wait").filter(|to| is_database(to)) else {
            continue;
        };
        let seconds = facts.run.measured as f64 / 1e9;
        let rate = gauge.growth() / seconds.clamp(1.0, TIME_WAIT);
        let what = format!(
            "the target closed connections to {to} at {}, with up to {} in TIME-WAIT",
            units::rate(rate),
            units::count(gauge.max().unwrap_or(0.0) as u64)
        );
        sources.push((rate, what));
    }
    sources
}

fn is_database(address: &str) -> bool {
    by_port(address).is_some()
}

/// The database that usually listens on the port of `address`.
pub(super) fn by_port(address: &str) -> Option<&'static str> {
    Some(match address.rsplit_once(':')?.1 {
        "3306" | "33060" => "MySQL",
        "5432" => "PostgreSQL",
        "1433" => "SQL Server",
        "1521" => "Oracle",
        "27017" => "MongoDB",
        "6379" => "Redis",
        _ => return None,
    })
}

pub(super) fn locks(facts: &RunFacts<'_>) -> Option<Finding> {
    let waiting = facts.mean("db_lock_waits")?;
    // A pool lets fewer through to the database than are in flight.
    let running = facts.mean("db_running").unwrap_or(f64::INFINITY);
    if waiting < WAITING * facts.in_flight().min(running).max(2.0) {
        return None;
    }
    let mut evidence = format!(
        "on average {} of the database's connections waited for a lock, with {} requests in flight",
        units::number(waiting),
        units::number(facts.in_flight())
    );
    if running.is_finite() {
        evidence.push_str(&format!(" and {} statements running", units::number(running)));
    }
    let advice = "find the row or table that all write: shorter transactions, spread writes";
    let check = "SHOW STATUS LIKE 'Innodb_row_lock%', or pg_stat_activity.wait_event";
    Some(Finding::new("db_locks", evidence, advice, check))
}

pub(super) fn pool(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = at_share(facts, "db_pool")?;
    let mut evidence = used(&seen, facts.most("db_pool_busy"), "connections to the database");
    if let Some(pending) = facts.most("db_pool_pending").filter(|pending| *pending > 0.0) {
        evidence.push_str(&format!(
            ", with up to {} waiting for one",
            units::plural(pending as u64, "request")
        ));
    }
    let advice = "make the queries faster, or the pool larger if the database has room";
    let check = "hikaricp.connections.pending, or SHOW PROCESSLIST on the database";
    Some(Finding::new("target_db_pool", evidence, advice, check))
}
