//! Levels, and time limits for reading them.

use std::time::Duration;

use gake_core::record::LevelUnit;

/// Time limit of a reading. Much longer than the interval between readings: a target whose
/// connections are all in use would not accept another one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of a reading before and after the load.
pub(crate) const FIRST: Duration = Duration::from_secs(5);

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

pub(crate) async fn within<T>(
    limit: Duration,
    reading: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::time::timeout(limit, reading).await.unwrap_or_else(|_| Err(no_response(limit)))
}

/// The error of a source that does not respond.
pub(crate) fn no_response(within: Duration) -> String {
    format!("no response within {} s", within.as_secs_f64())
}
