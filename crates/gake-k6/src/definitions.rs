//! gRPC definitions that scripts load, compiled once for all users.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use gake_wire::{GrpcError, GrpcSchema};

/// Compiled definitions by their sources.
#[derive(Default)]
pub struct GrpcDefinitions(Mutex<HashMap<String, Result<GrpcSchema, GrpcError>>>);

impl GrpcDefinitions {
    /// The definitions of `key`, compiled on first use.
    pub(crate) fn get(
        &self,
        key: String,
        compile: impl FnOnce() -> Result<GrpcSchema, GrpcError>,
    ) -> Result<GrpcSchema, GrpcError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(key).or_insert_with(compile).clone()
    }
}

impl fmt::Debug for GrpcDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcDefinitions").finish_non_exhaustive()
    }
}
