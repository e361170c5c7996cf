//! What happens before a request is on a connection.

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Load;
use gake_core::record::{Fault, Histogram, Metric, Phase};

use super::{Facts, Finding};
use crate::stats::share;
use crate::units;

const MS: Nanos = SECOND / 1_000;

/// Where connect times gather when the SYN was lost once, twice, three times, and the times
/// beside them. Linux sends a SYN again after 1 s and doubles the wait each time (RFC 6298).
const MODES: [Mode; 3] = [
    Mode { name: "1 s", resent: 1, within: (950, 1_500), beside: [(500, 900), (1_600, 2_500)] },
    Mode {
        name: "3 s",
        resent: 2,
        within: (2_900, 3_600),
        beside: [(2_000, 2_800), (3_800, 5_000)],
    },
    Mode {
        name: "7 s",
        resent: 3,
        within: (6_900, 7_800),
        beside: [(5_000, 6_500), (8_000, 10_000)],
    },
];

struct Mode {
    name: &'static str,
    /// How often the SYN went again.
    resent: u64,
    /// In milliseconds.
    within: (u64, u64),
    beside: [(u64, u64); 2],
}

/// A mode holds at least this many connections, this share of them, and stands out over the
/// times beside it this many times.
const MODE_COUNT_MIN: u64 = 3;
const MODE_SHARE_MIN: f64 = 0.001;
const MODE_OVER_BESIDE: u64 = 3;

/// Connects slower than this at their best are far away, not dropped.
const NEAR: Nanos = 400 * MS;

/// Failed attempts below these, in number and as a share, are no finding.
const ATTEMPTS_MIN: u64 = 3;
const ATTEMPTS_SHARE_MIN: f64 = 0.01;

/// Segments sent again, of requests.
const RETRANSMITS_MIN: u64 = 10;
const RETRANSMITS_SHARE_MIN: f64 = 0.01;

/// A route loses the segments of requests as it loses SYNs; below this part of the share of SYNs,
/// a full queue loses them.
const ROUTE_OVER_SYNS: f64 = 0.5;

/// A user is starved who waits for one answer for this part of the run, when the median is below
/// that part and hardly anybody is in between: those starved over those there.
const STARVED: u64 = 2;
const STARVED_MEDIAN: u64 = 8;
const STARVED_BETWEEN: (u64, u64) = (4, 4);

/// Arrivals that waited for a free connection, of those sent.
const BLOCKED_SHARE_MIN: f64 = 0.01;

/// What became of the connections' SYNs, and of the segments that followed them.
struct Syns {
    /// Connections opened late, since a SYN was lost.
    dropped: u64,
    timed_out: u64,
    /// Segments sent again besides the SYNs of the connections that opened late.
    segments: u64,
}

impl Syns {
    fn of(facts: &Facts<'_>) -> Self {
        let modes = syn_modes(facts.latency(Metric::Connect));
        let again: u64 = modes.iter().map(|(mode, count)| mode.resent * count).sum();
        Self {
            dropped: modes.iter().map(|mode| mode.1).sum(),
            timed_out: facts
                .faults(|f| matches!(f, Fault::ConnectTimeout | Fault::Timeout(Phase::Connect))),
            segments: facts.counts().retransmits.saturating_sub(again),
        }
    }

    fn late(&self) -> u64 {
        self.dropped + self.timed_out
    }

    /// Whether so many segments went again that the route must have lost them. A server that does
    /// not accept makes clients send again too, and loses far more SYNs than segments.
    fn route_loses(&self, facts: &Facts<'_>) -> bool {
        let part = facts.of_sent(self.segments);
        self.segments >= RETRANSMITS_MIN
            && part >= RETRANSMITS_SHARE_MIN
            && part >= share(self.late(), facts.attempts()) * ROUTE_OVER_SYNS
    }
}

/// How many connections took as long as each number of lost SYNs makes them.
fn syn_modes(connects: &Histogram) -> Vec<(&'static Mode, u64)> {
    if connects.is_empty() || connects.min() > NEAR {
        return Vec::new();
    }
    let between = |(low, high): (u64, u64)| connects.count_between(low * MS, high * MS);
    let stands_out = |mode: &'static Mode| {
        let count = between(mode.within);
        let beside: u64 = mode.beside.into_iter().map(between).sum();
        let enough = count >= MODE_COUNT_MIN && share(count, connects.count()) >= MODE_SHARE_MIN;
        (enough && count > beside * MODE_OVER_BESIDE).then_some((mode, count))
    };
    MODES.iter().filter_map(stands_out).collect()
}

pub(super) fn syn_drops(facts: &Facts<'_>) -> Option<Finding> {
    let connects = facts.latency(Metric::Connect);
    let modes = syn_modes(connects);
    if modes.is_empty() {
        return None;
    }
    let parts: Vec<_> = modes
        .iter()
        .map(|(mode, count)| format!("{} took about {}", units::count(*count), mode.name))
        .collect();
    let mut evidence = format!(
        "of {}, {}: their SYN was dropped and sent again",
        units::plural(connects.count(), "connection"),
        parts.join(", ")
    );
    let retransmits = facts.counts().retransmits;
    if retransmits > 0 {
        evidence.push_str(&format!("; {} went again later", units::plural(retransmits, "segment")));
    }
    let advice = "raise the server's listen backlog with net.core.somaxconn, accept faster, or \
                  open connections more slowly with --connect-rate";
    Some(Finding::new("syn_drops", evidence, advice))
}

