//! The summary as text: k6's compact, full and legacy modes.

mod human;
mod legacy;
mod palette;
mod sections;
mod table;
mod thresholds;

use super::{SummaryCheck, SummaryData, SummaryScope};
use gake_core::metric::CHECKS;
use palette::{Palette, TextStyle};
use table::{TableRow, Widths};

/// The mode of the summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummaryMode {
    /// The most important metrics.
    #[default]
    Compact,
    /// All metrics, also of each scenario and group.
    Full,
    /// The summary of k6 before 1.0.
    Legacy,
    /// No summary.
    Disabled,
}

impl SummaryMode {
    /// Parses the value of `--summary-mode`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "compact" => Self::Compact,
            "full" => Self::Full,
            "legacy" => Self::Legacy,
            "disabled" => Self::Disabled,
            _ => return None,
        })
    }
}

/// The colours of dots and of additional figures.
const LOOKS: (TextStyle, TextStyle) = (TextStyle::Dots, TextStyle::Extra);

impl SummaryData {
    /// The summary as k6 prints it; empty if disabled.
    #[must_use]
    pub fn text(&self, mode: SummaryMode) -> String {
        let palette = Palette { is_coloured: self.is_stdout_terminal && !self.no_color };
        let is_full = match mode {
            SummaryMode::Disabled => return String::new(),
            SummaryMode::Legacy => return legacy::text(self, palette),
            SummaryMode::Compact => false,
            SummaryMode::Full => true,
        };
        let mut text = thresholds::section(self, palette);
        text.push_str(&title("TOTAL RESULTS", palette));
        self.scope(&mut text, &self.total, 0, is_full, palette);
        if is_full {
            for scenario in &self.scenarios {
                text.push_str(&title(&format!("SCENARIO: {}", scenario.name), palette));
                self.scope(&mut text, scenario, 0, is_full, palette);
                self.inner_groups(&mut text, scenario, 0, palette);
            }
            if self.scenarios.is_empty() {
                for group in &self.total.groups {
                    text.push_str(&title(&format!("GROUP: {}", group.name), palette));
                    self.scope(&mut text, group, 0, is_full, palette);
                    self.inner_groups(&mut text, group, 0, palette);
                }
            }
        }
        text.push_str("\n\n\n");
        text
    }

    /// The subgroups of a group or scenario.
    fn inner_groups(
        &self,
        text: &mut String,
        outer: &SummaryScope,
        level: usize,
        palette: Palette,
    ) {
        for group in &outer.groups {
            let name = palette.paint(TextStyle::Title, &format!("GROUP: {}", group.name));
            let indent = "  ".repeat(level);
            text.push_str(&format!("\n    {indent}↳ {name} \n"));
            self.scope(text, group, level + 1, true, palette);
            self.inner_groups(text, group, level + 1, palette);
        }
    }

    /// The checks and metrics of a scope.
    fn scope(
        &self,
        text: &mut String,
        scope: &SummaryScope,
        level: usize,
        is_full: bool,
        palette: Palette,
    ) {
        let indent = "  ".repeat(level + 2);
        if let Some(checks) = &scope.checks {
            text.push('\n');
            self.checks(text, scope, checks, &indent, palette);
        }
        let sections: Vec<(&str, Vec<TableRow>)> = sections::of(scope, is_full)
            .into_iter()
            .map(|(name, metrics)| {
                (name, metrics.iter().map(|metric| TableRow::metric(metric, self)).collect())
            })
            .collect();
        let widths = Widths::of(sections.iter().flat_map(|section| &section.1));
        for (name, rows) in &sections {
            text.push_str(&format!("\n{indent}{}\n", palette.paint(TextStyle::Title, name)));
            for row in rows {
                text.push_str(&format!("{indent}{}\n", widths.line(row, palette, LOOKS)));
            }
        }
    }

    /// The totals of checks, also of those without a name, and each check.
    fn checks(
        &self,
        text: &mut String,
        scope: &SummaryScope,
        checks: &[SummaryCheck],
        indent: &str,
        palette: Palette,
    ) {
        let checks = by_name(checks);
        let metric = scope.metrics.iter().find(|metric| metric.name == CHECKS);
        let count = |name| metric.and_then(|metric| metric.value(name)).unwrap_or(0.0) as u64;
        let (passes, fails) = (count("passes"), count("fails"));
        let all = passes + fails;
        let rate = crate::values::per_second(all as f64, self.elapsed());
        let share = |name: &str, count: u64| {
            let share = human::percent(crate::values::share(count, all));
            TableRow::plain(name, share, vec![format!("{count} out of {all}")])
        };
        let rows = [
            TableRow::plain("checks_total", all.to_string(), vec![per_second(rate)]),
            share("checks_succeeded", passes),
            share("checks_failed", fails),
        ];
        let widths = Widths::of(&rows);
        for row in &rows {
            text.push_str(&format!("{indent}{}\n", widths.line(row, palette, LOOKS)));
        }
        text.push('\n');
        // k6 indents these twice as far as the check.
        let further = " ".repeat(indent.len() * 2 - 2);
        for check in &checks {
            let (mark, look) = marked(check);
            let name = palette.paint(look, &format!("{mark} {}", check.name));
            text.push_str(&format!("{indent}{name}\n"));
            if check.fails > 0 {
                text.push_str(&format!("{further}{}\n", palette.paint(look, &counted(check))));
            }
        }
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64((self.duration_ms / 1e3).max(0.0))
    }
}

fn per_second(rate: f64) -> String {
    use gake_core::metric::{MetricKind, MetricUnit};
    format!("{}/s", human::figure(rate, MetricKind::Counter, MetricUnit::Number, None))
}

fn title(name: &str, palette: Palette) -> String {
    format!("\n\n  █ {} \n", palette.paint(TextStyle::Title, name))
}

fn marked(check: &SummaryCheck) -> (&'static str, TextStyle) {
    if check.fails == 0 { ("✓", TextStyle::Passed) } else { ("✗", TextStyle::Failed) }
}

fn counted(check: &SummaryCheck) -> String {
    let percent = check.passes * 100 / (check.passes + check.fails).max(1);
    format!("↳  {percent}% — ✓ {} / ✗ {}", check.passes, check.fails)
}

/// Merges checks of the same name.
pub(super) fn by_name(checks: &[SummaryCheck]) -> Vec<SummaryCheck> {
    let mut all: Vec<SummaryCheck> = Vec::new();
    for check in checks {
        match all.iter_mut().find(|one| one.name == check.name) {
            Some(one) => {
                one.passes += check.passes;
                one.fails += check.fails;
            }
            None => all.push(check.clone()),
        }
    }
    all
}
