//! One arrival of a schedule.

use crate::clock::Nanos;

/// One scheduled unit: its number and the instant it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the whole run's schedule, from 0, over all workers.
    pub number: u64,
    /// When it is due.
    pub due: Nanos,
}
