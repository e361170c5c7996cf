//! Mergeable counts and histograms of a time window.

use std::borrow::Cow;

use super::fault::Fault;
use super::histogram::Histogram;
use super::outcome::{Answer, End, Outcome};
use crate::clock::Nanos;
use crate::plan::Expect;

/// Plain counts. Each is a total; all of them add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Arrivals fired.
    pub sent: u64,
    /// Of the sent, those whose request was wholly written. What a server can have counted.
    pub written: u64,
    /// Responses that met the expectation.
    pub ok: u64,
    /// Responses that did not, and faults.
    pub failed: u64,
    /// In flight when the drain ended.
    pub unfinished: u64,
    /// Due but never sent.
    pub dropped: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes of whole answers' bodies, without heads and framing.
    pub body_bytes: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Connections opened.
    pub opened: u64,
    /// Reused connections found closed, and replaced for the same request.
    pub stale_reconnects: u64,
    /// Responses followed by bytes that nobody asked for; their connection was closed.
    pub excess: u64,
    /// TCP segments sent again, as far as sampled.
    pub retransmits: u64,
    /// Idle connections, held beside the load, that the server closed.
    pub idle_lost: u64,
    /// Idle connections, to be held beside the load, that could not be opened before the end.
    pub idle_failed: u64,
    /// Redirects followed: requests beyond the one that each arrival sends.
    pub redirects: u64,
}

impl Counts {
    /// Arrivals that were due: sent + dropped.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.sent + self.dropped
    }

    /// Arrivals that ended, with a response or a fault.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.ok + self.failed
    }

    /// What one outcome counts for.
    #[must_use]
    pub fn of(outcome: &Outcome, expect: &Expect) -> Self {
        let exchange = &outcome.exchange;
        let (ok, body_bytes) = match exchange.end {
            End::Answered(answer) => (expect.accepts(answer.status), answer.body_bytes),
            _ => (false, 0),
        };
        let unfinished = exchange.end == End::Unfinished;
        Self {
            sent: 1,
            written: u64::from(exchange.written),
            ok: u64::from(ok),
            failed: u64::from(!ok && !unfinished),
            unfinished: u64::from(unfinished),
            bytes_in: exchange.bytes_in,
            body_bytes,
            bytes_out: exchange.bytes_out,
            ..Self::default()
        }
    }

    /// Adds `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.written += other.written;
        self.ok += other.ok;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.dropped += other.dropped;
        self.bytes_in += other.bytes_in;
        self.body_bytes += other.body_bytes;
        self.bytes_out += other.bytes_out;
        self.opened += other.opened;
        self.stale_reconnects += other.stale_reconnects;
        self.excess += other.excess;
        self.retransmits += other.retransmits;
        self.idle_lost += other.idle_lost;
        self.idle_failed += other.idle_failed;
        self.redirects += other.redirects;
    }
}

/// What a histogram measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Due to done, of arrivals that met the expectation.
    OkResponse,
    /// Due to done, of other responses; censored waits of time-outs, unfinished and dropped.
    OtherResponse,
    /// Due to done, of arrivals that a fault ended early: apart, so that fast failures cannot
    /// improve a percentile.
    FaultResponse,
    /// First byte written to last byte read.
    Service,
    /// The generator's own delay.
    Lateness,
    /// Wait for a free connection at the bound.
    Blocked,
    /// Opening a connection.
    Connect,
    /// TLS handshake.
    Tls,
    /// First byte written to first byte read.
    FirstByte,
    /// First byte read to last byte read.
    Download,
    /// TCP's smoothed round-trip time, sampled.
    Rtt,
}

impl Metric {
    /// Every metric, in the order of their histograms.
    pub const ALL: [Self; 11] = [
        Self::OkResponse,
        Self::OtherResponse,
        Self::FaultResponse,
        Self::Service,
        Self::Lateness,
        Self::Blocked,
        Self::Connect,
        Self::Tls,
        Self::FirstByte,
        Self::Download,
        Self::Rtt,
    ];

    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OkResponse => "ok_response",
            Self::OtherResponse => "other_response",
            Self::FaultResponse => "fault_response",
            Self::Service => "service",
            Self::Lateness => "lateness",
            Self::Blocked => "blocked",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::Download => "download",
            Self::Rtt => "rtt",
        }
    }
}

/// The histograms of a tally.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latency {
    histograms: [Histogram; Metric::ALL.len()],
}

impl Latency {
    /// The histogram of `metric`.
    #[must_use]
    pub fn of(&self, metric: Metric) -> &Histogram {
        &self.histograms[metric as usize]
    }

    /// The histogram of `metric`, to write to.
    #[inline]
    pub fn of_mut(&mut self, metric: Metric) -> &mut Histogram {
        &mut self.histograms[metric as usize]
    }

    /// Response time, the headline: every arrival that was answered, and those that timed out,
    /// were unfinished or dropped, as having waited at least as long as they had.
    #[must_use]
    pub fn response(&self) -> Cow<'_, Histogram> {
        let (ok, other) = (self.of(Metric::OkResponse), self.of(Metric::OtherResponse));
        if other.is_empty() {
            return Cow::Borrowed(ok);
        }
        let mut all = ok.clone();
        all.merge(other);
        Cow::Owned(all)
    }
}

/// What one label (endpoint) saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelTally {
    /// Its counts; those of connections are not told by label.
    pub counts: Counts,
    /// Response time as in [`Latency::response`].
    pub response: Histogram,
    /// Service time.
    pub service: Histogram,
}

/// Mergeable counts and histograms of a time window. Merging is associative and commutative,
/// and loses nothing.
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
    /// Σ of nanoseconds in flight, of everything that was in flight in the window: its quotient
    /// by the window's length is the mean number in flight.
    pub in_flight_ns: u128,
    /// Arrivals fired in the window, whenever they ended; `counts` hold those that ended in it.
    pub fired: u64,
}

