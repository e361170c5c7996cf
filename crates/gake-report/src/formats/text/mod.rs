//! The summary that a person reads in ten seconds: the verdict first, then counts and rates, then
//! latencies, then what went wrong and what to do.

pub(crate) mod figures;
mod histogram;
mod metrics;
pub(crate) mod page;
pub(crate) mod problems;
mod scenarios;
pub(crate) mod target;
mod verdict;

use gake_core::record::FailedBodies;
use gake_judge::Summary;

use page::Page;
pub use target::shown as level;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use the terminal's colours.
    pub colour: bool,
    /// Columns of a line, [`Style::WIDTHS`].
    pub width: usize,
    /// Lines of the window that shows it: the verdict is said again below a longer text.
    pub window: Option<usize>,
    /// Whether the plan is told; its reader may have seen it before the run.
    pub plan: bool,
    /// Only the verdict and the objectives.
    pub brief: bool,
}

impl Style {
    /// The narrowest and the widest page.
    pub const WIDTHS: (usize, usize) = (50, 160);

    /// The style of a window of `columns` columns, within [`Style::WIDTHS`].
    #[must_use]
    pub fn wide(self, columns: usize) -> Self {
        Self { width: columns.clamp(Self::WIDTHS.0, Self::WIDTHS.1), ..self }
    }

    /// The same with 80 columns at least, for tables that need them.
    pub(crate) fn for_tables(self) -> Self {
        Self { width: self.width.max(80), ..self }
    }
}

impl Default for Style {
    /// A file's: 80 columns without colours.
    fn default() -> Self {
        Self { colour: false, width: 80, window: None, plan: true, brief: false }
    }
}

/// The summary as text; ends with a line break.
#[must_use]
pub fn render(summary: &Summary, style: Style) -> String {
    let mut page = Page::new(style);
    verdict::verdict(&mut page, summary);
    if style.brief {
        return page.text();
    }
    verdict::plan(&mut page, &summary.run);
    figures::counts(&mut page, &summary.run);
    scenarios::scenarios(&mut page, &summary.run);
    figures::latency(&mut page, &summary.run);
    histogram::responses(&mut page, &summary.run);
    figures::statuses(&mut page, &summary.run);
    problems::faults(&mut page, &summary.run);
    problems::bodies(&mut page, &summary.run.bodies);
    target::target(&mut page, &summary.run);
    problems::findings(&mut page, &summary.verdict);
    figures::labels(&mut page, &summary.run);
    metrics::metrics(&mut page, &summary.run);
    problems::agents(&mut page, &summary.run);
    problems::events(&mut page, &summary.run);
    // A window shows the end of a longer text.
    if style.window.is_some_and(|lines| page.lines() >= lines) {
        page.gap();
        verdict::verdict(&mut page, summary);
    }
    page.text()
}

/// The most frequent bodies of failed answers as text, without anything else of the run; empty when
/// there are none.
#[must_use]
pub fn failed_bodies(bodies: &FailedBodies, style: Style) -> String {
    let mut page = Page::new(style);
    problems::bodies(&mut page, bodies);
    page.text()
}

#[cfg(test)]
mod tests;
