//! Detects an open loop that asks for more than the target completes, so that its queue grows.
//!
//! In an open loop the arrival rate λ does not depend on the target. A target that completes only X
//! < λ a second accumulates λ − X requests a second, and response times grow by λ/X − 1 seconds a
//! second. That is a result of the run, not a fault of the measurement: the capacity is X.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{LatencyMetric, Run, SeriesPoint};
use gake_text::units;

use crate::departures::fano;
use crate::lanes;
use crate::stats::{generator_is_busy, share};
use crate::unloaded::Unloaded;

/// Points of the series needed: responses as long as the run are no queue.
const POINTS_MIN: usize = 4;
/// Ratio of completed to asked in the second half of the load.
const COMPLETED_MAX: f64 = 0.95;
/// Up to this ratio a queue grows only if a request sent alone is much faster: responses that take
/// longer by themselves every second lag as much.
const COMPLETED_SLIGHTLY_LESS: f64 = 0.98;
/// Ratio of the last responses to a request sent alone, from which on they waited.
const WAITED: f64 = 2.0;
/// Completions must lag by this many standard deviations of the counts of arrivals and completions.
const DEVIATIONS: f64 = 4.0;
/// Bounds of their variance over the mean: of a Poisson process it is 1, of even counts next to 0.
/// It is measured over at least so many tenths of a second.
const VARIANCE: (f64, f64) = (0.1, 1.0);
const VARIANCE_TENTHS: usize = 20;
/// Ratio of the response times of the last third to the first: a slow but steady target lags by its
/// response time, which does not grow.
const GROWTH_MIN: f64 = 1.5;
/// Share of the requests that wait for a free connection, from which on connections are the limit.
const BLOCKED_MIN: f64 = 0.01;
/// Ratio of sent to asked, below which the generator may be too slow.
const SENT_MIN: f64 = 0.98;

/// A target beyond its capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// Arrivals a second that the plan asked for while the queue grew.
    pub asked: f64,
    /// Completions a second: the target's capacity for these requests.
    pub completed: f64,
}

impl Saturation {
    /// The saturation of a run's target, if it was beyond its capacity. `None` in a closed loop,
    /// and when the generator may have been too slow.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let found = Self::suspected(run)?;
        let is_much = found.completed < COMPLETED_MAX * found.asked;
        (is_much || waited(run)).then_some(found)
    }

    /// As [`Saturation::of`], also where only requests sent alone after the load can tell.
    #[must_use]
    pub fn suspected(run: &Run) -> Option<Self> {
        run.asked_rate?;
        let is_iterations = run.plan.fires_iterations();
        let completed = |point: &SeriesPoint| match is_iterations {
            true => point.counts.started,
            false => point.counts.completed(),
        };
        let is_loaded = |point: &&SeriesPoint| point.asked.is_some_and(|asked| asked > 0.0);
        let seconds = run.series.points();
        let (points, unit) = match seconds.iter().filter(is_loaded).count() > POINTS_MIN {
            true => (seconds, 1.0),
            false => (run.series.tenths(), 0.1),
        };
        let asked: Vec<&SeriesPoint> = points.iter().filter(is_loaded).collect();
        // The last point ends with the load and may be partial.
        let full = asked.len().checked_sub(1).filter(|full| *full >= POINTS_MIN)?;
        let (first, second) = asked[..full].split_at(full / 2);
        let sum = |points: &[&SeriesPoint], of: &dyn Fn(&SeriesPoint) -> f64| {
            points.iter().map(|point| of(point)).sum::<f64>()
        };
        let due = sum(second, &|point| point.asked.unwrap_or(0.0));
        let done = sum(second, &|point| completed(point) as f64);
        let time = sum(second, &|point| point.seconds as f64) * unit;
        let behind = due - done;
        // A target that hangs is not overloaded; one that responds in batches may be.
        let is_steady = second.iter().all(|point| completed(point) > 0);
        let batches = if is_steady { None } else { batched_rate(points, full, completed) };
        let is_alive = is_steady || batches.is_some();
        let is_behind = is_alive
            && done < COMPLETED_SLIGHTLY_LESS * due
            && behind > DEVIATIONS * (variance(run, second, unit) * due).sqrt()
            // The second half does not catch up with a lag of the first.
            && sum(first, &|point| point.asked.unwrap_or(0.0) - completed(point) as f64) >= 0.0;
        let rate = batches.map_or(done / time, |rate| rate / unit);
        let grows = waits_longer(run, &asked) || keeps_its_rate(run, rate) || piles_up(&asked);
        if !is_behind || !grows || is_generators(run) {
            return None;
        }
        Some(Self { asked: due / time, completed: rate })
    }

    /// The growth of the queue, in requests a second.
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.asked - self.completed
    }

    /// The evidence, in a sentence.
    #[must_use]
    pub fn text(&self, run: &Run) -> String {
        let dropped = share(run.tally.counts.dropped, run.tally.counts.due());
        let excess = match dropped >= share(self.growth() as u64, self.asked as u64) / 2.0 {
            true => format!("all {}s were busy, and the rest was dropped", lanes::noun(&run.plan)),
            false => format!("the queue grew by {}", units::rate(self.growth())),
        };
        format!(
            "the target completed {} of {} asked for: {excess}",
            units::rate(self.completed),
            units::rate(self.asked)
        )
    }
}

