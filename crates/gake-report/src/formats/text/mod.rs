//! The summary that a person reads in ten seconds: the verdict first, then counts and rates, then
//! latencies, then what went wrong and what to do.

mod figures;
mod histogram;
mod metrics;
pub(crate) mod page;
mod scenarios;
mod target;
mod trouble;
mod verdict;

use gake_judge::Summary;

use page::Page;
pub use target::shown as level;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether to use the terminal's colours.
    pub colour: bool,
}

/// The summary as text; ends with a line break.
#[must_use]
pub fn render(summary: &Summary, style: Style) -> String {
    let mut page = Page::new(style);
    verdict::verdict(&mut page, summary);
    verdict::plan(&mut page, &summary.run);
    figures::counts(&mut page, &summary.run);
    scenarios::scenarios(&mut page, &summary.run);
    figures::latency(&mut page, &summary.run);
    histogram::responses(&mut page, &summary.run);
    figures::statuses(&mut page, &summary.run);
    trouble::faults(&mut page, &summary.run);
    target::target(&mut page, &summary.run);
    trouble::findings(&mut page, &summary.verdict);
    figures::labels(&mut page, &summary.run);
    metrics::metrics(&mut page, &summary.run);
    trouble::events(&mut page, &summary.run);
    page.text()
}

#[cfg(test)]
mod tests;
