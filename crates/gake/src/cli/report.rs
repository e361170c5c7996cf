//! The flags of `gake report`.

use std::path::PathBuf;

use clap::Args;
use gake_judge::Objective;

use gake_session::options::output::{self, OutputSpec};

/// Show and merge run files.
///
/// Several files are merged exactly, as if one generator had made them all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake report run.hlog                                       text and verdict, as of the run
  gake report run.hlog --slo 'p99<50ms' -o junit=gake.xml    other objectives: text, and JUnit in a file
  gake report run.hlog -o markdown >> $GITHUB_STEP_SUMMARY
  gake report run.hlog --html run.html                       with charts, in one file
  gake report after.hlog --html both.html --over before.hlog the other run behind the charts
  gake report one.hlog two.hlog -o hlog=both.hlog            merge generators into one run file

Exit codes: 0 objectives met; 1 a file cannot be read; 2 bad usage; 3 the run is invalid;
99 an objective failed.")]
pub struct ReportArgs {
    /// Run files, as `gake run --out` writes them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// text, json, csv (one row per second), csv-summary, markdown, html, junit, openmetrics,
    /// hdrplot or hlog (all merged into one run file); with =FILE into a file, otherwise printed.
    /// May be repeated; the default is text
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_REPORT, hide_possible_values = true)]
    pub formats: Vec<OutputSpec>,

    /// Write the report with charts, one HTML file: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html)]
    pub html: Option<OutputSpec>,

    /// Show this run behind the charts, to compare with
    #[arg(long, value_name = "FILE")]
    pub over: Option<PathBuf>,

    /// Judge against these objectives instead of the run's own; may be repeated
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Objective>,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}
