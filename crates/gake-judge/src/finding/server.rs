//! Queues inside the server, from the distribution of response times.

use gake_core::clock::{Nanos, TENTH};
use gake_core::record::{HEAT, LatencyMetric, SeriesPoint};
use gake_text::units;

use super::connections::{self, is_last_come, starved};
use super::facts::RunFacts;
use super::server_queue::{AT_ONCE, FULL_MACHINE, SERIAL, ServerQueue, is_serial};
use super::{Finding, bandwidth, cores, database, generator, pattern, places, waits};
use crate::departures;
use crate::saturation::Saturation;
use crate::stats::{per_second, share};
use crate::together::Together;
use crate::unloaded::Unloaded;

/// Responses needed to judge their distribution.
const SHAPE_COUNT_MIN: u64 = 100;
/// Ratio of the median first byte to the fastest.
const QUEUE_OVER_MIN: f64 = 3.0;
/// The median exceeds the fastest by at least this; less is noise.
const QUEUE_WAIT_MIN: Nanos = 1_000_000;
/// Waits in one queue are similar for all: ratio of the 10th percentile to the median. Service
/// times that vary by themselves spread further.
const QUEUE_NARROW: f64 = 0.5;
/// Ratio of the mean in flight to the slots that the rate and the fastest response need.
const QUEUE_OVER_SLOTS: f64 = 2.0;
/// Users who line up in one queue from the start are at least this many times the slots.
const LINED_UP_SLOTS: f64 = 1.5;
/// Maximum share of later responses about as short as in the first second, ...
const FAST_LATER: f64 = 0.02;
/// ... in which each slot has at least this many of them.
const FAST_FIRST: f64 = 0.7;
/// A limiter that spaces requests occupies fewer slots, and makes them wait longer than this many
/// times the fastest.
const SHAPED_SLOTS: f64 = 0.3;
const SHAPED_WAIT: f64 = 10.0;
/// The ratio of median to fastest in an overload from which on the fastest did not wait.
const OVERLOADED_OVER: f64 = 5.0;
/// On a machine without a core to spare requests take up to this many times as long as alone for lack
/// of one.
const NOISE: f64 = 1.8;
/// Share of the responses within a tenth of the fastest, when others wait and these do not.
const UNEVEN_ALIKE: f64 = 0.05;
/// Most requests wait for nothing up to this ratio of the median to the fastest; then this quantile
/// is that of the others.
const NO_WAIT: f64 = 1.3;
const LONG: f64 = 0.95;
/// One request is served at a time on such a machine down to this product of rate and time.
const HALF: f64 = 0.5;
/// Ratio of a probe's median to the fastest response, above which it did not find the target idle.
const LEFT_BEHIND: f64 = 1.2;
/// From quiet to busy seconds the requests in flight and the times grow by at least these factors,
/// and the rate by at most this.
const GROWTH_IN_FLIGHT: f64 = 2.0;
const GROWTH_TIME: f64 = 1.5;
const GROWTH_RATE: f64 = 1.2;
/// Seconds needed for this comparison.
const GROWTH_POINTS: usize = 6;

/// From this share of the requests in flight waiting for a disk on, no pool is blamed.
const AT_DISK: f64 = 0.2;

/// Requests wait inside the server, which serves several at once.
pub(super) const POOL_QUEUEING: &str = "pool_queueing";
/// Places that want a core for less than this share of the time wait for something else.
const OFF_CPU: f64 = 0.5;
/// A thread that wants a core for this share of the time may be the limit.
const ONE_THREAD: f64 = 0.8;
/// A single thread of work wants at most this many cores, with what the runtime does beside it, ...
const ONE_CORE: f64 = 1.3;
/// ... and at least this many when it does nothing else.
const USES_A_CORE: f64 = 0.85;

/// The number of connections to a server behind the target agrees with the places up to this share.
const PLACES_WITHIN: f64 = 0.1;

/// From this multiple of the places that requests sent alone give, busy cores explain no more of them.
const IN_FRONT: f64 = 2.0;

/// Requests wait inside the server, which serves one after another.
pub(super) const ONE_AT_A_TIME: &str = "one_at_a_time";

