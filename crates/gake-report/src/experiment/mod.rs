//! An experiment: steps on a server with known limits, what theory predicts for each, and what was
//! measured.

mod charts;
mod html;
mod json;
mod text;

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, Gauge, Tally};
use gake_judge::stats::per_second;
use gake_judge::{Finding, Rank, Summary};
use gake_text::units;

pub use html::html;
pub use json::json;
pub use text::{line, text};

/// The expectation that every acknowledged row exists. A missing row is lost data, even when the
/// generator lacked its cores.
const ROWS: &str = "rows";

/// Why a step is not judged.
const DISTURBED: &str = "the generator did not get its cores";

/// Most bodies of failed responses shown per step.
const BODIES_MAX: usize = 3;

/// Most socket readings shown per step.
const READINGS_MAX: usize = 6;

/// The columns of the step table, after the name.
const FIGURES: [&str; 7] = ["ok", "not ok", "goodput", "p50", "p99", "max", "cause"];

/// An experiment that has ended or was interrupted.
#[derive(Debug, Clone)]
pub struct ExperimentReport {
    /// Its name on the command line.
    pub name: String,
    /// Its purpose, in a sentence.
    pub about: String,
    /// The target: the built-in lab, or a URL.
    pub target: String,
    /// The start, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// Whether times and numbers were scaled down.
    pub quick: bool,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
    /// Whether all steps ran: none is missing because the experiment failed or was interrupted, or
    /// because the step could not run.
    pub is_complete: bool,
    /// The steps, in order.
    pub steps: Vec<ExperimentStep>,
}

/// One step: a load on a server with known settings.
#[derive(Debug, Clone)]
pub struct ExperimentStep {
    /// The setting that changes in it, in a few words.
    pub name: String,
    /// The command that starts the same server; empty for the user's own server.
    pub server: String,
    /// The run and its verdict.
    pub summary: Summary,
    /// The scenario whose figures are shown; `None` shows the whole run.
    pub subject: Option<usize>,
    /// Predictions of theory; empty when the server is the user's own.
    pub expectations: Vec<Expectation>,
}

/// A prediction of theory, and the measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The figure: `ok`, `rate`, `cause` ...
    pub what: String,
    /// The predicted value, with its formula.
    pub theory: String,
    /// The measured value.
    pub seen: String,
    /// Whether they agree.
    pub met: bool,
    /// From where to where theory allows the value, if it is a bounded number.
    pub range: Option<(f64, f64)>,
}

impl ExperimentStep {
    /// From where to where theory expects the rate.
    pub(crate) fn expected_rate(&self) -> Option<(f64, f64)> {
        self.expectations.iter().find(|one| one.what == "rate")?.range
    }
}

impl ExperimentReport {
    /// The number of steps that are not as theory expects.
    #[must_use]
    pub fn unexpected(&self) -> usize {
        self.steps.iter().filter(|step| step.is_as_expected() == Some(false)).count()
    }

    /// Whether theory predicts anything about its steps.
    #[must_use]
    pub fn has_theory(&self) -> bool {
        self.steps.iter().any(|step| !step.expectations.is_empty())
    }

    /// Whether every step with a prediction is as expected; `None` without predictions, or when a
    /// step is missing or not judged and no other is unexpected.
    #[must_use]
    pub fn is_as_expected(&self) -> Option<bool> {
        let unexpected = self.unexpected() > 0;
        let known = self.has_theory() && (unexpected || self.is_complete && self.disturbed() == 0);
        known.then_some(!unexpected)
    }

    /// The number of steps that are not judged, because other processes had the cores.
    #[must_use]
    pub fn disturbed(&self) -> usize {
        self.steps.iter().filter(|step| step.is_disturbed()).count()
    }

    /// Whether no step had a success, in an experiment without theory; true without steps.
    #[must_use]
    pub fn nothing_ok(&self) -> bool {
        !self.has_theory() && self.steps.iter().all(|step| step.tally().counts.ok == 0)
    }

    /// The verdict in a few words.
    pub(crate) fn verdict(&self) -> String {
        let all = self.steps.len();
        if !self.is_complete && all > 0 {
            let text = match (self.has_theory(), all - self.unexpected() - self.disturbed()) {
                (false, _) => "no theory".to_owned(),
                (true, met) if met == all => {
                    format!("{} as expected", units::plural(met as u64, "step"))
                }
                (true, met) => format!("{met} of {all} steps as expected"),
            };
            return format!("incomplete, steps are missing: {text}");
        }
        let disturbed = self.disturbed();
        if disturbed > 0 {
            let unexpected = match self.unexpected() {
                0 => String::new(),
                some => format!("{some} of {all} steps not as expected, "),
            };
            return format!("{unexpected}{disturbed} of {all} not judged: {DISTURBED}");
        }
        match self.unexpected() {
            _ if all == 0 => "no step has ended".into(),
            _ if !self.has_theory() => "no theory: the settings of the server are not known".into(),
            0 if all == 1 => "as expected".into(),
            0 => format!("all {all} steps as expected"),
            1 if all == 1 => "not as expected".into(),
            some => format!("{some} of {all} steps not as expected"),
        }
    }
}

