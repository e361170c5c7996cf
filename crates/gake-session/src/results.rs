//! Results on standard output and in files.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gake_files::Access;
use gake_judge::Summary;
use gake_report::{Format, Style};
use gake_text::foreign;

use crate::console::Console;
use crate::exit::Failure;
use crate::options::{OutputSpec, ResultFormat};

/// The requested results. Their files are created before the run, so that a bad path costs nothing.
#[derive(Debug)]
pub struct Results {
    /// The format on standard output.
    printed: Option<ResultFormat>,
    files: Vec<(ResultFormat, PathBuf, File)>,
    style: Style,
}

impl Results {
    /// Creates the files, which must be [`crate::files::distinct`]. An output without a file is
    /// printed; if there is none, text is.
    ///
    /// # Errors
    /// When two are to be printed, a file cannot be created, or this build lacks the page.
    pub fn create<'a>(
        outputs: impl IntoIterator<Item = &'a OutputSpec>,
        no_color: bool,
        console: &Console,
    ) -> Result<Self, Failure> {
        Self::of(outputs, no_color, Access::Mask, console)
    }

    /// As [`Results::create`], with files that only their owner can read.
    ///
    /// # Errors
    /// As [`Results::create`].
    pub fn private<'a>(
        outputs: impl IntoIterator<Item = &'a OutputSpec>,
        no_color: bool,
        console: &Console,
    ) -> Result<Self, Failure> {
        Self::of(outputs, no_color, Access::Owner, console)
    }

    fn of<'a>(
        outputs: impl IntoIterator<Item = &'a OutputSpec>,
        no_color: bool,
        access: Access,
        console: &Console,
    ) -> Result<Self, Failure> {
        let mut style = Style { colour: console.colour_out() && !no_color, ..Style::default() };
        if let Some((columns, lines)) = console.window() {
            style = Style { window: Some(lines), ..style.wide(columns) };
        }
        let mut results = Self { printed: None, files: Vec::new(), style };
        for output in outputs {
            match &output.file {
                None if results.printed.is_some() => {
                    return Err(Failure::usage(
                        "only one format can be printed; give the others a file: -o json=FILE",
                    ));
                }
                None => results.printed = Some(output.format),
                Some(path) => {
                    // A run file holds what the run's own does.
                    let is_run_file = output.format == ResultFormat::Hlog;
                    let access = if is_run_file { Access::Owner } else { access };
                    let file =
                        gake_files::create(path, access).map_err(|error| cannot(path, &error))?;
                    results.files.push((output.format, path.clone(), file));
                }
            }
        }
        if results.printed.is_none() {
            results.printed = Some(ResultFormat::Summary(Format::Text));
        }
        Ok(results)
    }

    /// Prints only the verdict and the objectives of the text.
    #[must_use]
    pub fn brief(mut self, brief: bool) -> Self {
        self.style.brief = brief;
        self
    }

    /// Sets whether the printed text contains the plan.
    #[must_use]
    pub fn with_plan(mut self, plan: bool) -> Self {
        self.style.plan = plan;
        self
    }

    /// Writes a summary to all outputs; `hlog` writes the run file. Standard output comes last, so
    /// that files are complete even if it is closed.
    ///
    /// # Errors
    /// The first file that cannot be written, after all others are; a closed or full output.
    pub fn show(
        self,
        summary: &Summary,
        console: &Console,
        hlog: &dyn Fn(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let write = |format: ResultFormat, style: Style| {
            let mut text = Vec::new();
            match format {
                ResultFormat::Summary(format) => {
                    gake_report::write(summary, format, style, &mut text)?
                }
                ResultFormat::Hlog => hlog(&mut text)?,
            }
            Ok(text)
        };
        self.put(console, write)
    }

    /// As [`Results::show`], with `write` for each format.
    ///
    /// # Errors
    /// As [`Results::show`].
    pub fn put(
        self,
        console: &Console,
        write: impl Fn(ResultFormat, Style) -> io::Result<Vec<u8>>,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        for (format, path, mut file) in self.files {
            let written = write(format, Style::default())
                .map(|text| shown(format, text))
                .and_then(|text| file.write_all(&text));
            result = result.and(written.map_err(|error| cannot(&path, &error)));
        }
        if let Some(format) = self.printed {
            let text = write(format, self.style).map_err(Failure::could_not)?;
            console.result(&String::from_utf8_lossy(&text))?;
        }
        result
    }
}

/// Escapes control sequences in text formats: they may be shown on a terminal.
fn shown(format: ResultFormat, text: Vec<u8>) -> Vec<u8> {
    match format {
        ResultFormat::Hlog | ResultFormat::Summary(Format::Html) => text,
        ResultFormat::Summary(_) => match foreign::lines(&String::from_utf8_lossy(&text)) {
            Cow::Owned(text) => text.into_bytes(),
            Cow::Borrowed(_) => text,
        },
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::could_not(format!("{} cannot be written: {error}", path.display()))
}

/// Renders a summary without colours.
///
/// # Errors
/// When this format cannot represent it.
pub fn rendered(summary: &Summary, format: Format) -> Result<String, Failure> {
    let mut text = Vec::new();
    gake_report::write(summary, format, Style::default(), &mut text).map_err(Failure::could_not)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