impl Tally {
    /// An empty tally for `labels` labels (0 or 1: none are told apart).
    #[must_use]
    pub fn new(labels: usize) -> Self {
        let labels = if labels > 1 { vec![LabelTally::default(); labels] } else { Vec::new() };
        Self { labels, ..Self::default() }
    }

    /// Makes room for `labels` labels at least.
    pub fn tell_labels(&mut self, labels: usize) {
        if self.labels.len() < labels {
            self.labels.resize_with(labels, LabelTally::default);
        }
    }

    /// Adds what came of one arrival. Allocates nothing, but for the first of a status or fault
    /// and for a latency larger than any before.
    pub fn record(&mut self, outcome: &Outcome, expect: &Expect) {
        let exchange = &outcome.exchange;
        let response = outcome.response();
        let counts = Counts::of(outcome, expect);
        let metric = match exchange.end {
            End::Answered(Answer { status, .. }) => {
                bump(&mut self.statuses, status, 1);
                if counts.ok == 1 { Metric::OkResponse } else { Metric::OtherResponse }
            }
            End::Fault(fault) => {
                bump(&mut self.faults, fault, 1);
                let censored = matches!(fault, Fault::Timeout(_) | Fault::ConnectTimeout);
                if censored { Metric::OtherResponse } else { Metric::FaultResponse }
            }
            End::Unfinished | End::NothingToSend => Metric::OtherResponse,
        };
        self.counts.merge(&counts);
        self.latency.of_mut(metric).record(response);
        self.record_parts(outcome);
        if let Some(label) = self.label_mut(exchange.label) {
            label.counts.merge(&counts);
            if metric != Metric::FaultResponse {
                label.response.record(response);
            }
            if matches!(exchange.end, End::Answered(_)) {
                label.service.record(exchange.service());
            }
        }
    }

    /// The parts of the way from due to done.
    #[inline]
    fn record_parts(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        let latency = &mut self.latency;
        latency.of_mut(Metric::Lateness).record(outcome.lateness());
        if outcome.blocked > 0 {
            latency.of_mut(Metric::Blocked).record(outcome.blocked);
        }
        if let Some(connect) = exchange.connect {
            latency.of_mut(Metric::Connect).record(connect);
        }
        if let Some(tls) = exchange.tls {
            latency.of_mut(Metric::Tls).record(tls);
        }
        if let End::Answered(_) = exchange.end {
            latency.of_mut(Metric::Service).record(exchange.service());
            if let Some(first) = exchange.first_byte {
                latency.of_mut(Metric::FirstByte).record(first.saturating_sub(exchange.write));
                latency.of_mut(Metric::Download).record(exchange.done.saturating_sub(first));
            }
        }
        if let Some(tcp) = exchange.tcp {
            latency.of_mut(Metric::Rtt).record(tcp.rtt);
            self.counts.retransmits += u64::from(tcp.retransmits);
        }
    }

    /// Counts an arrival that was never sent, as a wait of at least `waited`.
    pub fn record_dropped(&mut self, waited: Nanos) {
        self.counts.dropped += 1;
        self.latency.of_mut(Metric::OtherResponse).record(waited);
    }

    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for metric in Metric::ALL {
            self.latency.of_mut(metric).merge(other.latency.of(metric));
        }
        for &(status, count) in &other.statuses {
            bump(&mut self.statuses, status, count);
        }
        for &(fault, count) in &other.faults {
            bump(&mut self.faults, fault, count);
        }
        self.tell_labels(other.labels.len());
        for (mine, theirs) in self.labels.iter_mut().zip(&other.labels) {
            mine.counts.merge(&theirs.counts);
            mine.response.merge(&theirs.response);
            mine.service.merge(&theirs.service);
        }
        self.in_flight_ns += other.in_flight_ns;
        self.fired += other.fired;
    }

    /// Forgets everything and keeps the room.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        for metric in Metric::ALL {
            self.latency.of_mut(metric).clear();
        }
        self.statuses.clear();
        self.faults.clear();
        for label in &mut self.labels {
            label.counts = Counts::default();
            label.response.clear();
            label.service.clear();
        }
        self.in_flight_ns = 0;
        self.fired = 0;
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

    /// What each label saw; empty when there is one label.
    #[must_use]
    pub fn labels(&self) -> &[LabelTally] {
        &self.labels
    }

    /// How many ended with a fault for which `which` holds.
    pub fn faults_where(&self, which: impl Fn(Fault) -> bool) -> u64 {
        self.faults.iter().filter(|(fault, _)| which(*fault)).map(|(_, count)| count).sum()
    }

    /// Sets the count of a status, for readers of files.
    pub fn add_status(&mut self, status: u16, count: u64) {
        bump(&mut self.statuses, status, count);
    }

    /// Sets the count of a fault, for readers of files.
    pub fn add_fault(&mut self, fault: Fault, count: u64) {
        bump(&mut self.faults, fault, count);
    }

    /// The tally of a label, made when it is not there yet and the tally tells labels apart.
    pub fn label_mut(&mut self, label: u16) -> Option<&mut LabelTally> {
        self.labels.get_mut(usize::from(label))
    }

    /// Whether nothing happened in the window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts == Counts::default() && self.in_flight_ns == 0 && self.fired == 0
    }
}

/// Adds to the count of a key in a short sorted list: a run sees few different ones.
#[inline]
pub(super) fn bump<K: Ord + Copy>(list: &mut Vec<(K, u64)>, key: K, count: u64) {
    match list.binary_search_by_key(&key, |entry| entry.0) {
        Ok(at) => list[at].1 += count,
        Err(at) => list.insert(at, (key, count)),
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
