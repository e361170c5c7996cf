//! The result of a search as text: the number first, then its uncertainty, then the reasons.

use std::time::Duration;

use gake_judge::finding::served_at_once;
use gake_judge::search::{
    CapacityResult, Dimension, SearchResult, SearchStep, StepOutcome, StopReason, TrialLoad,
};
use gake_judge::usl::PoolFit;
use gake_judge::{Cause, ClauseBound, Finding};
use gake_text::duration::format_duration;
use gake_text::units;

use super::{FindReport, map};
use crate::Style;
use crate::formats::text::page::{INDENT, Paint, TextPage, fit};
use crate::formats::text::problems;

/// The result as text, with a final newline.
#[must_use]
pub fn text(report: &FindReport, style: Style) -> String {
    let mut page = TextPage::new(style.for_tables());
    headline(&mut page, report);
    notes(&mut page, report);
    if let Some(overload) = &report.map {
        map::show(&mut page, overload);
    }
    causes(&mut page, report);
    problems::bodies(&mut page, &report.bodies);
    steps(&mut page, report);
    page.text()
}

fn causes(page: &mut TextPage, report: &FindReport) {
    if report.overloaded == 0 {
        return;
    }
    page.gap();
    page.headed("what limits it", "");
    if report.causes.is_empty() {
        match pool(report) {
            Some(finding) => cause(page, &finding, "by the ladder of users"),
            None => page.wrapped(
                2,
                "",
                Paint::Quiet,
                "unexplained: no known cause matched; --watch the target to see more",
            ),
        }
    }
    for Cause { finding, runs } in &report.causes {
        let steps = units::plural(report.overloaded, "step");
        cause(page, finding, &format!("in {runs} of {steps} at the limit"));
    }
}

/// The pool that the ladder of users shows, where no step at the limit names a cause.
pub(crate) fn pool(report: &FindReport) -> Option<Finding> {
    let pool = report.result.pool().filter(|_| report.causes.is_empty())?;
    Some(served_at_once(plateau(pool), Some(pool.slots.value)))
}

/// A finding, and where it was found.
fn cause(page: &mut TextPage, finding: &Finding, seen: &str) {
    let id = page.paint(Paint::Warn, finding.id);
    page.line(&format!("  {id}   ({seen})"));
    page.wrapped(4, "", Paint::Plain, &finding.evidence);
    page.wrapped(6, "    →", Paint::Plain, &finding.advice);
    page.wrapped(6, "", Paint::Quiet, &format!("check: {}", finding.check));
}

/// A level of the dimension, in words.
fn level(dimension: Dimension, level: f64) -> String {
    match dimension {
        Dimension::Rate => units::rate(level),
        Dimension::ConnectRate => format!("{} connections", units::rate(level)),
        Dimension::TlsHandshakes => format!("{} TLS handshakes", units::rate(level)),
        Dimension::Users => units::plural(level.round() as u64, "user"),
        Dimension::Streams => units::plural(level.round() as u64, "stream"),
        Dimension::Connections => units::plural(level.round() as u64, "connection"),
    }
}

fn headline(page: &mut TextPage, report: &FindReport) {
    let result = &report.result;
    let shown = |value| level(report.dimension, value);
    match &result.found {
        CapacityResult::Capacity(e) => {
            let capacity = page.paint(Paint::Good, &shown(e.capacity));
            let interval = format!("95 %: {} to {}", shown(e.low), shown(e.high));
            let objectives = report.objectives().join(" and ");
            page.headed("capacity", &format!("holds {capacity} with {objectives}   ({interval})"));
            if let Some(why) = limit(report) {
                page.wrapped(INDENT, "", Paint::Plain, &why);
            }
            let safe = page.paint(Paint::Good, &shown(e.safe));
            page.headed(
                "plan with",
                &format!("{safe}: the true capacity is higher with 95 % confidence"),
            );
        }
        CapacityResult::AtLeast { level, why } => {
            let capacity = page.paint(Paint::Good, &format!("at least {}", shown(*level)));
            page.headed("capacity", &capacity);
            page.wrapped(INDENT, "", Paint::Plain, why);
        }
        CapacityResult::Infeasible { level } => {
            let none = page.paint(Paint::Bad, "none");
            let text = format!("{none}: the objectives do not hold at {} either", shown(*level));
            page.headed("capacity", &text);
        }
        CapacityResult::Unknown => {
            let unknown = page.paint(Paint::Bad, "unknown");
            page.headed("capacity", &unknown);
            if let Some(why) = &result.ceiling {
                page.wrapped(INDENT, "", Paint::Warn, why);
            }
        }
    }
    page.headed("objectives", &report.objectives().join(", "));
    page.headed("ended", &ended(report));
}

