//! The flags of `gake experiment`.

use std::path::Path;

use clap::Args;

use super::values::{self, KnownValues};
use gake_session::options::FleetArgs;
use gake_session::options::output::{self, OutputSpec};

/// Show a known cliff step by step, and compare each step with theory.
///
/// An experiment starts the built-in lab with known limits, loads it, and compares the figures and
/// the named cause with theory. Without a name, it lists the experiments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake experiment                                the list
  gake experiment spike --quick                  N users at once on T threads, in about a minute
  gake experiment gc --html gc.html              with charts
  gake experiment spike --only '3,000 users'     some of its steps
  gake experiment pool --target http://localhost:8080/    the same load on your own server
  gake experiment capacity --target http://localhost:8080/ --watch port:8080
                                                 and what limits it
  gake experiment overload --target http://localhost:8080/    a burst of 1.5 times its capacity,
                                                 which is measured first
  gake experiment cliff --target http://10.0.0.9/ --nats nats://10.0.0.1 --agents 4
                                                 more users than one machine has
  gake experiment users-db --db mysql://root@localhost/test    on a real database

Exit codes: 0 every step is as theory expects; 1 it could not be run; 2 bad usage; 3 a step could
not be judged: the generator did not get its cores; 99 a step is not as expected; 130 interrupted
(after the steps so far).")]
pub struct ExperimentArgs {
    /// The experiment (default: list them)
    #[arg(value_name = "NAME", value_parser = NAMES, hide_possible_values = true)]
    pub name: Option<String>,

    /// Load this URL instead of the lab; its settings are unknown, so no step is compared with
    /// theory. Not for leak and shadow
    #[arg(long, value_name = "URL", requires = "name")]
    pub target: Option<String>,

    /// Sample the server of --target, to find what limits it: sources as for `gake run`; may be
    /// repeated
    #[arg(
        long,
        value_name = "SOURCE",
        value_parser = values::WATCHED,
        hide_possible_values = true,
        requires = "target"
    )]
    pub watch: Vec<values::WatchedSource>,

    /// For users-db: keep the users in this real database instead of the model: sqlite:FILE,
    /// mysql://USER:PASSWORD@HOST/DATABASE or postgres://
    #[arg(long, value_name = "DATABASE", value_parser = values::store, requires = "name", conflicts_with = "target")]
    pub db: Option<values::StoreArg>,

    /// Scale times and numbers down
    #[arg(long, requires = "name")]
    pub quick: bool,

    /// Run only the steps whose name contains this text
    #[arg(long, value_name = "TEXT", requires = "name")]
    pub only: Option<String>,

    #[command(flatten)]
    pub output: ExperimentOutputArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,
}

/// Where the result goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ExperimentOutputArgs {
    /// text, json (the schema gake.experiment/1) or html; with =FILE into a file. May be repeated
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_SEARCH, hide_possible_values = true, requires = "name")]
    pub formats: Vec<OutputSpec>,

    /// Write JSON: short for -o json=FILE
    #[arg(long, value_name = "FILE", value_parser = output::json, requires = "name")]
    pub json: Option<OutputSpec>,

    /// Write one HTML page with charts: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html, requires = "name")]
    pub html: Option<OutputSpec>,

    /// Print only the result
    #[arg(short, long)]
    pub quiet: bool,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}

impl ExperimentOutputArgs {
    /// Every requested result.
    pub fn results(&self) -> impl Iterator<Item = &OutputSpec> {
        self.formats.iter().chain(&self.json).chain(&self.html)
    }

    /// Every requested file.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        output::files(self.results())
    }
}

/// The experiments.
pub const NAMES: KnownValues<String> = KnownValues::new(
    &[
        "spike",
        "pool",
        "users-db",
        "gc",
        "leak",
        "slow-client",
        "noisy-neighbour",
        "shadow",
        "overload",
        "cliff",
        "capacity",
    ],
    |text| Ok(text.to_owned()),
);
