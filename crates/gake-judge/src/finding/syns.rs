//! Lost SYNs, seen in how long connections took to open.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, Histogram, LatencyMetric, Phase};

use super::facts::Facts;
use crate::stats::{poisson_at_least, share};

const MS: Nanos = SECOND / 1_000;

/// A SYN is sent again after 1 s. Then the wait doubles (RFC 6298: 1, 3, 7 s after the first), or,
/// on kernels with `tcp_syn_linear_timeouts`, stays a second for the first times (1, 2, 3, 4 s).
/// Either way connections open a little after a whole second.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=7;
/// From this long before the second to this long after it, in milliseconds ...
const WITHIN: (u64, u64) = (50, 350);
/// ... and what lies beside, after the second before.
const BESIDE: (u64, u64) = (450, 900);

/// As many connections at least gather there, this share of them, and this many times those beside.
const COUNT_MIN: u64 = 3;
const SHARE_MIN: f64 = 0.001;
const OVER_BESIDE: u64 = 3;

/// Connects slower than this at their best are far away, not dropped.
const NEAR: Nanos = 400 * MS;

/// Segments sent again, of requests.
const RETRANSMITS_MIN: u64 = 10;
const RETRANSMITS_SHARE_MIN: f64 = 0.01;

/// A route loses the segments of requests as it loses SYNs; below this part of the share of SYNs,
/// a full queue loses them.
const ROUTE_OVER_SYNS: f64 = 0.5;
/// Less probable than this is not chance.
const CHANCE: f64 = 0.02;

/// What became of the connections' SYNs, and of the segments that followed them.
pub(super) struct Syns {
    /// Connections that opened about this many seconds late, since their SYN was lost.
    pub(super) late: Vec<(u64, u64)>,
    pub(super) timed_out: u64,
    /// Segments sent again besides the SYNs of the connections that opened late.
    pub(super) segments: u64,
}

impl Syns {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        let late = gathered(facts.latency(LatencyMetric::Connect));
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

    /// Connections that opened late.
    pub(super) fn dropped(&self) -> u64 {
        self.late.iter().map(|(_, count)| count).sum()
    }

    /// Connections that opened late or not at all.
    pub(super) fn lost(&self) -> u64 {
        self.dropped() + self.timed_out
    }

    /// Whether more segments went again than anything but a lossy route explains. A server that does
    /// not accept makes clients send again too, and loses far more SYNs than segments; and nothing
    /// is lost on the way within one machine.
    pub(super) fn route_loses(&self, facts: &Facts<'_>) -> bool {
        let part = facts.of_sent(self.segments);
        // Of few connections some are late by chance: no more than the route's losses explain.
        let explained = part / ROUTE_OVER_SYNS * facts.attempts() as f64;
        let is_chance = poisson_at_least(self.lost() as f64, explained) >= CHANCE;
        !facts.is_loopback()
            && self.segments >= RETRANSMITS_MIN
            && part >= RETRANSMITS_SHARE_MIN
            && is_chance
    }
}

/// The whole seconds at which connect times gather, and how many do at each.
fn gathered(connects: &Histogram) -> Vec<(u64, u64)> {
    if connects.is_empty() || connects.min() > NEAR {
        return Vec::new();
    }
    let between = |low: u64, high: u64| connects.count_between(low * MS, high * MS);
    let beside = |second: u64| between(second * 1_000 + BESIDE.0, second * 1_000 + BESIDE.1);
    let at = |second: u64| {
        let count = between(second * 1_000 - WITHIN.0, second * 1_000 + WITHIN.1);
        let enough = count >= COUNT_MIN && share(count, connects.count()) >= SHARE_MIN;
        let around = beside(second - 1) + beside(second);
        (enough && count > around * OVER_BESIDE).then_some((second, count))
    };
    SECONDS.filter_map(at).collect()
}
