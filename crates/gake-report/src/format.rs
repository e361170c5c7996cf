//! The summary formats by name.

use std::fmt;
use std::io;

use gake_judge::Summary;

use crate::formats::text::{self, Style};
use crate::formats::{csv, csv_summary, hdrplot, json, junit, markdown, openmetrics};
use crate::html;

/// A format of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// The whole summary, schema `gake.run/1`.
    Json,
    /// The time series by second.
    Csv,
    /// A row for the whole run and one per label.
    CsvSummary,
    /// For a pull request or a ticket.
    Markdown,
    /// A page with charts, in one file.
    Html,
    /// Objectives as test cases, for CI.
    Junit,
    /// For Prometheus and compatible tools.
    OpenMetrics,
    /// The percentile distribution of response times, for HDR plotters.
    Hdrplot,
}

/// The text is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0:?}; there are {names}", names = names())]
pub struct FormatError(String);

impl Format {
    /// All formats, in the order in which messages list them.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Json,
        Self::Csv,
        Self::CsvSummary,
        Self::Markdown,
        Self::Html,
        Self::Junit,
        Self::OpenMetrics,
        Self::Hdrplot,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::CsvSummary => "csv-summary",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Junit => "junit",
            Self::OpenMetrics => "openmetrics",
            Self::Hdrplot => "hdrplot",
        }
    }
}

fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

impl std::str::FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| FormatError(text.to_owned()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Writes a summary in a format; `style` applies to text.
///
/// # Errors
/// The writer's.
pub fn write(
    summary: &Summary,
    format: Format,
    style: Style,
    out: &mut impl io::Write,
) -> io::Result<()> {
    let text = match format {
        Format::Json => return json::write(summary, out),
        Format::Csv => return csv::write(&summary.run, out),
        Format::CsvSummary => return csv_summary::write(&summary.run, out),
        Format::Text => text::render(summary, style),
        Format::Markdown => markdown::render(summary),
        Format::Html => html::run(summary),
        Format::Junit => junit::render(summary),
        Format::OpenMetrics => openmetrics::render(summary),
        Format::Hdrplot => hdrplot::render(&summary.run.tally.latency.response()),
    };
    out.write_all(text.as_bytes())
}
