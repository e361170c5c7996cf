//! The verdict on a run.

use gake_core::record::Run;

use crate::finding::{self, Finding};
use crate::nothing_ok::NothingOk;
use crate::objective::{Evaluation, Objective, ObjectiveError, RunView};
use crate::saturation::Saturation;
use crate::validity::{self, Reason, Validity};

/// The judgement of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Why no request succeeded, if none did; it is the headline then.
    pub nothing_ok: Option<NothingOk>,
    /// Whether the figures can be trusted.
    pub validity: Validity,
    /// The target beyond its capacity, if an open loop asked for more than it completes.
    pub saturation: Option<Saturation>,
    /// The reasons against trusting the figures, the worst first; empty when the run is valid.
    pub reasons: Vec<Reason>,
    /// The limits of the run; empty for a healthy one.
    pub findings: Vec<Finding>,
    /// The objectives with their values, in the order they were given.
    pub objectives: Vec<Evaluation>,
}

/// A run with its verdict, which every format shows.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The run.
    pub run: Run,
    /// Its verdict.
    pub verdict: Verdict,
}

/// The verdict in one word, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Every objective was met.
    Done,
    /// Requests were sent and none succeeded; takes precedence over the others.
    NothingOk,
    /// The run is invalid, so its objectives are not decided.
    Invalid,
    /// The run can be trusted, and an objective was missed.
    ObjectiveFailed,
}

/// Judges a run against the objectives.
#[must_use]
pub fn judge(run: &Run, objectives: &[Objective]) -> Verdict {
    let (validity, reasons) = validity::check(run);
    let view = RunView::of(run);
    let objectives: Vec<_> = objectives.iter().map(|o| o.evaluate(&view)).collect();
    let findings = finding::find(run, &objectives);
    Verdict {
        nothing_ok: NothingOk::of(run),
        validity,
        saturation: Saturation::of(run),
        reasons,
        findings,
        objectives,
    }
}

impl Verdict {
    /// Whether every objective was met; true without objectives.
    #[must_use]
    pub fn objectives_met(&self) -> bool {
        self.objectives.iter().all(|objective| objective.met)
    }

    /// The verdict in one word.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        if self.nothing_ok.is_some() {
            Conclusion::NothingOk
        } else if self.validity == Validity::Invalid {
            Conclusion::Invalid
        } else if self.objectives_met() {
            Conclusion::Done
        } else {
            Conclusion::ObjectiveFailed
        }
    }
}

impl Summary {
    /// Judges `run` against the objectives.
    #[must_use]
    pub fn new(run: Run, objectives: &[Objective]) -> Self {
        let verdict = judge(&run, objectives);
        Self { run, verdict }
    }

    /// Judges `run` against its recorded objectives. Returns those that this version cannot parse.
    #[must_use]
    pub fn as_recorded(run: Run) -> (Self, Vec<ObjectiveError>) {
        let mut objectives = Vec::with_capacity(run.origin.objectives.len());
        let mut unparsed = Vec::new();
        for text in &run.origin.objectives {
            match text.parse::<Objective>() {
                Ok(objective) => objectives.push(objective.of_plan(&run.plan)),
                Err(error) => unparsed.push(error),
            }
        }
        (Self::new(run, &objectives), unparsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, healthy};

    fn objectives(texts: &[&str]) -> Vec<Objective> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_healthy_run_is_valid_and_has_no_finding() {
        let verdict = judge(&healthy(), &objectives(&["p99<50ms", "errors<0.1%", "rate>=990/s"]));
        assert_eq!(verdict.validity, Validity::Valid, "{:?}", verdict.reasons);
        assert_eq!(verdict.findings, []);
        assert_eq!(verdict.conclusion(), Conclusion::Done);
    }

    #[test]
    fn a_recorded_run_is_judged_by_its_own_objectives() {
        let mut run = healthy();
        run.origin.objectives = ["p99<1us", "of another version"].map(str::to_owned).to_vec();
        let (summary, unparsed) = Summary::as_recorded(run);
        assert_eq!(summary.verdict.conclusion(), Conclusion::ObjectiveFailed);
        assert_eq!(summary.verdict.objectives.len(), 1);
        assert!(unparsed[0].to_string().contains("of another version"), "{unparsed:?}");
    }

    #[test]
    fn invalid_wins_over_a_missed_objective() {
        let mut run = healthy();
        let missed = objectives(&["p99<1us"]);
        assert_eq!(judge(&run, &missed).conclusion(), Conclusion::ObjectiveFailed);
        run.asked_rate = run.asked_rate.map(|rate| rate * 2.0);
        assert_eq!(judge(&run, &missed).conclusion(), Conclusion::Invalid);
        assert_eq!(judge(&run, &[]).conclusion(), Conclusion::Invalid);
    }

    #[test]
    fn a_run_without_success_is_neither_done_nor_invalid() {
        let mut run = RunBuilder::default().status(404, 5_000).run();
        assert_eq!(judge(&run, &[]).conclusion(), Conclusion::NothingOk);
        let missed = objectives(&["errors<1%"]);
        assert_eq!(judge(&run, &missed).conclusion(), Conclusion::NothingOk);
        run.asked_rate = run.asked_rate.map(|rate| rate * 2.0);
        let verdict = judge(&run, &[]);
        assert_eq!(verdict.validity, Validity::Invalid);
        assert_eq!(verdict.conclusion(), Conclusion::NothingOk);
    }

    #[test]
    fn an_empty_run_is_judged_without_panic() {
        let mut run = healthy();
        run.tally = gake_core::record::Tally::new(0);
        (run.measured, run.sending, run.completing, run.elapsed) = (0, 0, 0, 0);
        let verdict = judge(&run, &objectives(&["p99<1s", "errors<1%", "rate>1/s", "a:p50<1s"]));
        assert_eq!(verdict.validity, Validity::Invalid);
        assert!(verdict.objectives.iter().all(|o| !o.met));
    }

    #[test]
    fn one_failure_in_thousands_is_not_a_finding() {
        let run = RunBuilder::of(10_000, 5_000_000).fault(gake_core::record::Fault::Reset, 1).run();
        assert_eq!(judge(&run, &[]).findings, []);
    }
}
