//! Inputs that a spec names and only the embedding program can open.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use gake_core::schedule::Trace;
use gake_core::spec::{FieldPath, RecordingSpec, ScenarioSpec};
use gake_wire::{RequestFeed, WeightedRequest};

use crate::RunError;
use crate::script::ConfiguredScript;

/// Inputs that a spec names and this crate cannot open: standard input, recordings, requests that
/// the program makes. A spec that names none needs none.
#[derive(Default)]
pub struct Inputs<'a> {
    /// Standard input, for `-`. It is read once.
    pub stdin: Option<Box<dyn BufRead + 'a>>,
    /// Reads recordings.
    pub recordings: Option<&'a dyn Recordings>,
    /// Loads scripts; without it they are read from disk, and see no environment.
    pub scripts: Option<&'a dyn Scripts>,
    /// The requests behind the names of `given` requests.
    pub given: Vec<(String, GivenRequests)>,
}

impl std::fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("given", &self.given).finish_non_exhaustive()
    }
}

/// Requests that the embedding program provides.
#[derive(Debug, Clone)]
pub struct GivenRequests {
    /// What is loaded, for people.
    pub name: String,
    /// Those known before the run. They define the destinations and labels that requests of `feed`
    /// may have.
    pub requests: Vec<WeightedRequest>,
    /// If set, makes each request when it is fired, instead of `requests`.
    pub feed: Option<Arc<dyn RequestFeed>>,
}

/// Loads the scripts that a spec names.
pub trait Scripts {
    /// Loads the script at `path` for one run.
    ///
    /// # Errors
    /// Why it cannot be run.
    fn load(&self, path: &Path) -> Result<ConfiguredScript, RunError>;
}

/// Reads recordings of traffic.
pub trait Recordings {
    /// Reads what `scenario` wants of `recording`. `at` is the scenario's place in the spec.
    ///
    /// # Errors
    /// When it is not a recording, or nothing in it can be sent.
    fn read(
        &self,
        recording: &RecordingSpec,
        scenario: &ScenarioSpec,
        at: &FieldPath,
    ) -> Result<Replay, RunError>;
}

/// A recording, read.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Its different requests.
    pub requests: Vec<WeightedRequest>,
    /// Which of them each arrival sends.
    pub order: Vec<u32>,
    /// When each arrival is due.
    pub trace: Trace,
    /// What is loaded, for people.
    pub name: String,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}
