//! wrk's correction for requests that a slow response delayed.

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

/// The latencies with added ones that were never measured, as in wrk: if a connection sends a
/// request every `interval` on average, a latency of n intervals implies requests that would have
/// taken n−1, n−2, ... 2 of them.
pub fn backfilled(measured: &Histogram, interval: Nanos) -> Histogram {
    let mut all = measured.clone();
    if interval == 0 {
        return all;
    }
    // The latencies of a connection add up to its time, so this is at most about one step for
    // each request.
    for bucket in measured.buckets() {
        let value = bucket.high.clamp(measured.min(), measured.max());
        if value < 2 * interval {
            continue;
        }
        let mut missing = value - interval;
        while missing > interval {
            all.record_n(missing, bucket.count);
            missing -= interval;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_response_implies_delayed_requests() {
        let mut measured = Histogram::new();
        measured.record_n(10, 5);
        measured.record(100);
        let all = backfilled(&measured, 10);
        // 90, 80 ... 20.
        assert_eq!((all.count(), all.count_between(20, 90)), (6 + 8, 8));
        assert_eq!((all.min(), all.max()), (10, 100));
        assert_eq!(backfilled(&measured, 0), measured);
        assert_eq!(backfilled(&measured, 51), measured);
        assert_eq!(backfilled(&Histogram::new(), 10), Histogram::new());
    }
}
