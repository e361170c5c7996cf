//! The rates of responses, by time steps.

use gake_core::clock::Nanos;

/// The initial length of a step.
const STEP: Nanos = 10_000_000;

/// The most steps: 44 minutes of 10 ms. Longer runs double the length of steps.
const STEPS_MAX: u64 = 1 << 18;

/// Responses by the time of their end. oha groups responses within 10 ms of the last one of the
/// previous group, which requires all of them in order; here the groups are steps of equal length.
#[derive(Debug)]
pub struct OhaRates {
    step: Nanos,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Step {
    count: u64,
    last: Nanos,
}

impl Default for OhaRates {
    fn default() -> Self {
        Self { step: STEP, steps: Vec::new() }
    }
}

impl OhaRates {
    /// Adds a response that ended at `end`, counted from the start of the run.
    pub fn record(&mut self, end: Nanos) {
        while end / self.step >= STEPS_MAX {
            self.double();
        }
        let at = (end / self.step) as usize;
        if at >= self.steps.len() {
            self.steps.resize(at + 1, Step::default());
        }
        let step = &mut self.steps[at];
        step.count += 1;
        step.last = step.last.max(end);
    }

    fn double(&mut self) {
        self.step *= 2;
        let pairs = self.steps.chunks(2);
        self.steps = pairs
            .map(|pair| Step {
                count: pair.iter().map(|step| step.count).sum(),
                last: pair.iter().map(|step| step.last).max().unwrap_or(0),
            })
            .collect();
    }

    /// The sorted rates of all steps with responses: their number divided by the time since the
    /// last response before the step.
    pub(super) fn sorted(&self) -> Vec<f64> {
        let mut before = 0;
        let filled = self.steps.iter().filter(|step| step.count > 0);
        let mut rates: Vec<f64> = filled
            .map(|step| {
                let time = (step.last - before).max(1);
                before = step.last;
                step.count as f64 * 1e9 / time as f64
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_steady_rate_is_that_rate() {
        let mut rates = OhaRates::default();
        // In any order.
        (1..=5_000).rev().for_each(|number| rates.record(number * MS));
        let sorted = rates.sorted();
        assert!(sorted.iter().all(|rate| (rate - 1_000.0).abs() < 1e-6), "{sorted:?}");
    }

    #[test]
    fn a_pause_is_a_low_rate() {
        let mut rates = OhaRates::default();
        [5 * MS, 9 * MS, 509 * MS].into_iter().for_each(|end| rates.record(end));
        let expected = [2.0, 2.0 / 0.009];
        assert!(rates.sorted().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn a_long_run_takes_no_more_room() {
        let mut rates = OhaRates::default();
        for minute in 0..10_000 {
            rates.record(minute * 60_000 * MS);
        }
        assert!(rates.steps.len() as u64 <= STEPS_MAX);
        assert_eq!(rates.steps.iter().map(|step| step.count).sum::<u64>(), 10_000);
        rates.record(Nanos::MAX);
        assert!(rates.steps.len() as u64 <= STEPS_MAX);
    }
}
