//! The contract between the loop and the work that it fires, with static dispatch.
//!
//! One arrival fires one iteration: any number of exchanges, recorded through [`Iteration`] as they
//! happen, and one end. A plain request is an iteration of one exchange.

use std::os::fd::BorrowedFd;

use crate::clock::Nanos;
pub use crate::record::{Gauges, Iteration, IterationEnd, IterationStatus};
use crate::record::{Tally, TcpSample};
pub use crate::schedule::Arrival;

/// The source of requests is exhausted: this arrival does not count, and no more come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// Fires arrivals: HTTP requests, iterations of a script. Owned by one lane of a worker, which
/// fires one arrival at a time.
pub trait Work {
    /// Its fast lane; [`NoFastLane`] if it never has one.
    type Fast: FastLane + 'static;

    /// Runs the iteration of one arrival and records its exchanges through `iteration`.
    /// `iteration.fired` is the current time.
    ///
    /// If the future is dropped before it completes, [`Work::abandon`] is called next.
    fn fire(
        &mut self,
        iteration: &Iteration<'_>,
    ) -> impl Future<Output = Result<IterationEnd, Exhausted>>;

    /// Ends an iteration whose `fire` was dropped: records the exchanges in flight as unfinished.
    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd;

    /// Lends the lane's connection for the arrival with this number, which is due and fired at
    /// `now`, and for those after it. [`Work::take_back`] is called before anything else.
    fn fast_lane(&mut self, number: u64, now: Nanos) -> Option<Self::Fast> {
        let _ = (number, now);
        None
    }

    /// Takes a lent connection back. After [`FastEnd::InFlight`], [`Work::fire`] or
    /// [`Work::abandon`] of that arrival is next, and continues its exchange.
    fn take_back(&mut self, lane: Self::Fast, end: FastEnd) {
        let _ = (lane, end);
    }
}

/// A connection on which a user of a closed loop sends one plain request after the other. The engine
/// drives it without a future: it does only the common case, and everything else continues in
/// [`Work::fire`], with what was written and read so far. It never waits, and never records.
pub trait FastLane {
    /// The connection, to wait for its responses.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Time that an exchange may take here; then [`Work::fire`] continues it.
    fn limit(&self) -> Nanos;

    /// Writes the request of the arrival with this number. False unless all of it was written.
    fn send(&mut self, number: u64) -> bool;

    /// Reads once.
    fn receive(&mut self) -> FastRead;

    /// Called when a response that took `service` is complete at `done`. Samples TCP now and then.
    fn settle(&mut self, response: &FastResponse, service: Nanos, done: Nanos)
    -> Option<TcpSample>;
}

/// What a [`FastLane`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastRead {
    /// Nothing: there are no bytes yet.
    Nothing,
    /// A part of the response.
    Part {
        /// Whether there may be more to read.
        has_more: bool,
    },
    /// The end of the response.
    Response(FastResponse),
    /// Something else, which is for [`Work::fire`].
    Other,
}

/// A complete response on a [`FastLane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastResponse {
    /// The number of the request's label.
    pub label: u16,
    /// The connection's number in its worker.
    pub connection: u32,
    /// The status code.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Whether the connection can carry another request.
    pub is_reusable: bool,
}

/// How the service of a [`FastLane`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastEnd {
    /// After a response, at this instant.
    Idle(Nanos),
    /// During an exchange.
    InFlight {
        /// Its arrival, fired when it was due.
        arrival: Arrival,
        /// When the first byte of the response was read.
        first_byte: Option<Nanos>,
    },
}

/// The fast lane of works without one.
#[derive(Debug)]
pub enum NoFastLane {}

impl FastLane for NoFastLane {
    fn socket(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    fn limit(&self) -> Nanos {
        match *self {}
    }

    fn send(&mut self, _: u64) -> bool {
        match *self {}
    }

    fn receive(&mut self) -> FastRead {
        match *self {}
    }

    fn settle(&mut self, _: &FastResponse, _: Nanos, _: Nanos) -> Option<TcpSample> {
        match *self {}
    }
}

/// Makes the [`Work`] of each lane of one worker, for one scenario. Lives on the worker's thread.
pub trait Factory {
    /// The work of a lane.
    type Work: Work + 'static;

    /// Called once on the worker's runtime, before the epoch and before any call of
    /// [`Factory::work`]: acquires what `lanes` lanes need.
    ///
    /// # Errors
    /// Why the run cannot start, in a sentence.
    fn prepare(&self, lanes: usize) -> impl Future<Output = Result<(), String>> {
        let _ = lanes;
        std::future::ready(Ok(()))
    }

    /// Whether arrivals of a closed load are numbered in the order in which they begin, over all
    /// workers. Costs an increment of a shared counter for each arrival.
    fn wants_order(&self) -> bool {
        false
    }

    /// The work of a lane, counted from 0 within the worker. Called before the epoch.
    fn work(&self, lane: usize) -> Self::Work;

    /// Called once at the epoch.
    fn begin(&self) {}

    /// Adds to `tally` the counts since the last call that belong to no single arrival (connections
    /// opened, retransmits), and returns the current gauges.
    fn observe(&self, tally: &mut Tally) -> Gauges;

    /// Called once after the last arrival has ended, before the last [`Factory::observe`]: aborts
    /// what is still in progress besides the lanes.
    fn finish(&self) {}
}
