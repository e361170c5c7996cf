//! Whether an open loop asks for more than the target completes, so that its queue grows.
//!
//! In an open loop the rate of arrivals λ does not depend on the target. One that completes only
//! X < λ a second keeps λ − X more of them every second, and response times grow by λ/X − 1 seconds
//! a second. That is a result of the run and no fault of the measurement: what was measured is a
//! target beyond its capacity, which is X.

use gake_core::clock::Nanos;
use gake_core::record::{LatencyMetric, Run, SeriesPoint};
use gake_text::units;

use crate::lanes;
use crate::stats::{CPU_BUSY, share};

/// Points of the series needed, so that a response of the length of the run is no queue.
const POINTS_MIN: usize = 4;
/// Completed, of asked, over the second half of the load.
const COMPLETED_MAX: f64 = 0.95;
/// Standard deviations of a count of arrivals by which completions must stay behind.
const DEVIATIONS: f64 = 4.0;
/// Response times of the last third against those of the first: a target that is slow and steady
/// lags behind by its response time, which stays the same.
const GROWTH_MIN: f64 = 1.5;
/// Share of the requests that wait for a free connection, from which on all wait.
const BLOCKED_MIN: f64 = 0.01;
/// Sent, of asked, below which the generator must have had a reason.
const SENT_MIN: f64 = 0.98;

/// A target beyond its capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// Arrivals a second that the plan asked for, once the queue grew.
    pub asked: f64,
    /// Of them the target completed, a second: its capacity for these requests.
    pub completed: f64,
}

impl Saturation {
    /// Whether the target of a run was beyond its capacity, and by how much. `None` in a closed loop,
    /// which asks for no rate, and where the generator itself may be what was too slow.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
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
        // The last one ends with the load, whenever that is.
        let full = asked.len().checked_sub(1).filter(|full| *full >= POINTS_MIN)?;
        let (first, second) = asked[..full].split_at(full / 2);
        let sum = |points: &[&SeriesPoint], of: &dyn Fn(&SeriesPoint) -> f64| {
            points.iter().map(|point| of(point)).sum::<f64>()
        };
        let due = sum(second, &|point| point.asked.unwrap_or(0.0));
        let done = sum(second, &|point| completed(point) as f64);
        let time = sum(second, &|point| point.seconds as f64) * unit;
        let behind = due - done;
        // One that hangs completes nothing, which is another thing.
        let is_alive = second.iter().all(|point| completed(point) > 0);
        let is_behind = is_alive
            && done < COMPLETED_MAX * due
            && behind > DEVIATIONS * due.sqrt()
            // What the first half left behind is not caught up either.
            && sum(first, &|point| point.asked.unwrap_or(0.0) - completed(point) as f64) >= 0.0;
        if !is_behind || !waits_longer(run, &asked) || is_generators(run) {
            return None;
        }
        Some(Self { asked: due / time, completed: done / time })
    }

    /// How many more requests wait each second.
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.asked - self.completed
    }

    /// It in a sentence.
    #[must_use]
    pub fn text(&self, run: &Run) -> String {
        let dropped = share(run.tally.counts.dropped, run.tally.counts.due());
        let excess = match dropped >= share(self.growth() as u64, self.asked as u64) / 2.0 {
            true => format!("{}s were all busy, and the rest was dropped", lanes::noun(&run.plan)),
            false => format!("the queue grew by {}", units::rate(self.growth())),
        };
        format!(
            "the target completed {} of {} asked for: {excess}",
            units::rate(self.completed),
            units::rate(self.asked)
        )
    }
}

/// Whether response times grow, or arrivals wait for a free connection, or are dropped without one.
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

/// Whether the generator may be what was too slow.
fn is_generators(run: &Run) -> bool {
    let (counts, latency) = (&run.tally.counts, &run.tally.latency);
    let lateness = latency.of(LatencyMetric::Lateness).quantile(0.99) as f64;
    let is_late = lateness > latency.response().quantile(0.5) as f64 / 2.0;
    let is_busy = run.generator.busiest > CPU_BUSY && !run.plan.spin;
    let waited = share(latency.of(LatencyMetric::Blocked).count(), counts.sent) > BLOCKED_MIN;
    let fired = (counts.arrivals() - counts.dropped) as f64;
    let asked = run.asked_rate.unwrap_or(0.0) * run.measured as f64 / 1e9;
    let is_short = fired < SENT_MIN * asked && !waited && counts.dropped == 0;
    is_late || is_busy || is_short || counts.lost > 0
}

#[cfg(test)]
mod tests {
    use gake_core::clock::SECOND;
    use gake_core::record::{Counts, Series};

    use super::*;
    use crate::testing::{MS, RunSample};
    use crate::validity;

    /// A run of 8 s at 260/s of which the target completes what `completed` says in each second, in
    /// the times of `p50`.
    fn run(completed: impl Fn(u64) -> u64, p50: impl Fn(u64) -> Nanos) -> Run {
        let mut run = RunSample::of(2_080, 5 * MS).asked(2_600.0).run();
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
    fn a_queue_that_grows_is_the_targets() {
        let overloaded = run(|_| 180, |second| (second + 1) * 300 * MS);
        let found = Saturation::of(&overloaded).unwrap();
        assert!((found.completed - 180.0).abs() < 1.0 && (found.growth() - 80.0).abs() < 1.0);
        let text = found.text(&overloaded);
        assert!(text.contains("180/s of 260/s") && text.contains("grew by 80/s"), "{text}");
        let (validity, reasons) = validity::check(&overloaded);
        assert_eq!(validity, validity::Validity::Valid, "{reasons:?}");
    }

    #[test]
    fn a_target_that_is_slow_and_steady_is_not_beyond_its_capacity() {
        // Each response takes two seconds, from the first to the last.
        let slow = |second| if second < 2 { 0 } else { 260 };
        assert_eq!(Saturation::of(&run(slow, |_| 2 * SECOND)), None);
        // Five seconds: the second half does not have all of its responses, and none takes longer.
        let slower = |second| if second < 5 { 0 } else { 260 };
        assert_eq!(Saturation::of(&run(slower, |_| 5 * SECOND)), None);
        // A pause that is caught up.
        let pause = |second| if second == 2 { 0 } else { 300 };
        assert_eq!(Saturation::of(&run(pause, |second| (second % 4) * 100 * MS)), None);
        assert_eq!(Saturation::of(&run(|_| 260, |second| (second + 1) * MS)), None);
    }

    #[test]
    fn a_slow_generator_is_not_taken_for_the_target() {
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
