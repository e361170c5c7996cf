//! Statistics of responses, collected while a run is in progress.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_core::record::{ExchangeEnd, Histogram, Outcome, ResponseSummary};

use crate::spread::Spread;
use crate::tool_run::OutcomeHandler;

/// The phases of all responses. The size does not depend on their number.
#[derive(Debug, Default)]
pub struct OutcomeStats {
    /// From the start of a request to its end, connection included. Not from when it was due:
    /// these tools measure from when they send.
    pub latency: Histogram,
    /// Opening a connection, of every request: 0 on one that was open.
    pub dial: Spread,
    /// From the connection to the first byte written.
    pub write: Spread,
    /// From the first byte written to the first byte of the response.
    pub wait: Spread,
    /// From there to the last.
    pub read: Spread,
}

/// The phases of one response as durations.
#[derive(Debug, Clone, Copy)]
pub struct Phases {
    /// From start to end.
    pub total: u64,
    /// Opening the connection, when one was opened.
    pub dial: Option<u64>,
    /// To the first byte written.
    pub write: u64,
    /// From there to the first byte of the response.
    pub wait: u64,
    /// From there to the last.
    pub read: u64,
}

impl Phases {
    /// The phases of an outcome.
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

/// Statistics that another thread fills, such as the handler of a run's outcomes.
#[derive(Debug, Default)]
pub struct StatsCollector<T>(Arc<Mutex<T>>);

impl<T> Clone for StatsCollector<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> StatsCollector<T> {
    /// Begins with `stats`.
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

    /// Passes all outcomes to `record`, some at a time.
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
