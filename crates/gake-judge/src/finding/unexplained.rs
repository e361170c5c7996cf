//! Something is wrong and no rule says what: then that is said, and what to watch to know more.

use gake_core::record::LatencyMetric;
use gake_text::units;

use super::facts::{FAILURES_MIN, Facts};
use super::{Finding, Rank, UNEXPLAINED, cores, server};
use crate::objective::Unit;

/// What to say first of a run in which something is wrong and whose findings do not explain it.
pub(super) fn find(facts: &Facts<'_>, findings: &[Finding]) -> Option<Finding> {
    if facts.counts().due() == 0 || findings.iter().any(|finding| finding.rank == Rank::Cause) {
        return None;
    }
    let symptoms = findings.iter().any(|finding| finding.rank == Rank::Symptom);
    missed(facts, symptoms).or_else(|| waiting(facts)).or_else(|| failures(facts, symptoms))
}

/// An objective was missed. What failures do to one is told by their symptoms.
fn missed(facts: &Facts<'_>, symptoms: bool) -> Option<Finding> {
    let unexplained = facts.missed().filter(|missed| !symptoms || missed.unit == Unit::Nanoseconds);
    let missed: Vec<_> =
        unexplained.map(|o| format!("{} is missed ({})", o.text, o.shown())).collect();
    if missed.is_empty() {
        return None;
    }
    let seen = match server::queue(facts) {
        Some(queue) => format!("{}, for what cannot be seen from here", queue.text()),
        None => ruled_out(facts),
    };
    Some(finding(facts, &format!("{}; {seen}", missed.join(", "))))
}

/// A median first byte up to this many times the fastest is no queue.
const NO_QUEUE: f64 = 1.5;

/// What it is not, with the numbers that say so.
fn ruled_out(facts: &Facts<'_>) -> String {
    let [late, connects, first] =
        [LatencyMetric::Lateness, LatencyMetric::Connect, LatencyMetric::FirstByte]
            .map(|metric| facts.latency(metric));
    let (median, fastest) = (first.quantile(0.5), first.min());
    let duration = |nanos: u64| units::duration(nanos as f64);
    let mut out = Vec::new();
    if !facts.generator_is_busy() && late.quantile(0.99) < median {
        out.push(format!(
            "the generator (requests left {} late, p99)",
            duration(late.quantile(0.99))
        ));
    }
    if !connects.is_empty() && connects.quantile(0.99) < median {
        out.push(format!("connecting ({}, p99)", duration(connects.quantile(0.99))));
    }
    if !first.is_empty() && median as f64 <= NO_QUEUE * fastest as f64 {
        out.push(format!(
            "waiting in a queue (the first byte takes {} in the median and {} at best)",
            duration(median),
            duration(fastest)
        ));
    }
    if let (Some(true), Some(cores)) = (cores::idle(facts), facts.mean("cores")) {
        out.push(format!("the target's CPU ({} cores used)", units::number(cores)));
    }
    match out.is_empty() {
        true => "nothing that was measured explains it".to_owned(),
        false => format!("it is not {}", out.join(", nor ")),
    }
}

/// Requests wait inside the server, and nothing says for what.
fn waiting(facts: &Facts<'_>) -> Option<Finding> {
    if let Some(queue) = server::queue(facts) {
        let text = format!("{}, for its CPU, a pool or a lock", queue.text());
        return Some(finding(facts, &text));
    }
    let uneven = server::uneven(facts)?;
    let advice = format!("to know more, compare with -c 1, and {}", watch(facts));
    Some(Finding { advice, ..finding(facts, &uneven) })
}

fn failures(facts: &Facts<'_>, symptoms: bool) -> Option<Finding> {
    let failed = facts.counts().failed;
    if symptoms || facts.of_sent(failed) < FAILURES_MIN {
        return None;
    }
    let mut evidence = format!(
        "{} ({}) failed, and no finding says why",
        units::plural(failed, "request"),
        units::percent(facts.of_sent(failed))
    );
    if let Some((status, count)) = most_frequent_unexpected(facts) {
        evidence.push_str(&format!("; most often status {status} × {}", units::count(count)));
    }
    let advice = "send one such request by hand and compare; --expect says which statuses are ok";
    Some(Finding::new(UNEXPLAINED, evidence, advice, "curl -i the URL"))
}

fn finding(facts: &Facts<'_>, evidence: &str) -> Finding {
    let advice = format!("to know more, {}", watch(facts));
    let check = "top, vmstat 1 and the server's log during the run";
    Finding::new(UNEXPLAINED, evidence.to_owned(), &advice, check)
}

/// What was not watched and would tell more.
pub(super) fn watch(facts: &Facts<'_>) -> String {
    let watched = |kinds: &[&str]| {
        let gauges = facts.run.watched.gauges().iter();
        gauges.map(|gauge| &gauge.source).any(|s| kinds.iter().any(|kind| s.starts_with(kind)))
    };
    let here = facts.machine_says("target_here");
    let process = watched(&["pid:", "port:"]) || (here && facts.most("cores").is_some());
    let mut more = Vec::new();
    if !process {
        more.push(match here {
            true => "the target's process (--watch port:PORT)",
            false => "the target's machine (--watch prometheus:URL of node_exporter)",
        });
    }
    if !watched(&["prometheus:", "actuator:"]) {
        more.push("its pools (--watch actuator:URL or prometheus:URL)");
    } else if watched(&["actuator:"]) && facts.gauges("pool").next().is_none() {
        // Spring Boot's default hides them.
        more.push(
            "its threads (Actuator has Tomcat's with server.tomcat.mbeanregistry.enabled=true)",
        );
    }
    if facts.gauges("db_connections").next().is_none() {
        more.push("its database (--watch mysql://USER:PASSWORD@HOST or postgres://...)");
    }
    if more.is_empty() {
        return "look at the target's locks, garbage collection and disk during the run".to_owned();
    }
    format!("watch {}", more.join(", "))
}

fn most_frequent_unexpected(facts: &Facts<'_>) -> Option<(u16, u64)> {
    let expect = &facts.run.plan.expect;
    let statuses = facts.run.tally.statuses().iter();
    statuses.filter(|(status, _)| !expect.accepts(*status)).max_by_key(|status| status.1).copied()
}