/// The budget that would probably suffice when this one did not, in whole minutes.
pub(crate) fn sufficient_budget(report: &FindReport) -> Option<String> {
    let minutes = (report.result.budget_needed? / 60.0).ceil();
    Some(format_duration(Duration::from_secs_f64(minutes * 60.0)))
}

/// The unloaded response time, which explains the length of the steps.
fn unloaded_response(result: &SearchResult) -> String {
    match result.rungs.first() {
        Some(rung) => {
            format!(" (a response takes {} without load)", units::duration(rung.response * 1e9))
        }
        None => String::new(),
    }
}

/// Why the search ended, and after how long.
pub(crate) fn ended(report: &FindReport) -> String {
    let result = &report.result;
    let spent = units::duration(result.spent * 1e9);
    let asked = units::percent(report.precision);
    let why = match result.ended {
        StopReason::Precision => format!("the requested precision is reached ({asked})"),
        StopReason::Ceiling => "no higher level is allowed or possible".to_owned(),
        StopReason::Budget => match &result.found {
            CapacityResult::Capacity(e) if e.half_width() > report.precision => format!(
                "the time left in the budget was too short for another step; the precision is ± {}, {asked} was requested",
                units::percent(e.half_width())
            ),
            _ => match sufficient_budget(report) {
                Some(enough) => format!(
                    "the budget ran out before enough was known: --budget {enough} would probably \
                     suffice{}",
                    unloaded_response(result)
                ),
                None if result.rungs.is_empty() => {
                    "the budget ran out before any response".to_owned()
                }
                None => "the time left in the budget was too short for another step".to_owned(),
            },
        },
        StopReason::Interrupted => "interrupted: this is the result so far".to_owned(),
        StopReason::Infeasible => "the lightest load misses the objectives".to_owned(),
        StopReason::Gone => "the target has stopped responding".to_owned(),
        StopReason::Generator => {
            "the generator is the limit, not the target: give it a machine or cores of its own"
                .to_owned()
        }
    };
    format!("after {spent}: {why}")
}

/// Further facts needed to read the number.
fn notes(page: &mut TextPage, report: &FindReport) {
    let result = &report.result;
    page.gap();
    if let Some(binding) = &result.binding
        && report.clauses.len() > 1
    {
        page.headed("bound by", &binding.text);
    }
    if result.unloaded > 0.0 {
        let text = format!(
            "{} without load; {} at most in a closed loop",
            units::duration(result.unloaded * 1e9),
            units::rate(result.throughput_max)
        );
        page.headed("target", &text);
    }
    scaling(page, result);
    // The only explanation goes below what limits the target.
    let is_below = report.causes.is_empty() && report.overloaded > 0;
    if let Some(pool) = result.pool().filter(|_| !is_below) {
        page.wrapped(INDENT, "pool", Paint::Plain, &plateau(pool));
    }
    for note in cautions(result) {
        page.wrapped(INDENT, "note", Paint::Warn, &note);
    }
}

/// How throughput grows with concurrency, and what explains its limit.
fn scaling(page: &mut TextPage, result: &SearchResult) {
    if let Some(law) = result.scaling() {
        let peak = match (law.peak_users, law.peak_throughput) {
            (Some(users), Some(most)) if law.peak_determined => format!(
                "a peak of {} with {} in flight ({} to {})",
                units::rate(most.value),
                units::number(users.value),
                units::number(users.low),
                units::number(users.high)
            ),
            _ => "the steps do not determine a peak".to_owned(),
        };
        let text = format!(
            "{} with one request in flight, serialised share σ {:.3} ({:.3} to {:.3}), \
             coordination κ {:.5} (universal scalability law): {peak}",
            units::rate(law.gamma.value),
            law.sigma.value,
            law.sigma.low,
            law.sigma.high,
            law.kappa.value,
        );
        page.wrapped(INDENT, "scaling", Paint::Plain, &text);
    }
}

