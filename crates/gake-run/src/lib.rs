//! From a spec to a recorded run: gake as a library.
//!
//! A [`RunSpec`] says what to send, how much, for how long and over which connections. [`run`] makes
//! the run of it:
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
//! For more control, a run has two steps. [`Prepared`] is what is known before the first request;
//! it can be inspected, and run any number of times. [`Prepared::run_beside`] runs it with
//! [`Sink`]s that take the figures meanwhile, an [`Interrupt`] that ends it early, and a function
//! that sees each second. What a spec names and only a program can open (standard input,
//! recordings, requests made during the run) comes in [`Inputs`].
//!
//! [`search`] finds the highest load under which a target meets its objectives.
//!
//! This crate prints nothing and sees neither arguments nor environment nor standard streams.

#![forbid(unsafe_code)]

mod abort;
mod bodies;
mod connection;
mod drive;
mod error;
mod form;
mod grpc;
mod inlined;
mod inputs;
mod interrupt;
mod moment;
mod once;
mod part;
mod part_log;
mod plan;
mod prepare;
mod rate_control;
mod remote;
mod requests;
#[cfg(feature = "scripts")]
pub mod script;
#[cfg(not(feature = "scripts"))]
#[path = "without_scripts.rs"]
pub mod script;
pub mod search;
pub mod sink;
pub mod targets;
mod user_control;
mod watching;

pub use bodies::{BODY_BYTES_MAX, Bodies, body_file};
pub use drive::{Beside, Recorded, unix_now};
pub use error::RunError;
pub use form::form;
pub use gake_core::record::{Run, ScenarioRun};
pub use gake_core::spec;
pub use gake_engine::{
    Collector, Message, Ready, RunClock, Running, Stop, StopHandle, Takeover, beside, monotonic_now,
};
/// What a fleet records of each of its agents.
pub use gake_judge::agent_record;
pub use gake_wire::ConnectionPermit;
pub use inputs::{GivenRequests, Inputs, Recordings, Replay, Scripts};
pub use interrupt::Interrupt;
pub use moment::Moment;
pub use once::{NoAnswer, SingleAnswer, send_once};
pub use part::Destination;
pub use part_log::{PartLog, WrittenLog};
pub use prepare::{LoadedRequests, Prepared};
pub use rate_control::RateControl;
pub use remote::RemoteWorkers;
pub use sink::Sink;
pub use user_control::UserControl;
pub use watching::Watching;

use gake_core::spec::RunSpec;

/// Runs a spec to its end. Blocks.
///
/// # Errors
/// When the spec is not valid, something cannot be read or resolved, or the run cannot
/// be started. Failed requests are not an error: they are in the run.
pub fn run(spec: &RunSpec) -> Result<Run, RunError> {
    Prepared::new(spec, Inputs::default())?.run()
}
