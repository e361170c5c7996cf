//! Iterations of several requests, and scenarios side by side.

use gake_core::record::Run;
use gake_judge::stats::per_second;
use gake_judge::{trusted, units};

use super::page::{INDENT, Page, Paint, fit};

/// Columns a scenario's name takes at most.
const NAME_MAX: usize = 24;

/// How arrivals ended, where an arrival is not one request.
pub(super) fn iterations(page: &mut Page, run: &Run) {
    let counts = &run.tally.counts;
    if counts.is_plain() {
        return;
    }
    let count = |count, what: &str| format!("{} {what}", units::count(count));
    let started = count(counts.started, "started");
    let due = count(counts.arrivals(), "due");
    page.headed("iterations", &format!("{due} = {started} + {}", count(counts.dropped, "dropped")));
    let finished = count(counts.finished(), "finished");
    let interrupted = count(counts.interrupted, "interrupted");
    page.headed("", &format!("{started} = {finished} + {interrupted}"));
}

/// One line for each scenario, when there are several.
pub(super) fn scenarios(page: &mut Page, run: &Run) {
    if run.scenarios.is_empty() {
        return;
    }
    page.gap();
    let names = run.scenarios.iter().map(|scenario| scenario.plan.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(INDENT - 4, NAME_MAX);
    let head = format!(
        "{:<head$}  {:>10}{:>10}{:>8}{:>12}{:>9}{:>9}",
        "scenario",
        "iterations",
        "sent",
        "failed",
        "sent/s",
        "p50",
        "p99",
        head = width + 2
    );
    let head = page.paint(Paint::Heading, &head);
    page.line(&head);
    for scenario in &run.scenarios {
        let counts = &scenario.tally.counts;
        let response = scenario.tally.latency.response();
        let quantile = |quantile| {
            let mark = if trusted(quantile, response.count()) { "" } else { "~" };
            format!("{mark}{}", units::duration(response.quantile(quantile) as f64))
        };
        let paint = if counts.failed == 0 { Paint::Plain } else { Paint::Bad };
        let failed = page.paint(paint, &format!("{:>8}", units::count(counts.failed)));
        let row = format!(
            "  {:<width$}  {:>10}{:>10}{failed}{:>12}{:>9}{:>9}",
            fit(&scenario.plan.name, width),
            units::count(counts.started),
            units::count(counts.sent),
            units::rate(per_second(counts.sent as f64, scenario.sending)),
            quantile(0.5),
            quantile(0.99),
        );
        page.line(&row);
    }
}
