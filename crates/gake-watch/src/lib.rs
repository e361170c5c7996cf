//! Watching the target while it is loaded: samples of it, on the clock of the run.
//!
//! A [`WatchSource`] says where levels come from: a process of this machine, a Prometheus endpoint,
//! Spring Boot Actuator, a database, the generator's own machine. A [`Sampler`] reads each once a
//! second on a thread of its own and sends what it read; it never delays the load, and a source
//! that fails is reported once and retried.

#![forbid(unsafe_code)]

mod actuator;
mod cgroup;
mod count;
mod database;
mod diag;
mod fetch;
mod level;
mod listening;
mod machine;
mod process;
mod prometheus;
mod rates;
mod sampler;
mod sockets;
mod source;
mod threads;

pub use cgroup::own_cpu_quota;
pub use count::{CountError, CountSource};
pub use sampler::{Batch, Sampler, WatchError};
pub use source::{SourceError, WatchSource};
