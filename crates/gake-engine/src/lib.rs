//! The loop: workers wait until an arrival is due and fire its [`Work`].
//!
//! A worker is an OS thread with its own runtime, lanes, timer and recorder. Workers share nothing
//! during a run; once a second (in a short run, ten times) each sends its figures. This crate does
//! not know HTTP: it fires [`Work`], with static dispatch.
//!
//! [`Work`]: gake_core::work::Work

mod audit;
mod arrivals;
mod background;
mod clock;
mod closed;
mod collect;
mod control;
mod worker_users;
mod dispatch;
mod scenario_figures;
mod in_flight;
mod lanes;
mod log;
mod message;
mod arrival_numbers;
mod open;
mod handover;
mod interval_queue;
mod rate;
mod prepare;
mod retry;
mod scenario;
mod scenario_state;
mod start;
mod worker_tables;
mod takeover;
mod timer;
mod usage;
mod user;
mod worker;

pub use background::{beside, belongs_in_background, in_background, lower_class};
pub use clock::{RunClock, monotonic_now};
pub use collect::{Collector, JoinedSecond};
pub use control::UsersHandle;
pub use control::{Stop, StopHandle};
pub use log::{LogBatch, LogSender, log_channel};
pub use message::{Message, WorkerContext};
pub use rate::{RateChangeError, RateHandle};
pub use prepare::{PreparedRun, RunHandle, StartError, prepare};
pub use start::start;
pub use takeover::Takeover;
pub use timer::{Sleep, Timer};
pub use usage::MemoryPeak;
