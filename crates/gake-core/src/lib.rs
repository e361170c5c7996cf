//! The vocabulary of gake: the user's request (`spec`), the run (`plan`), the instants of arrivals
//! (`schedule`), the work they fire (`work`) and its results (`record`, `metric`).
//!
//! This crate is pure: it knows no sockets, no runtime and no clock. Every instant in it is a
//! number of nanoseconds since the run's epoch, read elsewhere.

#![forbid(unsafe_code)]

pub mod activity;
pub mod clock;
pub mod exact;
mod load;
pub mod metric;
pub mod plan;
pub mod random;
pub mod record;
pub mod schedule;
mod seconds;
pub mod spec;
pub mod work;

pub use load::Load;
