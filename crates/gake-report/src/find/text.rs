//! The answer on a page: the number first, then how sure it is, then why.

use std::time::Duration;

use gake_judge::finding::served_at_once;
use gake_judge::search::{
    CapacityAnswer, Dimension, Found, Step, StepOutcome, StopReason, TrialLoad,
};
use gake_judge::usl::Pool;
use gake_judge::{Bound, Cause, Finding};
use gake_text::duration::format_duration;
use gake_text::units;

use super::{FindReport, map};
use crate::Style;
use crate::formats::text::page::{INDENT, Page, Paint};
use crate::formats::text::problems;

/// The page.
#[must_use]
pub fn text(report: &FindReport, style: Style) -> String {
    let mut page = Page::new(style.for_tables());
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

/// What limited the target.
fn causes(page: &mut Page, report: &FindReport) {
    if report.overloaded == 0 {
        return;
    }
    page.gap();
    page.headed("what limits it", "");
    if report.causes.is_empty() {
        match report.answer.pool() {
            Some(pool) => {
                let finding = served_at_once(plateau(pool), Some(pool.slots.value));
                cause(page, &finding, "by the ladder of users");
            }
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

/// A finding, and where it was seen.
fn cause(page: &mut Page, finding: &Finding, seen: &str) {
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

fn headline(page: &mut Page, report: &FindReport) {
    let answer = &report.answer;
    let said = |value| level(report.dimension, value);
    match &answer.found {
        Found::Capacity(e) => {
            let capacity = page.paint(Paint::Good, &said(e.capacity));
            let interval = format!("95 %: {} to {}", said(e.low), said(e.high));
            page.headed("capacity", &format!("{capacity}   ({interval})"));
            let safe = page.paint(Paint::Good, &said(e.safe));
            page.headed(
                "plan with",
                &format!("{safe}: 95 % confident that the capacity is higher"),
            );
        }
        Found::AtLeast { level, why } => {
            let capacity = page.paint(Paint::Good, &format!("at least {}", said(*level)));
            page.headed("capacity", &capacity);
            page.wrapped(INDENT, "", Paint::Plain, why);
        }
        Found::Infeasible { level } => {
            let none = page.paint(Paint::Bad, "none");
            let text = format!("{none}: the objectives do not hold at {} either", said(*level));
            page.headed("capacity", &text);
        }
        Found::Unknown => {
            let unknown = page.paint(Paint::Bad, "unknown");
            page.headed("capacity", &unknown);
            if let Some(why) = &answer.ceiling {
                page.wrapped(INDENT, "", Paint::Warn, why);
            }
        }
    }
    page.headed("objectives", &report.objectives().join(", "));
    page.headed("ended", &ended(report));
}

/// The budget that would probably do, when this one did not, in whole minutes.
pub(crate) fn enough(report: &FindReport) -> Option<String> {
    let minutes = (report.answer.budget_needed? / 60.0).ceil();
    Some(format_duration(Duration::from_secs_f64(minutes * 60.0)))
}

/// Why steps last as long as they do.
fn alone(answer: &CapacityAnswer) -> String {
    match answer.rungs.first() {
        Some(rung) => {
            format!(" (a response takes {} without load)", units::duration(rung.response * 1e9))
        }
        None => String::new(),
    }
}

/// Why it ended, and after how long.
pub(crate) fn ended(report: &FindReport) -> String {
    let answer = &report.answer;
    let spent = units::duration(answer.spent * 1e9);
    let asked = units::percent(report.precision);
    let why = match answer.ended {
        StopReason::Precision => format!("as precise as asked ({asked})"),
        StopReason::Ceiling => "no higher level may or can be tried".to_owned(),
        StopReason::Budget => match &answer.found {
            Found::Capacity(e) if e.half_width() > report.precision => format!(
                "the budget is spent before the precision asked ({asked}) is reached: the interval \
                 is ± {}",
                units::percent(e.half_width())
            ),
            _ => match enough(report) {
                Some(enough) => format!(
                    "the budget is spent before enough is known: --budget {enough} would probably \
                     do{}",
                    alone(answer)
                ),
                None if answer.rungs.is_empty() => {
                    "the budget is spent before anything was answered".to_owned()
                }
                None => "the budget is spent".to_owned(),
            },
        },
        StopReason::Interrupted => "interrupted: this is the answer so far".to_owned(),
        StopReason::Infeasible => "the lightest load misses the objectives".to_owned(),
        StopReason::Gone => "the target has stopped answering".to_owned(),
        StopReason::Generator => {
            "the generator, not the target, decides: give it a machine or cores of its own"
                .to_owned()
        }
    };
    format!("after {spent}: {why}")
}

/// What else must be known to read the number.
fn notes(page: &mut Page, report: &FindReport) {
    let answer = &report.answer;
    page.gap();
    if let Some(binding) = &answer.binding
        && report.clauses.len() > 1
    {
        page.headed("bound by", &binding.text);
    }
    if answer.unloaded > 0.0 {
        let text = format!(
            "{} without load; {} at most in a closed loop",
            units::duration(answer.unloaded * 1e9),
            units::rate(answer.throughput_max)
        );
        page.headed("target", &text);
    }
    scaling(page, answer);
    // Where it is the only explanation, it stands below what limits the target.
    let is_below = report.causes.is_empty() && report.overloaded > 0;
    if let Some(pool) = answer.pool().filter(|_| !is_below) {
        page.wrapped(INDENT, "pool", Paint::Plain, &plateau(pool));
    }
    for note in cautions(answer) {
        page.wrapped(INDENT, "note", Paint::Warn, &note);
    }
}

/// How throughput grows with concurrency, and what would explain where it stops.
fn scaling(page: &mut Page, answer: &CapacityAnswer) {
    if let Some(law) = answer.scaling() {
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
            "USL with λ {}, σ {:.3} ({:.3} to {:.3}), κ {:.5}: {peak}",
            units::rate(law.gamma.value),
            law.sigma.value,
            law.sigma.low,
            law.sigma.high,
            law.kappa.value,
        );
        page.wrapped(INDENT, "scaling", Paint::Plain, &text);
    }
}

/// How many the target serves at once, by the plateau of the ladder.
fn plateau(pool: Pool) -> String {
    format!(
        "throughput stops at {} while one request takes {}: about {} are served at once ({} to {})",
        units::rate(pool.throughput),
        units::duration(pool.service * 1e9),
        units::number(pool.slots.value),
        units::number(pool.slots.low),
        units::number(pool.slots.high)
    )
}

/// What is unusual about the answer.
pub(crate) fn cautions(answer: &CapacityAnswer) -> Vec<String> {
    let mut notes = Vec::new();
    if answer.flat {
        notes.push(
            "The load hardly changes how often this objective is missed: stalls or a constant \
             share of slow requests set it (garbage collection, a timer, another tenant). Look \
             for those before adding capacity; the interval is wide for this reason."
                .to_owned(),
        );
    }
    if answer.noise > 0.05 {
        notes.push(format!(
            "From step to step the target's speed varies by about {}: something else may be running on it.",
            units::percent(answer.noise)
        ));
    }
    if let Some(h) = &answer.hysteresis {
        let healed = if h.recovered {
            format!("it was as before after {} of rest", units::duration(h.rested * 1e9))
        } else {
            format!("it was not as before after {} of rest", units::duration(h.rested * 1e9))
        };
        notes.push(format!(
            "Metastable: {} failed after an overload although {} had passed; {healed}. Such a \
             target does not recover while the load goes on: limit retries and queues, and shed \
             load early.",
            units::number(h.failed),
            units::number(h.passed),
        ));
    }
    notes
}

/// The evidence: every step.
fn steps(page: &mut Page, report: &FindReport) {
    page.gap();
    // A bound on the target is about its level, and not about how many requests there were.
    let level = report.clauses.iter().find_map(|clause| clause.target_level());
    let header = format!(
        "{:<8} {:>14} {:>7} {:>10} {:>9} {:>9} {:>9}  {}",
        "step",
        "load",
        "time",
        level.unwrap_or("requests"),
        "response",
        "missed",
        "allowed",
        ""
    );
    page.line(&page.paint(Paint::Heading, &header));
    for step in &report.steps {
        let line = row(report, step);
        let (paint, word) = match step.outcome {
            _ if step.trial.purpose.is_exploring() => (Paint::Quiet, ""),
            StepOutcome::Pass => (Paint::Good, "pass"),
            StepOutcome::Fail => (Paint::Bad, "fail"),
            StepOutcome::Inconclusive => (Paint::Plain, "either"),
            StepOutcome::Limited => (Paint::Warn, "generator"),
            StepOutcome::Contaminated => (Paint::Warn, "set aside"),
        };
        let word = page.paint(paint, word);
        page.line(&format!("{line}  {word}"));
    }
}

fn row(report: &FindReport, step: &Step) -> String {
    let dimension = match step.trial.load {
        TrialLoad::Rate(_) => Dimension::Rate,
        // Each user has one stream at a time.
        TrialLoad::Users(_) if report.dimension == Dimension::Streams => Dimension::Streams,
        TrialLoad::Users(_) => Dimension::Users,
        TrialLoad::Connections(_) => Dimension::Connections,
    };
    // The worst clause against its bound.
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
        units::duration(step.seen.response * 1e9),
    )
}

impl FindReport {
    /// The mean of the first level of the target that is bounded, in a step.
    fn level_of(&self, step: &Step) -> Option<String> {
        let number = self.clauses.iter().position(|clause| clause.target_level().is_some())?;
        let mean = step.mean_level(number);
        mean.map_or(Some("–".to_owned()), |mean| self.clauses[number].shown_level(mean))
    }

    /// What a clause saw and allows.
    fn bounds(&self, clause: usize, step: &Step) -> Option<(String, String)> {
        if let (Some(mean), Some(known)) = (step.mean_level(clause), self.clauses.get(clause))
            && let (Some(seen), Bound::Level(bound)) = (known.shown_level(mean), known.bound)
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
