//! The flags of `gake history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gake_session::options::history::tolerance;
use gake_session::options::output::{self, OutputSpec};

/// Show the runs that `gake run --save` and `gake find --save` keep in .gake/history.db.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake run URL -r 500 -d 1m --save          keeps a run
  gake history                              lists the newest runs
  gake history show last
  gake history compare                      the last run with the one before it of its target
  gake history baseline main                names the last run
  gake run URL -r 500 -d 1m --baseline main fails with 99 when it is worse than that
  gake history trend --html trend.html      p99 and capacity over commits

A run is named by its number, as `last`, or by the name of a baseline.")]
pub struct HistoryArgs {
    /// What to do (default: list)
    #[command(subcommand)]
    pub command: Option<HistoryCommand>,
}

/// Runs that a list has.
pub const LISTED: u32 = 20;

/// What can be done with a history.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// List the newest runs
    List {
        /// Maximum number of runs
        #[arg(short = 'n', long, value_name = "N", default_value_t = LISTED)]
        limit: u32,
        /// Only runs of this target
        #[arg(long)]
        target: Option<String>,
    },
    /// Show a run as it was shown at its end
    Show {
        /// The run
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// text, json, csv, markdown, html ... as of `gake report`; with =FILE into a file
        #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_RUN, hide_possible_values = true)]
        formats: Vec<OutputSpec>,
    },
    /// Compare two runs: do they differ, and with what confidence?
    Compare {
        /// The run to compare with (default: the one before RUN of its target)
        #[arg(value_name = "BASE")]
        base: Option<String>,
        /// The run to judge
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// Largest change that does not matter
        #[arg(long, value_name = "PERCENT", value_parser = tolerance, default_value = "5%")]
        tolerance: f64,
        /// text, markdown, json or html; with =FILE into a file. May be repeated
        #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_COMPARE, hide_possible_values = true)]
        formats: Vec<OutputSpec>,
    },
    /// Name a run as a baseline, in place of the run that had the name
    Baseline {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
        /// The run
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
    },
    /// Show p99 and capacity of a target over its runs
    Trend {
        /// The target (default: that of the last run)
        #[arg(long)]
        target: Option<String>,
        /// Maximum number of runs
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Also write the trend as a page with charts
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}
