//! What the shape of the answers says of the server.

use gake_core::clock::Nanos;
use gake_core::record::{HEAT, LatencyMetric, SeriesPoint};
use gake_text::units;

use super::facts::Facts;
use super::{Finding, cores};
use crate::saturation::Saturation;
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
/// Users who line up in one queue from the start are this many times those served at once.
const LINED_UP_SLOTS: f64 = 1.5;
/// Share of later responses that may be about as short as those of the first second.
const FAST_LATER: f64 = 0.005;
/// Served at once, where it is one after another: X and S₀ are known to some tenths.
const SERIAL: (f64, f64) = (0.8, 1.3);
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

/// Requests wait inside the server, which serves several at once.
pub(super) const POOL_QUEUEING: &str = "pool_queueing";
/// Requests wait inside the server, which serves one after another.
pub(super) const ONE_AT_A_TIME: &str = "one_at_a_time";

/// Requests stand in line inside the server, and it has CPU to spare: for a pool or a lock. Where a
/// part of them was seen to wait for a disk, that may be what all of them wait for.
pub(super) fn pool_queueing(facts: &Facts<'_>) -> Option<Finding> {
    let queue = queue(facts).filter(|_| cores::idle(facts) == Some(true))?;
    if facts.at_disk() >= AT_DISK {
        return None;
    }
    Some(served_at_once(queue.text(), queue.at_once))
}

/// That requests wait inside a server with CPU to spare, by `evidence`; it serves `served` at once,
/// where that is known.
#[must_use]
pub fn served_at_once(evidence: String, served: Option<f64>) -> Finding {
    let check = "the CPU that the target leaves idle meanwhile: top; what its threads wait for: \
                 jstack, /debug/pprof/goroutine, ps -eLo wchan";
    if is_serial(served) {
        let advice = "look for what only one request can have at a time: a lock, a single connection \
                      to a database or service, one worker, a blocked event loop; more clients only \
                      lengthen the queue";
        return Finding::new(ONE_AT_A_TIME, evidence, advice, check);
    }
    let advice = "look for a pool of threads, processes or database connections: its size is that \
                  rate times what one request takes alone; more clients only lengthen the queue";
    Finding::new(POOL_QUEUEING, evidence, advice, check)
}

fn is_serial(served: Option<f64>) -> bool {
    served.is_some_and(|served| (SERIAL.0..SERIAL.1).contains(&served))
}

