//! `gake run` against servers that others wrote: a finding names what really limits each, and
//! once that is cured the rate rises and the next limit is named.
//!
//! Handlers sleep, so what T threads can answer in a time is mathematics on any machine: never
//! more than T in each service time, and hardly less. One server is loaded at a time.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod support;

mod causes;
mod dashboards;
mod database;
mod experiments;
mod golang;
mod group;
mod k6_dashboard;
mod nginx;
mod postgres;
mod sinks;
mod slow;
mod spring;
mod tomcat;
mod users;

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for one test alone: what limits it shall be what the test has set.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine beside other tests that count and do not measure.
fn together() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of `tests/peers`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}