/// New connections are lost while established ones lose nothing: not the route, the queue.
pub(super) fn accept_queue(facts: &Facts<'_>) -> Option<Finding> {
    let syns = Syns::of(facts);
    let late = syns.late();
    let many = late >= ATTEMPTS_MIN && share(late, facts.attempts()) >= ATTEMPTS_SHARE_MIN;
    if !many || syns.route_loses(facts) || facts.counts().ok == 0 {
        return None;
    }
    let evidence = format!(
        "{} of {} opened late or not at all ({} timed out) while {} answered on others",
        units::count(late),
        units::plural(facts.attempts(), "connection"),
        units::count(syns.timed_out),
        units::plural(facts.answers(), "request"),
    );
    let advice = "the server's accept queue was probably full: see ListenOverflows in \
                  /proc/net/netstat there, raise its backlog and net.core.somaxconn";
    Some(Finding::new("accept_queue", evidence, advice))
}

pub(super) fn connection_limit(facts: &Facts<'_>) -> Option<Finding> {
    turned_away(facts).or_else(|| starved(facts))
}

fn turned_away(facts: &Facts<'_>) -> Option<Finding> {
    let refused =
        facts.faults(|fault| matches!(fault, Fault::ConnectRefused | Fault::ConnectReset));
    let attempts = facts.attempts();
    let many = refused >= ATTEMPTS_MIN && share(refused, attempts) >= ATTEMPTS_SHARE_MIN;
    if !many || facts.answers() == 0 {
        return None;
    }
    let evidence = format!(
        "{} of {} attempts to connect were turned away; {} were open at most",
        units::count(refused),
        units::count(attempts),
        units::plural(facts.run.peak_connections, "connection")
    );
    let advice = "raise the server's or the balancer's limit on connections, or stay below it \
                  with -c";
    Some(Finding::new("connection_limit", evidence, advice))
}

/// A server that accepts no more leaves connections in its backlog: some users are answered all
/// the time and the others never.
fn starved(facts: &Facts<'_>) -> Option<Finding> {
    let closed = matches!(facts.run.plan.load, Load::Closed { think } if think.is_zero());
    let response = facts.run.tally.latency.response();
    let (measured, median) = (facts.run.measured, response.quantile(0.5));
    let starved = response.count_between(measured / STARVED, Nanos::MAX);
    // All of them: the server stood still.
    let served = facts.run.peak_connections.saturating_sub(starved);
    let many = starved >= ATTEMPTS_MIN && share(starved, served + starved) >= ATTEMPTS_SHARE_MIN;
    if !closed || !many || served == 0 || median > measured / STARVED_MEDIAN {
        return None;
    }
    let (from, part) = STARVED_BETWEEN;
    if response.count_between(measured / from, measured / STARVED) > starved / part {
        return None;
    }
    let evidence = format!(
        "{} of {} waited for an answer for more than half of the run, while the other {} were \
         answered in {} in the median",
        units::count(starved),
        units::plural(served + starved, "user"),
        units::count(served),
        units::duration(median as f64)
    );
    let advice = "the server seems to take no more connections than those (max-connections, \
                  worker_connections): raise that limit, or stay below it with -c";
    Some(Finding::new("connection_limit", evidence, advice))
}

/// Nobody answered at all.
pub(super) fn unreachable(facts: &Facts<'_>) -> Option<Finding> {
    // Want of ports or descriptors says nothing of the server and has findings of its own.
    let failed = facts.faults(|fault| fault.is_before_connection() && !fault.is_generators());
    if facts.answers() > 0 || failed * 2 <= facts.counts().sent || facts.counts().sent == 0 {
        return None;
    }
    let (fault, _) = *facts.run.tally.faults().iter().max_by_key(|fault| fault.1)?;
    let evidence = format!(
        "none of {} got a connection ({fault})",
        units::plural(facts.counts().sent, "request")
    );
    Some(Finding::new("unreachable", evidence, "check the address, and that the server is up"))
}

pub(super) fn retransmits(facts: &Facts<'_>) -> Option<Finding> {
    let syns = Syns::of(facts);
    if !syns.route_loses(facts) {
        return None;
    }
    let evidence = format!(
        "{} sent again for {}",
        units::plural(syns.segments, "TCP segment"),
        units::plural(facts.counts().sent, "request")
    );
    let advice = "the route loses packets: look at drops on the interfaces, switches and firewalls \
                  on the way";
    Some(Finding::new("retransmits", evidence, advice))
}

pub(super) fn blocked(facts: &Facts<'_>) -> Option<Finding> {
    let waits = facts.latency(Metric::Blocked);
    let counts = facts.counts();
    let part = share(waits.count() + counts.dropped, counts.due());
    if part < BLOCKED_SHARE_MIN {
        return None;
    }
    let mut evidence = format!(
        "{} ({}) found all of {} busy",
        units::plural(waits.count() + counts.dropped, "arrival"),
        units::percent(part),
        units::plural(facts.run.plan.connections as u64, "connection")
    );
    if !waits.is_empty() {
        let p99 = units::duration(waits.quantile(0.99) as f64);
        evidence.push_str(&format!("; they waited up to {p99} (p99)"));
    }
    if counts.dropped > 0 {
        evidence.push_str(&format!("; {} were dropped", units::count(counts.dropped)));
    }
    let advice = "the server does not keep up at this number of connections: raise -c to see \
                  whether it can, or lower the rate";
    Some(Finding::new("blocked", evidence, advice))
}
