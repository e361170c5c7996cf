//! A level of one source, and how long reading it may take.

use std::time::Duration;

use gake_core::record::LevelUnit;

/// How long an answer may take. Much longer than the time between two readings: a target whose
/// connections are all taken would not give another one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long an answer may take before and after the load.
pub(crate) const FIRST: Duration = Duration::from_secs(5);

/// A level of one source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) unit: LevelUnit,
    pub(crate) value: f64,
}

impl Level {
    pub(crate) fn new(name: impl Into<String>, unit: LevelUnit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }
}

/// What a source answers within `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| Err(no_answer(limit)))
}

/// The error of a source that does not answer.
pub(crate) fn no_answer(within: Duration) -> String {
    format!("no answer within {} s", within.as_secs_f64())
}
