//! The queue of a listening socket, from which a server accepts its connections.

use gake_text::units;

use super::Finding;
use super::facts::Facts;
use super::syns::Syns;
use crate::stats::share;

/// Attempts to connect that were dropped, or failed, below which nothing is said.
const ATTEMPTS_MIN: u64 = 3;
const ATTEMPTS_SHARE_MIN: f64 = 0.01;

/// A queue is full that holds this part of what it may.
const FULL: f64 = 0.9;

const ADVICE: &str = "accept faster, or raise the backlog (accept-count, listen backlog=) and \
                      net.core.somaxconn; a longer queue only helps against bursts";

/// What the kernel dropped at the target's own socket, when that can be read; else what it dropped
/// on the target's machine, when connections are late as they are after a drop.
pub(super) fn overflows(facts: &Facts<'_>) -> Option<Finding> {
    let Some(dropped) = facts.growth("listener_dropped") else { return on_its_machine(facts) };
    let syns = Syns::of(facts);
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
            ": up to {} waited in its accept queue, which is set to {}",
            units::count(held as u64),
            units::count(backlog as u64)
        ));
    }
    evidence.push_str(&late(&syns));
    let check = "ss -ltnm on the target: Recv-Q over Send-Q, and the d of skmem grows";
    Some(Finding::new("target_overflows", evidence, ADVICE, check))
}

/// Whether the accept queue was seen full. The kernel counts other segments too that it drops at a
/// listening socket, as those of connections that are closed already: a queue that is far from full
/// drops no attempt to connect.
fn is_full(facts: &Facts<'_>) -> bool {
    let (held, backlog) = (facts.most("accept_queue"), facts.most("backlog"));
    held.zip(backlog).is_some_and(|(held, backlog)| held >= FULL * backlog)
}

fn on_its_machine(facts: &Facts<'_>) -> Option<Finding> {
    let rate = facts.most("listen_overflows").filter(|rate| *rate > 0.0)?;
    let syns = Syns::of(facts);
    if syns.lost() < ATTEMPTS_MIN {
        return None;
    }
    let evidence = format!(
        "on the target's machine the kernel dropped up to {} attempts to connect a second, at the \
         accept queues of all its listening sockets together{}",
        units::number(rate),
        late(&syns)
    );
    let check = "nstat -az TcpExtListenOverflows there; ss -ltnm tells whose: the d of skmem grows";
    Some(Finding::new("target_overflows", evidence, ADVICE, check))
}

/// `; 12 connections opened 1 s late or more`.
fn late(syns: &Syns) -> String {
    match syns.dropped() {
        0 => String::new(),
        n => format!("; {} opened 1 s late or more", units::plural(n, "connection")),
    }
}

/// New connections are lost while established ones lose nothing: not the route, the queue.
pub(super) fn accept_queue(facts: &Facts<'_>) -> Option<Finding> {
    // Of a socket whose drops are known nothing is guessed.
    if facts.growth("listener_dropped").is_some() {
        return None;
    }
    let syns = Syns::of(facts);
    let lost = syns.lost();
    let many = lost >= ATTEMPTS_MIN && share(lost, facts.attempts()) >= ATTEMPTS_SHARE_MIN;
    if !many || syns.route_loses(facts) || facts.counts().ok == 0 || facts.generator_is_busy() {
        return None;
    }
    let evidence = format!(
        "{} of {} opened late or not at all ({}) while {} came on others",
        units::count(lost),
        units::plural(facts.attempts(), "connection"),
        how_late(&syns),
        units::plural(facts.answers(), "answer"),
    );
    let advice = "the server's accept queue was probably full: raise its backlog and \
                  net.core.somaxconn, or accept faster";
    let check = "ss -ltnm on the target: Recv-Q over Send-Q, and the d of skmem grows; nstat -az \
                 TcpExtListenOverflows";
    Some(Finding::new("accept_queue", evidence, advice, check))
}

/// `12 about 1 s, 4 about 3 s, 2 timed out`.
pub(super) fn how_late(syns: &Syns) -> String {
    let late = syns.late.iter().map(|(s, count)| format!("{} about {s} s", units::count(*count)));
    let timed_out =
        (syns.timed_out > 0).then(|| format!("{} timed out", units::count(syns.timed_out)));
    late.chain(timed_out).collect::<Vec<_>>().join(", ")
}
