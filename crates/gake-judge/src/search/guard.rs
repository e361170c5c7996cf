//! The guard: when a level that should pass fails badly, probes check whether the target is in a
//! worse state, as after an overload from which it does not recover by itself.

use super::{Hysteresis, Purpose, Search, SearchStep, StepOutcome, Trial};

/// A step above this multiple of the bound is suspicious below a level that passed.
const SUSPICIOUS: f64 = 5.0;
/// A level counts as below another up to this ratio.
const BELOW: f64 = 0.97;
/// The probe's rate, as a share of the target's scale.
const PROBE_PART: f64 = 0.25;
const PROBE: f64 = 1.5;
/// A probe is clean when its mean response is under this multiple of the one without load ...
const CLEAN_RESPONSE: f64 = 1.6;
/// ... and its share of errors is under this.
const CLEAN_ERRORS: f64 = 0.05;
/// Unclean probes after which the target rests; a clean one before that means it recovered by
/// itself.
const PROBES: u32 = 2;
/// Seconds of the first and the last rest; each is twice as long as the one before.
const REST_FIRST: f64 = 10.0;
const REST_LAST: f64 = 80.0;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StateGuard {
    unclean: u32,
    /// Seconds of the last rest, if there was one.
    rest: Option<f64>,
    rested: f64,
}

impl Search {
    /// Whether the step fails badly below a level that passed.
    pub(super) fn is_suspicious(&self, step: &SearchStep) -> bool {
        if step.worst() < SUSPICIOUS || !self.options.dimension.is_rate() {
            return false;
        }
        self.good_level(step.trial.number).is_some_and(|good| step.level() <= BELOW * good)
    }

    /// The highest level that passed before step `number` with enough requests.
    fn good_level(&self, number: u64) -> Option<f64> {
        let significant = |step: &&SearchStep| {
            let enough = |n: usize| match self.clauses[n].bound {
                crate::objective::ClauseBound::Share(allowed) => {
                    step.count(n).bad.of * allowed > 1.0
                }
                crate::objective::ClauseBound::Level(_) => true,
            };
            step.trial.number < number && step.worst() < 1.0 && (0..self.clauses.len()).all(enough)
        };
        self.counted().filter(significant).map(SearchStep::level).max_by(f64::total_cmp)
    }

    pub(super) fn probe(&self) -> Trial {
        let mut probe =
            self.trial(Purpose::Probe, PROBE_PART * self.scale, 0.0, PROBE.max(8.0 * self.base));
        probe.enough.clear();
        probe
    }

    pub(super) fn probed(&mut self, step: &SearchStep) {
        let Some(mut guard) = self.guard.take() else { return };
        let clean = step.seen.ok > 0
            && step.seen.response < CLEAN_RESPONSE * self.base
            && step.seen.error_share() < CLEAN_ERRORS;
        match guard.rest {
            // The target is in its usual state: the step counts.
            None if clean && guard.unclean > 0 => self.exclude(&guard, true),
            None if clean => {
                if let Some(last) = self.counted().last().cloned() {
                    self.advance(&last);
                }
            }
            None => {
                guard.unclean += 1;
                if guard.unclean >= PROBES {
                    guard.rest = Some(REST_FIRST);
                    guard.rested += REST_FIRST;
                    self.rest = self.rest.max(REST_FIRST);
                }
                self.guard = Some(guard);
            }
            Some(rest) if clean || rest >= REST_LAST => self.exclude(&guard, clean),
            Some(rest) => {
                guard.rest = Some(2.0 * rest);
                guard.rested += 2.0 * rest;
                self.rest = self.rest.max(2.0 * rest);
                self.guard = Some(guard);
            }
        }
    }

    /// Excludes the steps made in the worse state from the evidence.
    fn exclude(&mut self, guard: &StateGuard, recovered: bool) {
        let Some(number) = self.counted().last().map(|step| step.trial.number) else { return };
        let good = self.good_level(number).unwrap_or(f64::INFINITY);
        let mut failed_at = 0.0f64;
        let mut first = true;
        for index in (0..self.steps.len()).rev() {
            let step = &self.steps[index];
            if matches!(step.trial.purpose, Purpose::Probe | Purpose::Ladder)
                || !step.outcome.is_evidence()
            {
                continue;
            }
            let bad = step.missed() && step.level() < BELOW * good;
            if !(first || bad) {
                break;
            }
            first = false;
            failed_at = failed_at.max(step.level());
            self.steps[index].outcome = StepOutcome::Contaminated;
        }
        let before = self.hysteresis.take();
        self.hysteresis = Some(Hysteresis {
            times: before.as_ref().map_or(1, |h| h.times + 1),
            passed: good,
            failed: failed_at,
            rested: before.map_or(0.0, |h| h.rested).max(guard.rested),
            recovered,
        });
        let kept: Vec<SearchStep> = self.counted().cloned().collect();
        if let Some(pool) = &mut self.pool {
            pool.replace(kept);
        }
    }
}
