//! What went wrong, and what to do.

use gake_core::record::{FailedBodies, Run};
use gake_judge::{Verdict, advice, agent_lines};
use gake_text::units;

use super::page::{Page, Paint, fit};

/// Faults shown at most.
const FAULTS_MAX: usize = 12;

/// Events shown at most.
const EVENTS_MAX: usize = 10;

/// Faults, the most frequent first.
pub(super) fn faults(page: &mut Page, run: &Run) {
    let mut faults = run.tally.faults().to_vec();
    if faults.is_empty() {
        return;
    }
    page.gap();
    page.headed("faults", "");
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
    let widest = units::count(faults[0].1).len();
    for (fault, count) in faults.iter().take(FAULTS_MAX) {
        let name = page.paint(Paint::Bad, &fault.to_string());
        page.line(&format!("  {:>widest$}  {name}", units::count(*count)));
        page.wrapped(widest + 6, &arrow(widest + 4), Paint::Plain, advice(*fault));
    }
    if faults.len() > FAULTS_MAX {
        let more = format!("and {} more kinds; JSON has them all", faults.len() - FAULTS_MAX);
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

/// Bodies of failed answers shown at most, and characters of each.
const BODIES_MAX: usize = 5;
const BODY_CHARS: usize = 240;

/// What the target said of its failures, the most frequent first.
pub(crate) fn bodies(page: &mut Page, bodies: &FailedBodies) {
    if bodies.is_empty() {
        return;
    }
    page.gap();
    page.headed("failed bodies", "the most frequent bodies of failed answers");
    listed(page, bodies, BODIES_MAX);
}

/// The bodies, `most` of them with a line or more for each.
pub(crate) fn listed(page: &mut Page, bodies: &FailedBodies, most: usize) {
    let told = bodies.by_count();
    let widest = told.first().map_or(1, |body| units::count(body.count).len());
    for body in told.iter().take(most) {
        let count = units::count(body.count);
        let text = if body.text.is_empty() { "(empty)" } else { body.text.trim() };
        let text = fit(text, BODY_CHARS);
        let mark = format!("  {count:>widest$} × {}  ", body.status);
        page.wrapped(mark.chars().count(), &mark, Paint::Plain, &text);
    }
    let rest: u64 = told.iter().skip(most).map(|body| body.count).sum();
    if rest + bodies.others() > 0 {
        let more = format!("and {} with other bodies", units::count(rest + bodies.others()));
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

/// What limited the run.
pub(super) fn findings(page: &mut Page, verdict: &Verdict) {
    if verdict.findings.is_empty() {
        return;
    }
    page.gap();
    page.headed("findings", "");
    for finding in &verdict.findings {
        let id = page.paint(Paint::Warn, finding.id);
        page.line(&format!("  {id}"));
        page.wrapped(4, "", Paint::Plain, &finding.evidence);
        page.wrapped(6, &arrow(4), Paint::Plain, &finding.advice);
        page.wrapped(6, "", Paint::Quiet, &format!("check: {}", finding.check));
    }
}

fn arrow(indent: usize) -> String {
    format!("{}→", " ".repeat(indent))
}

/// The agents of a fleet, each with its own verdict.
pub(super) fn agents(page: &mut Page, run: &Run) {
    if run.agents.is_empty() {
        return;
    }
    page.gap();
    page.headed("agents", "");
    for line in agent_lines(&run.agents).take(EVENTS_MAX) {
        page.wrapped(4, "", Paint::Plain, line.trim_start_matches("agent "));
    }
    if run.agents.len() > EVENTS_MAX {
        let more = format!("and {} more; JSON has them all", run.agents.len() - EVENTS_MAX);
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

/// What happened beside requests.
pub(super) fn events(page: &mut Page, run: &Run) {
    if run.events.is_empty() {
        return;
    }
    page.gap();
    page.headed("events", "");
    for event in run.events.iter().take(EVENTS_MAX) {
        let at = units::duration(event.at as f64);
        page.wrapped(12, &format!("  {at:>8}"), Paint::Plain, &event.text);
    }
    if run.events.len() > EVENTS_MAX {
        let more = format!("and {} more; JSON has them all", run.events.len() - EVENTS_MAX);
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}
