//! Mergeable counts and histograms of a time window.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::fault::Fault;
use super::histogram::Histogram;
use super::latency::{self, Latency, LatencyMetric};
use super::exchange::{ResponseSummary, ExchangeEnd, Exchange, Outcome};
use crate::clock::Nanos;
use crate::metric::SeriesTable;
use crate::plan::ExpectedStatus;

/// Labels for whose latencies [`Tally::make_room`] reserves memory, 170 KB each.
const ROOMY_LABELS: usize = 4;

/// Statuses, and faults, for which it does.
const ROOMY_ENDS: usize = 16;

/// The figures of one label (endpoint).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelTally {
    /// Its counts; connections are not counted by label.
    pub counts: Counts,
    /// Response time as in [`Latency::response`].
    pub response: Histogram,
    /// Service time.
    pub service: Histogram,
}

/// Mergeable counts and histograms of a time window. Merging loses no sample; it is associative and
/// commutative, up to the last digits of a counter's sum and, beyond the bound on series, to which
/// series are told apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Plain counts.
    pub counts: Counts,
    /// Histograms.
    pub latency: Latency,
    /// Responses by status code, in order of code.
    statuses: Vec<(u16, u64)>,
    /// Ends without a response by fault, in order.
    faults: Vec<(Fault, u64)>,
    /// By label number; empty when there is one label.
    labels: Vec<LabelTally>,
    /// Metrics other than exchanges: checks, and a program's own metrics.
    pub series: SeriesTable,
    /// Σ of nanoseconds in flight, of everything that was in flight in the window: its quotient
    /// by the window's length is the mean number in flight.
    pub in_flight_ns: u128,
    /// Arrivals fired in the window, whenever they ended; `counts` hold those that ended in it.
    pub fired: u64,
}

impl Tally {
    /// An empty tally for `labels` labels (0 or 1: labels are not distinguished).
    #[must_use]
    pub fn new(labels: usize) -> Self {
        let labels = if labels > 1 { vec![LabelTally::default(); labels] } else { Vec::new() };
        Self { labels, ..Self::default() }
    }

    /// Reserves memory for what the first seconds record, so that they touch no fresh memory: the
    /// usual latencies, of the first few labels too. Call it on an empty tally.
    pub fn make_room(&mut self) {
        self.latency.make_room();
        for label in self.labels.iter_mut().take(ROOMY_LABELS) {
            latency::make_room(&mut label.response);
            latency::make_room(&mut label.service);
        }
        self.statuses.reserve(ROOMY_ENDS);
        self.faults.reserve(ROOMY_ENDS);
    }

    /// Makes room for at least `labels` labels.
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

    /// Adds an iteration that has ended: the generator's own delay before it, and its wait for a
    /// free lane.
    #[inline]
    pub fn record_arrival(&mut self, lateness: Nanos, blocked: Nanos, interrupted: bool) {
        self.counts.end_arrival(interrupted);
        self.latency.of_mut(LatencyMetric::Lateness).record(lateness);
        if blocked > 0 {
            self.latency.of_mut(LatencyMetric::Blocked).record(blocked);
        }
    }

    /// Adds an exchange. Allocates for the first of a status or fault, and where a histogram does
    /// ([`Histogram::record`]): for its first few values, and for the first of each octave.
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
                if fault.is_timeout() { LatencyMetric::OtherResponse } else { LatencyMetric::FaultResponse }
            }
            ExchangeEnd::Unfinished => LatencyMetric::OtherResponse,
        };
        self.counts.add_exchange(exchange, is_ok);
        self.latency.of_mut(metric).record(response);
        self.record_parts(exchange);
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

    /// The parts of the way from due to done.
    #[inline]
    fn record_parts(&mut self, exchange: &Exchange) {
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
                latency.of_mut(LatencyMetric::FirstByte).record(first.saturating_sub(exchange.write));
                latency.of_mut(LatencyMetric::Download).record(exchange.done.saturating_sub(first));
            }
        }
        if let Some(tcp) = exchange.tcp {
            latency.of_mut(LatencyMetric::Rtt).record(tcp.rtt);
            self.counts.retransmits += u64::from(tcp.retransmits);
        }
    }

    /// Counts an arrival that was never sent, as a wait of at least `waited`.
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

    /// Forgets the figures and keeps their memory, the labels and the series.
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

    /// Gives an empty tally the label and series numbers of `other`.
    pub(super) fn follow(&mut self, other: &Self) {
        self.grow_labels(other.labels.len());
        self.series.follow(&other.series);
    }

    /// Sets what each label saw, for readers of files.
    pub(super) fn set_labels(&mut self, labels: Vec<LabelTally>) {
        self.labels = labels;
    }

    /// Bytes of memory that its figures take.
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

    /// Ends without a response by fault, each with its detail.
    #[must_use]
    pub fn faults(&self) -> &[(Fault, u64)] {
        &self.faults
    }

    /// The figures of each label; empty when there is one label.
    #[must_use]
    pub fn labels(&self) -> &[LabelTally] {
        &self.labels
    }

    /// The number of exchanges that ended with a fault that `which` accepts.
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

    /// The tally of a label; `None` when labels are not distinguished.
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

/// Adds to the count of a key in a short sorted list: a run sees few different ones.
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
