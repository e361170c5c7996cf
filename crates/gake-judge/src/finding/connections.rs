//! Limits on connections: refused, not accepted, unreachable, lossy.

use gake_core::clock::Nanos;
use gake_core::record::{Fault, LatencyMetric};
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use super::syns::SynLosses;

use crate::stats::share;

/// Failed attempts below these, in number and as a share, are not a finding.
const ATTEMPTS_MIN: u64 = 3;
const ATTEMPTS_SHARE_MIN: f64 = 0.01;

/// A user is starved whose wait for one response takes more than the run divided by this, when the
/// median response time is below the run divided by `STARVED_MEDIAN` and hardly any lie between.
const STARVED: u64 = 2;
const STARVED_MEDIAN: u64 = 8;
const STARVED_BETWEEN: (u64, u64) = (4, 4);

/// This share of the responses is fast where others get none.
const LEFT_FAST: f64 = 0.9;

/// Users take turns at the connections when most responses take no longer than a request alone, and
/// the others this many times as long, ...
const TURN_ALONE: f64 = 1.3;
const TURN_WAITS: f64 = 10.0;
/// ... while at least this many times as many users wait as are served.
const TURN_USERS: f64 = 2.0;

/// Users served, as a multiple of the places, from which on the newest are served first.
const LAST_COME: f64 = 1.3;

pub(super) fn limit(facts: &RunFacts<'_>) -> Option<Finding> {
    refused(facts)
        .or_else(|| unaccepted(facts))
        .or_else(|| left_out(facts))
        .or_else(|| in_turns(facts))
}

/// A server at its connection limit that closes each connection after a number of requests: users
/// wait for seconds to be accepted, and are then served at once.
fn in_turns(facts: &RunFacts<'_>) -> Option<Finding> {
    let response = facts.run.tally.latency.response();
    let queue = facts.at_bound("accept_queue", 1.0)?;
    let median = response.quantile(0.5);
    let wait = (TURN_WAITS * median as f64) as Nanos;
    let waited = response.count_between(wait, Nanos::MAX);
    let served = facts.rate() * median as f64 / 1e9;
    let is_split = waited >= ATTEMPTS_MIN
        && response.count_between(2 * median, wait) <= waited / STARVED_BETWEEN.1
        && median as f64 <= TURN_ALONE * facts.alone();
    let are_many = facts.in_flight() >= TURN_USERS * served
        && queue.mean >= facts.in_flight() / TURN_USERS - served;
    if !facts.is_closed() || !is_split || !are_many || facts.generator_is_busy() {
        return None;
    }
    let evidence = format!(
        "{} of {} are served at a time, in {} (median); {} had to wait first, up to {}, since up to \
         {} connections waited to be accepted, {}",
        units::count(served.round() as u64),
        units::plural(facts.run.peak_connections, "user"),
        units::duration(median as f64),
        units::plural(waited, "request"),
        units::duration(response.max() as f64),
        units::count(queue.max as u64),
        queue.how_often()
    );
    Some(Finding::new("connection_limit", evidence, UNACCEPTED, ACCEPT_QUEUE))
}

/// In an open loop, connections that the server never accepts carry no response, while the others
/// respond as fast as ever.
fn left_out(facts: &RunFacts<'_>) -> Option<Finding> {
    let counts = facts.counts();
    let ok = facts.latency(LatencyMetric::OkResponse);
    let queue = facts.at_bound("accept_queue", 1.0)?;
    let many = counts.unfinished >= ATTEMPTS_MIN
        && facts.of_sent(counts.unfinished) >= ATTEMPTS_SHARE_MIN
        && queue.max >= counts.unfinished as f64 / 2.0;
    // In the drain a few more are accepted.
    let is_fast = ok.count() > 0 && ok.quantile(LEFT_FAST) <= facts.run.measured / STARVED_MEDIAN;
    if facts.is_closed() || !many || !is_fast || facts.generator_is_busy() {
        return None;
    }
    let evidence = format!(
        "{} of {} never had a response, while the others got theirs in {} (median); up to {} \
         connections waited to be accepted, {}",
        units::count(counts.unfinished),
        units::plural(counts.sent, "request"),
        units::duration(ok.quantile(0.5) as f64),
        units::count(queue.max as u64),
        queue.how_often()
    );
    Some(Finding::new("connection_limit", evidence, UNACCEPTED, ACCEPT_QUEUE))
}

const UNACCEPTED: &str = "raise its limit on connections (worker_connections), or lower -c";
const ACCEPT_QUEUE: &str = "ss -ltn on the target: Recv-Q counts connections not yet accepted";

