//! The flags of `gake compare`.

use std::time::Duration;

use clap::Args;

use super::values;
use gake_session::options::history::tolerance;
use gake_session::options::output::{self, OutputSpec};

/// Compare two runs: do they differ, and with what confidence?
///
/// Compares the rates, errors, means and percentiles of A and B. Each figure gets an
/// interval, a verdict and the smallest change that would have been detected. A machine that is
/// slower during one run also makes a difference: --interleave alternates between A and B.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake compare before.hlog after.hlog                    run files of gake run --out
  gake compare before.hlog after.hlog --tolerance 10% -o markdown=compare.md
  gake compare before.hlog after.hlog --html compare.html with the charts of both
  gake compare before.hlog after.hlog --figures goodput,response.p99
  gake compare --interleave 'localhost:8080/ -r 500' 'localhost:8081/ -r 500'

Exit codes: 0 not worse; 1 the comparison failed; 2 bad usage; 3 inconclusive, a run is invalid, or
a named figure differs and gake does not know which way is better; 99 worse by more than the
tolerance; 130 interrupted (after the comparison).")]
pub struct CompareArgs {
    /// The run file to compare with; with --interleave the arguments of a `gake run`
    #[arg(value_name = "A")]
    pub a: String,

    /// The run file to judge; with --interleave the arguments of a `gake run`
    #[arg(value_name = "B")]
    pub b: String,

    /// Largest change that does not matter
    #[arg(long, value_name = "PERCENT", value_parser = tolerance, default_value = "5%")]
    pub tolerance: f64,

    /// Compare only these: sent, completed, goodput, errors, response.p99, service.mean ...; with a
    /// label or tag: 'response{name:login}:p99'; a script's own metrics: 'checks', 'my_trend:p95'
    #[arg(long, value_name = "NAMES")]
    pub figures: Vec<String>,

    /// Run A and B alternately
    #[arg(long)]
    pub interleave: bool,

    /// Runs per side
    #[arg(long, value_name = "N", default_value_t = 10, requires = "interleave", value_parser = values::slices)]
    pub slices: u32,

    /// Length of each run
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "interleave", value_parser = values::positive_duration)]
    pub slice: Duration,

    /// text, markdown, json or html; with =FILE into a file. May be repeated
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_COMPARE, hide_possible_values = true)]
    pub formats: Vec<OutputSpec>,

    /// Write a page with B's charts over A's, one HTML file: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html)]
    pub html: Option<OutputSpec>,

    /// Print only the result
    #[arg(short, long)]
    pub quiet: bool,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}

impl CompareArgs {
    /// The named figures; commas outside braces separate them.
    pub fn figure_names(&self) -> Vec<String> {
        self.figures.iter().flat_map(|list| names(list)).collect()
    }
}

fn names(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let separates = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(separates)
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_braces_separate_tags() {
        let listed = names("goodput, response{name:a,scenario:b}:p99,checks");
        assert_eq!(listed, ["goodput", "response{name:a,scenario:b}:p99", "checks"]);
    }
}
