//! Limits of the generator's own machine.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, LatencyMetric};
use gake_text::units;

use super::Finding;
use super::connections::starved;
use super::facts::Facts;
use crate::objective::Unit;
use crate::stats::CPU_BUSY;

/// Share of the workers' time in which they wanted a core and had none.
pub(super) const RUN_DELAY_MIN: f64 = 0.05;
/// The generator's own delay explains a response time if it is at least this share of it.
const EXPLAINS: f64 = 0.5;

/// Workers starve that wait for a core for this part of their time, and longer than they have one:
/// then answers are read late as well as requests sent.
const STARVES: f64 = 0.25;
/// Less waiting than this tells nothing, however short the run.
const STARVES_MIN: Nanos = SECOND / 2;

/// Whether the workers went without a core for most of the time in which they wanted one.
pub(super) fn starves(facts: &Facts<'_>) -> bool {
    let generator = &facts.run.generator;
    delayed(facts).is_some_and(|part| part >= STARVES)
        && generator.run_delay >= STARVES_MIN.max(generator.cpu)
}

/// The share of the workers' time in which they waited for a core, if it is significant.
pub(super) fn delayed(facts: &Facts<'_>) -> Option<f64> {
    let generator = &facts.run.generator;
    let time = facts.run.measured as f64 * generator.threads as f64;
    let part = generator.run_delay as f64 / time;
    // Not a number when nothing was measured.
    (part.is_finite() && part > RUN_DELAY_MIN).then_some(part.min(1.0))
}

/// Whether the workers want their cores all the time, whether they have them or not.
pub(super) fn wants_its_cores(facts: &Facts<'_>) -> bool {
    let generator = &facts.run.generator;
    let time = facts.run.measured as f64 * generator.threads as f64;
    (generator.cpu + generator.run_delay) as f64 > CPU_BUSY * time
}

/// Whether requests that left late are why a latency objective was missed. Without objectives:
/// whether they make up most of the 99th percentile.
pub(super) fn explains_latency(facts: &Facts<'_>) -> bool {
    let late = facts.latency(LatencyMetric::Lateness);
    let response = facts.run.tally.latency.response();
    let part = |quantile: f64| {
        let whole = response.quantile(quantile).max(1) as f64;
        late.quantile(quantile) as f64 / whole >= EXPLAINS
    };
    let mut missed = facts.missed().filter(|missed| missed.unit == Unit::Nanoseconds).peekable();
    if missed.peek().is_none() {
        return facts.objectives.is_empty() && part(0.99);
    }
    missed.any(|missed| {
        let value = missed.value.unwrap_or(0.0) as u64;
        let above = response.count() - response.count_up_to(value);
        part(1.0 - above as f64 / response.count().max(1) as f64)
    })
}

/// A quota on the generator's own CPU.
pub(super) fn quota(facts: &Facts<'_>) -> Option<Finding> {
    let seen = facts.at_bound(THROTTLED, THROTTLED_MIN)?;
    let evidence = format!(
        "gake may use {} cores (the CPU quota of its control group) and was stopped in {} of the \
         scheduler's periods, {}: what was measured is that quota",
        units::number(facts.most("generator_quota")?),
        units::percent(seen.mean),
        seen.how_often()
    );
    let advice = "raise the generator's CPU quota (docker --cpus, resources.limits.cpu, CPUQuota=), \
                  or lower the rate";
    let check = "nr_throttled in the cpu.stat of its control group grows";
    Some(Finding::new("generator_quota", evidence, advice, check))
}

/// The share of periods in which the generator's own quota stopped it.
pub(crate) const THROTTLED: &str = "generator_throttled";
/// From this share on the quota is the limit.
pub(crate) const THROTTLED_MIN: f64 = 0.2;

/// The workers waited for a core, but that does not explain the problem; reported as context.
pub(super) fn run_delay(facts: &Facts<'_>) -> Option<Finding> {
    let part = delayed(facts)?;
    if !facts.is_troubled() {
        return None;
    }
    let evidence = format!(
        "the workers waited {} for a core ({} of their time), which explains a small part of it",
        units::duration(facts.run.generator.run_delay as f64),
        units::percent(part)
    );
    Some(Finding::new("run_delay", evidence, CORES, RUN_DELAY_CHECK).context())
}

pub(super) const CORES: &str =
    "give the generator cores of its own (taskset, cpusets), or another machine";
pub(super) const RUN_DELAY_CHECK: &str =
    "the second number of /proc/PID/task/TID/schedstat of gake grows; vmstat 1 shows us, sy, st";

pub(super) fn ports(facts: &Facts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoLocalPort);
    let open = units::plural(facts.run.peak_connections, "connection");
    let evidence = if failed > 0 {
        format!(
            "{} ({}) failed for want of a local port; {open} were open at most",
            units::plural(failed, "request"),
            units::percent(facts.of_due(failed)),
        )
    } else {
        let (waited, _) = starved(facts).filter(|_| facts.ports_are_short())?;
        format!(
            "{} waited for a connection for more than half of the run: {open} are open, and past \
             {} from one source address the kernel searches long for each free local port",
            units::plural(waited, "user"),
            units::count(facts.most("quick_ports").unwrap_or(0.0) as u64),
        )
    };
    let advice = if facts.run.plan.keepalive {
        "give more source addresses with --interface, or widen net.ipv4.ip_local_port_range"
    } else {
        "keep connections alive: closed ones hold their port for a minute; or give more source \
         addresses with --interface"
    };
    let check = "ss -tan here, counted by source address, against sysctl \
                 net.ipv4.ip_local_port_range";
    Some(Finding::new("client_ports", evidence, advice, check))
}

pub(super) fn descriptors(facts: &Facts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoDescriptors);
    if failed == 0 {
        return None;
    }
    let evidence = format!(
        "{} ({}) failed for want of a file descriptor; {} were open at most",
        units::plural(failed, "request"),
        units::percent(facts.of_due(failed)),
        units::plural(facts.run.peak_connections, "connection")
    );
    let advice = "raise the limit (ulimit -n), or bound the connections with -c";
    let check = "ulimit -n where gake is started; ls /proc/PID/fd | wc -l of gake";
    Some(Finding::new("client_descriptors", evidence, advice, check))
}
