//! From a spec to a recorded run: gake as a library.
//!
//! A [`RunSpec`] describes what to send, how much, for how long and over which connections. [`run`]
//! runs it:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
//!
//! let url = RequestSource::Url("http://localhost:8080/".to_owned());
//! let load = Load::rate(500.0, Duration::from_secs(10));
//! let run = gake_run::run(&RunSpec::new(ScenarioSpec::new(url, load)))?;
//! let p99 = run.tally.latency.response().quantile(0.99);
//! println!("{} sent, p99 {} us", run.tally.counts.sent, p99 / 1_000);
//! # Ok::<(), gake_run::RunError>(())
//! ```
//!
//! For more control, a run has two steps. A [`ResolvedRun`] is everything that is known before the
//! first request; it can be inspected, and run any number of times. [`ResolvedRun::run_with`] runs
//! it with [`Sink`]s that receive figures during the run, an [`Interrupt`] that ends it early, and
//! a function that sees each second. Inputs that only the program can open (standard input,
//! recordings, requests made during the run) are passed as [`Inputs`].
//!
//! [`run_calls`] calls an async function of the program in place of requests. All of this blocks: an
//! async program starts it by its runtime's `spawn_blocking`.
//!
//! [`search`] finds the highest load under which a target meets its objectives.
//!
//! This crate does not print, and reads no arguments, environment or standard streams.

#![forbid(unsafe_code)]

mod abort;
mod bodies;
mod calls;
mod connection;
mod data_file;
mod drive;
mod error;
mod first_exchange;
mod grpc;
mod inline;
mod inputs;
mod interrupt;
mod multipart_form;
mod plan;
mod prepare;
mod probe;
mod rate_control;
mod remote;
mod requests;
#[cfg(feature = "scripts")]
pub mod script;
#[cfg(not(feature = "scripts"))]
#[path = "without_scripts.rs"]
pub mod script;
pub mod search;
mod second_update;
mod single_request;
pub mod sink;
mod slice;
mod slice_log;
mod target_watcher;
pub mod targets;
mod user_control;

pub use bodies::{BODY_BYTES_MAX, Bodies, body_file};
pub use calls::run_calls;
pub use data_file::{percent_encoded, without_password};
pub use drive::{RecordedRun, RunOptions, unix_now};
pub use error::RunError;
pub use first_exchange::{FirstExchange, send_first};
pub use gake_core::record::{Fault, Phase, Run, ScenarioRun};
pub use gake_core::spec;
pub use gake_engine::{
    Collector, Message, PreparedRun, RunClock, RunHandle, Stop, StopHandle, Takeover, beside,
    monotonic_now,
};
/// What a fleet records of each of its agents.
pub use gake_judge::agent_record;
pub use gake_wire::ConnectionPermit;
pub use inputs::{GivenRequests, Inputs, Recordings, Replay, Scripts};
pub use interrupt::Interrupt;
pub use multipart_form::multipart_form;
pub use prepare::{LoadedRequests, ResolvedRun};
pub use rate_control::RateControl;
pub use remote::RemoteWorkers;
pub use second_update::{EachSecond, SecondUpdate};
pub use single_request::{SendError, SingleResponse, send_once};
pub use sink::Sink;
pub use slice::Destination;
pub use slice_log::{SliceLog, SliceLogWriter};
pub use target_watcher::TargetWatcher;
pub use user_control::UserControl;

use gake_core::spec::RunSpec;

/// Runs a spec to its end. Blocks.
///
/// # Errors
/// When the spec is not valid, something cannot be read or resolved, or the run cannot
/// be started. Failed requests are not an error: they are in the run.
pub fn run(spec: &RunSpec) -> Result<Run, RunError> {
    ResolvedRun::new(spec, Inputs::default())?.run()
}
