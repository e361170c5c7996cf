//! The formats by name.

use std::fmt;
use std::io;

use gake_judge::Summary;

use crate::formats::text::{self, Style};
use crate::formats::{csv, csv_summary, hdrplot, json, junit, markdown, openmetrics};
use crate::html;

/// A format in which a summary is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// The whole summary, schema `gake.run/1`.
    Json,
    /// The series over the run's seconds.
    Csv,
    /// A row for the whole run and one for each label.
    CsvSummary,
    /// For a pull request or a ticket.
    Markdown,
    /// A page with charts, in one file.
    Html,
    /// Objectives as test cases, for CI.
    Junit,
    /// For Prometheus and its kin.
    OpenMetrics,
    /// The percentile distribution of response times, for HDR plotters.
    Hdrplot,
}

/// Why a text is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0:?}; there are {names}", names = names())]
pub struct FormatError(String);

impl Format {
    /// Every format, in the order in which they are told.
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

    /// The name by which it is asked for.
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

/// Writes a summary in a format; `style` is for text.
///
/// # Errors
/// What the writer returns; [`html::NoUi`] for a page that this gake does not carry.
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
        Format::Html => html::run(summary).map_err(io::Error::other)?,
        Format::Junit => junit::render(summary),
        Format::OpenMetrics => openmetrics::render(summary),
        Format::Hdrplot => hdrplot::render(&summary.run.tally.latency.response()),
    };
    out.write_all(text.as_bytes())
}
