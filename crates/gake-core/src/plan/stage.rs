//! Stages: `100@30s,100..1000@2m,0@5s`. A ramp is `A..B@T`, a step is `A@T`.

use std::fmt;
use std::time::Duration;

use super::duration::{format_duration, parse_duration};
use super::rate::parse_per_second;

/// A piece of the schedule in which the rate is constant or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Arrivals a second at its start.
    pub from: f64,
    /// Arrivals a second at its end.
    pub to: f64,
    /// How long it lasts; [`Duration::MAX`] for a run that only a count ends.
    pub duration: Duration,
}

impl Stage {
    /// A step: one rate for a time.
    #[must_use]
    pub fn step(rate: f64, duration: Duration) -> Self {
        Self { from: rate, to: rate, duration }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            write!(f, "{}/s", self.from)?;
        } else {
            write!(f, "{}..{}/s", self.from, self.to)?;
        }
        if self.duration == Duration::MAX {
            return Ok(());
        }
        write!(f, " for {}", format_duration(self.duration))
    }
}

/// Why a text is not a list of stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// One item is not a stage.
    #[error("{0:?} is not a stage; write RATE@TIME or RATE..RATE@TIME, for example 100..1000@2m")]
    Item(String),
    /// Nothing would ever be sent.
    #[error("the stages {0:?} send nothing: every rate is 0 or every time is 0")]
    Nothing(String),
}

/// Reads a comma-separated list of stages.
///
/// # Errors
/// When an item is not a stage, or no stage sends anything.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, StageError> {
    let stages =
        text.split(',').map(|item| parse_stage(item.trim())).collect::<Result<Vec<_>, _>>()?;
    let sends = |s: &Stage| (s.from > 0.0 || s.to > 0.0) && !s.duration.is_zero();
    if stages.iter().any(sends) { Ok(stages) } else { Err(StageError::Nothing(text.to_owned())) }
}

fn parse_stage(item: &str) -> Result<Stage, StageError> {
    let error = || StageError::Item(item.to_owned());
    let (rates, time) = item.split_once('@').ok_or_else(error)?;
    let duration = parse_duration(time).map_err(|_| error())?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    let from = parse_per_second(from.trim()).ok_or_else(error)?;
    let to = parse_per_second(to.trim()).ok_or_else(error)?;
    Ok(Stage { from, to, duration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_steps_and_ramps() {
        let stages = parse_stages("100@30s, 100..1000@2m,0@5s").unwrap();
        assert_eq!(
            stages,
            [
                Stage::step(100.0, Duration::from_secs(30)),
                Stage { from: 100.0, to: 1000.0, duration: Duration::from_secs(120) },
                Stage::step(0.0, Duration::from_secs(5)),
            ]
        );
        assert_eq!(stages[1].to_string(), "100..1000/s for 2m");
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "100", "100@", "@5s", "a..b@5s", "1..2..3@5s", "100@5s,", "-1@5s"] {
            assert!(matches!(parse_stages(text), Err(StageError::Item(_))), "{text}");
        }
        assert!(matches!(parse_stages("0@5s"), Err(StageError::Nothing(_))));
        assert!(matches!(parse_stages("100@0s"), Err(StageError::Nothing(_))));
    }
}
