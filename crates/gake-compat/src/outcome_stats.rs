//! Statistics of responses, collected while a run is in progress.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_core::record::{ExchangeEnd, Histogram, Outcome, ResponseSummary};

use crate::spread::Spread;
use crate::tool_run::OutcomeHandler;

/// The phases of all responses. The size does not depend on their number.
#[derive(Debug, Default)]
pub struct OutcomeStats {
    /// The time from the start of a request to its end, connection included. It does not count from
    /// when the request was due: these tools measure from when they send.
    pub latency: Histogram,
    /// The time to open a connection, for every request: 0 if it was open.
    pub dial: Spread,
    /// The time from the open connection to the first byte written.
    pub write: Spread,
    /// The time from the first byte written to the first byte of the response.
    pub wait: Spread,
    /// The time from there to the last byte.
    pub read: Spread,
}

/// The phases of one response as durations.
#[derive(Debug, Clone, Copy)]
pub struct Phases {
    /// The time from start to end.
    pub total: u64,
    /// The time to open the connection, if one was opened.
    pub dial: Option<u64>,
    /// The time to the first byte written.
    pub write: u64,
    /// The time from there to the first byte of the response.
    pub wait: u64,
    /// The time from there to the last byte.
    pub read: u64,
}

impl Phases {
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

impl OutcomeStats {
    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let ExchangeEnd::Response(_) = outcome.exchange.end else { return };
        let phases = Phases::of(outcome);
        self.latency.record(phases.total);
        self.dial.record(phases.dial.unwrap_or(0));
        self.write.record(phases.write);
        self.wait.record(phases.wait);
        self.read.record(phases.read);
    }
}

/// Statistics that another thread records, such as the handler of a run's outcomes.
#[derive(Debug, Default)]
pub struct StatsCollector<T>(Arc<Mutex<T>>);

impl<T> Clone for StatsCollector<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> StatsCollector<T> {
    /// Starts with `stats`.
    pub fn new(stats: T) -> Self {
        Self(Arc::new(Mutex::new(stats)))
    }

    /// The statistics so far.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default + Send + 'static> StatsCollector<T> {
    /// Passes every outcome to `record`.
    pub fn each(&self, record: impl Fn(&mut T, &Outcome) + Send + 'static) -> OutcomeHandler {
        self.handler(move |stats, outcomes| {
            outcomes.iter().for_each(|outcome| record(stats, outcome));
            Ok(())
        })
    }

    /// Passes all outcomes to `record`, in batches.
    pub fn handler(
        &self,
        mut record: impl FnMut(&mut T, &[Outcome]) -> io::Result<()> + Send + 'static,
    ) -> OutcomeHandler {
        let stats = self.clone();
        Box::new(move |outcomes| record(&mut stats.lock(), outcomes))
    }

    /// The statistics, after the run.
    pub fn finish(&self) -> T {
        std::mem::take(&mut *self.lock())
    }
}

/// Writes a row for each response as it comes, so that memory does not grow with the run.
pub fn rows(
    mut out: Box<dyn Write + Send>,
    push: impl Fn(&mut String, &Outcome, ResponseSummary) + Send + 'static,
) -> OutcomeHandler {
    let mut rows = String::new();
    Box::new(move |outcomes| {
        rows.clear();
        for outcome in outcomes {
            if let ExchangeEnd::Response(answer) = outcome.exchange.end {
                push(&mut rows, outcome, answer);
            }
        }
        out.write_all(rows.as_bytes())?;
        out.flush()
    })
}
