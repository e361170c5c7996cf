//! The vocabulary of gake: what a run is (`plan`), when each arrival is due (`schedule`), what
//! fires it (`work`) and what came of it (`record`).
//!
//! This crate is pure: it knows no sockets, no runtime and no clock. Every instant in it is a
//! number of nanoseconds since the run's epoch that somebody else has read.

pub mod clock;
pub mod plan;
pub mod record;
pub mod schedule;
pub mod work;
