//! The scenario of users, and how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gake_core::clock::Nanos;

/// How far the iterations of a scenario are, in this process.
#[derive(Debug, Default)]
pub struct ScenarioProgress {
    /// Those that have begun.
    pub begun: AtomicU64,
    /// Those that run now.
    pub running: AtomicU64,
    /// When the last of them ended, in nanoseconds of the run.
    pub last_end: AtomicU64,
}

impl ScenarioProgress {
    /// Those that have ended.
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
    /// How many iterations end it, where a number does.
    pub iterations: Option<u64>,
    /// How far its iterations are.
    pub progress: Arc<ScenarioProgress>,
    /// Additions to `__ENV`.
    pub environment: Vec<(String, String)>,
    /// Tags of every sample.
    pub tags: Vec<(String, String)>,
}
