//! The flags of the history: saving a run, and comparing it with a baseline.

use clap::{Args, ValueEnum};

/// Saving a run, and comparing it with a baseline.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "History")]
pub struct SaveArgs {
    /// Save the run in the history of the project, .gake/history.db: see `gake history`
    #[arg(long)]
    pub save: bool,

    /// Compare with a saved run: a number, last, or a name from `gake history baseline`. Exits with
    /// 99 if worse, 3 if undecided. Saves the run too
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,

    /// Largest change against the baseline that does not matter (default 5%)
    #[arg(long, value_name = "PERCENT", value_parser = tolerance, requires = "baseline")]
    pub tolerance: Option<f64>,

    /// Whether a comparison that decides nothing fails: fail (exit code 3, default) or pass
    #[arg(long, value_name = "fail|pass", requires = "baseline")]
    pub baseline_inconclusive: Option<InconclusiveBaseline>,
}

/// What follows from an inconclusive comparison with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InconclusiveBaseline {
    /// The exit code 3, as with `gake compare`.
    Fail,
    /// The exit code of the run.
    Pass,
}

/// Parses a share above 0: `5%`, or `0.05`.
pub fn tolerance(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value / scale),
        _ => Err("write a share above 0, such as 5% or 0.05".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_share() {
        assert_eq!(tolerance("5%"), Ok(0.05));
        assert_eq!(tolerance("0.05"), Ok(0.05));
        for text in ["", "x", "0", "-1%", "nan", "inf%"] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }
}
