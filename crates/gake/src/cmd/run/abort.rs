//! `--abort`: the run ends at the first objective that is missed.

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::record::Watched;
use gake_engine::{Collector, Second};
use gake_judge::{Objective, View};

use crate::cli::RunArgs;

/// Objectives are looked at once this much was measured: the first second of a run is no rate.
const ABORT_AFTER: Nanos = 2 * SECOND;

/// Looks for an objective that is missed, when the user asked for that.
#[derive(Debug)]
pub struct Abort<'a> {
    objectives: &'a [Objective],
    labels: &'a [String],
    warmup: Nanos,
}

impl<'a> Abort<'a> {
    /// What is looked for.
    pub fn new(args: &'a RunArgs, plan: &'a Plan) -> Self {
        Self {
            objectives: if args.judge.abort { &args.judge.slo } else { &[] },
            labels: &plan.labels,
            warmup: plan.warmup.as_nanos() as Nanos,
        }
    }

    /// The objective that is missed after `second`, if one is.
    pub fn check(&self, so_far: &Collector, second: &Second, watched: &Watched) -> Option<String> {
        let measured = (second.second * SECOND).saturating_sub(self.warmup);
        if self.objectives.is_empty() || measured < ABORT_AFTER {
            return None;
        }
        let view = View {
            tally: so_far.tally(),
            sending: measured,
            span: measured,
            labels: self.labels,
            watched,
            warmup: self.warmup,
        };
        // What has not been seen yet may still come.
        let mut seen = self.objectives.iter().map(|objective| objective.evaluate(&view));
        let missed = seen.find(|seen| !seen.met && seen.value.is_some());
        missed.map(|missed| missed.text)
    }
}
