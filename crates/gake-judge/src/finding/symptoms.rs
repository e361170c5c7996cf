//! Symptoms: the effects of a limit on requests, not its cause.

use gake_core::record::{Fault, LatencyMetric, Phase};
use gake_text::units;

use super::Finding;
use super::facts::{FAILURES_MIN, RunFacts};
use super::listener::how_late;
use super::syns::SynLosses;
use crate::lanes;
use crate::stats::share;

/// Share of redirects among the responses from which on the target is probably another address.
const REDIRECTS_MIN: f64 = 0.5;

/// Share of the arrivals that waited for a free connection.
const BLOCKED_SHARE_MIN: f64 = 0.01;

pub(super) fn blocked(facts: &RunFacts<'_>) -> Option<Finding> {
    let waits = facts.latency(LatencyMetric::Blocked);
    let counts = facts.counts();
    // Over HTTP/2 an arrival may wait twice: to be fired, and for a stream.
    let waited = waits.count().min(counts.due().saturating_sub(counts.dropped));
    // Arrivals of lost agents did not wait.
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
            "more users (-u, maxVUs) show whether the server keeps up",
            "rate × mean iteration_duration = the users needed",
        ),
        false => (
            "raise -c to see whether the server keeps up, or lower the rate",
            "ss -Htan state established dport = :PORT | wc -l here",
        ),
    };
    Some(Finding::new("blocked", evidence, advice, check).symptom())
}

/// Connections that opened late when it is unknown whether a queue or the network lost their SYN.
pub(super) fn syn_drops(facts: &RunFacts<'_>) -> Option<Finding> {
    let syns = SynLosses::of(facts);
    let explained = super::listener::overflows(facts).is_some()
        || super::listener::accept_queue(facts).is_some();
    if syns.late.is_empty() || explained {
        return None;
    }
    let evidence = format!(
        "{} of {} opened late ({}): their SYN was dropped and retransmitted",
        units::count(syns.dropped()),
        units::plural(facts.attempts(), "connection"),
        how_late(&SynLosses { timed_out: 0, ..syns })
    );
    let advice = "raise backlog and net.core.somaxconn, or connect slower (--connect-rate)";
    let check = "nstat -az TcpExtListenOverflows TcpExtListenDrops on the target";
    Some(Finding::new("syn_drops", evidence, advice, check).symptom())
}

pub(super) fn errors(facts: &RunFacts<'_>) -> Option<Finding> {
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
    let part = share(failed, facts.responses());
    if failed == 0 || part < FAILURES_MIN {
        return None;
    }
    let list: Vec<_> =
        codes.iter().take(4).map(|(code, n)| format!("{code} × {}", units::count(*n))).collect();
    let evidence = format!(
        "{} of the responses were server errors: {}",
        units::percent(part),
        list.join(", ")
    );
    let advice = "look at the server's log; 502, 503, 504 come from a proxy or a full pool";
    let check = "the server's log counts the same; curl -i the URL under the load";
    Some(Finding::new("server_errors", evidence, advice, check).symptom())
}

pub(super) fn bodies(facts: &RunFacts<'_>) -> Option<Finding> {
    let wrong = facts.counts().wrong_bodies;
    let part = share(wrong, facts.responses());
    if wrong == 0 || part < FAILURES_MIN {
        return None;
    }
    let evidence = format!(
        "{} of the responses had an expected status, but not the body that --expect-body requires",
        units::percent(part)
    );
    let advice = "--body-errors shows them: an error page with 200, or a truncated body";
    let check = "curl --compressed the URL under the load, and compare";
    Some(Finding::new("wrong_bodies", evidence, advice, check).symptom())
}

/// Redirects that nothing followed: a client that loads the wrong address looks healthy.
pub(super) fn redirects(facts: &RunFacts<'_>) -> Option<Finding> {
    let statuses = facts.run.tally.statuses().iter();
    let redirects: u64 =
        statuses.filter(|one| (301..=308).contains(&one.0) && one.0 != 304).map(|one| one.1).sum();
    let part = share(redirects, facts.responses());
    if part < REDIRECTS_MIN {
        return None;
    }
    let evidence =
        format!("{} of the responses are redirects, which were not followed", units::percent(part));
    let advice = "follow them with --max-redirs 10, or load the address they lead to";
    let check = "curl -sI URL, which shows the Location";
    Some(Finding::new("redirects", evidence, advice, check).context())
}

pub(super) fn closes(facts: &RunFacts<'_>) -> Option<Finding> {
    let lost = facts.faults(|f| matches!(f, Fault::ClosedEarly(_) | Fault::Reset | Fault::Write));
    let stale = facts.counts().stale_reconnects;
    let part = facts.of_sent(lost + stale);
    if part < FAILURES_MIN {
        return None;
    }
    let kinds: Vec<_> = [(lost, "failed"), (stale, "were retried on a new connection")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", units::count(count)))
        .collect();
    let evidence = format!(
        "the server closed or reset the connection during {} of the requests: {}",
        units::percent(part),
        kinds.join(", ")
    );
    let advice = "look at keep-alive limits, limits on connections, and crashes in its log";
    let check = "nstat -az TcpEstabResets TcpOutRsts on the target; its error log";
    Some(Finding::new("server_closes", evidence, advice, check).symptom())
}

pub(super) fn timeouts(facts: &RunFacts<'_>) -> Option<Finding> {
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
            .map(|(count, phase)| format!("{} {phase}", units::count(count)))
            .collect();
    let evidence =
        format!("{} of the requests timed out: {}", units::percent(part), parts.join(", "));
    let advice = "lower the load until they end; the first resource to saturate is the limit";
    let check = "curl -m with the same time-out under the load";
    Some(Finding::new("timeouts", evidence, advice, check).symptom())
}
