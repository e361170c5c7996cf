//! The built-in trends of every run.

use std::borrow::Cow;
use std::ops::Range;

use super::histogram::Histogram;

/// A built-in latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyMetric {
    /// Due to done, of expected responses.
    OkResponse,
    /// Due to done, of other responses; censored waits of timed out, unfinished and dropped
    /// requests.
    OtherResponse,
    /// Due to done, of faults: separate, so that fast failures cannot improve a percentile.
    FaultResponse,
    /// First byte written to last byte read.
    Service,
    /// The generator's own delay.
    Lateness,
    /// Wait for a free connection at the limit.
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

impl LatencyMetric {
    /// All metrics, in the order of their histograms.
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

/// From this share of other responses on, the ok ones have percentiles of their own.
const OTHERS_MIN: f64 = 0.01;

/// The histograms of a tally.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latency {
    histograms: [Histogram; LatencyMetric::ALL.len()],
}

/// Usual response times as powers of two in ns: 8 µs to 0.5 s.
const USUAL_BITS: Range<u32> = 13..29;

/// Usual lateness, waits for a connection, and times of a response's body: 0.3 µs to 4 ms.
const USUAL_SHORT_BITS: Range<u32> = 8..22;

/// Maps memory for the usual response times in an empty histogram.
pub(super) fn make_room(histogram: &mut Histogram) {
    histogram.make_room(USUAL_BITS);
}

impl Latency {
    /// Maps memory for the usual latencies, so that the first seconds cause no page faults.
    /// Requires empty histograms.
    pub(super) fn make_room(&mut self) {
        for metric in [
            LatencyMetric::OkResponse,
            LatencyMetric::OtherResponse,
            LatencyMetric::Service,
            LatencyMetric::FirstByte,
        ] {
            make_room(self.of_mut(metric));
        }
        for metric in [LatencyMetric::Lateness, LatencyMetric::Blocked, LatencyMetric::Download] {
            self.of_mut(metric).make_room(USUAL_SHORT_BITS);
        }
    }

    /// The histogram of `metric`.
    #[must_use]
    pub fn of(&self, metric: LatencyMetric) -> &Histogram {
        &self.histograms[metric as usize]
    }

    /// The histogram of `metric`.
    #[inline]
    pub fn of_mut(&mut self, metric: LatencyMetric) -> &mut Histogram {
        &mut self.histograms[metric as usize]
    }

    /// Response time, the headline: responses, and timed out, unfinished and dropped requests as
    /// waits of at least the time they waited.
    #[must_use]
    pub fn response(&self) -> Cow<'_, Histogram> {
        let (ok, other) =
            (self.of(LatencyMetric::OkResponse), self.of(LatencyMetric::OtherResponse));
        if other.is_empty() {
            return Cow::Borrowed(ok);
        }
        let mut all = ok.clone();
        all.merge(other);
        Cow::Owned(all)
    }

    /// The response time of ok requests, if 1 % or more of all ended otherwise: fast failures make
    /// the percentiles of all look good.
    #[must_use]
    pub fn distinct_ok(&self) -> Option<&Histogram> {
        let ok = self.of(LatencyMetric::OkResponse);
        let others = self.of(LatencyMetric::OtherResponse).count();
        let is_distinct = others > 0 && others as f64 >= OTHERS_MIN * (ok.count() + others) as f64;
        (is_distinct && !ok.is_empty()).then_some(ok)
    }
}