fn refused(facts: &RunFacts<'_>) -> Option<Finding> {
    let refused = facts.faults(|fault| {
        matches!(fault, Fault::ConnectRefused | Fault::ConnectReset | Fault::Unreachable(_))
    });
    let attempts = facts.attempts();
    let many = refused >= ATTEMPTS_MIN && share(refused, attempts) >= ATTEMPTS_SHARE_MIN;
    if !many || facts.responses() == 0 {
        return None;
    }
    let evidence = format!(
        "{} of {} connection attempts were refused or reset; at most {} were open",
        units::count(refused),
        units::count(attempts),
        units::plural(facts.run.peak_connections, "connection")
    );
    let advice = "raise the limit on connections of the server or balancer, or lower -c";
    let check = "ss -Htan state established sport = :PORT | wc -l on the target";
    Some(Finding::new("connection_limit", evidence, advice, check))
}

/// Starved and served users: the former wait for one response for most of the run, while the latter
/// get theirs all the time.
pub(super) fn starved(facts: &RunFacts<'_>) -> Option<(u64, u64)> {
    let response = facts.run.tally.latency.response();
    let (measured, median) = (facts.run.measured, response.quantile(0.5));
    let starved = response.count_between(measured / STARVED, Nanos::MAX);
    // With none served, the server stood still.
    let served = facts.run.peak_connections.saturating_sub(starved);
    let many = starved >= ATTEMPTS_MIN && share(starved, served + starved) >= ATTEMPTS_SHARE_MIN;
    if !facts.is_closed() || !many || served == 0 || median > measured / STARVED_MEDIAN {
        return None;
    }
    let (from, part) = STARVED_BETWEEN;
    let between = response.count_between(measured / from, measured / STARVED);
    (between <= starved / part).then_some((starved, served))
}

/// A server at its connection limit leaves the rest in its backlog: some users are served all the
/// time and the others never.
fn unaccepted(facts: &RunFacts<'_>) -> Option<Finding> {
    let (starved, served) = starved(facts)?;
    // A generator that is slow to connect looks the same.
    if facts.generator_is_busy() || facts.ports_are_short() || is_last_come(facts, served) {
        return None;
    }
    let median = facts.run.tally.latency.response().quantile(0.5);
    let mut evidence = format!(
        "{} of {} waited for a response for more than half of the run, while the other {} got \
         theirs in {} (median)",
        units::count(starved),
        units::plural(served + starved, "user"),
        units::count(served),
        units::duration(median as f64)
    );
    if let Some(queue) = facts.at_bound("accept_queue", 1.0) {
        evidence.push_str(&format!(
            "; up to {} connections waited to be accepted, {}",
            units::count(queue.max as u64),
            queue.how_often()
        ));
    }
    Some(Finding::new("connection_limit", evidence, UNACCEPTED, ACCEPT_QUEUE))
}

/// Whether the users served are more than the places that they occupy, and none waits to be
/// accepted: then the newest waiting request gets the next place, and the oldest starve.
pub(super) fn is_last_come(facts: &RunFacts<'_>, served: u64) -> bool {
    let places = facts.rate() * facts.latency(LatencyMetric::FirstByte).min() as f64 / 1e9;
    let accepted = facts.most("accept_queue") == Some(0.0);
    accepted && places >= 0.8 && served as f64 >= LAST_COME * places
}

pub(super) fn unreachable(facts: &RunFacts<'_>) -> Option<Finding> {
    // A lack of local ports or descriptors is not the server's and has findings of its own.
    let failed = facts.faults(|fault| fault.is_before_connection() && !fault.is_generators());
    if facts.responses() > 0 || failed * 2 <= facts.counts().sent || facts.counts().sent == 0 {
        return None;
    }
    let (fault, _) = *facts.run.tally.faults().iter().max_by_key(|fault| fault.1)?;
    let evidence = format!(
        "could not connect: {} ({} of {} failed)",
        fault.in_words(),
        units::count(failed),
        units::plural(facts.counts().sent, "request")
    );
    let advice = "check the address, and that the server is up";
    let check = "curl -v URL; ss -ltn on the target lists its listening ports";
    Some(Finding::new("unreachable", evidence, advice, check))
}

pub(super) fn retransmits(facts: &RunFacts<'_>) -> Option<Finding> {
    let syns = SynLosses::of(facts);
    if !syns.route_loses(facts) {
        return None;
    }
    let evidence = format!(
        "{} retransmitted for {}",
        units::plural(syns.segments, "TCP segment"),
        units::plural(facts.counts().sent, "request")
    );
    let advice = "the network loses packets: look at drops on interfaces and switches";
    let check = "nstat -az TcpRetransSegs here and on the target";
    Some(Finding::new("retransmits", evidence, advice, check))
}
