//! Changes of rates during a run.

use std::time::Duration;

use super::Stage;

/// Multiplies the rates of the plan by a factor, from an instant to the next change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// When it takes effect, counted from the epoch.
    pub at: Duration,
    /// Above 0; 1 is the plan.
    pub factor: f64,
}

impl RateChange {
    /// Applies changes, in chronological order, to stages that begin `start` after the epoch.
    /// Arrivals due before the first change keep their due times.
    #[must_use]
    pub fn apply(changes: &[Self], stages: &[Stage], start: Duration) -> Vec<Stage> {
        let mut changed = Vec::with_capacity(stages.len() + changes.len());
        let (mut rest, mut begun, mut factor) = (stages.to_vec(), start, 1.0);
        for change in changes {
            let (before, after) = split(&rest, change.at.saturating_sub(begun));
            changed.extend(before.into_iter().map(|stage| stage.times(factor)));
            (rest, begun, factor) = (after, begun.max(change.at), change.factor);
        }
        changed.extend(rest.into_iter().map(|stage| stage.times(factor)));
        changed
    }
}

impl Stage {
    fn times(self, factor: f64) -> Self {
        Self { from: self.from * factor, to: self.to * factor, ..self }
    }
}

/// The stages before and after `length`.
fn split(stages: &[Stage], length: Duration) -> (Vec<Stage>, Vec<Stage>) {
    let (mut before, mut after, mut left) = (Vec::new(), Vec::new(), length);
    for stage in stages {
        if stage.duration <= left {
            before.push(*stage);
            left -= stage.duration;
        } else if left.is_zero() {
            after.push(*stage);
        } else {
            let endless = stage.duration == Duration::MAX;
            let share = left.as_secs_f64() / stage.duration.as_secs_f64();
            let rate = stage.from + (stage.to - stage.from) * share;
            let rest = if endless { Duration::MAX } else { stage.duration - left };
            before.push(Stage { from: stage.from, to: rate, duration: left });
            after.push(Stage { from: rate, to: stage.to, duration: rest });
            left = Duration::ZERO;
        }
    }
    (before, after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::{Nanos, SECOND};
    use crate::schedule::{Process, Schedule};

    fn change(at_ms: u64, factor: f64) -> RateChange {
        RateChange { at: Duration::from_millis(at_ms), factor }
    }

    #[test]
    fn each_change_holds_until_the_next_one() {
        let seconds = Duration::from_secs;
        let ramp = Stage { from: 0.0, to: 100.0, duration: seconds(10) };
        let stages = [ramp, Stage::step(100.0, Duration::MAX)];
        let changes = [change(4_000, 2.0), change(13_000, 0.5), change(15_000, 1.0)];
        let expected = [
            Stage { from: 0.0, to: 20.0, duration: seconds(2) },
            Stage { from: 40.0, to: 200.0, duration: seconds(8) },
            Stage::step(200.0, seconds(1)),
            Stage::step(50.0, seconds(2)),
            Stage::step(100.0, Duration::MAX),
        ];
        assert_eq!(RateChange::apply(&changes, &stages, seconds(2)), expected);
        assert_eq!(RateChange::apply(&[], &stages, seconds(2)), stages);
    }

    #[test]
    fn changes_before_the_start_apply_and_those_after_the_end_do_not() {
        let stages = [Stage::step(10.0, Duration::from_secs(3))];
        let early = RateChange::apply(&[change(500, 3.0)], &stages, Duration::from_secs(1));
        assert_eq!(early, [Stage::step(30.0, Duration::from_secs(3))]);
        let late = RateChange::apply(&[change(9_000, 3.0)], &stages, Duration::from_secs(1));
        assert_eq!(late, stages);
    }

    proptest! {
        #[test]
        fn arrivals_before_a_change_keep_their_due_times(
            at in 100u64..5_900, factor in 0.01f64..10.0, kind in 0usize..3, ramp: bool, seed: u64
        ) {
            let jittered = Process::Bursts { size: 3, jitter: 30_000_000 };
            let process = [Process::Uniform, Process::Poisson, jittered][kind];
            let to = if ramp { 400.0 } else { 50.0 };
            let stages = [
                Stage { from: 50.0, to, duration: Duration::from_secs(3) },
                Stage::step(80.0, Duration::from_secs(3)),
            ];
            let changes = [change(at, factor)];
            let changed = RateChange::apply(&changes, &stages, Duration::ZERO);
            let [old, new] = [&stages[..], &changed].map(|it| Schedule::new(process, it, None, seed));
            let due = |schedule: &Schedule| -> Vec<Nanos> {
                (0..).map_while(|number| schedule.due(number)).collect()
            };
            let at_ns = at * SECOND / 1_000;
            // A jitter may carry an arrival over the change.
            let (before, after) = (due(&old), due(&new));
            let kept = before.iter().take_while(|due| **due + 40_000_000 < at_ns).count();
            for (was, is) in before.iter().zip(&after).take(kept) {
                prop_assert!(was.abs_diff(*is) <= 1, "{} {}", was, is);
            }
            let seconds = at as f64 / 1e3;
            let left = (old.total() as f64 - old.asked_before(seconds)) * factor;
            let total = old.asked_before(seconds) + left;
            // A Poisson process has a random number of arrivals; `total` is the expected one.
            prop_assert!((new.total() as f64 - total).abs() <= 1.0 + factor, "{}", total);
            prop_assert_eq!(new.timed_end(), old.timed_end());
        }
    }
}
