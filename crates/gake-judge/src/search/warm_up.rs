//! A target that gets faster during the search was cold: the steps before are no evidence.

use super::{Ceiling, Ladder, Search, SearchStage, SearchStep, StepOutcome};

/// A target that responds this many times faster under more load was cold: a queue can only make
/// it slower.
const TIMES: f64 = 3.0;
/// For few requests, also the factor that chance reaches: this many standard deviations of the
/// logarithm of the ratio of two means of exponential times, which is √(1/n + 1/m).
const DEVIATIONS: f64 = 3.0;
/// A response below this, in seconds, is not a cold one: under a light load a machine whose cores idle
/// takes some 0.5 ms to wake up, and under more it does not idle; a busy one takes milliseconds.
const COLD_MIN: f64 = 0.01;
/// A search starts again at most this often ...
const RESTARTS_MAX: u32 = 3;
/// ... and within this share of the budget, to have time for the rest.
const BUDGET_PART: f64 = 0.5;

/// A light load that is not this many times faster when the search starts again was not cold, but
/// is slow by nature: acknowledgements that a server delays, for example, come at once under load.
const FASTER: f64 = 2.0;

/// A target that warmed up during the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Mean response time at first, in seconds.
    pub cold: f64,
    /// Mean response time when it was warm, in seconds.
    pub warm: f64,
    /// Seconds into the search at which it started again; `None` if there was no time for that.
    pub restarted: Option<f64>,
    /// How often it started again.
    restarts: u32,
}

/// A mean response time, and of how many requests.
#[derive(Debug, Clone, Copy)]
struct MeanResponse {
    seconds: f64,
    of: u64,
}

impl Search {
    /// Starts again if a step shows that the target was cold in those before; true if it did.
    pub(super) fn restarts_warm(&mut self, step: &SearchStep) -> bool {
        let Some(first) = self.ladder.rungs.first() else { return false };
        let cold = MeanResponse { seconds: first.response, of: first.ok };
        let warm = MeanResponse { seconds: step.seen.response, of: step.seen.ok };
        if !is_warmer(cold, warm) || (self.warm_up.is_some() && self.warm_up().is_none()) {
            return false;
        }
        let before = self.warm_up;
        let restarts = before.map_or(0, |before| before.restarts);
        let restarts_now = restarts < RESTARTS_MAX && self.spent < BUDGET_PART * self.budget();
        self.warm_up = Some(WarmUp {
            cold: before.map_or(cold.seconds, |before| before.cold),
            warm: warm.seconds,
            restarted: restarts_now.then_some(self.spent),
            restarts: restarts + u32::from(restarts_now),
        });
        if restarts_now {
            self.start_again();
        }
        restarts_now
    }

    /// Begins with the ladder, and without evidence.
    fn start_again(&mut self) {
        for step in &mut self.steps {
            step.outcome = StepOutcome::Cold;
        }
        self.ladder = Ladder::new(&self.clauses, &self.options).after(self.spent);
        self.stage = SearchStage::Ladder;
        self.ceiling = Ceiling::allowed(&self.options);
        (self.pool, self.guard, self.hysteresis) = (None, None, None);
        (self.scale, self.base, self.limited) = (0.0, 0.0, 0);
    }

    /// The warm-up, unless the light load turned out to be slow by nature.
    pub(super) fn warm_up(&self) -> Option<WarmUp> {
        let first = self.ladder.rungs.first().map_or(0.0, |rung| rung.response);
        self.warm_up.filter(|seen| seen.restarted.is_none() || FASTER * first <= seen.cold)
    }
}

fn is_warmer(cold: MeanResponse, warm: MeanResponse) -> bool {
    if cold.of == 0 || warm.of == 0 || warm.seconds <= 0.0 || cold.seconds < COLD_MIN {
        return false;
    }
    let deviation = (1.0 / cold.of as f64 + 1.0 / warm.of as f64).sqrt();
    cold.seconds / warm.seconds >= TIMES.max((DEVIATIONS * deviation).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_warmed_up_if_it_is_much_faster_than_chance_makes_it() {
        let mean = |seconds, of| MeanResponse { seconds, of };
        assert!(is_warmer(mean(0.1, 100), mean(0.03, 1_000)));
        assert!(!is_warmer(mean(0.1, 100), mean(0.04, 1_000)));
        // Five requests: a factor of four may be chance, one of thirty is not.
        assert!(!is_warmer(mean(0.15, 5), mean(0.035, 10)));
        assert!(is_warmer(mean(0.15, 5), mean(0.005, 10)));
        assert!(!is_warmer(mean(0.1, 10), mean(0.0, 0)), "no response is not a fast one");
        assert!(!is_warmer(mean(0.000_6, 1_000), mean(0.000_1, 9_000)), "the cores were idle");
    }
}
