//! A pool that gets fewer and fewer of its threads or connections back.

use gake_core::clock::SECOND;
use gake_core::record::Gauge;

use super::Finding;
use super::facts::Facts;
use crate::units;

/// Readings that show it, before the pool is empty.
const READINGS_MIN: usize = 3;
/// What is held and not in use grows by this many, and by this part of what is busy at most.
const GROWTH_MIN: f64 = 2.0;
const GROWTH_SHARE_MIN: f64 = 0.3;
/// What one reading may be below the one before: requests of others come and go.
const DIP: f64 = 1.0;

/// The levels that count what is taken from a pool, and what that is.
const POOLS: [(&str, &str); 2] =
    [("pool_busy", "worker threads"), ("db_pool_busy", "connections to the database")];

/// More and more of a pool is busy, and no request is in flight for it.
pub(super) fn leak(facts: &Facts<'_>) -> Option<Finding> {
    POOLS
        .into_iter()
        .find_map(|(name, what)| facts.gauges(name).find_map(|gauge| of(facts, gauge, what)))
}

fn of(facts: &Facts<'_>, gauge: &Gauge, what: &str) -> Option<Finding> {
    let unused = unused(facts, gauge);
    let (first, last) = (unused.first()?, unused.last()?);
    let growth = last.1 - first.1;
    // One reading that is high at the end is no growth.
    let before = unused.len().checked_sub(2).and_then(|at| unused.get(at))?;
    let is_steady = unused.windows(2).all(|pair| pair[1].1 >= pair[0].1 - DIP);
    let enough = unused.len() >= READINGS_MIN
        && growth >= GROWTH_MIN
        && growth >= GROWTH_SHARE_MIN * gauge.max()?
        && before.1 - first.1 >= growth / 3.0;
    if !enough || !is_steady {
        return None;
    }
    let seconds = last.0.saturating_sub(first.0) as f64 / SECOND as f64;
    let evidence = format!(
        "{} held more and more of its {what} that no request in flight needed: {} at first, {} \
         {} later, and never fewer in between",
        gauge.source,
        units::number(first.1),
        units::number(last.1),
        units::duration(seconds * 1e9),
    );
    let advice = "find the path on which one is not given back: an early return, an exception, a \
                  missing close; a larger pool or a restart only gains time";
    let check = "take the load away: what the pool says is busy does not go back to 0";
    Some(Finding::new("target_leak", evidence, advice, check))
}

/// What was busy beyond the requests in flight, and when; up to the reading from which on requests
/// wait, since then everything is in use.
fn unused(facts: &Facts<'_>, gauge: &Gauge) -> Vec<(u64, f64)> {
    let points = facts.run.series.points();
    let in_flight = |at: u64| {
        let second = at / SECOND;
        let of = |point: &&gake_core::record::Point| {
            (point.second..point.second + point.seconds).contains(&second)
        };
        points.iter().find(of).map(|point| point.in_flight)
    };
    // After the last arrival requests end, and what they held may be read before it is free.
    let span = facts.warmup()..facts.warmup() + facts.run.measured / SECOND * SECOND;
    let samples = gauge.samples().iter().filter(|sample| span.contains(&sample.at));
    let each = samples.map_while(|sample| {
        let unused = sample.mean - in_flight(sample.at)?;
        (unused >= -DIP).then_some((sample.at, unused.max(0.0)))
    });
    each.collect()
}
