//! The page of a capacity search.

use std::time::Duration;

use gake_judge::Cause;
use gake_judge::overload::{OverloadClass, Recovery};
use gake_judge::search::{CapacityResult, StopReason};
use gake_text::duration::format_duration;
use gake_text::units;
use serde::Serialize;

use super::{SCHEMA, bounded, cut, instant};
use crate::find::FindReport;
use crate::find::json::{CauseJson, FindJson};
use crate::find::{map, text};

const STEPS_MAX: usize = 1_000;

const OBJECTIVES_MAX: usize = 30;

#[derive(Serialize)]
struct FindPageJson {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    /// RFC 3339 in UTC.
    started: String,
    /// Why it ended, in words.
    ended: String,
    /// Further facts needed to read the number.
    notes: Vec<String>,
    /// What to do without a result, or with one that is less precise than requested.
    next: Vec<String>,
    /// The behaviour beyond the capacity.
    beyond: Vec<StatementJson>,
    /// The pool that the ladder of users shows, if no step names a cause.
    pool: Option<CauseJson>,
    /// Omitted steps: the first ones.
    more_steps: usize,
    find: FindJson,
}

/// A sentence, and whether it is good news or none.
#[derive(Serialize)]
struct StatementJson {
    good: bool,
    text: String,
}

/// The page of a search as one file.
#[must_use]
pub fn find(report: &FindReport) -> String {
    bounded(STEPS_MAX, |steps| FindPageJson::new(report, steps))
}

impl FindPageJson {
    fn new(report: &FindReport, steps: usize) -> Self {
        let more_steps = report.steps.len().saturating_sub(steps);
        let mut shown = report.clone();
        shown.steps.drain(..more_steps);
        shown.target = cut(&shown.target);
        shown.clauses.truncate(OBJECTIVES_MAX);
        for clause in &mut shown.clauses {
            clause.text = cut(&clause.text);
        }
        for cause in &mut shown.causes {
            cause.finding.evidence = cut(&cause.finding.evidence);
            cause.finding.advice = cut(&cause.finding.advice);
            cause.finding.check = cut(&cause.finding.check);
        }
        if let Some(binding) = &mut shown.result.binding {
            binding.text = cut(&binding.text);
        }
        Self {
            schema: SCHEMA,
            kind: "find",
            gake: env!("CARGO_PKG_VERSION"),
            started: instant(report.started_unix_ns),
            ended: text::ended(report),
            notes: text::cautions(&report.result),
            next: next(report),
            beyond: beyond(report),
            pool: text::pool(report).map(|finding| CauseJson::from(&Cause { finding, runs: 0 })),
            more_steps,
            find: FindJson::from(&shown),
        }
    }
}

/// What to do next when the search did not deliver what was requested.
fn next(report: &FindReport) -> Vec<String> {
    let (result, target) = (&report.result, cut(&report.target));
    let budget = |times: f64| {
        let seconds = (report.budget.as_secs_f64() * times / 60.0).ceil() * 60.0;
        format_duration(Duration::from_secs_f64(seconds.max(60.0)))
    };
    match (&result.found, result.ended) {
        (CapacityResult::Capacity(estimate), StopReason::Budget)
            if estimate.half_width() > report.precision =>
        {
            // Half the width takes four times as long.
            let times = (estimate.half_width() / report.precision).powi(2).min(20.0);
            let time = budget(times);
            vec![format!("for a narrower interval, give it more time: --budget {time}")]
        }
        (CapacityResult::AtLeast { .. }, StopReason::Ceiling) => vec![
            "to search higher, raise the bound on the load (--max-rate, --connections), or give \
             the generator more cores; gake doctor shows what this machine can generate"
                .to_owned(),
        ],
        (CapacityResult::AtLeast { .. } | CapacityResult::Unknown, StopReason::Budget) => {
            let time = text::sufficient_budget(report).unwrap_or_else(|| budget(4.0));
            vec![format!("give it more time: --budget {time}")]
        }
        (_, StopReason::Generator) => vec![
            "give gake cores of its own (taskset), or another machine than the target's".to_owned(),
            "gake doctor shows what this machine can generate, and what limits it".to_owned(),
        ],
        (_, StopReason::Gone) => vec![
            "look at the target: is it up, and what does its log say?".to_owned(),
            format!("find where it stops responding: gake run {target} --stages 1..100@1m"),
        ],
        (CapacityResult::Infeasible { .. }, _) => {
            let unloaded = units::duration(result.unloaded * 1e9);
            vec![
                format!("look at a single user: gake run {target} -c 1 -d 10s"),
                format!("allow more: without load the mean response takes {unloaded}"),
            ]
        }
        (_, StopReason::Interrupted) => {
            vec!["let it run to its end for a narrower interval".to_owned()]
        }
        _ => Vec::new(),
    }
}

fn beyond(report: &FindReport) -> Vec<StatementJson> {
    let Some(overload) = &report.map else { return Vec::new() };
    let good = !matches!(overload.class, OverloadClass::Collapsing | OverloadClass::Retrograde);
    let mut statements = vec![StatementJson { good, text: map::class(overload) }];
    statements
        .extend(map::details(overload).into_iter().map(|text| StatementJson { good: true, text }));
    let good = !matches!(overload.recovery, Recovery::Metastable | Recovery::Draining);
    statements
        .push(StatementJson { good, text: format!("recovery: {}", map::recovery(overload).1) });
    statements.extend(map::hysteresis(overload).map(|text| StatementJson { good: false, text }));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::json::tests::report;

    #[test]
    fn a_search_of_days_is_under_500_kb() {
        let mut long = report();
        let last = long.steps.last().unwrap().clone();
        long.steps = vec![last; 20_000];
        long.target = "<".repeat(100_000);
        long.clauses[0].text = "<".repeat(10_000);
        long.clauses = vec![long.clauses[0].clone(); 100];
        let html = find(&long);
        assert!(html.len() <= 500_000, "{}", html.len());
        let form = FindPageJson::new(&long, 100);
        assert_eq!(form.more_steps, 19_900);
        assert!(html.contains("\"kind\":\"find\"") && html.contains("recovery: "));
    }
}
