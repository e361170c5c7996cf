//! Faults, failed bodies, findings, agents and events.

use gake_core::record::{FailedBodies, Run};
use gake_judge::{Verdict, advice, agent_lines};
use gake_text::units;

use super::page::{Paint, TextPage, fit};

const FAULTS_MAX: usize = 12;

const EVENTS_MAX: usize = 10;

/// The faults with advice, except for that of the headline.
pub(super) fn faults(page: &mut TextPage, run: &Run, headline: Option<&str>) {
    let mut faults = run.tally.faults().to_vec();
    if faults.is_empty() {
        return;
    }
    page.gap();
    page.headed("faults", "");
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
    let widest = units::count(faults[0].1).len();
    for (fault, count) in faults.iter().take(FAULTS_MAX) {
        let name = page.paint(Paint::Bad, &fault.in_words());
        page.line(&format!("  {:>widest$}  {name}", units::count(*count)));
        let advice = advice(*fault);
        if headline != Some(advice) {
            page.wrapped(widest + 6, &arrow(widest + 4), Paint::Plain, advice);
        }
    }
    if faults.len() > FAULTS_MAX {
        let more = format!("and {} more kinds; JSON has them all", faults.len() - FAULTS_MAX);
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

/// Most bodies of failed responses shown, and characters of each.
const BODIES_MAX: usize = 5;
const BODY_CHARS: usize = 240;

/// The bodies of failed responses, the most frequent first.
pub(crate) fn bodies(page: &mut TextPage, bodies: &FailedBodies) {
    if bodies.is_empty() {
        return;
    }
    page.gap();
    page.headed("failed bodies", "the most frequent bodies of failed responses");
    listed(page, bodies, BODIES_MAX);
}

/// At most `most` bodies, each on one or more lines.
pub(crate) fn listed(page: &mut TextPage, bodies: &FailedBodies, most: usize) {
    let counted = bodies.by_count();
    let widest = counted.first().map_or(1, |body| units::count(body.count).len());
    for body in counted.iter().take(most) {
        let count = units::count(body.count);
        let text = if body.text.is_empty() { "(empty)" } else { body.text.trim() };
        let text = fit(text, BODY_CHARS);
        let mark = format!("  {count:>widest$} × {}  ", body.status);
        page.wrapped(mark.chars().count(), &mark, Paint::Plain, &text);
    }
    let rest: u64 = counted.iter().skip(most).map(|body| body.count).sum();
    if rest + bodies.others() > 0 {
        let more = format!("and {} with other bodies", units::count(rest + bodies.others()));
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

pub(super) fn findings(page: &mut TextPage, verdict: &Verdict) {
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

/// The agents of a fleet with their verdicts.
pub(super) fn agents(page: &mut TextPage, run: &Run) {
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

pub(super) fn events(page: &mut TextPage, run: &Run) {
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