/// The concurrency of the target, from the plateau of the ladder.
fn plateau(pool: PoolFit) -> String {
    format!(
        "throughput peaks at {} while one request takes {}: about {} are served at once ({} to {})",
        units::rate(pool.throughput),
        units::duration(pool.service * 1e9),
        tenths(pool.slots.value),
        tenths(pool.slots.low),
        tenths(pool.slots.high)
    )
}

fn tenths(number: f64) -> String {
    units::number((number * 10.0).round() / 10.0)
}

/// What the capacity comes from, in a clause: the places of a pool, or the first finding.
fn limit(report: &FindReport) -> Option<String> {
    let Some(pool) = report.result.pool() else {
        return report.causes.first().map(|cause| format!("limited by {}", cause.finding.id));
    };
    let service = units::duration(pool.service * 1e9);
    Some(match pool.slots.value.round() {
        ..=1.0 => format!("requests are served one after another, {service} each"),
        places => format!("{places} are served at once, {service} each: a pool of {places}"),
    })
}

/// Unusual properties of the result.
pub(crate) fn cautions(result: &SearchResult) -> Vec<String> {
    let mut notes = Vec::new();
    if result.flat {
        notes.push(
            "The load hardly changes how often this objective is missed: stalls or a constant \
             share of slow requests set it (garbage collection, a timer, another tenant). Look \
             for those before adding capacity; the interval is wide for this reason."
                .to_owned(),
        );
    }
    if result.noise > 0.05 {
        notes.push(format!(
            "From step to step the target's speed varies by about {}: something else may be running on it.",
            units::percent(result.noise)
        ));
    }
    if let Some(warm_up) = &result.warm_up {
        let [cold, warm] = [warm_up.cold, warm_up.warm].map(|time| units::duration(time * 1e9));
        let action = match warm_up.restarted {
            Some(after) => format!(
                "The search began again after {}; steps before that do not count.",
                units::duration(after * 1e9)
            ),
            None => "Search again now that it is warm, or with --warmup.".to_owned(),
        };
        notes.push(format!(
            "The target was warming up: a response took {cold} at first and {warm} later. {action}"
        ));
    }
    if let Some(h) = &result.hysteresis {
        let healed = if h.recovered {
            format!("it recovered after {} of rest", units::duration(h.rested * 1e9))
        } else {
            format!("it had not recovered after {} of rest", units::duration(h.rested * 1e9))
        };
        notes.push(format!(
            "Metastable: {} failed after an overload although {} had passed; {healed}. Such a \
             target does not recover under load: limit retries and queues, and shed \
             load early.",
            units::number(h.failed),
            units::number(h.passed),
        ));
    }
    notes
}

fn steps(page: &mut TextPage, report: &FindReport) {
    page.gap();
    // A bound on the target is about its level, not a number of requests.
    let level = report.clauses.iter().find_map(|clause| clause.target_level());
    let header = format!(
        "{:<8} {:>14} {:>7} {:>10} {:>9} {:>9} {:>9}  {}",
        "step",
        "load",
        "time",
        level.unwrap_or("requests"),
        report.percentile().map_or("mean".to_owned(), |(_, name)| fit(name, 9)),
        "missed",
        "allowed",
        ""
    );
    page.line(&page.paint(Paint::Heading, &header));
    let mut words = std::collections::BTreeSet::new();
    for step in &report.steps {
        let line = row(report, step);
        let (paint, word) = match step.outcome {
            StepOutcome::Cold => (Paint::Quiet, "cold"),
            _ if step.trial.purpose.is_exploring() => (Paint::Quiet, ""),
            StepOutcome::Pass => (Paint::Good, "pass"),
            StepOutcome::Fail => (Paint::Bad, "fail"),
            StepOutcome::Inconclusive => (Paint::Plain, "inconclusive"),
            StepOutcome::Limited => (Paint::Warn, "limited"),
            StepOutcome::Contaminated => (Paint::Warn, "contaminated"),
        };
        words.extend(meaning(word));
        let word = page.paint(paint, word);
        page.line(&format!("{line}  {word}"));
    }
    words.extend([MISSED, PURPOSES]);
    for meaning in words {
        page.wrapped(2, "", Paint::Quiet, meaning);
    }
}

