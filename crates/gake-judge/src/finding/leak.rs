//! A pool that leaks its threads or connections.

use gake_core::clock::SECOND;
use gake_core::record::{Gauge, SeriesPoint};
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;

/// Readings needed before the pool is empty.
const READINGS_MIN: usize = 4;
/// The excess grows by at least this many from the first half of the readings to the second, and by
/// this share of the largest busy count.
const GROWTH_MIN: f64 = 2.0;
const GROWTH_SHARE_MIN: f64 = 0.25;
/// Share of the pairs of readings whose later one is higher; below 1, since requests come and go.
const RISING_MIN: f64 = 0.85;
/// When the requests in flight grow by more than this factor, they explain the growth.
const IN_FLIGHT_MAX: f64 = 1.25;
/// Tolerance, since a reading is of an instant and the requests in flight are the mean of a second.
const NOISE: f64 = 1.0;

/// The levels that count busy members of a pool, and the noun for these.
const POOLS: [(&str, &str); 2] =
    [("pool_busy", "worker threads"), ("db_pool_busy", "connections to the database")];

/// The busy members beyond the requests in flight, at one reading.
struct Excess {
    at: u64,
    number: f64,
    in_flight: f64,
}

pub(super) fn leak(facts: &RunFacts<'_>) -> Option<Finding> {
    POOLS
        .into_iter()
        .find_map(|(name, what)| facts.gauges(name).find_map(|gauge| of(facts, gauge, what)))
}

fn of(facts: &RunFacts<'_>, gauge: &Gauge, what: &str) -> Option<Finding> {
    let excess = excess(facts, gauge);
    if excess.len() < READINGS_MIN || rising(&excess) < RISING_MIN {
        return None;
    }
    let mean = |part: &[Excess], of: fn(&Excess) -> f64| {
        part.iter().map(of).sum::<f64>() / part.len() as f64
    };
    let (early, late) = excess.split_at(excess.len() / 2);
    let growth = mean(late, |one| one.number) - mean(early, |one| one.number);
    let [before, after] = [early, late].map(|part| mean(part, |one| one.in_flight));
    if after > IN_FLIGHT_MAX * before + NOISE
        || growth < GROWTH_MIN.max(GROWTH_SHARE_MIN * gauge.max()?)
    {
        return None;
    }
    let (first, last) = (excess.first()?, excess.last()?);
    let seconds = last.at.saturating_sub(first.at) as f64 / SECOND as f64;
    let evidence = format!(
        "{}: the busy {what} that no request in flight needs grew from {} to {} in {}",
        gauge.source,
        units::number(first.number),
        units::number(last.number),
        units::duration(seconds * 1e9),
    );
    let advice = "find the path that does not give one back: an early return, an exception";
    let check = "stop the load: the pool's busy count does not return to 0";
    Some(Finding::new("target_leak", evidence, advice, check))
}

/// The share of the pairs of readings in which the later one is higher.
fn rising(excess: &[Excess]) -> f64 {
    let pairs = excess.iter().enumerate().flat_map(|(at, early)| {
        excess[at + 1..].iter().map(move |late| late.number > early.number)
    });
    let (higher, all) = pairs.fold((0, 0), |(higher, all), up| (higher + u32::from(up), all + 1));
    f64::from(higher) / f64::from(all.max(1))
}

/// Leaves out readings in which requests wait for the pool: then all of it is in use.
fn excess(facts: &RunFacts<'_>, gauge: &Gauge) -> Vec<Excess> {
    let points = facts.run.series.points();
    let in_flight = |at: u64| {
        let second = at / SECOND;
        let of =
            |point: &&SeriesPoint| (point.second..point.second + point.seconds).contains(&second);
        points.iter().find(of).map(|point| point.in_flight)
    };
    // After the last arrival, a reading may still count members of requests that just ended.
    let span = facts.warmup()..facts.warmup() + facts.run.measured / SECOND * SECOND;
    let samples = gauge.samples().iter().filter(|sample| span.contains(&sample.at));
    let each = samples.filter_map(|sample| {
        let in_flight = in_flight(sample.at)?;
        let number = sample.mean - in_flight;
        (number >= -NOISE).then(|| Excess { at: sample.at, number: number.max(0.0), in_flight })
    });
    each.collect()
}
