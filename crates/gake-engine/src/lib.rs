//! The loop: workers wait until an arrival is due and fire its [`Work`].
//!
//! A worker is an OS thread with its own runtime, lanes, timer and recorder. Workers share nothing
//! during a run; once a second (in a short run, ten times) each sends its figures. This crate does
//! not know HTTP: it fires [`Work`], with static dispatch.
//!
//! [`Work`]: gake_core::work::Work

mod arrival_numbers;
mod arrivals;
mod audit;
mod background;
mod clock;
mod closed;
mod collect;
mod control;
mod dispatch;
mod fast_loop;
mod handover;
mod in_flight;
mod interval_queue;
mod lanes;
mod log;
mod message;
mod open;
mod prepare;
mod rate;
mod retry;
mod scenario;
mod scenario_figures;
mod scenario_state;
mod start;
mod takeover;
mod timer;
mod usage;
mod user;
mod watchdog;
mod worker;
mod worker_tables;
mod worker_thread;
mod worker_users;

pub use background::{belongs_in_background, beside, in_background, lower_class};
pub use clock::{RunClock, monotonic_now};
pub use collect::{Collector, JoinedSecond};
pub use control::UsersHandle;
pub use control::{Stop, StopHandle};
pub use log::{LogBatch, LogSender, log_channel};
pub use message::{Message, WorkerContext};
pub use prepare::{PreparedRun, RunHandle, StartError, prepare};
pub use rate::{RateChangeError, RateHandle};
pub use start::start;
pub use takeover::Takeover;
pub use timer::{Sleep, Timer};
pub use usage::MemoryPeak;
pub use worker_thread::WorkerBody;
