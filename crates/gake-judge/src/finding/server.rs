//! What the shape of the answers says of the server.

use gake_core::clock::Nanos;
use gake_core::record::{Metric, Point};
use gake_text::units;

use super::facts::Facts;
use super::{Finding, cores};
use crate::stats::{per_second, share};

/// Answers needed before a shape is seen in them.
const SHAPE_COUNT_MIN: u64 = 100;
/// The median first byte against the fastest.
const QUEUE_OVER_MIN: f64 = 3.0;
/// The median must exceed the fastest by this, or it is the noise of small times.
const QUEUE_WAIT_MIN: Nanos = 1_000_000;
/// Waiting in one queue is much the same for all: the 10th percentile against the median. Service
/// times that differ by themselves spread further.
const QUEUE_NARROW: f64 = 0.5;
/// Mean in flight against the slots that the rate and the fastest answer need.
const QUEUE_OVER_SLOTS: f64 = 2.0;
/// Answers that are within a tenth of the fastest, when others wait and these do not.
const UNEVEN_ALIKE: f64 = 0.05;
/// Between quiet and busy seconds: in flight grows by this, times by this, the rate by less.
const GROWTH_IN_FLIGHT: f64 = 2.0;
const GROWTH_TIME: f64 = 1.5;
const GROWTH_RATE: f64 = 1.2;
/// Seconds needed for that comparison.
const GROWTH_POINTS: usize = 6;

/// The part of those in flight that a disk must be seen to hold before no pool is blamed.
const AT_DISK: f64 = 0.2;

/// Share of the service time that reading the body takes.
const DOWNLOAD_SHARE: f64 = 0.6;
/// A first byte waits on the way when a round trip takes this part of that time ...
const ROUND_TRIP_SHARE: f64 = 0.5;
/// ... and this many times as long as when the connections were opened. The kernel answers without
/// the server, so that no queue inside it makes a round trip longer.
const ROUND_TRIP_GROWTH: f64 = 3.0;
/// Samples of the round trip needed.
const ROUND_TRIPS_MIN: u64 = 3;
/// Responses smaller than this do not fill a pipe.
const DOWNLOAD_BYTES_MIN: f64 = 65_536.0;

/// The finding of [`pool_queueing`].
pub(super) const POOL_QUEUEING: &str = "pool_queueing";

/// Requests stand in line inside the server, and it has CPU to spare: for a pool or a lock. Where a
/// part of them was seen to wait for a disk, that may be what all of them wait for.
pub(super) fn pool_queueing(facts: &Facts<'_>) -> Option<Finding> {
    let evidence = queue(facts).filter(|_| cores::idle(facts) == Some(true))?;
    if facts.at_disk() >= AT_DISK {
        return None;
    }
    let advice = "look for a pool of threads, processes or database connections: its size is that \
                  rate times what one request takes alone; more clients only lengthen the queue";
    let check = "the CPU that the target leaves idle meanwhile: top; what its threads wait for: \
                 jstack, /debug/pprof/goroutine, ps -eLo wchan";
    Some(Finding::new(POOL_QUEUEING, evidence, advice, check))
}

/// In a closed loop hardly anybody waits and most wait long: who has a place inside the server may
/// keep it, or the work of requests differs by itself. From outside the two look alike.
pub(super) fn uneven(facts: &Facts<'_>) -> Option<String> {
    let first = facts.latency(Metric::FirstByte);
    let connects = facts.latency(Metric::Connect);
    if first.count() < SHAPE_COUNT_MIN || facts.generator_is_busy() || !facts.is_closed() {
        return None;
    }
    let (fastest, median) = (first.min(), first.quantile(0.5));
    let waits = median as f64 >= QUEUE_OVER_MIN * fastest as f64
        && median >= fastest + QUEUE_WAIT_MIN
        && connects.quantile(0.99) <= median
        && !waits_on_the_way(facts);
    // Times that only vary have few that are as short as the shortest.
    let alike = first.count_up_to(fastest + fastest / 10);
    if !waits || (alike as f64) < UNEVEN_ALIKE * first.count() as f64 {
        return None;
    }
    Some(format!(
        "the first byte takes {} in the median, and {} for {} of the requests, with {} in flight: \
         the rest waited inside the server, or takes that long by itself",
        units::duration(median as f64),
        units::duration(fastest as f64),
        units::percent(share(alike, first.count())),
        units::number(facts.in_flight()),
    ))
}