impl ExperimentStep {
    /// Whether theory and figures agree; `None` without theory, or when they differ because the
    /// generator did not get its cores.
    #[must_use]
    pub fn is_as_expected(&self) -> Option<bool> {
        let known = !self.expectations.is_empty() && !self.is_disturbed();
        known.then(|| self.are_all_met())
    }

    /// Whether theory and figures differ while the generator lacked its cores or sent late: theory
    /// assumes a generator that keeps its schedule. A wrong number of rows has no such excuse.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        let delayed = self.causes().any(|cause| cause.id == "run_delay");
        let late = self.summary.verdict.reasons.iter().any(|reason| reason.rule == "lateness");
        let lost = self.expectations.iter().any(|one| !one.met && one.what == ROWS);
        !self.are_all_met() && !lost && (delayed || late)
    }

    fn are_all_met(&self) -> bool {
        self.expectations.iter().all(|one| one.met)
    }

    /// The tally of its subject.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        let run = &self.summary.run;
        let scenario = self.subject.and_then(|subject| run.scenarios.get(subject));
        scenario.map_or(&run.tally, |scenario| &scenario.tally)
    }

    /// Ok responses of its subject, per second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        per_second(self.tally().counts.ok as f64, self.summary.run.completing)
    }

    /// Its table row, one cell for each of [`FIGURES`].
    pub(crate) fn figures(&self) -> [String; FIGURES.len()] {
        let tally = self.tally();
        let (counts, response) = (&tally.counts, tally.latency.response());
        let time = |ns: u64| units::duration(ns as f64);
        [
            units::count(counts.ok),
            units::count(counts.due().saturating_sub(counts.ok)),
            units::rate(self.goodput()),
            time(response.quantile(0.5)),
            time(response.quantile(0.99)),
            time(response.max()),
            self.shown_cause().unwrap_or("-").to_owned(),
        ]
    }

    /// The change from the step before: the share that was ok, and the 99th percentile.
    pub(crate) fn change(&self, before: &Self) -> String {
        let of = |step: &Self| {
            let tally = step.tally();
            let share = tally.counts.ok as f64 / tally.counts.due().max(1) as f64;
            let p99 = tally.latency.response().quantile(0.99);
            (units::percent(share), units::duration(p99 as f64))
        };
        let ((ok_before, p99_before), (ok, p99)) = (of(before), of(self));
        format!("ok {ok_before} → {ok}, p99 {p99_before} → {p99}")
    }

    /// The predicted cause if it was found, else the first one.
    pub(crate) fn shown_cause(&self) -> Option<&'static str> {
        let theory = || self.expectations.iter().filter(|one| one.what == "cause" && one.met);
        let is_named =
            |id: &str| theory().any(|one| one.theory.split(" or ").any(|name| name == id));
        let mut causes = self.causes().map(|cause| cause.id);
        causes.clone().find(|id| is_named(id)).or_else(|| causes.next())
    }

    /// The causes that limited it, the strongest first.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &Finding> + Clone {
        self.summary.verdict.findings.iter().filter(|finding| finding.rank == Rank::Cause)
    }

    /// The target's sockets over time: a few evenly spaced readings; `None` when its process was
    /// not sampled.
    pub(crate) fn sockets(&self) -> Option<String> {
        let of = |name: &'static str| {
            let mut named = self.summary.run.watched.named(name);
            named
                .find(|gauge| gauge.source.starts_with("port:") || gauge.source.starts_with("pid:"))
        };
        let states =
            [("SYN", vec![of("syn_sent"), of("syn_recv")]), ("TIME_WAIT", vec![of("time_wait")])];
        let established = of("established")?;
        let every = established.samples().len().div_ceil(READINGS_MAX);
        let readings = established.samples().iter().step_by(every.max(1)).map(|sample| {
            let mut text = format!(
                "{} at {:.0} s",
                units::number(sample.mean),
                sample.at as f64 / SECOND as f64
            );
            for (name, gauges) in &states {
                let count: f64 = gauges.iter().flatten().map(|gauge| at(gauge, sample.at)).sum();
                if count > 0.0 {
                    text.push_str(&format!(" and {} in {name}", units::number(count)));
                }
            }
            text
        });
        Some(format!("established {}", readings.collect::<Vec<_>>().join(", ")))
    }

    /// Failures by fault, as `written`, and unexpected status, the most frequent first.
    pub(crate) fn problems(&self, written: impl Fn(&Fault) -> String) -> Vec<(String, u64)> {
        let (tally, expect) = (self.tally(), &self.summary.run.plan.expect);
        let statuses = tally.statuses().iter().filter(|(status, _)| !expect.accepts(*status));
        let statuses = statuses.map(|(status, count)| (format!("status {status}"), *count));
        let faults = tally.faults().iter().map(|(fault, count)| (written(fault), *count));
        let unfinished = ("unfinished".to_owned(), tally.counts.unfinished);
        let mut problems: Vec<_> = statuses.chain(faults).chain([unfinished]).collect();
        problems.retain(|(_, count)| *count > 0);
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.1));
        problems
    }
}

/// The reading of that time; 0 for a state that no socket is in.
fn at(gauge: &Gauge, at: Nanos) -> f64 {
    let found = gauge.samples().iter().find(|sample| sample.at.abs_diff(at) < SECOND / 2);
    found.map_or(0.0, |sample| sample.mean)
}
