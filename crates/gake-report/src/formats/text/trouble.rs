//! What went wrong, and what to do.

use gake_core::record::Run;
use gake_judge::{Verdict, advice, units};

use super::page::{Page, Paint};

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
