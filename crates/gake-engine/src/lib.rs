//! The loop: workers wait for the instant an arrival is due and fire its [`Work`].
//!
//! One worker is one OS thread with its own runtime, lanes, timer and recorder. Workers share
//! nothing while a run goes on; once a second each hands a tally over a channel. This crate never
//! names HTTP: what is fired is a [`Work`], with static dispatch.
//!
//! [`Work`]: gake_core::work::Work

mod clock;
mod closed;
mod collect;
mod control;
mod flight;
mod lane;
mod log;
mod open;
mod share;
mod start;
mod timer;
mod usage;
mod worker;

pub use clock::RunClock;
pub use collect::{Collector, Second};
pub use control::{Stop, StopHandle};
pub use log::{Batch, LogSender, log_channel};
pub use start::{Event, Running, StartError, WorkerContext, start};
pub use timer::{Sleep, Timer};
pub use usage::process_rss;