const MISSED: &str = "missed: the share of requests beyond the bound, and how many it allows";
const PURPOSES: &str = "ladder: users or rates that grow; floor: the lightest load; bracket: loads around the limit; refine: loads at it";

/// What a result of a step means, unless the word says it.
fn meaning(word: &str) -> Option<&'static str> {
    match word {
        "inconclusive" => Some("inconclusive: as likely within the bound as beyond it"),
        "limited" => Some("limited: the generator was at its limit, so the step decides nothing"),
        "cold" => Some("cold: the target was still warming up, so the step does not count"),
        "contaminated" => Some("contaminated: the target had not recovered from an earlier step"),
        _ => None,
    }
}

fn row(report: &FindReport, step: &SearchStep) -> String {
    let dimension = match step.trial.load {
        TrialLoad::Rate(_) => Dimension::Rate,
        // Each user has one stream at a time.
        TrialLoad::Users(_) if report.dimension == Dimension::Streams => Dimension::Streams,
        TrialLoad::Users(_) => Dimension::Users,
        TrialLoad::Connections(_) => Dimension::Connections,
    };
    // The clause closest to or beyond its bound.
    let worst = (0..step.ratios.len()).max_by(|a, b| step.ratios[*a].total_cmp(&step.ratios[*b]));
    let (missed, allowed) = match worst.and_then(|n| report.bounds(n, step)) {
        Some((missed, allowed)) => (missed, allowed),
        None => (String::new(), String::new()),
    };
    format!(
        "{:<8} {:>14} {:>7} {:>10} {:>9} {missed:>9} {allowed:>9}",
        step.trial.purpose.name(),
        level(dimension, step.trial.load.level()),
        units::duration(step.seen.measured * 1e9),
        report.level_of(step).unwrap_or_else(|| units::count(step.seen.due)),
        report.response_of(step),
    )
}

impl FindReport {
    /// The mean in a step of the first bounded level of the target.
    fn level_of(&self, step: &SearchStep) -> Option<String> {
        let number = self.clauses.iter().position(|clause| clause.target_level().is_some())?;
        let mean = step.mean_level(number);
        mean.map_or(Some("–".to_owned()), |mean| self.clauses[number].shown_level(mean))
    }

    /// The clause that bounds a percentile, and its name; the binding one if there are several.
    fn percentile(&self) -> Option<(usize, &str)> {
        let binding = self.result.binding.as_ref().map(|binding| binding.text.as_str());
        let all = self.clauses.iter().enumerate();
        let named = all.filter_map(|(number, clause)| Some((number, clause.percentile()?)));
        named.max_by_key(|(number, _)| {
            (binding == Some(self.clauses[*number].text.as_str()), std::cmp::Reverse(*number))
        })
    }

    /// The figure of the objective in a step; without a percentile, the mean response time.
    fn response_of(&self, step: &SearchStep) -> String {
        let Some((number, _)) = self.percentile() else {
            return units::duration(step.seen.response * 1e9);
        };
        let measured = step.seen.clauses.get(number).and_then(|clause| clause.percentile);
        measured.map_or_else(|| "–".to_owned(), |ns| units::duration(ns as f64))
    }

    /// The measured value and the allowance of a clause.
    fn bounds(&self, clause: usize, step: &SearchStep) -> Option<(String, String)> {
        if let (Some(mean), Some(known)) = (step.mean_level(clause), self.clauses.get(clause))
            && let (Some(seen), ClauseBound::Level(bound)) = (known.shown_level(mean), known.bound)
        {
            return Some((seen, known.shown_level(bound)?));
        }
        let total = step.seen.clauses.get(clause)?.total;
        let ratio = step.ratios[clause];
        if total.of == 0.0 {
            return None;
        }
        let missed = total.bad / total.of;
        let allowed = if ratio > 0.0 { units::percent(missed / ratio) } else { String::new() };
        Some((units::percent(missed), allowed))
    }
}
