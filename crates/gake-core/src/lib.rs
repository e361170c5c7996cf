//! The vocabulary of gake: what a user asks for (`spec`), what a run is (`plan`), when each arrival
//! is due (`schedule`), what fires it (`work`) and its result (`record`, `metric`).
//!
//! This crate is pure: it knows no sockets, no runtime and no clock. Every instant in it is a
//! number of nanoseconds since the run's epoch, read elsewhere.

#![forbid(unsafe_code)]

pub mod clock;
pub mod exact;
mod load;
pub mod metric;
pub mod plan;
pub mod record;
pub mod schedule;
mod seconds;
pub mod spec;
pub mod work;

pub use load::Load;
