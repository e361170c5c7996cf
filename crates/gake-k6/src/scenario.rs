//! The scenario of a user, and its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gake_core::clock::Nanos;

/// Iterations of a scenario in this process.
#[derive(Debug, Default)]
pub struct ScenarioProgress {
    /// Started iterations.
    pub begun: AtomicU64,
    /// Iterations in progress.
    pub running: AtomicU64,
    /// The end of the last iteration, in nanoseconds of the run.
    pub last_end: AtomicU64,
}

impl ScenarioProgress {
    /// Ended iterations.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.begun.load(Relaxed).saturating_sub(self.running.load(Relaxed))
    }
}

/// The scenario of a user.
#[derive(Debug, Clone, Default)]
pub struct ScenarioFacts {
    /// Its name.
    pub name: String,
    /// The name of its executor.
    pub executor: String,
    /// The function that an iteration calls.
    pub function: String,
    /// Its duration, or 0 if unknown.
    pub length: Nanos,
    /// Its total of iterations, if it has one.
    pub iterations: Option<u64>,
    /// The progress of its iterations.
    pub progress: Arc<ScenarioProgress>,
    /// Additions to `__ENV`.
    pub environment: Vec<(String, String)>,
    /// Tags of every sample.
    pub tags: Vec<(String, String)>,
}