/// The variance of the counts of arrivals and completions over their mean, in the time of `points`;
/// that of a Poisson process when unknown.
fn variance(run: &Run, points: &[&SeriesPoint], unit: f64) -> f64 {
    let tenth = |time: u64| (time as f64 * unit * 10.0).round() as u64;
    let from = points.first().map_or(0, |point| tenth(point.second));
    let end = points.last().map_or(0, |point| tenth(point.second + point.seconds));
    let tenths = run.series.tenths().iter().filter(|one| (from..end).contains(&one.second));
    let (fired, completed): (Vec<f64>, Vec<f64>) =
        tenths.map(|one| (one.fired as f64, one.counts.completed() as f64)).unzip();
    if completed.len() < VARIANCE_TENTHS {
        return VARIANCE.1;
    }
    let sum = fano(&fired).zip(fano(&completed)).map(|(fired, completed)| fired + completed);
    sum.unwrap_or(VARIANCE.1).clamp(VARIANCE.0, VARIANCE.1)
}

/// Whether the last responses took much longer than a request sent alone after the load.
fn waited(run: &Run) -> bool {
    let medians = run.series.points().iter().filter(|point| point.counts.completed() > 0);
    let last = medians.map(|point| point.p50).next_back().unwrap_or(0);
    Unloaded::of(run).is_some_and(|alone| last as f64 >= WAITED * alone.median())
}

/// A target that responds in batches completes none in this share of the time at most.
const SILENT_MAX: f64 = 0.6;

/// The rate of a target that completes many requests at once and none between, from the first to the
/// last completion; `None` if it completes none after the load, or seldom any.
fn batched_rate(
    points: &[SeriesPoint],
    loaded: usize,
    completed: impl Fn(&SeriesPoint) -> u64,
) -> Option<f64> {
    let last = points.iter().rposition(|point| completed(point) > 0)?;
    let silent = points[..loaded].iter().filter(|point| completed(point) == 0).count();
    let all: u64 = points.iter().map(completed).sum();
    let time = points[..=last].iter().map(|point| point.seconds).sum::<u64>();
    (last >= loaded && silent as f64 <= SILENT_MAX * loaded as f64)
        .then(|| all as f64 / time as f64)
}

/// Whether response times grow, or arrivals wait for a free connection or are dropped.
fn waits_longer(run: &Run, points: &[&SeriesPoint]) -> bool {
    let counts = &run.tally.counts;
    let blocked = run.tally.latency.of(LatencyMetric::Blocked).count();
    if counts.dropped > 0 || share(blocked, counts.sent) > BLOCKED_MIN {
        return true;
    }
    let medians: Vec<Nanos> =
        points.iter().filter(|p| p.counts.completed() > 0).map(|point| point.p50).collect();
    let third = (medians.len() / 3).max(1);
    let mean = |part: &[Nanos]| part.iter().sum::<Nanos>() as f64 / part.len().max(1) as f64;
    medians.len() >= POINTS_MIN
        && mean(&medians[medians.len() - third..]) >= GROWTH_MIN * mean(&medians[..third])
}

