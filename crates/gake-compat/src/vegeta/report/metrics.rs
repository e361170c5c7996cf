//! The metrics of Vegeta's reports, accumulated in constant memory.

use std::collections::{BTreeMap, HashSet};

use super::buckets::{BucketCounts, Buckets};
use super::tdigest::TDigest;
use gake_report::vegeta::go;
use gake_report::vegeta::{Timestamp, VegetaRecord};

/// The most different errors to list. Vegeta has no limit, and addresses in errors can make each
/// one different.
const ERRORS_MAX: usize = 1_000;

/// All metrics of the reports.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Latencies by bucket, if buckets were given.
    pub histogram: Option<BucketCounts>,
    pub requests: u64,
    /// Requests by status code, 0 without a response; in the order of JSON's keys.
    pub(super) codes: BTreeMap<String, u64>,
    /// Different errors in the order of their first occurrence.
    pub(super) errors: Vec<String>,
    known_errors: HashSet<String>,
    /// Errors that are not listed because the list was full.
    pub errors_left_out: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    successes: u64,
    pub(super) total: i64,
    pub(super) min: i64,
    pub(super) max: i64,
    digest: TDigest,
    /// The first and the last timestamp.
    pub(super) span: Option<(Timestamp, Timestamp)>,
    /// The last end.
    pub(super) end: Timestamp,
}

impl Metrics {
    /// Empty metrics; with buckets latencies are counted by bucket, too.
    pub fn new(buckets: Option<Buckets>) -> Self {
        Self { histogram: buckets.map(BucketCounts::new), ..Self::default() }
    }

    /// Counts a record.
    pub fn add(&mut self, record: &VegetaRecord) {
        self.requests += 1;
        self.count_code(record.code);
        self.bytes_in = self.bytes_in.saturating_add(record.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(record.bytes_out);
        self.successes += u64::from(record.is_success());
        self.add_latency(record.latency);
        self.add_instants(record);
        if !record.error.is_empty() {
            self.add_error(&record.error);
        }
    }

    fn count_code(&mut self, code: u16) {
        *self.codes.entry(code.to_string()).or_default() += 1;
    }

    fn add_latency(&mut self, latency: i64) {
        self.total = self.total.saturating_add(latency);
        self.max = self.max.max(latency);
        // A latency of 0 is not the minimum if there is another one: Vegeta's rule.
        if latency < self.min || self.min == 0 {
            self.min = latency;
        }
        self.digest.add(latency as f64);
        if let Some(histogram) = &mut self.histogram {
            histogram.add(latency);
        }
    }

    fn add_instants(&mut self, record: &VegetaRecord) {
        let at = record.timestamp;
        let end = Timestamp { unix_ns: record.end(), ..at };
        let Some((earliest, latest)) = &mut self.span else {
            self.span = Some((at, at));
            self.end = end;
            return;
        };
        if at.unix_ns < earliest.unix_ns {
            *earliest = at;
        }
        if at.unix_ns > latest.unix_ns {
            *latest = at;
        }
        if end.unix_ns > self.end.unix_ns {
            self.end = end;
        }
    }

    fn add_error(&mut self, error: &str) {
        if self.known_errors.contains(error) {
            return;
        }
        if self.errors.len() == ERRORS_MAX {
            self.errors_left_out += 1;
            return;
        }
        self.known_errors.insert(error.to_owned());
        self.errors.push(error.to_owned());
    }

    /// The time from the first timestamp to the last, in nanoseconds.
    pub(super) fn duration(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last.unix_ns.saturating_sub(first.unix_ns))
    }

    /// The time from the last timestamp to the last end.
    pub(super) fn wait(&self) -> i64 {
        self.span.map_or(0, |(_, last)| self.end.unix_ns.saturating_sub(last.unix_ns))
    }

    /// Requests a second, over the time in which they were sent.
    pub(super) fn rate(&self) -> f64 {
        self.per_second(self.requests, self.duration())
    }

    /// Successes a second, over the time until the last response.
    pub(super) fn throughput(&self) -> f64 {
        self.per_second(self.successes, self.duration().saturating_add(self.wait()))
    }

    /// A rate; the count itself if all requests were sent at one instant, as in Vegeta.
    fn per_second(&self, count: u64, nanos: i64) -> f64 {
        let count = count as f64;
        if go::seconds(self.duration()) > 0.0 { count / go::seconds(nanos) } else { count }
    }

    /// The share of successes, 0 to 1.
    pub(super) fn success(&self) -> f64 {
        self.per_request(self.successes as f64)
    }

    /// The mean of a sum over the requests; 0 without requests.
    pub(super) fn per_request(&self, sum: f64) -> f64 {
        if self.requests == 0 { 0.0 } else { sum / self.requests as f64 }
    }

    /// The latency's mean, in whole nanoseconds.
    pub(super) fn mean(&self) -> i64 {
        self.per_request(self.total as f64) as i64
    }

    /// The latency's quantile, in whole nanoseconds.
    pub(super) fn quantile(&mut self, quantile: f64) -> i64 {
        self.digest.quantile(quantile).unwrap_or(0.0) as i64
    }
}
