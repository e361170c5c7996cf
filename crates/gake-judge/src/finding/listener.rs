//! The accept queue of a listening socket.

use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use super::syns::SynLosses;
use crate::stats::share;

/// Fewer dropped or failed attempts to connect, in number or as a share, are not a finding.
const ATTEMPTS_MIN: u64 = 3;
const ATTEMPTS_SHARE_MIN: f64 = 0.01;

/// A queue is full from this share of its limit on.
const FULL: f64 = 0.9;

const ADVICE: &str = "accept faster, or raise the backlog and net.core.somaxconn (for bursts)";

/// Drops at the target's own socket when they can be read; otherwise drops on the target's machine,
/// if connections also opened late.
pub(super) fn overflows(facts: &RunFacts<'_>) -> Option<Finding> {
    let Some(dropped) = facts.growth("listener_dropped") else {
        return overflows_of_machine(facts);
    };
    let syns = SynLosses::of(facts);
    if dropped < ATTEMPTS_MIN as f64 || !(is_full(facts) || syns.lost() >= ATTEMPTS_MIN) {
        return None;
    }
    let mut evidence = format!(
        "the kernel dropped {} to connect at the target's own listening socket",
        units::plural(dropped as u64, "attempt"),
    );
    let held = facts.most("accept_queue").filter(|held| *held > 0.0);
    if let (Some(held), Some(backlog)) = (held, facts.most("backlog")) {
        evidence.push_str(&format!(
            ": up to {} waited in its accept queue of {}",
            units::count(held as u64),
            units::count(backlog as u64)
        ));
    }
    evidence.push_str(&late(&syns));
    let check = "ss -ltnm on the target: Recv-Q over Send-Q; skmem's d grows";
    Some(Finding::new("target_overflows", evidence, ADVICE, check))
}

/// Whether the accept queue was seen full. The counter of a listening socket includes other dropped
/// segments, for instance of closed connections: a queue far from full drops no attempt to connect.
pub(super) fn is_full(facts: &RunFacts<'_>) -> bool {
    let (held, backlog) = (facts.most("accept_queue"), facts.most("backlog"));
    held.zip(backlog).is_some_and(|(held, backlog)| held >= FULL * backlog)
}

fn overflows_of_machine(facts: &RunFacts<'_>) -> Option<Finding> {
    let rate = facts.most("listen_overflows").filter(|rate| *rate > 0.0)?;
    let syns = SynLosses::of(facts);
    if syns.lost() < ATTEMPTS_MIN {
        return None;
    }
    let evidence = format!(
        "the kernel of the target's machine dropped up to {} attempts to connect a second, over \
         all its listening sockets{}",
        units::number(rate),
        late(&syns)
    );
    let check = "nstat -az TcpExtListenOverflows there; ss -ltnm shows the socket";
    Some(Finding::new("target_overflows", evidence, ADVICE, check))
}

/// `; 12 connections opened at least 1 s late`.
fn late(syns: &SynLosses) -> String {
    match syns.dropped() {
        0 => String::new(),
        n => format!("; {} opened at least 1 s late", units::plural(n, "connection")),
    }
}

/// SYNs are lost while established connections lose nothing: the queue drops them, not the route.
pub(super) fn accept_queue(facts: &RunFacts<'_>) -> Option<Finding> {
    // The socket's own counter is known and decides.
    if facts.growth("listener_dropped").is_some() {
        return None;
    }
    let syns = SynLosses::of(facts);
    let lost = syns.lost();
    let many = lost >= ATTEMPTS_MIN && share(lost, facts.attempts()) >= ATTEMPTS_SHARE_MIN;
    if !many || syns.route_loses(facts) || facts.counts().ok == 0 || facts.generator_is_busy() {
        return None;
    }
    let evidence = format!(
        "{} of {} opened late or not at all ({}), while others carried {}",
        units::count(lost),
        units::plural(facts.attempts(), "connection"),
        how_late(&syns),
        units::plural(facts.responses(), "response"),
    );
    let advice = "probably a full accept queue: accept faster, or raise the backlog";
    let check = "nstat -az TcpExtListenOverflows on the target";
    Some(Finding::new("accept_queue", evidence, advice, check))
}

/// `12 after about 1 s, 4 after about 3 s, 2 timed out`.
pub(super) fn how_late(syns: &SynLosses) -> String {
    let late =
        syns.late.iter().map(|(s, count)| format!("{} after about {s} s", units::count(*count)));
    let timed_out =
        (syns.timed_out > 0).then(|| format!("{} timed out", units::count(syns.timed_out)));
    late.chain(timed_out).collect::<Vec<_>>().join(", ")
}
