//! Iterations of several requests, and several scenarios.

use gake_core::record::Run;
use gake_judge::stats::per_second;
use gake_judge::trusted;
use gake_text::units;

use super::page::{INDENT, Paint, TextPage, fit};

/// Columns of the figures beside a scenario's name.
const FIGURES: usize = 60;

/// Iteration counts, unless every iteration is one request.
pub(super) fn iterations(page: &mut TextPage, run: &Run) {
    let counts = &run.tally.counts;
    if counts.is_plain() {
        return;
    }
    let count = |count, what: &str| format!("{} {what}", units::count(count));
    let plus = page.plus();
    let started = count(counts.started, "started");
    let due = count(counts.arrivals(), "due");
    page.headed(
        "iterations",
        &format!("{due} = {started}{plus}{}", count(counts.dropped, "dropped")),
    );
    let finished = count(counts.finished(), "finished");
    let interrupted = count(counts.interrupted, "interrupted");
    page.headed("", &format!("{started} = {finished}{plus}{interrupted}"));
}

/// One line per scenario, when there are several.
pub(super) fn scenarios(page: &mut TextPage, run: &Run) {
    if run.scenarios.is_empty() {
        return;
    }
    page.gap();
    let names = run.scenarios.iter().map(|scenario| scenario.plan.name.chars().count());
    let least = INDENT - 4;
    let width = names.max().unwrap_or(0);
    let width = width.clamp(least, page.width().saturating_sub(FIGURES).max(least));
    // A narrow page leaves out what the plan and the counts imply.
    let is_narrow = page.width() < width + 2 + FIGURES;
    let iterations = |text: &str| if is_narrow { String::new() } else { format!("{text:>10}") };
    let rate = |text: &str| if is_narrow { String::new() } else { format!("{text:>12}") };
    let head = format!(
        "{:<head$}  {}{:>10}{:>8}{}{:>9}{:>9}",
        "scenario",
        iterations("iterations"),
        "sent",
        "failed",
        rate("sent/s"),
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
            "  {:<width$}  {}{:>10}{failed}{}{:>9}{:>9}",
            fit(&scenario.plan.name, width),
            iterations(&units::count(counts.started)),
            units::count(counts.sent),
            rate(&units::rate(per_second(counts.sent as f64, scenario.sending))),
            quantile(0.5),
            quantile(0.99),
        );
        page.line(&row);
    }
}
