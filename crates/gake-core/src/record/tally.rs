//! Mergeable counts and histograms of a time window.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::exchange::{Exchange, ExchangeEnd, Outcome, ResponseSummary};
use super::fault::Fault;
use super::histogram::Histogram;
use super::latency::{self, Latency, LatencyMetric};
use crate::clock::Nanos;
use crate::metric::SeriesTable;
use crate::plan::ExpectedStatus;

/// Labels for which [`Tally::make_room`] maps memory, 128 KB each.
const ROOMY_LABELS: usize = 4;

/// Statuses, and faults, for which [`Tally::make_room`] reserves memory.
const ROOMY_ENDS: usize = 16;

/// The figures of one label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelTally {
    /// Counts; connections are not counted by label.
    pub counts: Counts,
    /// Response time as in [`Latency::response`].
    pub response: Histogram,
    /// Service time.
    pub service: Histogram,
}

/// Mergeable counts and histograms of a time window. Merging is associative and commutative, except
/// for the choice of series that are distinguished at the limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Totals.
    pub counts: Counts,
    /// Histograms of latencies.
    pub latency: Latency,
    /// Responses by status code, in order of code.
    statuses: Vec<(u16, u64)>,
    /// Ends without a response by fault, in order.
    faults: Vec<(Fault, u64)>,
    /// By label number; empty with one label.
    labels: Vec<LabelTally>,
    /// Checks and custom metrics.
    pub series: SeriesTable,
    /// Time in flight, summed over arrivals and clipped to the window: divided by the window's
    /// length, the mean number in flight.
    pub in_flight_ns: u128,
    /// Arrivals fired in the window; `counts` hold those that ended in it.
    pub fired: u64,
}

impl Tally {
    /// An empty tally for `labels` labels; 0 or 1: labels are not distinguished.
    #[must_use]
    pub fn new(labels: usize) -> Self {
        let labels = if labels > 1 { vec![LabelTally::default(); labels] } else { Vec::new() };
        Self { labels, ..Self::default() }
    }

    /// Maps memory for the usual latencies, of the first few labels too, so that the first seconds
    /// cause no page faults. Requires an empty tally.
    pub fn make_room(&mut self) {
        self.latency.make_room();
        for label in self.labels.iter_mut().take(ROOMY_LABELS) {
            latency::make_room(&mut label.response);
            latency::make_room(&mut label.service);
        }
        self.statuses.reserve(ROOMY_ENDS);
        self.faults.reserve(ROOMY_ENDS);
    }

    /// Distinguishes at least `labels` labels.
    pub fn grow_labels(&mut self, labels: usize) {
        if self.labels.len() < labels {
            self.labels.resize_with(labels, LabelTally::default);
        }
    }

    /// Adds a plain request: an arrival and its one exchange.
    pub fn record(&mut self, outcome: &Outcome, expect: &ExpectedStatus) {
        self.record_exchange(outcome.arrival.due, &outcome.exchange, expect);
        let interrupted = outcome.exchange.end == ExchangeEnd::Unfinished;
        self.record_arrival(outcome.lateness(), outcome.blocked, interrupted);
    }

    /// Adds the end of an iteration, its lateness, and its wait for a free lane.
    #[inline]
    pub fn record_arrival(&mut self, lateness: Nanos, blocked: Nanos, interrupted: bool) {
        self.counts.end_arrival(interrupted);
        self.latency.of_mut(LatencyMetric::Lateness).record(lateness);
        if blocked > 0 {
            self.latency.of_mut(LatencyMetric::Blocked).record(blocked);
        }
    }

    /// Adds an exchange. Allocates for a new status or fault, and as [`Histogram::record`] does.
    pub fn record_exchange(&mut self, due: Nanos, exchange: &Exchange, expect: &ExpectedStatus) {
        let response = exchange.done.saturating_sub(due);
        let is_ok = exchange.is_ok(expect);
        let metric = match exchange.end {
            ExchangeEnd::Response(ResponseSummary { status, .. }) => {
                bump(&mut self.statuses, status, 1);
                if is_ok { LatencyMetric::OkResponse } else { LatencyMetric::OtherResponse }
            }
            ExchangeEnd::Fault(fault) => {
                bump(&mut self.faults, fault, 1);
                if fault.is_timeout() {
                    LatencyMetric::OtherResponse
                } else {
                    LatencyMetric::FaultResponse
                }
            }
            ExchangeEnd::Unfinished => LatencyMetric::OtherResponse,
        };
        self.counts.add_exchange(exchange, is_ok);
        self.latency.of_mut(metric).record(response);
        self.record_phases(exchange);
        if let Some(label) = self.label_mut(exchange.label) {
            label.counts.add_exchange(exchange, is_ok);
            if metric != LatencyMetric::FaultResponse {
                label.response.record(response);
            }
            if matches!(exchange.end, ExchangeEnd::Response(_)) {
                label.service.record(exchange.service());
            }
        }
    }

