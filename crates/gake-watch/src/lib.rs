//! Watches the target while it is loaded.
//!
//! A [`WatchSource`] is a process of this machine, a Prometheus endpoint, Spring Boot Actuator, a
//! database, or the generator's own machine. A [`Sampler`] reads each once a second on its own
//! thread, on the clock of the run; it never delays the load, and a source that fails is reported
//! once and retried.

#![forbid(unsafe_code)]

mod actuator;
mod cgroup;
mod cores;
mod count;
mod database;
mod diag;
mod fetch;
mod jvm;
mod level;
mod listener_processes;
mod machine;
mod process;
mod prometheus;
mod rates;
mod sampler;
mod sockets;
mod source;
mod threads;
mod waits;

pub use cgroup::own_cpu_quota;
pub use cores::cores_in_stat;
pub use count::{CountError, CountSource};
pub use sampler::{Sampler, WatchError, WatchEvent};
pub use source::{SourceError, WatchSource};
