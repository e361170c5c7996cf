//! The places of a saturated target that can be counted: its connections to another server, its
//! threads at work.

use super::facts::RunFacts;
use super::listener;
use super::waits::{self, READINGS_MIN, awaited, before, readings, samples, usual};

/// A pool of connections is full when threads wait for this share of them, ...
const FULL: f64 = 0.8;
/// ... and so many times as many requests are in flight.
const IN_FLIGHT_MIN: f64 = 1.5;
/// Range of the ratio of counted places to rate × time. On a full machine a request among others
/// takes longer than alone; in an overload the fastest may have waited.
const RATIO: (f64, f64) = (0.5, 1.5);
/// The count is the same in this share of the readings.
const SAME: f64 = 0.7;

/// A server behind the target to which it has the same number of connections in every reading,
/// while more requests are in flight: a pool of that size.
pub(super) fn constant_connections<'a>(facts: &RunFacts<'a>) -> Option<(&'a str, u64)> {
    facts.run.watched.gauges().iter().find_map(|gauge| {
        let peer = gauge.name.strip_suffix(" established")?;
        let counts: Vec<f64> = samples(gauge, facts).map(|sample| sample.mean).collect();
        let size = *counts.first()?;
        let is_constant =
            counts.len() >= 3 && counts.iter().all(|count| (count - size).abs() < 0.5);
        let is_full = facts.in_flight() >= IN_FLIGHT_MIN * size;
        (is_constant && size >= 1.0 && is_full).then_some((peer, size as u64))
    })
}

/// Whether threads wait for all of a number of connections, whatever a request alone takes.
pub(super) fn are_all_awaited(facts: &RunFacts<'_>, (peer, places): (&str, u64)) -> bool {
    awaited(facts).any(|(one, threads, _)| one == peer && threads >= FULL * places as f64)
}

/// A server behind the target for which the same number of threads wait nearly all the time, while
/// more requests are in flight: a full pool of connections.
pub(super) fn full_connections<'a>(facts: &RunFacts<'a>) -> Option<(&'a str, u64)> {
    if readings(facts)? < READINGS_MIN {
        return None;
    }
    let is_full = |threads: f64, places: f64| {
        threads >= FULL * places && facts.in_flight() >= IN_FLIGHT_MIN * places
    };
    let full = awaited(facts).find(|(_, threads, places)| is_full(*threads, *places));
    full.map(|(peer, _, places)| (peer, places as u64))
}

/// Threads at work whose number is the same nearly all the time, and what they do: about `estimate`;
/// when that is unknown, about `least` or more.
pub(super) fn counted(
    facts: &RunFacts<'_>,
    estimate: Option<f64>,
    least: f64,
) -> Option<(u64, String)> {
    // Before a full accept queue requests wait for no thread.
    let is_outside = estimate.is_none() && listener::is_full(facts);
    if is_outside || readings(facts)? < READINGS_MIN {
        return None;
    }
    waits::WAITS.iter().find_map(|(name, does, _)| {
        facts.gauges(name).find_map(|gauge| {
            let (level, share) = usual(gauge, facts)?;
            let count = level - before(gauge);
            let (low, high) = match estimate {
                Some(places) => (RATIO.0 * places, RATIO.1 * places),
                None => (RATIO.0 * least, f64::INFINITY),
            };
            let is_places = (low..=high).contains(&count)
                && count >= 1.0
                && facts.in_flight() >= IN_FLIGHT_MIN * count;
            (is_places && share >= SAME).then(|| (count.round() as u64, waits::does(count, does)))
        })
    })
}