    /// The phases from due to done.
    #[inline]
    fn record_phases(&mut self, exchange: &Exchange) {
        let latency = &mut self.latency;
        if exchange.blocked > 0 {
            latency.of_mut(LatencyMetric::Blocked).record(exchange.blocked);
        }
        if let Some(connect) = exchange.connect {
            latency.of_mut(LatencyMetric::Connect).record(connect);
        }
        if let Some(tls) = exchange.tls {
            latency.of_mut(LatencyMetric::Tls).record(tls);
        }
        if let ExchangeEnd::Response(_) = exchange.end {
            latency.of_mut(LatencyMetric::Service).record(exchange.service());
            if let Some(first) = exchange.first_byte {
                latency
                    .of_mut(LatencyMetric::FirstByte)
                    .record(first.saturating_sub(exchange.write));
                latency.of_mut(LatencyMetric::Download).record(exchange.done.saturating_sub(first));
            }
        }
        if let Some(tcp) = exchange.tcp {
            latency.of_mut(LatencyMetric::Rtt).record(tcp.rtt);
            self.counts.retransmits += u64::from(tcp.retransmits);
        }
    }

    /// Adds a dropped arrival, as a wait of at least `waited`.
    pub fn record_dropped(&mut self, waited: Nanos) {
        self.counts.dropped += 1;
        self.latency.of_mut(LatencyMetric::OtherResponse).record(waited);
    }

    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for metric in LatencyMetric::ALL {
            self.latency.of_mut(metric).merge(other.latency.of(metric));
        }
        for &(status, count) in &other.statuses {
            bump(&mut self.statuses, status, count);
        }
        for &(fault, count) in &other.faults {
            bump(&mut self.faults, fault, count);
        }
        self.grow_labels(other.labels.len());
        for (mine, theirs) in self.labels.iter_mut().zip(&other.labels) {
            mine.counts.merge(&theirs.counts);
            mine.response.merge(&theirs.response);
            mine.service.merge(&theirs.service);
        }
        self.series.merge(&other.series);
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
        self.fired = self.fired.saturating_add(other.fired);
    }

    /// Removes the figures; keeps memory, labels and series.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        for metric in LatencyMetric::ALL {
            self.latency.of_mut(metric).clear();
        }
        self.statuses.clear();
        self.faults.clear();
        for label in &mut self.labels {
            label.counts = Counts::default();
            label.response.clear();
            label.service.clear();
        }
        self.series.clear();
        self.in_flight_ns = 0;
        self.fired = 0;
    }

    /// Gives an empty tally the labels and series indexes of `other`.
    pub(super) fn follow(&mut self, other: &Self) {
        self.grow_labels(other.labels.len());
        self.series.follow(&other.series);
    }

    pub(super) fn set_labels(&mut self, labels: Vec<LabelTally>) {
        self.labels = labels;
    }

    /// Heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let metrics = LatencyMetric::ALL.iter().map(|metric| self.latency.of(*metric).heap_bytes());
        let labels = self.labels.iter().map(|label| {
            size_of::<LabelTally>() + label.response.heap_bytes() + label.service.heap_bytes()
        });
        metrics.sum::<usize>() + labels.sum::<usize>() + self.series.heap_bytes()
    }

    /// Responses by status code, in order of code.
    #[must_use]
    pub fn statuses(&self) -> &[(u16, u64)] {
        &self.statuses
    }

    /// Ends without a response by fault.
    #[must_use]
    pub fn faults(&self) -> &[(Fault, u64)] {
        &self.faults
    }

    /// The figures of each label; empty with one label.
    #[must_use]
    pub fn labels(&self) -> &[LabelTally] {
        &self.labels
    }

    /// The number of faults that `which` accepts.
    pub fn faults_where(&self, which: impl Fn(Fault) -> bool) -> u64 {
        self.faults.iter().filter(|(fault, _)| which(*fault)).map(|(_, count)| count).sum()
    }

    /// Adds to the count of a status, for readers of files.
    pub fn add_status(&mut self, status: u16, count: u64) {
        bump(&mut self.statuses, status, count);
    }

    /// Adds to the count of a fault, for readers of files.
    pub fn add_fault(&mut self, fault: Fault, count: u64) {
        bump(&mut self.faults, fault, count);
    }

    /// The figures of a label; `None` if labels are not distinguished.
    pub fn label_mut(&mut self, label: u16) -> Option<&mut LabelTally> {
        self.labels.get_mut(usize::from(label))
    }

    /// Whether nothing happened in the window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let nothing = Counts::default();
        self.counts == nothing
            && self.in_flight_ns == 0
            && self.fired == 0
            && self.series.is_empty()
    }
}

/// Adds to the count of a key in a short sorted list.
#[inline]
pub(super) fn bump<K: Ord + Copy>(list: &mut Vec<(K, u64)>, key: K, count: u64) {
    match list.binary_search_by_key(&key, |entry| entry.0) {
        Ok(at) => list[at].1 = list[at].1.saturating_add(count),
        Err(at) => list.insert(at, (key, count)),
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