/// Requests queue inside a server that has CPU to spare: for a pool or a lock. When a share of them
/// waits for a disk, all may wait for it.
pub(super) fn pool_queueing(facts: &RunFacts<'_>) -> Option<Finding> {
    let queue = queue(facts)?;
    // More cores do not help requests that are served one after another, nor requests that hold
    // their places for most of the time without wanting a core.
    let wanted = cores::wanted(facts).unwrap_or(f64::INFINITY);
    let places = queue.at_once.unwrap_or(0.0);
    let is_idle = cores::idle(facts) == Some(true)
        || wanted < OFF_CPU * places && cores::busiest(facts) < ONE_THREAD
        || is_serial(queue.at_once) && wanted <= ONE_CORE;
    if !is_idle {
        return None;
    }
    if facts.at_disk() >= AT_DISK {
        return None;
    }
    if queue.is_even {
        return Some(queue.shaper());
    }
    if is_serial(queue.at_once) && (USES_A_CORE..ONE_CORE).contains(&wanted) {
        return Some(one_core(&queue, wanted));
    }
    let least = queue.rate * queue.fastest / 1e9;
    let agrees = |places: u64| match queue.at_once {
        Some(known) => {
            let high = if queue.is_on_full_machine { known * FULL_MACHINE } else { known };
            let within = |places: f64| (PLACES_WITHIN * places).max(0.5);
            (known - within(known)..=high + within(high)).contains(&(places as f64))
        }
        // At least as many as the fastest response shows, which may have waited.
        None => places as f64 >= 0.5 * least,
    };
    // Requests sent alone give the exact number: threads may wait for more places than serve them,
    // behind a lock, and not in every reading do all wait.
    let is_exact = queue.unloaded.is_some() && !queue.is_uncertain();
    // A full pool of many more is in front of the limit.
    let is_possible = |places: u64| {
        let most = queue.at_once.filter(|_| queue.unloaded.is_some()).map(|one| IN_FRONT * one);
        !is_exact && most.is_none_or(|most| places as f64 <= most)
    };
    let pool = places::constant_connections(facts).filter(|pool| {
        agrees(pool.1) || is_possible(pool.1) && places::are_all_awaited(facts, *pool)
    });
    let counted_as = |pool: &(&str, u64)| agrees(pool.1) || is_possible(pool.1);
    let pool = pool.or_else(|| places::full_connections(facts).filter(counted_as));
    let pool = pool.map(|(peer, places)| {
        let name = database::by_port(peer).map_or(String::new(), |name| format!(" ({name})"));
        let held = units::plural(places, "connection");
        (places, format!("the target holds {held} to {peer}{name}"))
    });
    let counted =
        || queue.is_uncertain().then(|| places::counted(facts, queue.at_once, least)).flatten();
    let known = pool.or_else(counted);
    let is_known = known.is_some();
    let mut finding = match known {
        Some((places, what)) => served_at_once(queue.held(places, &what), Some(places as f64)),
        None => served_at_once(queue.text(), queue.at_once),
    };
    waits::specify(&mut finding, facts);
    if !is_known && facts.hides_threads() {
        finding.advice += "; Actuator has Tomcat's threads with \
                           server.tomcat.mbeanregistry.enabled=true";
    }
    Some(finding)
}

/// The finding that requests wait inside a server with CPU to spare. `served` is the number that it
/// serves at once, if known.
#[must_use]
pub fn served_at_once(evidence: String, served: Option<f64>) -> Finding {
    let check = "ps -eLo comm,wchan:24 | sort | uniq -c there; jstack, py-spy dump";
    if is_serial(served) {
        let advice = "look for what one request holds at a time: a lock, a connection, a worker";
        return Finding { served, ..Finding::new(ONE_AT_A_TIME, evidence, advice, check) };
    }
    let advice = match served {
        Some(_) => "look for a pool of that size: threads, workers, database connections",
        None => "look for a pool; its size is the rate × the time of one request alone",
    };
    Finding { served, ..Finding::new(POOL_QUEUEING, evidence, advice, check) }
}

/// Requests are served one after another, and that keeps one core busy.
fn one_core(queue: &ServerQueue, wanted: f64) -> Finding {
    let evidence = format!(
        "{}; the target wants {} cores all that time: one core does the work",
        queue.text(),
        units::number(wanted)
    );
    let advice = "profile it; look for a single thread, a lock around work, GOMAXPROCS=1";
    let check = "top -H -p PID on the target; then pprof, perf or py-spy top";
    Finding { served: queue.at_once, ..Finding::new(ONE_AT_A_TIME, evidence, advice, check) }
}

/// Users starve in a queue of a server that has accepted them all.
pub(super) fn last_come(facts: &RunFacts<'_>) -> Option<Finding> {
    let (starved, served) = starved(facts)?;
    if facts.generator_is_busy() || !is_last_come(facts, served) {
        return None;
    }
    let fastest = facts.latency(LatencyMetric::FirstByte).min() as f64;
    let places = facts.rate() * fastest / 1e9;
    let evidence = format!(
        "{} are {AT_ONCE} ({} × {}), the newest request first: {} of {} waited for more than \
         half of the run, and the server had accepted all of them",
        places.round(),
        units::rate(facts.rate()),
        units::duration(fastest),
        units::count(starved),
        units::plural(starved + served, "user"),
    );
    Some(served_at_once(evidence, Some(places)))
}