/// Connects are fast, the first byte waits: how long, and for how many, when that is the shape.
/// What they wait for cannot be seen from here: a pool, a lock, or the CPU.
pub(super) fn queue(facts: &Facts<'_>) -> Option<String> {
    let first = facts.latency(Metric::FirstByte);
    // A generator without CPU makes the same shape.
    if first.count() < SHAPE_COUNT_MIN || facts.generator_is_busy() {
        return None;
    }
    let (fastest, median) = (first.min() as f64, first.quantile(0.5) as f64);
    let connects = facts.latency(Metric::Connect);
    if median < fastest + QUEUE_WAIT_MIN as f64
        || connects.quantile(0.99) as f64 > median
        || waits_on_the_way(facts)
    {
        return None;
    }
    let rate = per_second(first.count() as f64, facts.run.measured);
    let slots = rate * fastest / 1e9;
    let in_flight = facts.in_flight();
    // A closed loop without think time, or arrivals that wait, load the server to its limit; in
    // any other run a wide distribution may be the service's own.
    let pushed = facts.is_closed() || !facts.latency(Metric::Blocked).is_empty();
    let shaped = median >= QUEUE_OVER_MIN * fastest
        && first.quantile(0.1) as f64 >= QUEUE_NARROW * median
        && in_flight >= QUEUE_OVER_SLOTS * slots;
    if !(pushed && shaped || grows_without_gain(facts.run.series.points())) {
        return None;
    }
    // A request takes at least the fastest one's time, which bounds the number served at once.
    let served = match slots.round() as u64 {
        0 | 1 => String::new(),
        slots => format!("at least {} were served at once and ", units::plural(slots, "request")),
    };
    Some(format!(
        "the first byte takes {} in the median and {} at best, with {} in flight: at {} {served}the \
         rest waited inside the server",
        units::duration(median),
        units::duration(fastest),
        units::number(in_flight),
        units::rate(rate),
    ))
}

/// Whether the busiest third of the seconds has more in flight and longer times than the
/// quietest, but completes no more.
fn grows_without_gain(points: &[Point]) -> bool {
    let mut full: Vec<_> = points.iter().filter(|p| p.counts.completed() > 0).collect();
    if full.len() < GROWTH_POINTS {
        return false;
    }
    full.sort_by(|a, b| a.in_flight.total_cmp(&b.in_flight));
    let third = full.len() / 3;
    let mean = |part: &[&Point], of: fn(&Point) -> f64| {
        part.iter().map(|point| of(point)).sum::<f64>() / part.len() as f64
    };
    let (quiet, busy) = (&full[..third], &full[full.len() - third..]);
    let growth = |of: fn(&Point) -> f64| mean(busy, of) / mean(quiet, of).max(f64::MIN_POSITIVE);
    growth(|p| p.in_flight) >= GROWTH_IN_FLIGHT
        && growth(|p| p.p50 as f64) >= GROWTH_TIME
        && growth(|p| p.counts.completed() as f64 / p.seconds.max(1) as f64) <= GROWTH_RATE
}

/// Whether the first byte waits behind other bytes on the way, and not inside the server.
fn waits_on_the_way(facts: &Facts<'_>) -> bool {
    let (trips, first) = (facts.latency(Metric::Rtt), facts.latency(Metric::FirstByte));
    let trip = trips.quantile(0.5) as f64;
    trips.count() >= ROUND_TRIPS_MIN
        && trip >= ROUND_TRIP_SHARE * first.quantile(0.5) as f64
        && trip >= ROUND_TRIP_GROWTH * facts.latency(Metric::Connect).min() as f64
}

pub(super) fn bandwidth(facts: &Facts<'_>) -> Option<Finding> {
    let download = facts.latency(Metric::Download);
    let service = facts.latency(Metric::Service);
    if download.count() < SHAPE_COUNT_MIN || facts.generator_is_busy() {
        return None;
    }
    let part = download.mean() / service.mean();
    let size = facts.counts().bytes_in as f64 / facts.answers() as f64;
    let queued = waits_on_the_way(facts);
    if (part < DOWNLOAD_SHARE && !queued) || size < DOWNLOAD_BYTES_MIN {
        return None;
    }
    let rate = per_second(facts.counts().bytes_in as f64, facts.run.measured);
    let mut evidence = format!(
        "reading the body takes {} of the service time; {}/s ({:.0} Mbit/s) came in",
        units::percent(part),
        units::bytes(rate),
        rate * 8.0 / 1e6
    );
    if queued {
        evidence.push_str(&format!(
            "; a round trip takes {} under the load, and took {} when a connection was opened",
            units::duration(facts.latency(Metric::Rtt).quantile(0.5) as f64),
            units::duration(facts.latency(Metric::Connect).min() as f64)
        ));
    }
    let advice = "compare with what the link can carry; compress, send less, or measure closer to \
                  the server";
    let check = "sar -n DEV 1, or ip -s link twice, on both machines; ethtool for the link's speed";
    Some(Finding::new("bandwidth", evidence, advice, check))
}
