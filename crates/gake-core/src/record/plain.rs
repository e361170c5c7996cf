//! Exchanges that are alike, recorded in a few additions.
//!
//! In a closed loop without pauses most requests are fired and written when they are due, and their
//! response is read at once and as expected. Then response time, service time and the time to the
//! first byte are the same number, lateness and download are 0: one histogram and five counts hold
//! what the tally takes at the end of the interval.

use super::histogram::Histogram;
use super::latency::{self, LatencyMetric};
use super::tally::Tally;
use crate::clock::Nanos;
use crate::plan::ExpectedStatus;

/// A request that was written completely when it was due, and its response, which was read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainExchange {
    /// When it was due, fired and written.
    pub due: Nanos,
    /// When its response was read.
    pub done: Nanos,
    /// The status code.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
}

/// Plain exchanges of one expected status.
#[derive(Debug, Default)]
pub(super) struct PlainTally {
    /// 0 before the first.
    status: u16,
    count: u64,
    body_bytes: u64,
    bytes_in: u64,
    bytes_out: u64,
    times: Histogram,
}

impl PlainTally {
    /// Whether it takes exchanges with this status.
    #[inline]
    pub(super) fn takes(&mut self, status: u16, expect: &ExpectedStatus) -> bool {
        self.status == status || self.may_take(status, expect)
    }

    #[cold]
    fn may_take(&mut self, status: u16, expect: &ExpectedStatus) -> bool {
        let is_taken = self.count == 0 && expect.accepts(status);
        if is_taken {
            self.status = status;
        }
        is_taken
    }

    #[inline]
    pub(super) fn add(&mut self, exchange: &PlainExchange) {
        self.count += 1;
        self.body_bytes += exchange.body_bytes;
        self.bytes_in += exchange.bytes_in;
        self.bytes_out += exchange.bytes_out;
        self.times.record(exchange.done.saturating_sub(exchange.due));
    }

    /// Maps memory for the usual latencies, unless there are some already.
    pub(super) fn make_room(&mut self) {
        if self.times.is_empty() {
            latency::make_room(&mut self.times);
        }
    }

    /// Adds them to the tally as the exchanges and arrivals that they are.
    pub(super) fn move_to(&mut self, tally: &mut Tally) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        tally.add_status(self.status, count);
        let counts = &mut tally.counts;
        counts.started += count;
        counts.sent += count;
        counts.written += count;
        counts.ok += count;
        counts.body_bytes += std::mem::take(&mut self.body_bytes);
        counts.bytes_in += std::mem::take(&mut self.bytes_in);
        counts.bytes_out += std::mem::take(&mut self.bytes_out);
        let latency = &mut tally.latency;
        for metric in [LatencyMetric::OkResponse, LatencyMetric::Service, LatencyMetric::FirstByte]
        {
            latency.of_mut(metric).merge(&self.times);
        }
        for metric in [LatencyMetric::Lateness, LatencyMetric::Download] {
            latency.of_mut(metric).record_n(0, count);
        }
        self.times.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        Exchange, ExchangeEnd, Iteration, IterationEnd, Recorder, ResponseSummary,
    };
    use crate::schedule::Arrival;

    const WARMUP_END: Nanos = 1_000;

    fn exchanges() -> impl Iterator<Item = PlainExchange> {
        (0..3_000_u64).map(|n| PlainExchange {
            due: 10 * n,
            done: 10 * n + n * n * 37,
            status: if n % 100 == 7 { 204 } else { 200 },
            body_bytes: n % 5,
            bytes_in: 100 + n % 5,
            bytes_out: 40,
        })
    }

    fn record_each(recorder: &Recorder, plain: &PlainExchange) {
        let &PlainExchange { due, done, status, body_bytes, bytes_in, bytes_out } = plain;
        let iteration = Iteration::new(Arrival { number: 0, due }, 0, due, recorder);
        iteration.exchange(Exchange {
            write: due,
            written: true,
            first_byte: Some(done),
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes }),
            bytes_in,
            bytes_out,
            ..Exchange::unfinished(done)
        });
        recorder.end(&iteration, IterationEnd::finished(done));
    }

    #[test]
    fn the_tally_is_that_of_single_exchanges() {
        let recorder = || Recorder::new(ExpectedStatus::default(), WARMUP_END, 0, None);
        let (plain, single) = (recorder(), recorder());
        plain.make_room_for_plain();
        for (at, exchange) in exchanges().enumerate() {
            if !plain.plain(&exchange) {
                record_each(&plain, &exchange);
            }
            record_each(&single, &exchange);
            if at == 1_500 {
                assert_eq!(plain.take(Tally::default()), single.take(Tally::default()));
            }
        }
        let (tally, _) = plain.take(Tally::default());
        assert_eq!(tally, single.take(Tally::default()).0);
        assert!(tally.counts.ok > 1_400 && tally.statuses().len() == 2);
    }

    #[test]
    fn only_expected_exchanges_without_labels_are_plain() {
        let plain = |labels, status, due| {
            let recorder = Recorder::new(ExpectedStatus::default(), WARMUP_END, labels, None);
            let first = exchanges().last().unwrap();
            recorder.plain(&PlainExchange { status, due, ..first })
        };
        assert!(plain(0, 200, WARMUP_END) && plain(1, 200, WARMUP_END));
        assert!(!plain(2, 200, WARMUP_END) && !plain(0, 500, WARMUP_END));
        assert!(!plain(0, 200, WARMUP_END - 1));
    }
}
