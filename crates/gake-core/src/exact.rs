//! The exact encoding: a lossless format in which processes pass runs to each other.
//!
//! A line with kind and version (`gake.interval/2`), then JSON, in which a histogram is a base64
//! string. Decoding commutes with merging. Hostile input neither panics nor takes more than 64
//! bytes of memory for each of at most 64 MiB.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{Interval, Run, ScenarioEnd, Tally, WorkerEnd};
use crate::spec::{RunSpec, SCENARIOS_MAX};

/// Maximum length of an encoding, in bytes.
pub const READ_MAX: usize = 64 << 20;

/// Maximum length of a run, in seconds: over a hundred years.
const SECOND_MAX: u64 = 1 << 32;

/// Maximum time or level.
const NUMBER_MAX: u64 = 1 << 56;

/// A value with an exact encoding.
pub trait ExactEncoding: Serialize + DeserializeOwned {
    /// Name and version of the encoding, the first line.
    const NAME: &'static str;

    /// Whether all numbers are small enough for sums of them not to overflow.
    fn is_plausible(&self) -> bool {
        true
    }
}

impl ExactEncoding for Interval {
    const NAME: &'static str = "gake.interval/2";

    fn is_plausible(&self) -> bool {
        let times = [self.cpu, self.run_delay].into_iter();
        let levels = self.scenarios.iter().flat_map(|one| [one.gauges.open, one.gauges.peak]);
        self.tenth <= SECOND_MAX * 10 && times.chain(levels).all(|number| number <= NUMBER_MAX)
    }
}

impl ExactEncoding for ScenarioEnd {
    const NAME: &'static str = "gake.scenario-end/1";

    fn is_plausible(&self) -> bool {
        self.instants().into_iter().all(|instant| instant <= NUMBER_MAX)
    }
}

impl ExactEncoding for WorkerEnd {
    const NAME: &'static str = "gake.worker-end/1";

    fn is_plausible(&self) -> bool {
        self.scenarios.len() <= SCENARIOS_MAX
            && self.log_lost <= NUMBER_MAX
            && self.scenarios.iter().all(|(_, end)| end.is_plausible())
    }
}

impl ExactEncoding for Run {
    const NAME: &'static str = "gake.run/2";

    fn is_plausible(&self) -> bool {
        run::is_plausible(self)
    }
}

impl ExactEncoding for RunSpec {
    const NAME: &'static str = "gake.spec/1";
}

impl ExactEncoding for Tally {
    const NAME: &'static str = "gake.tally/1";
}

/// Why bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// More than [`READ_MAX`] bytes.
    #[error("{0} bytes are over the limit of {READ_MAX}")]
    TooLong(usize),
    /// Another kind of data, or another version.
    #[error("expected {expected}, found {found:?}: both sides need the same version of gake")]
    Other {
        /// The expected name.
        expected: &'static str,
        /// The first 40 bytes.
        found: String,
    },
    /// The content is inconsistent.
    #[error("{name} is invalid: {error}")]
    Invalid {
        /// The expected name.
        name: &'static str,
        /// Position and reason.
        error: serde_json::Error,
    },
    /// A number is larger than any run can reach.
    #[error("{0} is invalid: a time or a level is too large")]
    TooLarge(&'static str),
}

/// The exact encoding of a value.
///
/// # Errors
/// When it holds NaN or an infinity; recorded values never do.
pub fn encode<T: ExactEncoding>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = format!("{}\n", T::NAME).into_bytes();
    serde_json::to_writer(&mut bytes, value)?;
    Ok(bytes)
}

/// Decodes an exact encoding.
///
/// # Errors
/// When the bytes are not a valid encoding of `T`.
pub fn decode<T: ExactEncoding>(bytes: &[u8]) -> Result<T, ExactError> {
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
        .map_err(|error| ExactError::Invalid { name: T::NAME, error })?;
    if value.is_plausible() { Ok(value) } else { Err(ExactError::TooLarge(T::NAME)) }
}

mod run;

#[cfg(test)]
mod tests;