/// In a closed loop hardly anybody waits and most wait long: who has a place inside the server may
/// keep it, or the work of requests differs by itself. From outside the two look alike.
pub(super) fn uneven(facts: &Facts<'_>) -> Option<String> {
    let first = facts.latency(LatencyMetric::FirstByte);
    let connects = facts.latency(LatencyMetric::Connect);
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

/// Requests that wait inside the server.
pub(super) struct ServerQueue {
    /// The first byte, in nanoseconds.
    median: f64,
    fastest: f64,
    in_flight: f64,
    /// Responses a second.
    rate: f64,
    /// How many are served at once, m = X·S₀ with the fastest response for S₀ (operational
    /// analysis, the utilization law), where that response was a request that did not wait.
    at_once: Option<f64>,
}

impl ServerQueue {
    /// What was seen, in a sentence.
    pub(super) fn text(&self) -> String {
        let (rate, fastest) = (units::rate(self.rate), units::duration(self.fastest));
        let served = self.at_once.map_or(format!("at {rate}"), |served| {
            let product = units::number((served * 100.0).round() / 100.0);
            let how = match is_serial(self.at_once) {
                true => "requests are served one after another".to_owned(),
                false => format!("at least {} are served at once", served.round()),
            };
            format!("{how} ({rate} × {fastest} = {product}), and")
        });
        format!(
            "the first byte takes {} in the median and {fastest} at best, with {} in flight: {served} \
             the rest waits inside the server",
            units::duration(self.median),
            units::number(self.in_flight),
        )
    }
}

/// Connects are fast, the first byte waits: how long, and for how many, when that is the shape.
/// What they wait for cannot be seen from here: a pool, a lock, or the CPU.
pub(super) fn queue(facts: &Facts<'_>) -> Option<ServerQueue> {
    let first = facts.latency(LatencyMetric::FirstByte);
    // A generator without CPU makes the same shape.
    if first.count() < SHAPE_COUNT_MIN || facts.generator_is_busy() {
        return None;
    }
    let (fastest, median) = (first.min() as f64, first.quantile(0.5) as f64);
    let connects = facts.latency(LatencyMetric::Connect);
    if median < fastest + QUEUE_WAIT_MIN as f64
        || connects.quantile(0.99) as f64 > median
        || waits_on_the_way(facts)
    {
        return None;
    }
    let saturation = Saturation::of(facts.run);
    let rate = saturation.map_or_else(
        || per_second(first.count() as f64, facts.run.measured),
        |saturation| saturation.completed,
    );
    let slots = rate * fastest / 1e9;
    let in_flight = facts.in_flight();
    // A closed loop without think time, or arrivals that wait, load the server to its limit; in
    // any other run a wide distribution may be the service's own.
    let pushed = facts.is_closed() || !facts.latency(LatencyMetric::Blocked).is_empty();
    let narrow = first.quantile(0.1) as f64 >= QUEUE_NARROW * median;
    let shaped =
        narrow && median >= QUEUE_OVER_MIN * fastest && in_flight >= QUEUE_OVER_SLOTS * slots;
    // Users who all wait in one queue from the start: only the first of them did not.
    let lined_up = narrow
        && slots >= SERIAL.0
        && in_flight >= LINED_UP_SLOTS * slots
        && facts.is_closed()
        && only_the_first_were_fast(facts.run.series.points(), fastest, median);
    // All of its places are taken: then the fastest response tells how many there are, unless that
    // was a failure.
    let is_full = saturation.is_some() || pushed && shaped || lined_up;
    let is_known =
        is_full && facts.of_sent(facts.counts().failed) < UNEVEN_ALIKE && slots >= SERIAL.0;
    let is_queue = is_full || grows_without_gain(facts.run.series.points());
    is_queue.then_some(ServerQueue {
        median,
        fastest,
        in_flight,
        rate,
        at_once: is_known.then_some(slots),
    })
}

/// Whether responses as short as `fastest` came in the first second only: those of users who found
/// an empty queue. Times that vary by themselves are as short at any time.
fn only_the_first_were_fast(points: &[SeriesPoint], fastest: f64, median: f64) -> bool {
    let middle = f64::midpoint(fastest, median);
    let short = |point: &SeriesPoint| -> u64 {
        let is_short = |cell: u16| (HEAT.low(cell) as f64) < middle * 0.9;
        point.heat.iter().filter(|(cell, _)| is_short(*cell)).map(|(_, count)| count).sum()
    };
    let all = |point: &SeriesPoint| point.heat.iter().map(|(_, count)| count).sum::<u64>();
    let Some((first, rest)) = points.split_first() else { return false };
    let later: u64 = rest.iter().map(short).sum();
    short(first) > 0 && later as f64 <= FAST_LATER * rest.iter().map(all).sum::<u64>() as f64
}

/// Whether the busiest third of the seconds has more in flight and longer times than the
/// quietest, but completes no more.
fn grows_without_gain(points: &[SeriesPoint]) -> bool {
    let mut full: Vec<_> = points.iter().filter(|p| p.counts.completed() > 0).collect();
    if full.len() < GROWTH_POINTS {
        return false;
    }
    full.sort_by(|a, b| a.in_flight.total_cmp(&b.in_flight));
    let third = full.len() / 3;
    let mean = |part: &[&SeriesPoint], of: fn(&SeriesPoint) -> f64| {
        part.iter().map(|point| of(point)).sum::<f64>() / part.len() as f64
    };
    let (quiet, busy) = (&full[..third], &full[full.len() - third..]);
    let growth =
        |of: fn(&SeriesPoint) -> f64| mean(busy, of) / mean(quiet, of).max(f64::MIN_POSITIVE);
    growth(|p| p.in_flight) >= GROWTH_IN_FLIGHT
        && growth(|p| p.p50 as f64) >= GROWTH_TIME
        && growth(|p| p.counts.completed() as f64 / p.seconds.max(1) as f64) <= GROWTH_RATE
}

/// Whether the first byte waits behind other bytes on the way, and not inside the server.
fn waits_on_the_way(facts: &Facts<'_>) -> bool {
    let (trips, first) =
        (facts.latency(LatencyMetric::Rtt), facts.latency(LatencyMetric::FirstByte));
    let trip = trips.quantile(0.5) as f64;
    trips.count() >= ROUND_TRIPS_MIN
        && trip >= ROUND_TRIP_SHARE * first.quantile(0.5) as f64
        && trip >= ROUND_TRIP_GROWTH * facts.latency(LatencyMetric::Connect).min() as f64
}

pub(super) fn bandwidth(facts: &Facts<'_>) -> Option<Finding> {
    let download = facts.latency(LatencyMetric::Download);
    let service = facts.latency(LatencyMetric::Service);
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
            units::duration(facts.latency(LatencyMetric::Rtt).quantile(0.5) as f64),
            units::duration(facts.latency(LatencyMetric::Connect).min() as f64)
        ));
    }
    let advice = "compare with what the link can carry; compress, send less, or measure closer to \
                  the server";
    let check = "sar -n DEV 1, or ip -s link twice, on both machines; ethtool for the link's speed";
    Some(Finding::new("bandwidth", evidence, advice, check))
}
