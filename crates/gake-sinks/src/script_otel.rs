//! The metrics of a script for OpenTelemetry in k6's form.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, SeriesTable, Tags};

use crate::carrier::{Carrier, FigureBatch, Push, RETRY};
use crate::format::{ScriptResource, otel_frame, otel_post, otel_request};
use crate::spill::Spill;

/// A collector, and what it gets.
#[derive(Debug, Clone)]
pub struct OtelTarget {
    /// Its URL: of the metrics for HTTP, of the server for gRPC.
    pub url: String,
    /// Whether it speaks gRPC.
    pub is_grpc: bool,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The interval between exports.
    pub every: Duration,
    /// The name of the service.
    pub service: String,
    /// Its version.
    pub version: String,
    /// The start of every metric's name.
    pub prefix: String,
}

/// Sends the totals of a script's metrics so far to a collector, at intervals.
pub struct OtelSeries {
    name: String,
    is_grpc: bool,
    resource: ScriptResource,
    every: Duration,
    push: Push,
    /// The totals, bounded in the number of series.
    table: SeriesTable,
    written: Instant,
    /// The instants of the first and the newest sample, in Unix nanoseconds.
    times: Option<(u64, u64)>,
    is_new: bool,
}

impl OtelSeries {
    /// Prepares to write to a collector.
    #[must_use]
    pub fn new(target: &OtelTarget, spill: &Spill) -> Self {
        let OtelTarget { url, is_grpc, headers, every, service, version, prefix } = target.clone();
        Self {
            name: format!("opentelemetry={url}"),
            is_grpc,
            resource: ScriptResource { service, version, prefix },
            every,
            push: Push::new(&otel_post(&url, is_grpc, headers), RETRY, spill),
            table: SeriesTable::default(),
            written: Instant::now(),
            times: None,
            is_new: false,
        }
    }

    /// Checks that the collector responds.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn check(&mut self) -> Result<(), String> {
        self.push.check()
    }

    /// Adds a sample; times in nanoseconds.
    pub fn write(&mut self, metric: &Arc<Definition>, tags: &Tags, value: f64, unix_ns: i128) {
        let series = self.table.intern(metric, tags);
        self.table.add(series, value, Nanos::try_from(unix_ns).unwrap_or(0));
        let at = u64::try_from(unix_ns).unwrap_or(0);
        let (first, newest) = self.times.unwrap_or((at, at));
        self.times = Some((first.min(at), newest.max(at)));
        self.is_new = true;
    }

    /// Sends the totals when it is time; call it about once a second.
    pub fn tick(&mut self) {
        if self.written.elapsed() >= self.every {
            self.flush();
        }
    }

    /// Ends the writing. Blocks until everything is delivered or given up; returns one sentence on
    /// losses.
    pub fn finish(&mut self) -> Option<String> {
        self.flush();
        self.push.finish();
        self.push.lost().sentence(&self.name)
    }

    fn flush(&mut self) {
        if let Some(times) = self.times.filter(|_| std::mem::take(&mut self.is_new)) {
            let (bytes, rows) = otel_request(&self.table, &self.resource, times);
            let bytes = if self.is_grpc { otel_frame(&bytes) } else { bytes };
            self.push.carry(FigureBatch { bytes, rows });
        }
        self.written = Instant::now();
    }
}
