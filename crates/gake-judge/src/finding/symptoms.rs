//! What a limit does to requests: not why.

use gake_core::record::{Fault, LatencyMetric, Phase};
use gake_text::units;

use super::Finding;
use super::facts::{FAILURES_MIN, Facts};
use super::listener::how_late;
use super::syns::Syns;
use crate::lanes;
use crate::stats::share;

/// Arrivals that waited for a free connection, of those sent.
const BLOCKED_SHARE_MIN: f64 = 0.01;

pub(super) fn blocked(facts: &Facts<'_>) -> Option<Finding> {
    let waits = facts.latency(LatencyMetric::Blocked);
    let counts = facts.counts();
    // Over HTTP/2 an arrival may wait twice: to be fired, and then for a stream.
    let waited = waits.count().min(counts.due().saturating_sub(counts.dropped));
    // What lost agents were to send waited for none of them.
    let dropped = counts.dropped.saturating_sub(counts.lost);
    let waited = waited + dropped;
    let part = share(waited, counts.due().saturating_sub(counts.lost));
    if part < BLOCKED_SHARE_MIN {
        return None;
    }
    let mut evidence = format!(
        "{} ({}) found all of {} busy",
        units::plural(waited, "arrival"),
        units::percent(part),
        units::plural(facts.run.plan.connections as u64, lanes::noun(&facts.run.plan))
    );
    if !waits.is_empty() {
        let p99 = units::duration(waits.quantile(0.99) as f64);
        evidence.push_str(&format!("; they waited up to {p99} (p99)"));
    }
    if dropped > 0 {
        evidence.push_str(&format!("; {} were dropped", units::count(dropped)));
    }
    let (advice, check) = match facts.run.plan.fires_iterations() {
        true => (
            "iterations take longer than this number of users allows at this rate: give more users \
             (-u, maxVUs) to see whether the server keeps up, or lower the rate",
            "the rate times the mean iteration_duration is the number of users that it takes",
        ),
        false => (
            "the server does not keep up at this number of connections: raise -c to see whether it \
             can, or lower the rate",
            "ss -tan state established here counts the connections",
        ),
    };
    Some(Finding::new("blocked", evidence, advice, check).symptom())
}

/// Connections that opened late, and nothing tells whether a queue or the route lost their SYN.
pub(super) fn syn_drops(facts: &Facts<'_>) -> Option<Finding> {
    let syns = Syns::of(facts);
    let explained = super::listener::overflows(facts).is_some()
        || super::listener::accept_queue(facts).is_some();
    if syns.late.is_empty() || explained {
        return None;
    }
    let evidence = format!(
        "{} of {} opened late ({}): their SYN was dropped and sent again",
        units::count(syns.dropped()),
        units::plural(facts.attempts(), "connection"),
        how_late(&Syns { timed_out: 0, ..syns })
    );
    let advice = "raise the server's listen backlog with net.core.somaxconn, accept faster, or \
                  open connections more slowly with --connect-rate";
    let check = "nstat -az TcpExtListenOverflows TcpExtListenDrops on the target";
    Some(Finding::new("syn_drops", evidence, advice, check).symptom())
}

pub(super) fn errors(facts: &Facts<'_>) -> Option<Finding> {
    let expect = &facts.run.plan.expect;
    let mut codes: Vec<_> = facts
        .run
        .tally
        .statuses()
        .iter()
        .filter(|(status, _)| (500..600).contains(status) && !expect.accepts(*status))
        .collect();
    codes.sort_by_key(|code| std::cmp::Reverse(code.1));
    let failed: u64 = codes.iter().map(|code| code.1).sum();
    let part = share(failed, facts.answers());
    if failed == 0 || part < FAILURES_MIN {
        return None;
    }
    let list: Vec<_> =
        codes.iter().take(4).map(|(code, n)| format!("{code} × {}", units::count(*n))).collect();
    let evidence =
        format!("{} of the answers were server errors: {}", units::percent(part), list.join(", "));
    let advice = "look at the server's log; 502, 503 and 504 usually come from a balancer or a \
                  full pool behind it";
    let check = "the server's log counts the same; curl -i the URL under the load";
    Some(Finding::new("server_errors", evidence, advice, check).symptom())
}

/// Answers with an expected status whose body is not what was expected.
pub(super) fn bodies(facts: &Facts<'_>) -> Option<Finding> {
    let wrong = facts.counts().wrong_bodies;
    let part = share(wrong, facts.answers());
    if wrong == 0 || part < FAILURES_MIN {
        return None;
    }
    let evidence = format!(
        "{} of the answers had an expected status and not the body that --expect-body wants",
        units::percent(part)
    );
    let advice = "look at what came instead with --body-errors: an error page with status 200, or \
                  an answer that is cut or of another version";
    let check = "curl --compressed the URL under the load, and compare";
    Some(Finding::new("wrong_bodies", evidence, advice, check).symptom())
}

pub(super) fn closes(facts: &Facts<'_>) -> Option<Finding> {
    let lost = facts.faults(|f| matches!(f, Fault::ClosedEarly(_) | Fault::Reset | Fault::Write));
    let stale = facts.counts().stale_reconnects;
    let part = facts.of_sent(lost + stale);
    if part < FAILURES_MIN {
        return None;
    }
    let kinds: Vec<_> = [(lost, "failed"), (stale, "went again on a new one")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", units::count(count)))
        .collect();
    let evidence = format!(
        "the server closed or reset the connection under {} of the requests: {}",
        units::percent(part),
        kinds.join(", ")
    );
    let advice = "look at the server's keep-alive time and requests per connection, at its limit \
                  on connections (worker_connections), and at crashes in its log";
    let check = "nstat -az TcpEstabResets TcpOutRsts on the target; its error log";
    Some(Finding::new("server_closes", evidence, advice, check).symptom())
}

pub(super) fn timeouts(facts: &Facts<'_>) -> Option<Finding> {
    let at = |phase| facts.faults(|fault| fault == Fault::Timeout(phase));
    let connect = at(Phase::Connect) + facts.faults(|fault| fault == Fault::ConnectTimeout);
    let (first, body) = (at(Phase::FirstByte), at(Phase::Body));
    let part = facts.of_sent(connect + first + body);
    if part < FAILURES_MIN {
        return None;
    }
    let parts: Vec<_> =
        [(connect, "connecting"), (first, "before the first byte"), (body, "in the body")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, place)| format!("{} {place}", units::count(count)))
            .collect();
    let evidence =
        format!("{} of the requests timed out: {}", units::percent(part), parts.join(", "));
    let advice = "lower the load until they end, then raise it: what saturates first is the limit";
    let check = "curl -m with the same time-out under the load";
    Some(Finding::new("timeouts", evidence, advice, check).symptom())
}
