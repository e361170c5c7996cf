//! One arrival of a schedule.

use crate::clock::Nanos;

/// One scheduled unit: its number and the instant it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its index in the schedule of the whole run, over all workers.
    pub number: u64,
    /// When it is due.
    pub due: Nanos,
}