/// In a closed loop a few requests are fast and most wait long: either a request keeps its slot
/// inside the server, or requests differ in work. From outside the two look alike.
pub(super) fn uneven(facts: &RunFacts<'_>) -> Option<String> {
    let first = facts.latency(LatencyMetric::FirstByte);
    let connects = facts.latency(LatencyMetric::Connect);
    // What requests take alone is known.
    let is_known = Unloaded::of(facts.run).is_some();
    if first.count() < SHAPE_COUNT_MIN
        || facts.generator_is_busy()
        || !facts.is_closed()
        || is_known
    {
        return None;
    }
    let (fastest, median) = (first.min(), first.quantile(0.5));
    let waits = median as f64 >= QUEUE_OVER_MIN * fastest as f64
        && median >= fastest + QUEUE_WAIT_MIN
        && connects.quantile(0.99) <= median
        && !bandwidth::waits_in_network(facts);
    // Times that merely vary include few as short as the shortest.
    let alike = first.count_up_to(fastest + fastest / 10);
    if !waits || (alike as f64) < UNEVEN_ALIKE * first.count() as f64 {
        return None;
    }
    Some(format!(
        "the median first byte takes {}, but {} for {} of the requests, with {} in flight: the \
         rest waited inside the server, or took that long by itself",
        units::duration(median as f64),
        units::duration(fastest as f64),
        units::percent(share(alike, first.count())),
        units::number(facts.in_flight()),
    ))
}

