//! The exact encoding: how one process passes a run to another, without loss.
//!
//! A line with the kind and version, as `gake.interval/2`, then JSON; histograms in it are texts of
//! a few bytes a bucket. Merging what was decoded is decoding what was merged.
//!
//! Whatever the bytes say, reading them panics nowhere and takes bounded memory: at most 64 MiB are
//! read, with at most 64 bytes of memory for each.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{Interval, Run, ScenarioEnd, Tally, WorkerEnd};
use crate::spec::{RunSpec, SCENARIOS_MAX};

/// Longest encoding that is read, in bytes.
pub const READ_MAX: usize = 64 << 20;

/// Longest run that is read, in seconds: over a hundred years.
const SECOND_MAX: u64 = 1 << 32;

/// Largest time or level that is read.
const NUMBER_MAX: u64 = 1 << 56;

/// A value with an exact encoding.
pub trait Exact: Serialize + DeserializeOwned {
    /// The name and version of its encoding.
    const NAME: &'static str;

    /// Whether its numbers can be those of a run, so that adding them up needs no checks.
    fn is_sensible(&self) -> bool {
        true
    }
}

impl Exact for Interval {
    const NAME: &'static str = "gake.interval/2";

    fn is_sensible(&self) -> bool {
        let times = [self.cpu, self.run_delay].into_iter();
        let levels = self.parts.iter().flat_map(|part| [part.gauges.open, part.gauges.peak]);
        self.tenth <= SECOND_MAX * 10 && times.chain(levels).all(|number| number <= NUMBER_MAX)
    }
}

impl Exact for ScenarioEnd {
    const NAME: &'static str = "gake.scenario-end/1";

    fn is_sensible(&self) -> bool {
        self.instants().into_iter().all(|instant| instant <= NUMBER_MAX)
    }
}

impl Exact for WorkerEnd {
    const NAME: &'static str = "gake.worker-end/1";

    fn is_sensible(&self) -> bool {
        self.scenarios.len() <= SCENARIOS_MAX
            && self.log_lost <= NUMBER_MAX
            && self.scenarios.iter().all(|(_, end)| end.is_sensible())
    }
}

impl Exact for Run {
    const NAME: &'static str = "gake.run/2";

    fn is_sensible(&self) -> bool {
        run::is_sensible(self)
    }
}

impl Exact for RunSpec {
    const NAME: &'static str = "gake.spec/1";
}

impl Exact for Tally {
    const NAME: &'static str = "gake.tally/1";
}

/// Why bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// More than [`READ_MAX`] bytes.
    #[error("{0} bytes are more than are read at once, {READ_MAX}")]
    TooLong(usize),
    /// Another kind of data, or another version.
    #[error("expected {expected}, found {found:?}: both sides need the same version of gake")]
    Other {
        /// The name that was expected.
        expected: &'static str,
        /// The beginning of the bytes.
        found: String,
    },
    /// The content is inconsistent.
    #[error("{name} makes no sense: {error}")]
    Senseless {
        /// The name that was expected.
        name: &'static str,
        /// Where, and why.
        error: serde_json::Error,
    },
    /// A number is larger than any run can reach.
    #[error("{0} makes no sense: a time or a level is too large")]
    TooLarge(&'static str),
}

/// The exact encoding of a value.
///
/// # Errors
/// When it holds NaN or an infinity; recorded values never do.
pub fn encode<T: Exact>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = format!("{}\n", T::NAME).into_bytes();
    serde_json::to_writer(&mut bytes, value)?;
    Ok(bytes)
}

/// Decodes an exact encoding.
///
/// # Errors
/// When the bytes are not a valid encoding of `T`.
pub fn decode<T: Exact>(bytes: &[u8]) -> Result<T, ExactError> {
    if bytes.len() > READ_MAX {
        return Err(ExactError::TooLong(bytes.len()));
    }
    let rest = bytes.strip_prefix(T::NAME.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
    let json = rest.ok_or_else(|| {
        let start = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let found = String::from_utf8_lossy(&start[..start.len().min(40)]).into_owned();
        ExactError::Other { expected: T::NAME, found }
    })?;
    let value: T = serde_json::from_slice(json)
        .map_err(|error| ExactError::Senseless { name: T::NAME, error })?;
    if value.is_sensible() { Ok(value) } else { Err(ExactError::TooLarge(T::NAME)) }
}

mod run;

#[cfg(test)]
mod tests;
