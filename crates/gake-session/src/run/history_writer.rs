//! Saving a run in the history, and comparing it with a baseline.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use gake_judge::Summary;
use gake_judge::compare::{CompareOptions, Comparison, ComparisonOutcome};
use gake_report::Style;
use gake_report::compare::{CompareReport, markdown, text};
use gake_run::sink::RunFileSink;
use gake_run::{RunError, Sink};

use crate::comparison;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::history::{HistoryEntry, HistoryStore, folder, new_run_file, run_file};
use crate::options::{InconclusiveBaseline, SaveArgs};

/// Saves a run in the history.
#[derive(Debug)]
pub struct HistoryWriter {
    store: HistoryStore,
    name: String,
    path: PathBuf,
    baseline: Option<Baseline>,
}

#[derive(Debug)]
struct Baseline {
    name: String,
    file: PathBuf,
    tolerance: f64,
    inconclusive: InconclusiveBaseline,
}

impl HistoryWriter {
    /// Opens the history and finds the baseline before the run, so that a wrong name costs nothing.
    /// `None` if the run is not saved.
    ///
    /// # Errors
    /// When the history cannot be opened, or has no such baseline.
    pub fn start(args: &SaveArgs) -> Result<Option<Self>, Failure> {
        if !args.save && args.baseline.is_none() {
            return Ok(None);
        }
        let folder = folder()?;
        let store = HistoryStore::create(&folder)?;
        let baseline = args.baseline.as_ref().map(|name| {
            let entry = store.named(name)?;
            let file = entry.file.ok_or_else(|| {
                Failure::could_not(format!("--baseline {name} is a search, not a run"))
            })?;
            let file = run_file(&folder, &file);
            if !file.exists() {
                let file = file.display();
                return Err(Failure::could_not(format!(
                    "--baseline {name}: {file} no longer exists"
                )));
            }
            let usual = CompareOptions::default().tolerance;
            let tolerance = args.tolerance.unwrap_or(usual);
            let inconclusive = args.baseline_inconclusive.unwrap_or(InconclusiveBaseline::Fail);
            let name = format!("{name} (#{})", entry.id);
            Ok(Baseline { name, file, tolerance, inconclusive })
        });
        let baseline = baseline.transpose()?;
        let (name, path) = new_run_file(&folder)?;
        Ok(Some(Self { store, name, path, baseline }))
    }

    /// The sink of the run file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn sink(&self) -> Result<Box<dyn Sink>, RunError> {
        Ok(Box::new(RunFileSink::create(&self.path)?))
    }

    /// Saves the run and compares it with the baseline. Returns `exit`, unless the run itself is
    /// fine and the comparison is not.
    ///
    /// # Errors
    /// When the history cannot be written, or a run file cannot be read.
    pub fn finish(
        self,
        summary: &Summary,
        exit: Exit,
        is_text: bool,
        console: &Console,
    ) -> Result<Exit, Failure> {
        let id = self.store.add(&HistoryEntry::of_run(summary, self.name))?;
        console.note(&format!("saved as run {id} of the history"));
        let Some(baseline) = self.baseline else { return Ok(exit) };
        let [a, b] = [&baseline.file, &self.path].map(|path| path.to_string_lossy().into_owned());
        let question =
            CompareOptions { tolerance: baseline.tolerance, ..CompareOptions::default() };
        let (comparison, sides) = comparison::files([&a, &b], &question, console)?;
        let name = format!("this run (#{id})");
        let report = CompareReport {
            comparison: &comparison,
            sides: sides.each_ref(),
            names: [&baseline.name, &name],
        };
        github(&comparison, &markdown(&report), &baseline.name, console)?;
        let text =
            text(&report, Style { colour: is_text && console.colour_out(), ..Style::default() });
        let exit = match comparison::exit(&comparison) {
            _ if exit != Exit::Done => exit,
            Exit::Invalid if baseline.inconclusive == InconclusiveBaseline::Pass => exit,
            compared => compared,
        };
        // Standard output holds nothing but the result for programs.
        if !is_text {
            console.note(&text);
            return Ok(exit);
        }
        match console.result(&format!("\n{text}")) {
            // A reader that closes the pipe, such as `head`, must not hide a regression.
            Ok(()) | Err(Failure::OutputClosed) => Ok(exit),
            Err(failure) => Err(failure),
        }
    }
}

/// Reports to GitHub Actions: a step summary, and an annotation if the run got worse.
fn github(
    comparison: &Comparison,
    text: &str,
    baseline: &str,
    console: &Console,
) -> Result<(), Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(path) = variable("GITHUB_STEP_SUMMARY") {
        let append = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(format!("{text}\n").as_bytes())
        };
        append().map_err(|error: std::io::Error| Failure::could_not(format!("{path}: {error}")))?;
    }
    let level = match comparison.outcome {
        ComparisonOutcome::Worse => "error",
        ComparisonOutcome::Inconclusive => "warning",
        _ => return Ok(()),
    };
    if variable("GITHUB_ACTIONS").is_some() {
        let message = escaped(&format!("against {baseline}: {}", comparison.conclusion));
        console.note(&format!("::{level} title=gake::{message}"));
    }
    Ok(())
}

/// Escapes the data of a workflow command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
