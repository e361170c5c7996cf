//! Inputs that a spec names and that only the embedding program can open.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use gake_core::schedule::Trace;
use gake_core::spec::{FieldPath, RecordingSpec, ScenarioSpec};
use gake_wire::{RedirectRules, RequestFeed, RequestList};

use crate::RunError;
use crate::script::ConfiguredScript;

/// Inputs that this crate cannot open: standard input, recordings, requests made by the program. A
/// spec that names none of them needs none.
#[derive(Default)]
pub struct Inputs<'a> {
    /// Standard input, for `-`. It is read once.
    pub stdin: Option<Box<dyn BufRead + 'a>>,
    /// Reads recordings.
    pub recordings: Option<&'a dyn Recordings>,
    /// Loads scripts; without it they are read from disk and see no environment.
    pub scripts: Option<&'a dyn Scripts>,
    /// The requests behind the names of `given` requests.
    pub given: Vec<(String, GivenRequests)>,
    /// What the requests of redirects keep.
    pub redirect_rules: RedirectRules,
}

impl std::fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("given", &self.given).finish_non_exhaustive()
    }
}

/// Requests that the embedding program provides.
#[derive(Debug, Clone)]
pub struct GivenRequests {
    /// The name of the target in reports.
    pub name: String,
    /// The requests known before the run. They define the destinations and labels of requests from
    /// `feed`.
    pub requests: Arc<RequestList>,
    /// Makes each request when it is fired, in place of `requests`.
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
    /// Reads the requests of `recording` that `scenario` selects. `at` is the scenario's path in
    /// the spec.
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

/// A recording that has been read.
#[derive(Debug)]
pub struct Replay {
    /// Its distinct requests.
    pub requests: RequestList,
    /// The request of each arrival, as an index into `requests`.
    pub order: Vec<u32>,
    /// When each arrival is due.
    pub trace: Trace,
    /// The name of the target in reports.
    pub name: String,
    /// Notes about skipped requests, in sentences.
    pub notes: Vec<String>,
}
