//! The database behind the target: refused connections, connections opened for each request, locks.

use gake_text::units;

use super::Finding;
use super::facts::{FAILURES_MIN, Facts};
use super::target::{at_share, used};

/// A database has no connection left from this share of them on: a few are kept for its owner.
const FULL: f64 = 0.97;
/// A pool keeps its connections; one that opens this many for each request does not ...
const CHURN: f64 = 0.1;
/// ... and this many a second at least.
const CHURN_RATE_MIN: f64 = 10.0;
/// Requests wait for locks that this part of those in flight wait for.
const MOST: f64 = 0.5;
/// Seconds that a closed connection stays in TIME-WAIT.
const TIME_WAIT: f64 = 60.0;

pub(super) fn refused(facts: &Facts<'_>) -> Option<Finding> {
    let errors = facts.counts().failed;
    if facts.of_sent(errors) < FAILURES_MIN {
        return None;
    }
    let counted = facts.growth("db_refused").filter(|refused| *refused >= 1.0);
    let full = facts.at_bound("db_connections", FULL);
    let mut evidence = match (&counted, &full) {
        (Some(refused), _) => match facts.growth("db_aborted") {
            Some(aborted) if aborted > *refused => format!(
                "the database refused {} connections at least, and {} attempts to connect failed",
                units::count(*refused as u64),
                units::count(aborted as u64)
            ),
            _ => format!("the database refused {} connections", units::count(*refused as u64)),
        },
        (None, Some(full)) => format!(
            "the database had {} of the connections it allows {}",
            units::percent(full.max),
            full.how_often()
        ),
        (None, None) => return None,
    };
    if let (Some(open), Some(most)) = (facts.most("db_open"), facts.most("db_max_connections")) {
        evidence.push_str(&format!(
            " (up to {} were open of {} allowed)",
            units::count(open as u64),
            units::count(most as u64)
        ));
    }
    evidence.push_str(&format!(
        ", while {} ({}) failed",
        units::plural(errors, "request"),
        units::percent(facts.of_sent(errors))
    ));
    let advice = "bound the application's pools below what the database allows (SetMaxOpenConns, \
                  maximumPoolSize, times the number of instances), or raise max_connections";
    let check = "SHOW STATUS LIKE 'Connection_errors_max_connections', 'Aborted_connects' and \
                 'Max_used_connections'; \
                 of PostgreSQL SELECT count(*) FROM pg_stat_activity";
    Some(Finding::new("db_connections_refused", evidence, advice, check))
}

/// Connections that are opened and closed again instead of kept.
pub(super) fn churn(facts: &Facts<'_>) -> Option<Finding> {
    let rate = facts.rate();
    let told = churn_told(facts).into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (opened, what) = told;
    if opened < CHURN_RATE_MIN || opened < CHURN * rate {
        return None;
    }
    let evidence = format!(
        "{what}: {} for each answer, at {} answers a second",
        units::number(opened / rate.max(1e-9)),
        units::number(rate)
    );
    let advice = "let the pool keep its connections: as many idle ones as it may have open \
                  (SetMaxIdleConns, minimumIdle), and no shorter lives than minutes";
    let check = "SHOW STATUS LIKE 'Connections' twice; ss -tan state time-wait '( dport = :3306 )' \
                 on the target";
    Some(Finding::new("db_pool_churn", evidence, advice, check))
}

/// Connections a second that were opened or closed, and who says so.
fn churn_told(facts: &Facts<'_>) -> Vec<(f64, String)> {
    let mut told = Vec::new();
    if let Some(rate) = facts.mean("db_pool_closed") {
        told.push((rate, format!("the pool closed {} connections as idle", units::rate(rate))));
    }
    if let Some(rate) = facts.mean("db_connects") {
        told.push((rate, format!("{} connections to the database were opened", units::rate(rate))));
    }
    for gauge in facts.run.watched.gauges() {
        let Some(to) = gauge.name.strip_suffix(" time_wait").filter(|to| is_database(to)) else {
            continue;
        };
        let seconds = facts.run.measured as f64 / 1e9;
        let rate = gauge.growth() / seconds.clamp(1.0, TIME_WAIT);
        let what = format!(
            "the target closed {} connections to {to}, up to {} of them in TIME-WAIT",
            units::rate(rate),
            units::count(gauge.max().unwrap_or(0.0) as u64)
        );
        told.push((rate, what));
    }
    told
}

/// By the ports that databases have: MySQL, PostgreSQL, SQL Server, Oracle, MongoDB, Redis.
fn is_database(address: &str) -> bool {
    const PORTS: [&str; 7] = ["3306", "33060", "5432", "1433", "1521", "27017", "6379"];
    address.rsplit_once(':').is_some_and(|(_, port)| PORTS.contains(&port))
}

pub(super) fn locks(facts: &Facts<'_>) -> Option<Finding> {
    let waiting = facts.mean("db_lock_waits")?;
    // A pool lets fewer through to the database than are in flight.
    let running = facts.mean("db_running").unwrap_or(f64::INFINITY);
    if waiting < MOST * facts.in_flight().min(running).max(2.0) {
        return None;
    }
    let mut evidence = format!(
        "{} of the database's connections waited for a lock in the mean, with {} requests in flight",
        units::number(waiting),
        units::number(facts.in_flight())
    );
    if running.is_finite() {
        evidence.push_str(&format!(" and {} statements running", units::number(running)));
    }
    let advice = "find the row or table that they all change: make transactions shorter, or spread \
                  what they change";
    let check = "SHOW STATUS LIKE 'Innodb_row_lock_current_waits'; of PostgreSQL wait_event_type \
                 in pg_stat_activity";
    Some(Finding::new("db_locks", evidence, advice, check))
}

pub(super) fn pool(facts: &Facts<'_>) -> Option<Finding> {
    let seen = at_share(facts, "db_pool")?;
    let mut evidence = format!(
        "{} had its connections to the database {}",
        seen.source,
        used(&seen, facts.most("db_pool_busy"))
    );
    if let Some(pending) = facts.most("db_pool_pending").filter(|pending| *pending > 0.0) {
        evidence.push_str(&format!(
            ", with up to {} waiting for one",
            units::plural(pending as u64, "request")
        ));
    }
    let advice = "make the queries shorter or the pool larger, as far as the database serves more \
                  connections at once";
    let check = "hikaricp.connections.active and .pending, or go_sql_in_use_connections against \
                 go_sql_max_open_connections; SHOW PROCESSLIST";
    Some(Finding::new("target_db_pool", evidence, advice, check))
}