/// The queue, if connects are fast and the first byte waits. Whether for a pool, a lock or the CPU
/// does not show here.
pub(super) fn queue(facts: &RunFacts<'_>) -> Option<ServerQueue> {
    let first = facts.latency(LatencyMetric::FirstByte);
    // A generator short of CPU causes the same distribution.
    if first.count() < SHAPE_COUNT_MIN || facts.generator_is_busy() {
        return None;
    }
    let (fastest, median) = (first.min() as f64, first.quantile(0.5) as f64);
    let connects = facts.latency(LatencyMetric::Connect);
    let saturation = Saturation::of(facts.run);
    let rate = saturation.map_or_else(
        || per_second(first.count() as f64, facts.run.completing),
        |saturation| saturation.completed,
    );
    // A probe that takes longer than the fastest response waited for what the run left behind.
    let is_free = |unloaded: &Unloaded| {
        facts.counts().unfinished == 0 || unloaded.median() <= LEFT_BEHIND * fastest
    };
    let is_pushed = facts.is_closed() || saturation.is_some();
    let unloaded = Unloaded::of(facts.run);
    let alone = unloaded.as_ref().map_or(fastest, |one| one.median().min(fastest));
    let unloaded = unloaded.filter(|unloaded| is_pushed && is_free(unloaded));
    let is_on_full_machine = cores::machine_is_full(facts);
    let slots = match unloaded.as_ref().map(|unloaded| unloaded.places(rate)) {
        // Few requests sent alone include few of the slow ones. One at least is served.
        Some(places) if places.number < 1.0 && places.high >= 1.0 => 1.0,
        // Among others one takes longer than alone.
        Some(places) if places.number < 1.0 && is_on_full_machine && places.number >= HALF => 1.0,
        Some(places) => places.number,
        None => rate * fastest / 1e9,
    };
    let in_flight = facts.in_flight();
    let end = (facts.run.measured + facts.warmup()) / TENTH;
    let tenths = facts.run.series.tenths();
    let is_lined_up = facts.is_closed() && in_flight >= LINED_UP_SLOTS * slots;
    // Most requests wait for nothing, since their connections are served again at once.
    let leaves_waiting = match &unloaded {
        _ if saturation.is_some() => median < NO_WAIT * fastest,
        Some(unloaded) => {
            is_lined_up
                && unloaded.has_no_tail_of(first)
                && departures::are_regular(tenths, end, first)
        }
        None => false,
    };
    let long = first.quantile(if leaves_waiting { LONG } else { 0.5 }) as f64;
    // Where all places are taken, connections wait behind them in a full accept queue.
    let is_at_places =
        unloaded.is_some() && slots >= SERIAL.0 && connections::limit(facts).is_none();
    if long < alone + QUEUE_WAIT_MIN as f64
        || !is_at_places && connects.quantile(0.99) as f64 > long
        || bandwidth::waits_in_network(facts)
    {
        return None;
    }
    let waited = unloaded.as_ref().map(|unloaded| unloaded.is_exceeded_by(first));
    let lacks_cores = generator::lacks_cores(facts) || is_on_full_machine;
    // A machine that others fill makes requests longer, which is no queue.
    let is_noise = |unloaded: &Unloaded| lacks_cores && median < NOISE * unloaded.median();
    // Alone, requests take as long.
    let is_alike = |unloaded: &Unloaded| is_noise(unloaded) || unloaded.is_matched_by(first);
    if saturation.is_none() && !leaves_waiting && unloaded.as_ref().is_some_and(is_alike) {
        return None;
    }
    // A closed loop without think time, or arrivals that wait, load the server to its limit; in any
    // other run a wide distribution may be the service's own.
    let pushed = facts.is_closed() || !facts.latency(LatencyMetric::Blocked).is_empty();
    let narrow = first.quantile(0.1) as f64 >= QUEUE_NARROW * median;
    let shaped =
        narrow && median >= QUEUE_OVER_MIN * fastest && in_flight >= QUEUE_OVER_SLOTS * slots;
    // Users who all wait in one queue from the start, except the first of them.
    let lined_up = narrow
        && slots >= SERIAL.0
        && is_lined_up
        && only_the_first_were_fast(facts.run.series.points(), fastest, median, slots);
    // Users who wait for each other in any order.
    let coupled = is_lined_up && departures::are_coupled(tenths, end, first);
    // A request sent alone that takes about as long waits for none of them.
    let is_longer = unloaded.as_ref().is_none_or(|unloaded| unloaded.is_shorter_than(first));
    // All slots are taken: then the fastest response gives their number, unless it was a failure.
    let is_full = saturation.is_some()
        || waited == Some(true)
        || leaves_waiting
        || pushed && shaped
        || is_longer && (lined_up || coupled);
    // In an overload from the start even the fastest may have waited; and it is typical only of even
    // service times, which make completions even.
    let is_least = unloaded.is_some()
        || saturation.is_none()
        || leaves_waiting
        || median >= OVERLOADED_OVER * fastest && departures::are_even(tenths, end);
    let is_known = is_full
        && is_least
        && facts.of_sent(facts.counts().failed) < UNEVEN_ALIKE
        && slots >= SERIAL.0;
    // At a constant rate more are in flight whenever responses take longer, for any reason.
    let grows = !pattern::load_is_constant(facts) && grows_without_gain(facts.run.series.points());
    let is_queue = is_full || grows;
    let is_buffer = unloaded.as_ref().is_some_and(|one| one.fills_a_buffer(rate));
    let turns = Together::of(facts.run)
        .filter(|together| unloaded.as_ref().is_some_and(|one| together.take_turns(rate, one)));
    let is_shaped = rate * fastest / 1e9 < SHAPED_SLOTS
        || unloaded.as_ref().is_some_and(|one| one.is_shaped(rate, fastest));
    is_queue.then_some(ServerQueue {
        median,
        fastest,
        in_flight,
        rate,
        at_once: is_known.then_some(if turns.is_some() { 1.0 } else { slots }),
        unloaded: unloaded.clone(),
        turns,
        is_even: is_full
            && median >= SHAPED_WAIT * fastest
            && facts.counts().failed == 0
            && (is_buffer || is_shaped && departures::are_even(tenths, end)),
        left_waiting: leaves_waiting.then_some(long),
        is_on_full_machine,
        waited: facts.mean("cores_waited").unwrap_or(0.0),
    })
}

/// Whether responses as short as `fastest` came in the first second only: from users who found an
/// empty queue. Times that vary by themselves are as short at any time.
fn only_the_first_were_fast(points: &[SeriesPoint], fastest: f64, median: f64, slots: f64) -> bool {
    let middle = f64::midpoint(fastest, median);
    let short = |point: &SeriesPoint| -> u64 {
        let is_short = |cell: u16| (HEAT.low(cell) as f64) < middle * 0.9;
        point.heat.iter().filter(|(cell, _)| is_short(*cell)).map(|(_, count)| count).sum()
    };
    let all = |point: &SeriesPoint| point.heat.iter().map(|(_, count)| count).sum::<u64>();
    let Some((first, rest)) = points.split_first() else { return false };
    let later: u64 = rest.iter().map(short).sum();
    short(first) as f64 >= FAST_FIRST * slots
        && later as f64 <= FAST_LATER * rest.iter().map(all).sum::<u64>() as f64
}

/// Whether the busiest third of the seconds has more in flight and longer times than the quietest,
/// but completes no more.
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