/// Whether the target completes as many per second after the last arrival as before: it had a queue.
/// When the newest are served first, response times do not show it.
fn keeps_its_rate(run: &Run, rate: f64) -> bool {
    let tenths = run.series.tenths();
    let Some(end) = tenths.iter().rposition(|point| point.asked.is_some_and(|asked| asked > 0.0))
    else {
        return false;
    };
    // The tenth in which the load ends is partial.
    let after = tenths[end + 1..].iter().skip(1).take(AFTER).map(|point| point.counts.completed());
    after.len() == AFTER && after.sum::<u64>() as f64 >= KEPT * rate * AFTER as f64 / 10.0
}

/// Whether more are in flight each second, and the longest of those that end waited for most of the
/// run: some connections are served again while others wait, which no median shows.
fn piles_up(points: &[&SeriesPoint]) -> bool {
    let full = &points[..points.len() - 1];
    let third = full.len() / 3;
    let longest = |part: &[&SeriesPoint]| part.iter().map(|point| point.max).max().unwrap_or(0);
    let (first, last) = (longest(&full[..third]), longest(&full[full.len() - third..]));
    full.windows(2).all(|pair| pair[1].in_flight > pair[0].in_flight)
        && last as f64 >= LONGEST_GROWTH * first as f64
        && last as f64 >= LONGEST_MIN * full.len() as f64 * SECOND as f64
        && full[0].seconds == 1
}

/// Growth of the longest response from the first third to the last, and its share of the time.
const LONGEST_GROWTH: f64 = 1.5;
const LONGEST_MIN: f64 = 0.3;

/// Tenths of a second after the load, and the share of the rate that is kept.
const AFTER: usize = 10;
const KEPT: f64 = 0.7;

