//! Shows what was recorded and judged: text for people, JSON and CSV for programs, the run file
//! from which every format can be made again, and the per-request log.
//!
//! Nothing here prints: writers take an [`std::io::Write`] or return a `String`.

pub mod formats;
mod forms;
pub mod html;
pub mod log;
pub mod runfile;
pub mod vegeta;

#[cfg(test)]
mod testing;

use std::fmt;
use std::io;

use gake_judge::Summary;

pub use formats::text::Style;
pub use log::{Log, LogFormat};
pub use runfile::{ReadError, RunFile, Second, Warning, merge_runs, read_run};

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
}

/// Why a text is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0:?}; there are text, json and csv")]
pub struct FormatError(String);

impl std::str::FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            _ => Err(FormatError(text.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
        })
    }
}

/// Writes a summary in a format; `style` is for text.
///
/// # Errors
/// What the writer returns.
pub fn write(
    summary: &Summary,
    format: Format,
    style: Style,
    out: &mut impl io::Write,
) -> io::Result<()> {
    match format {
        Format::Text => out.write_all(formats::text::render(summary, style).as_bytes()),
        Format::Json => formats::json::write(summary, out),
        Format::Csv => formats::csv::write(&summary.run, out),
    }
}
