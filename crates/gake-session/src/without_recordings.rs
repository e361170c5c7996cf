//! Replaces `recording` in a build without the feature `shadow`: recordings are refused.

use std::io::{self, BufReader};

use gake_core::spec::{FieldPath, RecordingSpec, ScenarioSpec};
use gake_run::{Inputs, Recordings, Replay, RunError};

use crate::exit::Failure;

const ABSENT: &str = "this build reads no recordings: it was made without the feature `shadow`";

/// Refuses a recording that the flags require.
///
/// # Errors
/// When it must be a recording.
pub fn known(asked: bool, _: bool, target: &str) -> Result<Option<&'static str>, Failure> {
    match asked {
        true => Err(Failure::usage(format!("{target}: {ABSENT}"))),
        false => Ok(None),
    }
}

/// Standard input, for specs that name it.
#[must_use]
pub fn inputs() -> Inputs<'static> {
    Inputs {
        stdin: Some(Box::new(BufReader::new(io::stdin()))),
        recordings: Some(&RecordedTraffic),
        ..Inputs::default()
    }
}

/// Refuses every recording.
#[derive(Debug)]
pub struct RecordedTraffic;

impl Recordings for RecordedTraffic {
    fn read(
        &self,
        _: &RecordingSpec,
        _: &ScenarioSpec,
        at: &FieldPath,
    ) -> Result<Replay, RunError> {
        Err(RunError::spec(at.key("recording"), ABSENT))
    }
}
