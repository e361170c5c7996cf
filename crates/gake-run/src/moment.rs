//! One second of a run, as whoever watches it sees it.

use gake_core::record::{Reading, Watched};
use gake_engine::{Collector, JoinedSecond};

/// One second of a run that goes on.
#[derive(Debug)]
pub struct Moment<'a> {
    /// What was recorded in it.
    pub second: &'a JoinedSecond,
    /// Arrivals that the plan asked for in it.
    pub asked: Option<f64>,
    /// The run so far.
    pub so_far: &'a Collector,
    /// What was read of the target in it.
    pub readings: &'a [Reading],
    /// All that was read of the target so far.
    pub watched: &'a Watched,
}
