//! The objectives of a search: given by the spec, or defaults.

use std::time::Duration;

use gake_judge::search::{Purpose, Trial, TrialLoad};
use gake_judge::{Clause, NothingOk, Objective};

use super::trials::Trials;
use crate::RunError;
use crate::spec::FieldPath;

/// Without objectives, the 99th percentile may be this multiple of the one without load ...
const TIMES: f64 = 5.0;
/// ... and at least this, in milliseconds, since users do not notice less.
const LEAST_MS: f64 = 100.0;
/// Requests needed to measure the target without load.
const ENOUGH: u64 = 20;
/// Durations of the attempts to make them, in seconds.
const ATTEMPTS: [u64; 3] = [1, 5, 30];

impl Trials<'_> {
    /// The objectives as bounds for a search. If there are none, or only some about the target
    /// itself, the defaults are added, since the others do not show whether it still responds.
    ///
    /// # Errors
    /// When an objective does not bound something that grows with the load, or the target refuses
    /// connections or does not respond.
    pub(super) fn clauses(&mut self) -> Result<Vec<Clause>, RunError> {
        let given = self.objectives();
        let clauses: Result<Vec<_>, _> = given.iter().map(Objective::clause).collect();
        let mut clauses = clauses.map_err(|why| RunError::spec(FieldPath::root(), why))?;
        let needs_defaults = given.iter().all(Objective::is_about_target);
        self.reach()?;
        if !self.options.warmup.is_zero() {
            self.unjudged(&one_user(self.options.warmup))?;
        }
        if needs_defaults {
            clauses.extend(self.default_clauses()?);
        }
        Ok(clauses)
    }

    /// Default objectives, relative to the response time of one user.
    fn default_clauses(&mut self) -> Result<Vec<Clause>, RunError> {
        let mut p99 = None;
        for seconds in ATTEMPTS {
            let run = self.unjudged(&one_user(Duration::from_secs(seconds)))?;
            let counts = run.tally.counts;
            if counts.ok > 0 {
                p99 = Some(run.tally.latency.response().quantile(0.99));
            }
            // A slow target only leaves requests unfinished: it gets a longer attempt.
            if counts.failed > 0
                && let Some(NothingOk { cause, advice }) = NothingOk::of(&run)
            {
                let why = format!("no request of a single user succeeded: {cause}; {advice}");
                return Err(RunError::cannot(why));
            }
            if counts.ok >= ENOUGH || self.is_interrupted() {
                break;
            }
        }
        let Some(p99) = p99 else {
            return Err(RunError::cannot(
                "the target does not respond to one user: try `gake run -c 1 -d 2s`",
            ));
        };
        let limit = rounded((TIMES * p99 as f64 / 1e6).max(LEAST_MS));
        let texts = [format!("p99<{limit}ms"), "errors<0.1%".to_owned()];
        let clause = |text: &String| {
            let objective: Objective = text.parse().map_err(RunError::cannot)?;
            objective.clause().map_err(RunError::cannot)
        };
        texts.iter().map(clause).collect()
    }
}

fn one_user(duration: Duration) -> Trial {
    Trial {
        number: 0,
        purpose: Purpose::Ladder,
        load: TrialLoad::Users(1),
        warmup: Duration::ZERO,
        duration,
        seed: 0,
        enough: Vec::new(),
    }
}

/// Rounds up to two significant digits.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round_numbers() {
        for (value, limit) in [(100.0, 100.0), (101.0, 110.0), (1_234.0, 1_300.0), (999.0, 1_000.0)]
        {
            assert!((rounded(value) - limit).abs() < 1e-9, "{value}");
        }
    }
}