/// Whether the generator may have been too slow.
fn is_generators(run: &Run) -> bool {
    let (counts, latency) = (&run.tally.counts, &run.tally.latency);
    let lateness = latency.of(LatencyMetric::Lateness).quantile(0.99) as f64;
    let is_late = lateness > latency.response().quantile(0.5) as f64 / 2.0;
    let waited = share(latency.of(LatencyMetric::Blocked).count(), counts.sent) > BLOCKED_MIN;
    let fired = (counts.arrivals() - counts.dropped) as f64;
    let asked = run.asked_rate.unwrap_or(0.0) * run.measured as f64 / 1e9;
    let is_short = fired < SENT_MIN * asked && !waited && counts.dropped == 0;
    is_late || generator_is_busy(run) || is_short || counts.lost > 0
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use gake_core::clock::SECOND;
    use gake_core::random::SplitMix64;
    use gake_core::record::{Counts, LevelUnit, MACHINE, PROBE, Series};

    use super::*;
    use crate::probe::probe_after;
    use crate::simulation::open_loop;
    use crate::testing::{MS, RunBuilder, watch};
    use crate::validity;

    /// A run of 8 s at 260/s with these completions and medians in each second.
    fn run(completed: impl Fn(u64) -> u64, p50: impl Fn(u64) -> Nanos) -> Run {
        let mut run = RunBuilder::of(2_080, 5 * MS).asked(2_600.0).run();
        run.measured = 8 * SECOND;
        run.asked_rate = Some(260.0);
        let mut series = Series::default();
        for second in 0..12 {
            series.push(SeriesPoint {
                second,
                seconds: 1,
                asked: (second < 8).then_some(260.0),
                counts: Counts { ok: completed(second), ..Counts::default() },
                p50: p50(second),
                ..SeriesPoint::default()
            });
        }
        run.series = series;
        run
    }

    #[test]
    fn a_growing_queue_is_saturation() {
        let overloaded = run(|_| 180, |second| (second + 1) * 300 * MS);
        let found = Saturation::of(&overloaded).unwrap();
        assert!((found.completed - 180.0).abs() < 1.0 && (found.growth() - 80.0).abs() < 1.0);
        expect!["the target completed 180/s of 260/s asked for: the queue grew by 80/s"]
            .assert_eq(&found.text(&overloaded));
        let (validity, reasons) = validity::check(&overloaded);
        assert_eq!(validity, validity::Validity::Valid, "{reasons:?}");
    }

    /// The run of a simulated open loop of 8 s at `rate`/s, with requests sent alone afterwards that
    /// take `alone`.
    fn simulated(rate: f64, requests: &[(Nanos, Nanos)], alone: f64) -> Run {
        let mut builder = RunBuilder::default().asked(10.0 * rate);
        for (arrived, done) in requests {
            builder = builder.more(1, done - arrived);
        }
        let mut run = builder.run();
        run.measured = 8 * SECOND;
        let mut series = Series::default();
        let end = requests.iter().map(|one| one.1).max().unwrap_or(0) / SECOND + 1;
        let point = |from: Nanos, unit: Nanos| {
            let within = |at: Nanos| (from * unit..(from + 1) * unit).contains(&at);
            let mut took: Vec<Nanos> =
                requests.iter().filter(|one| within(one.1)).map(|one| one.1 - one.0).collect();
            took.sort_unstable();
            SeriesPoint {
                second: from,
                seconds: 1,
                asked: (from * unit < 8 * SECOND).then_some(rate * unit as f64 / 1e9),
                fired: requests.iter().filter(|one| within(one.0)).count() as u64,
                counts: Counts { ok: took.len() as u64, ..Counts::default() },
                p50: took.get(took.len() / 2).copied().unwrap_or(0),
                ..SeriesPoint::default()
            }
        };
        (0..10 * end).for_each(|tenth| series.push_tenth(point(tenth, SECOND / 10)));
        (0..end).for_each(|second| series.push(point(second, SECOND)));
        run.series = series;
        watch(&mut run, MACHINE, PROBE, LevelUnit::Seconds, &[alone; 5]);
        run
    }

    const FIXED: fn(&mut SplitMix64) -> Nanos =
        |random| 29 * MS + random.below(2 * MS as usize) as Nanos;
    const EXPONENTIAL: fn(&mut SplitMix64) -> Nanos =
        |random| (-(1.0 - random.unit()).ln() * 30e6) as Nanos;

    #[test]
    fn a_queue_is_seen_at_low_rates_and_when_it_grows_slowly() {
        for (servers, over, service, least) in
            [(1, 1.3, FIXED, 40), (3, 1.3, FIXED, 40), (3, 1.1, FIXED, 40), (30, 1.03, FIXED, 36)]
        {
            let rate = over * servers as f64 / 0.03;
            let found = (0..40).filter(|seed| {
                let requests = open_loop(*seed, (rate, true), servers, 8 * SECOND, service);
                Saturation::of(&simulated(rate, &requests, 0.03)).is_some()
            });
            let found = found.count();
            assert!(found >= least, "{found} of 40: {servers} places at {over} of their capacity");
        }
    }

    #[test]
    fn a_target_below_its_capacity_is_not_saturated() {
        for (servers, load, service) in [
            (1, 0.9, FIXED),
            (3, 0.95, FIXED),
            (1, 0.8, EXPONENTIAL),
            (3, 0.9, EXPONENTIAL),
            (9, 0.9, EXPONENTIAL),
        ] {
            for is_even in [true, false] {
                let rate = load * servers as f64 / 0.03;
                let blamed = (0..60).filter(|seed| {
                    let requests = open_loop(*seed, (rate, is_even), servers, 8 * SECOND, service);
                    Saturation::of(&simulated(rate, &requests, 0.03)).is_some()
                });
                let blamed = blamed.count();
                assert!(blamed <= 1, "{blamed} of 60: {servers} places, {load}, even {is_even}");
            }
        }
    }

    #[test]
    fn responses_that_take_longer_by_themselves_are_no_queue() {
        // Each second they take 25 ms longer, also for a request sent alone.
        let took = |n: Nanos| 20 * MS + n * 25_000;
        let requests: Vec<_> = (0..8_000).map(|n| (n * MS, n * MS + took(n))).collect();
        let alone = |alone: f64| Saturation::of(&simulated(1_000.0, &requests, alone));
        assert_eq!(alone(0.2), None);
        assert!(alone(0.02).is_some());
    }

    #[test]
    fn an_overloaded_target_is_probed_once_it_has_completed_what_was_left_behind() {
        let mut overloaded = run(|_| 180, |second| (second + 1) * 300 * MS);
        overloaded.tally.in_flight_ns = 300 * u128::from(overloaded.measured);
        assert_eq!(probe_after(&overloaded), Some(0));
        // 90 of 180/s, one and a half times as long.
        overloaded.tally.counts.unfinished = 90;
        assert_eq!(probe_after(&overloaded), Some(750 * MS));
        overloaded.tally.counts.unfinished = 900;
        assert_eq!(probe_after(&overloaded), None, "it would take too long");
    }

    /// As `run`, with these longest responses and numbers in flight.
    fn piled(max: impl Fn(u64) -> Nanos, in_flight: impl Fn(u64) -> f64) -> Run {
        let mut run = run(|second| if second < 8 { 150 } else { 20 }, |_| 50 * MS);
        let mut series = Series::default();
        for point in run.series.points() {
            let (max, in_flight) = (max(point.second), in_flight(point.second));
            series.push(SeriesPoint { max, in_flight, ..point.clone() });
        }
        run.series = series;
        run
    }

    #[test]
    fn connections_that_wait_while_others_are_served_again_pile_up() {
        let grows = |second: u64| 110.0 * second as f64;
        assert!(Saturation::of(&piled(|second| (second + 1) * SECOND / 2, grows)).is_some());
        // Some never end, or take long by themselves.
        assert_eq!(Saturation::of(&piled(|_| 60 * MS, grows)), None);
        assert_eq!(Saturation::of(&piled(|_| 4 * SECOND, grows)), None);
        assert_eq!(Saturation::of(&piled(|second| (second + 1) * SECOND / 2, |_| 300.0)), None);
    }

    #[test]
    fn a_target_that_responds_in_batches_has_a_rate() {
        let batches = |second: u64| 300 * (second % 2);
        let found = Saturation::of(&run(batches, |second| (second + 1) * 300 * MS)).unwrap();
        assert!((found.completed - 150.0).abs() < 1.0, "{found:?}");
        // It hangs.
        let hangs = |second: u64| if second < 4 { 180 } else { 0 };
        assert_eq!(Saturation::of(&run(hangs, |second| (second + 1) * 300 * MS)), None);
    }

    #[test]
    fn a_slow_but_steady_target_is_not_saturated() {
        // Each response takes two seconds, from the first to the last.
        let slow = |second| if second < 2 { 0 } else { 260 };
        assert_eq!(Saturation::of(&run(slow, |_| 2 * SECOND)), None);
        // Five seconds: the second half lacks responses, but none takes longer.
        let slower = |second| if second < 5 { 0 } else { 260 };
        assert_eq!(Saturation::of(&run(slower, |_| 5 * SECOND)), None);
        // A pause that is caught up.
        let pause = |second| if second == 2 { 0 } else { 300 };
        assert_eq!(Saturation::of(&run(pause, |second| (second % 4) * 100 * MS)), None);
        assert_eq!(Saturation::of(&run(|_| 260, |second| (second + 1) * MS)), None);
    }

    #[test]
    fn a_slow_generator_is_not_blamed_on_the_target() {
        let grows = |second: u64| (second + 1) * 300 * MS;
        let mut busy = run(|_| 180, grows);
        busy.generator.busiest = 0.99;
        assert_eq!(Saturation::of(&busy), None);
        let mut short = run(|_| 180, grows);
        short.asked_rate = Some(400.0);
        assert_eq!(Saturation::of(&short), None, "fewer were fired than asked for");
        let mut lost = run(|_| 180, grows);
        lost.tally.counts.lost = 1;
        assert_eq!(Saturation::of(&lost), None, "an agent was lost");
    }

    #[test]
    fn a_target_that_hangs_is_not_overloaded() {
        let hangs = |second| if second < 6 { 180 } else { 0 };
        assert_eq!(Saturation::of(&run(hangs, |second| (second + 1) * 300 * MS)), None);
    }
}
