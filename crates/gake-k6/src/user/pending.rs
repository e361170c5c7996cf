//! A user's exchanges and samples that are not yet recorded.
//!
//! A user's code runs on a stack of its own, without the engine's iteration. Its records are
//! queued; its poller flushes the queue after each poll.

use std::cell::RefCell;
use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_core::metric::Tags;
use gake_core::record::{Exchange, FAILED_BODY_BYTES};
use gake_core::work::Iteration;

use super::series_index::{SeriesIndex, TagSet};
use crate::metrics::MetricNumber;
use crate::test::{RawSample, Test};

/// The queue of one user. Its memory is reused.
#[derive(Debug, Default)]
pub struct PendingRecords(RefCell<Vec<PendingRecord>>);

#[derive(Debug)]
enum PendingRecord {
    Exchange { start: Nanos, exchange: Box<Exchange> },
    FailedBody { status: u16, body: Vec<u8> },
    Sample { metric: MetricNumber, tags: Rc<TagSet>, metadata: Option<Tags>, value: f64 },
}

impl PendingRecords {
    /// Queues the exchange of a request that the script made at `start`.
    pub fn exchange(&self, start: Nanos, exchange: Exchange) {
        self.0.borrow_mut().push(PendingRecord::Exchange { start, exchange: Box::new(exchange) });
    }

    /// Queues the body of a failed response, cut to [`FAILED_BODY_BYTES`].
    pub fn failed_body(&self, status: u16, body: &[u8]) {
        let body = body[..body.len().min(FAILED_BODY_BYTES)].to_vec();
        self.0.borrow_mut().push(PendingRecord::FailedBody { status, body });
    }

    /// Queues a sample.
    pub fn sample(
        &self,
        metric: MetricNumber,
        tags: &Rc<TagSet>,
        metadata: Option<Tags>,
        value: f64,
    ) {
        let tags = Rc::clone(tags);
        self.0.borrow_mut().push(PendingRecord::Sample { metric, tags, metadata, value });
    }

    /// Records the queue; samples also go to the test's tap, if there is one.
    pub fn flush(&self, test: &Test, series_index: &SeriesIndex, iteration: &Iteration<'_>) {
        let mut records = self.0.borrow_mut();
        if records.is_empty() {
            return;
        }
        let mut written = Vec::new();
        let now = test.tap.get().map(|_| test.unix_ns());
        for record in records.drain(..) {
            match record {
                PendingRecord::Exchange { start, exchange } => {
                    iteration.exchange_from(start, *exchange)
                }
                PendingRecord::FailedBody { status, body } => iteration.failed_body(status, &body),
                PendingRecord::Sample { metric, tags, metadata, value } => {
                    if let Some(series) = series_index.series(metric, &tags, iteration.recorder()) {
                        iteration.sample(series, value);
                    }
                    if let (Some(unix_ns), Some(all)) = (now, &tags.all)
                        && let Some(metric) = series_index.definition(metric)
                    {
                        let (tags, metadata) = (all.clone(), metadata.unwrap_or_default());
                        written.push(RawSample { metric, tags, metadata, value, unix_ns });
                    }
                }
            }
        }
        if let Some(tap) = test.tap.get().filter(|_| !written.is_empty()) {
            tap(written);
        }
    }
}
