//! Lost SYNs, from the times that connections took to open.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, Histogram, LatencyMetric, Phase};

use super::facts::RunFacts;
use crate::stats::{poisson_at_least, share};

const MS: Nanos = SECOND / 1_000;

/// A SYN is retransmitted after 1 s. Then the wait doubles (RFC 6298: 1, 3, 7 s after the first)
/// or, on kernels with `tcp_syn_linear_timeouts`, stays at a second for the first retries (1, 2, 3,
/// 4 s). Either way connections open shortly after a whole second.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=7;
/// The window of a whole second: from before it to after it, in milliseconds ...
const WITHIN: (u64, u64) = (50, 350);
/// ... and the gap between two windows, from the earlier second.
const GAP: (u64, u64) = (450, 900);

/// A window needs at least this many connections, this share of all, and this many times those in
/// the gaps around it.
const COUNT_MIN: u64 = 3;
const SHARE_MIN: f64 = 0.001;
const OVER_GAP: u64 = 3;

/// When even the fastest connect is slower, the server is far away.
const NEAR: Nanos = 400 * MS;

/// Retransmitted segments needed, and their ratio to the requests.
const RETRANSMITS_MIN: u64 = 10;
const RETRANSMITS_SHARE_MIN: f64 = 0.01;

/// A lossy route loses segments as often as SYNs; below this ratio of the two shares, a full queue
/// loses the SYNs.
const ROUTE_OVER_SYNS: f64 = 0.5;
/// Significance level.
const CHANCE: f64 = 0.02;

/// Losses of the connections' SYNs, and of later segments.
pub(super) struct SynLosses {
    /// Seconds late, and the number of connections that opened so.
    pub(super) late: Vec<(u64, u64)>,
    pub(super) timed_out: u64,
    /// Retransmitted segments, without the SYNs of the connections that opened late.
    pub(super) segments: u64,
}

impl SynLosses {
    pub(super) fn of(facts: &RunFacts<'_>) -> Self {
        let late = late_seconds(facts.latency(LatencyMetric::Connect));
        let linear = late.iter().any(|(second, _)| [2, 4, 5].contains(second));
        let sent_again = |second: u64| match second {
            _ if linear => second.min(5),
            0..3 => 1,
            3..7 => 2,
            _ => 3,
        };
        let again: u64 = late.iter().map(|(second, count)| sent_again(*second) * count).sum();
        Self {
            late,
            timed_out: facts
                .faults(|f| matches!(f, Fault::ConnectTimeout | Fault::Timeout(Phase::Connect))),
            segments: facts.counts().retransmits.saturating_sub(again),
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.late.iter().map(|(_, count)| count).sum()
    }

    /// Connections that opened late or not at all.
    pub(super) fn lost(&self) -> u64 {
        self.dropped() + self.timed_out
    }

    /// Whether only a lossy route explains the retransmitted segments. A server that does not
    /// accept makes clients retransmit too, but loses far more SYNs than segments; and the loopback
    /// loses nothing.
    pub(super) fn route_loses(&self, facts: &RunFacts<'_>) -> bool {
        let part = facts.of_sent(self.segments);
        // The number of late connections must be plausible at the route's loss rate.
        let explained = part / ROUTE_OVER_SYNS * facts.attempts() as f64;
        let is_chance = poisson_at_least(self.lost() as f64, explained) >= CHANCE;
        !facts.is_loopback()
            && self.segments >= RETRANSMITS_MIN
            && part >= RETRANSMITS_SHARE_MIN
            && is_chance
    }
}

/// The whole seconds at which connect times cluster, each with its count.
fn late_seconds(connects: &Histogram) -> Vec<(u64, u64)> {
    if connects.is_empty() || connects.min() > NEAR {
        return Vec::new();
    }
    let between = |low: u64, high: u64| connects.count_between(low * MS, high * MS);
    let gap = |second: u64| between(second * 1_000 + GAP.0, second * 1_000 + GAP.1);
    let at = |second: u64| {
        let count = between(second * 1_000 - WITHIN.0, second * 1_000 + WITHIN.1);
        let enough = count >= COUNT_MIN && share(count, connects.count()) >= SHARE_MIN;
        let around = gap(second - 1) + gap(second);
        (enough && count > around * OVER_GAP).then_some((second, count))
    };
    SECONDS.filter_map(at).collect()
}
