//! Problems that no rule explains, with what to watch to find out.

use gake_core::record::LatencyMetric;
use gake_text::units;

use super::facts::{FAILURES_MIN, RunFacts};
use super::{Finding, Rank, UNEXPLAINED, cores, generator, server};
use crate::objective::ValueUnit;

/// The finding of a run with a problem that `findings` do not explain.
pub(super) fn find(facts: &RunFacts<'_>, findings: &[Finding]) -> Option<Finding> {
    if facts.counts().due() == 0 || findings.iter().any(|finding| finding.rank == Rank::Cause) {
        return None;
    }
    let symptoms = findings.iter().any(|finding| finding.rank == Rank::Symptom);
    service_time(facts)
        .or_else(|| missed(facts, symptoms))
        .or_else(|| waiting(facts))
        .or_else(|| failures(facts, symptoms))
}

/// Each objective on latency that was missed is below the time that one request takes, though nothing
/// waits.
fn service_time(facts: &RunFacts<'_>) -> Option<Finding> {
    let response = facts.run.tally.latency.response();
    let alone = facts.alone();
    let missed: Vec<_> =
        facts.missed().filter(|missed| missed.unit == ValueUnit::Nanoseconds).collect();
    let is_alone = |value: f64| value <= NO_QUEUE * alone;
    let is_service = !missed.is_empty() && missed.iter().all(|one| one.value.is_some_and(is_alone));
    if !is_service || facts.run.generator.run_delay > 0 && generator::explains_excess(facts) {
        return None;
    }
    let texts: Vec<_> =
        missed.iter().map(|o| format!("{} is missed ({})", o.text, o.shown())).collect();
    let evidence = format!(
        "{}, though nothing waits: a request that meets no other takes {}, and the median one {}",
        texts.join(", "),
        units::duration(alone),
        units::duration(response.quantile(0.5) as f64),
    );
    let advice = "profile one request, or set the objective above what one takes";
    let check = "curl -w '%{time_total}' of the URL without load";
    Some(Finding::new("service_time", evidence, advice, check))
}

/// An objective was missed. Symptoms explain the failures, but no latency.
fn missed(facts: &RunFacts<'_>, symptoms: bool) -> Option<Finding> {
    let unexplained =
        facts.missed().filter(|missed| !symptoms || missed.unit == ValueUnit::Nanoseconds);
    let missed: Vec<_> =
        unexplained.map(|o| format!("{} is missed ({})", o.text, o.shown())).collect();
    if missed.is_empty() {
        return None;
    }
    let seen = match server::queue(facts) {
        Some(queue) => format!("{}; the reason does not show from outside", queue.text()),
        None => ruled_out(facts),
    };
    Some(finding(facts, &format!("{}; {seen}", missed.join(", "))))
}

/// A median first byte up to this many times the fastest is no queue.
const NO_QUEUE: f64 = 1.5;

fn ruled_out(facts: &RunFacts<'_>) -> String {
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
            "waiting in a queue (the median first byte takes {}, the fastest {})",
            duration(median),
            duration(fastest)
        ));
    }
    if let (Some(true), Some(cores)) = (cores::idle(facts), facts.mean("cores")) {
        out.push(format!("the target's CPU ({} cores used)", units::number(cores)));
    }
    match out.is_empty() {
        true => "no measurement explains it".to_owned(),
        false => format!("it is not {}", out.join(", nor ")),
    }
}

/// Requests wait inside the server for an unknown reason.
fn waiting(facts: &RunFacts<'_>) -> Option<Finding> {
    if let Some(queue) = server::queue(facts) {
        let text = format!("{}; they wait for its CPU, a pool or a lock", queue.text());
        return Some(finding(facts, &text));
    }
    let uneven = server::uneven(facts)?;
    let advice = format!("to know more: compare with -c 1; {}", watch_advice(facts));
    Some(Finding { advice, ..finding(facts, &uneven) })
}

fn failures(facts: &RunFacts<'_>, symptoms: bool) -> Option<Finding> {
    let failed = facts.counts().failed;
    if symptoms || facts.of_sent(failed) < FAILURES_MIN {
        return None;
    }
    let mut evidence = format!(
        "{} ({}) failed, and no finding explains it",
        units::plural(failed, "request"),
        units::percent(facts.of_sent(failed))
    );
    if let Some((status, count)) = most_frequent_unexpected(facts) {
        evidence.push_str(&format!("; most often status {status} × {}", units::count(count)));
    }
    let advice = "send one such request by hand; --expect sets the statuses that are ok";
    Some(Finding::new(UNEXPLAINED, evidence, advice, "curl -i the URL"))
}

fn finding(facts: &RunFacts<'_>, evidence: &str) -> Finding {
    let advice = format!("to know more: {}", watch_advice(facts));
    let check = "top, vmstat 1 and the server's log during the run";
    Finding { advice, ..Finding::new(UNEXPLAINED, evidence.to_owned(), "", check) }
}

/// Advice on sources that are not watched yet.
pub(super) fn watch_advice(facts: &RunFacts<'_>) -> String {
    let here = facts.machine_flag("target_here");
    let process = facts.is_watched(&["pid:", "port:"]) || (here && facts.most("cores").is_some());
    let mut more = Vec::new();
    if !process {
        more.push(match here {
            true => "its process (port:PORT)",
            false => "its machine (prometheus:URL of node_exporter)",
        });
    }
    if !facts.is_watched(&["prometheus:", "actuator:"]) {
        more.push("its pools (prometheus:URL, actuator:URL)");
    } else if facts.hides_threads() {
        more.push("its threads (server.tomcat.mbeanregistry.enabled=true)");
    }
    if facts.gauges("db_connections").next().is_none() {
        more.push("its database (mysql://..., postgres://...)");
    }
    if more.is_empty() {
        return "look at the target's locks, garbage collection and disk during the run".to_owned();
    }
    format!("--watch {}", more.join(", "))
}

fn most_frequent_unexpected(facts: &RunFacts<'_>) -> Option<(u16, u64)> {
    let expect = &facts.run.plan.expect;
    let statuses = facts.run.tally.statuses().iter();
    statuses.filter(|(status, _)| !expect.accepts(*status)).max_by_key(|status| status.1).copied()
}
