//! Formats and files of results: `FORMAT`, or `FORMAT=FILE`.

use std::path::{Path, PathBuf};

use gake_report::Format;

use super::values::KnownValues;

/// Formats of `gake run`.
pub const OF_RUN: KnownValues<OutputSpec> = KnownValues::new(
    &["text", "json", "csv", "csv-summary", "markdown", "html", "junit", "openmetrics", "hdrplot"],
    of_run,
);

/// Formats of `gake report`.
pub const OF_REPORT: KnownValues<OutputSpec> = KnownValues::new(
    &[
        "text",
        "json",
        "csv",
        "csv-summary",
        "markdown",
        "html",
        "junit",
        "openmetrics",
        "hdrplot",
        "hlog",
    ],
    of_report,
);

/// Formats of `gake compare`.
pub const OF_COMPARE: KnownValues<OutputSpec> =
    KnownValues::new(&["text", "markdown", "json", "html"], of_compare);

/// Formats of a search, an experiment or a report of shadows.
pub const OF_SEARCH: KnownValues<OutputSpec> =
    KnownValues::new(&["text", "json", "html"], of_search);

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// A summary.
    Summary(Format),
    /// A run file.
    Hlog,
}

/// A requested result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSpec {
    /// The format.
    pub format: ResultFormat,
    /// The file; standard output if `None`.
    pub file: Option<PathBuf>,
}

/// The files of outputs.
pub fn files<'a>(
    outputs: impl IntoIterator<Item = &'a OutputSpec>,
) -> impl Iterator<Item = &'a Path> {
    outputs.into_iter().filter_map(|output| output.file.as_deref())
}

/// An output of `gake run`.
fn of_run(text: &str) -> Result<OutputSpec, String> {
    match of_report(text)? {
        OutputSpec { format: ResultFormat::Hlog, .. } => {
            Err("a run writes its run file as it goes: --out FILE".to_owned())
        }
        output => Ok(output),
    }
}

/// An output of `gake report`.
fn of_report(text: &str) -> Result<OutputSpec, String> {
    let (name, file) = match text.split_once('=') {
        Some((_, "")) => return Err("there is no file after the =".to_owned()),
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (text, None),
    };
    let format = match name {
        "hlog" => ResultFormat::Hlog,
        _ => ResultFormat::Summary(
            name.parse().map_err(|e: gake_report::FormatError| e.to_string())?,
        ),
    };
    Ok(OutputSpec { format, file })
}

/// An output of `gake compare`.
fn of_compare(text: &str) -> Result<OutputSpec, String> {
    let output = of_report(text)?;
    match output.format {
        ResultFormat::Summary(Format::Text | Format::Markdown | Format::Json | Format::Html) => {
            Ok(output)
        }
        _ => Err("a comparison is text, markdown, json or html".to_owned()),
    }
}

/// An output of a search, an experiment or a report of shadows.
fn of_search(text: &str) -> Result<OutputSpec, String> {
    let output = of_report(text)?;
    match output.format {
        ResultFormat::Summary(Format::Text | Format::Json | Format::Html) => Ok(output),
        _ => Err("it is text, json or html".to_owned()),
    }
}

/// The run file of `--out`. The extension of another format is refused as a mistake.
pub fn run_file(text: &str) -> Result<PathBuf, String> {
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let format = match ending {
        "json" | "csv" | "html" => ending,
        "md" => "markdown",
        "xml" => "junit",
        "txt" => "text",
        _ => return Ok(PathBuf::from(text)),
    };
    let path = text.split_once('=').map_or(text, |(_, path)| path);
    Err(format!("--out writes the run file; for this format, -o {format}={path}"))
}

/// The file of `--html`, short for `-o html=FILE`.
pub fn html(text: &str) -> Result<OutputSpec, String> {
    file_of(Format::Html, text)
}

/// The file of `--json`, short for `-o json=FILE`.
pub fn json(text: &str) -> Result<OutputSpec, String> {
    file_of(Format::Json, text)
}

fn file_of(format: Format, text: &str) -> Result<OutputSpec, String> {
    match text {
        "" => Err("it names no file".to_owned()),
        file => Ok(OutputSpec {
            format: ResultFormat::Summary(format),
            file: Some(PathBuf::from(file)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_have_a_file() {
        let file = Some(PathBuf::from("a=b, c.xml"));
        let junit = ResultFormat::Summary(Format::Junit);
        assert_eq!(of_run("junit=a=b, c.xml"), Ok(OutputSpec { format: junit, file }));
        assert_eq!(of_report("hlog"), Ok(OutputSpec { format: ResultFormat::Hlog, file: None }));
        for (text, part) in [("hlog", "--out"), ("json=", "no file"), ("xml", "junit")] {
            assert!(of_run(text).unwrap_err().contains(part), "{text}");
        }
    }
}
