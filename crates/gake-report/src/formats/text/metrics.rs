//! Checks and custom metrics.

use gake_core::record::Run;
use gake_text::{foreign, units};

use super::page::{INDENT, Paint, TextPage, fit};
use crate::metric_sections::{MetricRow, sections};

const SERIES_MAX: usize = 30;

/// Columns of the figures beside a series' name.
const FIGURES: usize = 46;

/// The metric sections of the run.
pub(super) fn metrics(page: &mut TextPage, run: &Run) {
    let table = &run.tally.series;
    for section in sections(run) {
        page.gap();
        let head = page.paint(Paint::Heading, section.heading);
        page.line(&head);
        rows(page, &section.rows);
    }
    for (count, what) in [
        (
            table.over(),
            "samples counted under series:other, as there are more series than the bound",
        ),
        (table.not_numbers(), "samples left out, as they are not finite numbers"),
    ] {
        if count > 0 {
            page.wrapped(2, "", Paint::Warn, &format!("{what}: {}", units::count(count)));
        }
    }
}

fn rows(page: &mut TextPage, all: &[MetricRow]) {
    let shown = &all[..all.len().min(SERIES_MAX)];
    let width = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let least = INDENT - 4;
    let width = width.clamp(least, page.width().saturating_sub(FIGURES).max(least));
    for row in shown {
        let mut name = foreign::line(&row.name).into_owned();
        let mark = match row.passed {
            Some(true) => page.paint(Paint::Good, "✔ "),
            Some(false) => page.paint(Paint::Bad, "✘ "),
            None => String::new(),
        };
        if name.chars().count() > width {
            // Tags alone may distinguish series of one metric: the whole name is shown.
            for (number, line) in folded(&name, page.width().saturating_sub(4)).iter().enumerate() {
                page.line(&format!("{:1$}{line}", "", if number == 0 { 2 } else { 4 }));
            }
            name.clear();
        }
        page.line(&format!("  {mark}{name:<width$}  {}", row.figures));
    }
    if all.len() > shown.len() {
        let more = format!("and {} more; JSON has them all", all.len() - shown.len());
        page.wrapped(2, "", Paint::Quiet, &more);
    }
}

/// A series name in lines of at most `width` characters, broken after tags.
fn folded(name: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for tag in name.split_inclusive(',') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + tag.chars().count() <= width => line.push_str(tag),
            _ => lines.push(tag.to_owned()),
        }
    }
    lines.iter().map(|line| fit(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_broken_after_its_tags() {
        assert_eq!(folded("checks{check:ok}", 20), ["checks{check:ok}"]);
        assert_eq!(folded("reads{a:1,b:22,c:333}", 12), ["reads{a:1,", "b:22,c:333}"]);
        assert_eq!(folded("reads{a:12345678,b:1}", 12), ["reads{a:123…", "b:1}"]);
    }
}
