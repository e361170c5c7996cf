//! Showing a summary on standard output.

use gake_judge::Summary;
use gake_report::{Format, Style};

use crate::cli::FormatArg;
use crate::console::Console;
use crate::exit::Failure;

/// Writes a summary in a format, coloured when the output and the user allow it.
///
/// # Errors
/// When the output is closed or full.
pub fn show(
    summary: &Summary,
    format: FormatArg,
    no_color: bool,
    console: &Console,
) -> Result<(), Failure> {
    console.result(&rendered(summary, format, console.colour_out() && !no_color)?)
}

/// A summary in a format.
///
/// # Errors
/// When it cannot be shown in this format.
pub fn rendered(summary: &Summary, format: FormatArg, colour: bool) -> Result<String, Failure> {
    let format = match format {
        FormatArg::Text => Format::Text,
        FormatArg::Json => Format::Json,
        FormatArg::Csv => Format::Csv,
    };
    let mut text = Vec::new();
    gake_report::write(summary, format, Style { colour }, &mut text).map_err(Failure::could_not)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
