//! The text summary, to be read in ten seconds: the verdict first, then counts and rates,
//! latencies, failures, and advice.

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

use page::TextPage;
pub use target::shown as level;

/// Options of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use terminal colours.
    pub colour: bool,
    /// Columns of a line, within [`Style::WIDTHS`].
    pub width: usize,
    /// Lines of the terminal window: the verdict is repeated below a longer text.
    pub window: Option<usize>,
    /// Whether to show the plan; the reader may have seen it before the run.
    pub plan: bool,
    /// Only the verdict and the objectives.
    pub brief: bool,
}

impl Style {
    /// The narrowest and the widest page.
    pub const WIDTHS: (usize, usize) = (50, 160);

    /// The style for a window of `columns` columns, within [`Style::WIDTHS`].
    #[must_use]
    pub fn wide(self, columns: usize) -> Self {
        Self { width: columns.clamp(Self::WIDTHS.0, Self::WIDTHS.1), ..self }
    }

    /// The same style with at least 80 columns, which tables need.
    pub(crate) fn for_tables(self) -> Self {
        Self { width: self.width.max(80), ..self }
    }
}

impl Default for Style {
    /// For a file: 80 columns without colours.
    fn default() -> Self {
        Self { colour: false, width: 80, window: None, plan: true, brief: false }
    }
}

/// The summary as text, with a final newline.
#[must_use]
pub fn render(summary: &Summary, style: Style) -> String {
    let mut page = TextPage::new(style);
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
    let headline = summary.verdict.nothing_ok.as_ref().map(|nothing| nothing.advice);
    problems::faults(&mut page, &summary.run, headline);
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

/// The most frequent bodies of failed responses as text; empty when there are none.
#[must_use]
pub fn failed_bodies(bodies: &FailedBodies, style: Style) -> String {
    let mut page = TextPage::new(style);
    problems::bodies(&mut page, bodies);
    page.text()
}

#[cfg(test)]
mod tests;
