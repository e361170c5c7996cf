//! An experiment as text: the verdict, a table, then each step against theory.

use std::iter;

use gake_text::units;

use super::{BODIES_MAX, DISTURBED, ExperimentReport, ExperimentStep, FIGURES};
use crate::Style;
use crate::formats::text::page::{Paint, TextPage, fit};
use crate::formats::text::{figures, problems, target};

/// Most columns of a step's name.
const NAME_MAX: usize = 48;

/// The experiment as text, with a final newline.
#[must_use]
pub fn text(report: &ExperimentReport, style: Style) -> String {
    let mut page = TextPage::new(style.for_tables());
    page.headed("experiment", &format!("{}: {}", report.name, report.about));
    page.headed("target", &report.target);
    let paint = match report.is_as_expected() {
        None => Paint::Plain,
        Some(true) => Paint::Good,
        Some(false) => Paint::Bad,
    };
    let verdict = page.paint(paint, &report.verdict());
    page.headed("verdict", &verdict);
    for note in &report.notes {
        page.wrapped(14, "note", Paint::Warn, note);
    }
    table(&mut page, &report.steps);
    let before = iter::once(None).chain(report.steps.iter().map(Some));
    for (step, before) in report.steps.iter().zip(before) {
        page.gap();
        detail(&mut page, step, before);
    }
    page.text()
}

fn table(page: &mut TextPage, steps: &[ExperimentStep]) {
    let longest = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(4, NAME_MAX);
    page.gap();
    let row = |name: &str, figures: [&str; FIGURES.len()]| {
        let [ok, not_ok, goodput, p50, p99, max, cause] = figures;
        format!(
            "{name:<width$} {ok:>8} {not_ok:>8} {goodput:>9} {p50:>8} {p99:>8} {max:>8}  {cause}"
        )
    };
    let head = row("step", FIGURES);
    let head = page.paint(Paint::Heading, &head);
    page.line(&head);
    for step in steps {
        let figures = step.figures();
        page.line(&row(&fit(&step.name, width), figures.each_ref().map(String::as_str)));
    }
}

/// One step in a line, as reported when it ends.
#[must_use]
pub fn line(step: &ExperimentStep) -> String {
    let missed = step.expectations.iter().find(|one| !one.met);
    let figures = match (missed, step.expectations.as_slice()) {
        (Some(one), _) if step.is_disturbed() => {
            format!("not judged, {DISTURBED}: {} {}, theory {}", one.what, one.seen, one.theory)
        }
        (Some(one), _) => {
            format!("not as expected: {} {}, but theory says {}", one.what, one.seen, one.theory)
        }
        (None, []) => {
            let counts = &step.tally().counts;
            let not_ok = counts.due().saturating_sub(counts.ok);
            let cause = step.causes().next().map_or("none", |cause| cause.id);
            let (ok, not_ok) = (units::count(counts.ok), units::count(not_ok));
            format!("{ok} ok, {not_ok} not ok, cause {cause}")
        }
        (None, met) => {
            let met: Vec<_> = met.iter().map(|one| format!("{} {}", one.what, one.seen)).collect();
            format!("as expected: {}", met.join(", "))
        }
    };
    format!("{}: {figures}", step.name)
}

fn detail(page: &mut TextPage, step: &ExperimentStep, before: Option<&ExperimentStep>) {
    let (paint, verdict) = match step.is_as_expected() {
        None if step.is_disturbed() => (Paint::Warn, format!(": not judged: {DISTURBED}")),
        None => (Paint::Heading, String::new()),
        Some(true) => (Paint::Good, ": as expected".to_owned()),
        Some(false) => (Paint::Bad, ": not as expected".to_owned()),
    };
    let head = page.paint(paint, &format!("{}{verdict}", step.name));
    page.line(&head);
    for one in &step.expectations {
        let (paint, text) = match one.met {
            true => (Paint::Plain, format!("{}; theory: {}", one.seen, one.theory)),
            false => (Paint::Bad, format!("saw {}, but theory says {}", one.seen, one.theory)),
        };
        page.wrapped(14, &format!("  {}", one.what), paint, &text);
    }
    if let Some(before) = before {
        page.wrapped(14, "  change", Paint::Quiet, &step.change(before));
    }
    let problems = step.problems(|fault| fault.in_words());
    if !problems.is_empty() {
        let list = problems.iter().take(4);
        let list: Vec<_> = list.map(|(what, n)| format!("{what} × {}", units::count(*n))).collect();
        page.wrapped(14, "  not ok", Paint::Plain, &list.join(", "));
    }
    let bodies = &step.summary.run.bodies;
    if !bodies.is_empty() {
        page.line("  failed bodies");
        problems::listed(page, bodies, BODIES_MAX);
    }
    if let Some(cause) = step.causes().find(|cause| Some(cause.id) == step.shown_cause()) {
        page.wrapped(14, "  evidence", Paint::Quiet, &format!("{}: {}", cause.id, cause.evidence));
    }
    let run = &step.summary.run;
    let (levels, settings) = target::brief(run);
    for (mark, texts) in [("  target", levels), ("  settings", settings)] {
        if !texts.is_empty() {
            page.wrapped(14, mark, Paint::Quiet, &texts.join(", "));
        }
    }
    if let Some(sockets) = step.sockets() {
        page.wrapped(14, "  sockets", Paint::Quiet, &sockets);
    }
    let generator = figures::generator(run).replace("   ", ", ");
    page.wrapped(14, "  generator", Paint::Quiet, &generator);
    if !step.server.is_empty() {
        page.wrapped(14, "  server", Paint::Quiet, &step.server);
    }
}
