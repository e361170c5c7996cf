//! What the tools show of every answered request, gathered while a run goes on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::spread::Spread;
use gake_core::record::{End, Histogram, Outcome};

use crate::attack::TakeOutcomes;

/// The parts of answered requests. Its size does not depend on how many there are.
#[derive(Debug, Default)]
pub struct Gathered {
    /// From the start of a request to its end, connection included. Not from when it was due:
    /// these tools measure from when they send.
    pub latency: Histogram,
    /// Opening a connection, of every request: 0 on one that was open.
    pub dial: Spread,
    /// From the connection to the first byte written.
    pub write: Spread,
    /// From the first byte written to the first byte of the answer.
    pub wait: Spread,
    /// From there to the last.
    pub read: Spread,
}

/// The instants of one answered request as durations.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// From start to end.
    pub total: u64,
    /// Opening the connection, when one was opened.
    pub dial: Option<u64>,
    /// To the first byte written.
    pub write: u64,
    /// From there to the first byte of the answer.
    pub wait: u64,
    /// From there to the last.
    pub read: u64,
}

impl Parts {
    /// The parts of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        let exchange = &outcome.exchange;
        let first = exchange.first_byte.unwrap_or(exchange.done);
        let dial = exchange.connect.map(|connect| connect + exchange.tls.unwrap_or(0));
        Self {
            total: exchange.done.saturating_sub(outcome.fired),
            dial,
            write: exchange.write.saturating_sub(outcome.fired).saturating_sub(dial.unwrap_or(0)),
            wait: first.saturating_sub(exchange.write),
            read: exchange.done.saturating_sub(first),
        }
    }
}

impl Gathered {
    /// Adds an outcome.
    pub fn take(&mut self, outcome: &Outcome) {
        let End::Answered(_) = outcome.exchange.end else { return };
        let parts = Parts::of(outcome);
        self.latency.record(parts.total);
        self.dial.record(parts.dial.unwrap_or(0));
        self.write.record(parts.write);
        self.wait.record(parts.wait);
        self.read.record(parts.read);
    }
}

/// What will be gathered, and what gives it every outcome.
pub fn gather<T: Send + 'static>(
    gathered: T,
    take: impl Fn(&mut T, &Outcome) + Send + 'static,
) -> (Arc<Mutex<T>>, TakeOutcomes) {
    let gathered = Arc::new(Mutex::new(gathered));
    let feed = Arc::clone(&gathered);
    let sink = move |outcomes: &[Outcome]| {
        let mut gathered = feed.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.iter().for_each(|outcome| take(&mut gathered, outcome));
        Ok(())
    };
    (gathered, Box::new(sink))
}

/// What was gathered, when the run is over.
pub fn taken<T: Default>(gathered: &Mutex<T>) -> T {
    std::mem::take(&mut gathered.lock().unwrap_or_else(PoisonError::into_inner))
}
