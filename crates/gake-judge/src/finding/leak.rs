//! A pool that gets fewer and fewer of its threads or connections back.

use gake_core::clock::SECOND;
use gake_core::record::{Gauge, SeriesPoint};
use gake_text::units;

use super::Finding;
use super::facts::Facts;

/// Readings that show it, before the pool is empty.
const READINGS_MIN: usize = 4;
/// What is held and not in use grows by this many from the first half of the readings to the
/// second, and by this part of what is busy at most.
const GROWTH_MIN: f64 = 2.0;
const GROWTH_SHARE_MIN: f64 = 0.25;
/// Of two readings the later one is higher, this often: requests come and go meanwhile.
const RISING_MIN: f64 = 0.85;
/// More requests in flight than this multiple explain what is busy: each may hold several.
const IN_FLIGHT_MAX: f64 = 1.25;
/// A reading is of an instant, and the requests in flight are the mean of a second.
const NOISE: f64 = 1.0;

/// The levels that count what is taken from a pool, and what that is.
const POOLS: [(&str, &str); 2] =
    [("pool_busy", "worker threads"), ("db_pool_busy", "connections to the database")];

/// What is busy beyond the requests in flight.
struct Unused {
    at: u64,
    number: f64,
    in_flight: f64,
}

/// More and more of a pool is busy, and no request is in flight for it.
pub(super) fn leak(facts: &Facts<'_>) -> Option<Finding> {
    POOLS
        .into_iter()
        .find_map(|(name, what)| facts.gauges(name).find_map(|gauge| of(facts, gauge, what)))
}

fn of(facts: &Facts<'_>, gauge: &Gauge, what: &str) -> Option<Finding> {
    let unused = unused(facts, gauge);
    if unused.len() < READINGS_MIN || rising(&unused) < RISING_MIN {
        return None;
    }
    let mean = |part: &[Unused], of: fn(&Unused) -> f64| {
        part.iter().map(of).sum::<f64>() / part.len() as f64
    };
    let (early, late) = unused.split_at(unused.len() / 2);
    let growth = mean(late, |one| one.number) - mean(early, |one| one.number);
    let [before, after] = [early, late].map(|part| mean(part, |one| one.in_flight));
    if after > IN_FLIGHT_MAX * before + NOISE
        || growth < GROWTH_MIN.max(GROWTH_SHARE_MIN * gauge.max()?)
    {
        return None;
    }
    let (first, last) = (unused.first()?, unused.last()?);
    let seconds = last.at.saturating_sub(first.at) as f64 / SECOND as f64;
    let evidence = format!(
        "{} held more and more of its {what} that no request in flight needed: {} at first, and {} \
         {} later",
        gauge.source,
        units::number(first.number),
        units::number(last.number),
        units::duration(seconds * 1e9),
    );
    let advice = "find the path on which one is not given back: an early return, an exception, a \
                  missing close; a larger pool or a restart only gains time";
    let check = "take the load away: what the pool says is busy does not go back to 0";
    Some(Finding::new("target_leak", evidence, advice, check))
}

/// How often the later of two readings is the higher one.
fn rising(unused: &[Unused]) -> f64 {
    let pairs = unused.iter().enumerate().flat_map(|(at, early)| {
        unused[at + 1..].iter().map(move |late| late.number > early.number)
    });
    let (higher, all) = pairs.fold((0, 0), |(higher, all), up| (higher + u32::from(up), all + 1));
    f64::from(higher) / f64::from(all.max(1))
}

/// What was busy beyond the requests in flight, and when. Where requests wait, all is in use, and
/// nothing can be said.
fn unused(facts: &Facts<'_>, gauge: &Gauge) -> Vec<Unused> {
    let points = facts.run.series.points();
    let in_flight = |at: u64| {
        let second = at / SECOND;
        let of =
            |point: &&SeriesPoint| (point.second..point.second + point.seconds).contains(&second);
        points.iter().find(of).map(|point| point.in_flight)
    };
    // After the last arrival requests end, and what they held may be read before it is free.
    let span = facts.warmup()..facts.warmup() + facts.run.measured / SECOND * SECOND;
    let samples = gauge.samples().iter().filter(|sample| span.contains(&sample.at));
    let each = samples.filter_map(|sample| {
        let in_flight = in_flight(sample.at)?;
        let number = sample.mean - in_flight;
        (number >= -NOISE).then(|| Unused { at: sample.at, number: number.max(0.0), in_flight })
    });
    each.collect()
}
