//! Limits of the generator's own machine.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Fault, LatencyMetric};
use gake_text::units;

use super::Finding;
use super::connections::starved;
use super::facts::RunFacts;
use crate::objective::ValueUnit;
use crate::stats::CPU_BUSY;

/// Share of the workers' time that they waited for a core.
pub(super) const RUN_DELAY_MIN: f64 = 0.05;
/// The generator's own delay explains a response time from this share of it on.
const EXPLAINS: f64 = 0.5;

/// Workers starve when they wait for a core for this share of their time, and longer than they have
/// one: then responses are read late as well as requests sent late.
const STARVES: f64 = 0.25;
/// Shorter waits are insignificant in any run.
const STARVES_MIN: Nanos = SECOND / 2;

/// Whether the workers waited for a core longer than they had one.
pub(super) fn starves(facts: &RunFacts<'_>) -> bool {
    let generator = &facts.run.generator;
    delayed(facts).is_some_and(|share| share >= STARVES)
        && adds_to_responses(facts)
        && explains_excess(facts)
        && generator.run_delay >= STARVES_MIN.max(generator.cpu)
}

/// The share of the workers' time in which they waited for a core, if it is significant.
pub(super) fn delayed(facts: &RunFacts<'_>) -> Option<f64> {
    let generator = &facts.run.generator;
    let time = facts.run.measured as f64 * generator.threads as f64;
    let part = generator.run_delay as f64 / time;
    // NaN when nothing was measured.
    (part.is_finite() && part > RUN_DELAY_MIN).then_some(part.min(1.0))
}

/// Shares of the time from which on the machine has no core to spare: that its workers wait for one,
/// and that the host takes the cores away.
const LACKS_CORES: f64 = 0.15;
const STEALS: f64 = 0.25;

/// Whether the machine has no core to spare, for the workers as for a target on it.
pub(super) fn lacks_cores(facts: &RunFacts<'_>) -> bool {
    delayed(facts).is_some_and(|part| part >= LACKS_CORES)
        || facts.mean("machine_steal").is_some_and(|steal| steal >= STEALS)
}

/// The time for which a worker without a core usually waits for one: the scheduler's slice.
const SLICE: f64 = 5e6;
/// From this share of the median response on the workers' waits for a core are part of the problem.
const ADDS_MIN: f64 = 0.2;

/// The mean time that the workers' waits for a core add to a response. A request wakes its worker
/// when it is due, which is lateness, and when its response arrives. The latter is not measured: a
/// wait delays the response that woke the worker, and those that arrive meanwhile.
pub(super) fn own_delay(facts: &RunFacts<'_>) -> f64 {
    let late = facts.latency(LatencyMetric::Lateness).mean();
    let Some(part) = delayed(facts) else { return late };
    let waits = facts.run.generator.run_delay as f64 / facts.responses().max(1) as f64;
    // Half of the waits of an open loop are those before sending.
    let reading = waits.min(SLICE) + part * SLICE;
    if facts.is_closed() { late + reading } else { late + reading / 2.0 }
}

/// Whether the workers' waits for a core make up a part of the response times; half of them when
/// every request was ok and no objective missed.
pub(super) fn adds_to_responses(facts: &RunFacts<'_>) -> bool {
    let least = if facts.is_troubled() { ADDS_MIN } else { EXPLAINS };
    own_delay(facts) >= least * facts.run.tally.latency.response().quantile(0.5) as f64
}

/// Whether the workers' waits for a core make up most of what the median response takes beyond a
/// request that meets no other.
pub(super) fn explains_excess(facts: &RunFacts<'_>) -> bool {
    let median = facts.run.tally.latency.response().quantile(0.5) as f64;
    own_delay(facts) >= EXPLAINS * (median - facts.alone())
}

/// Whether the workers' demand for CPU is as high as their number of threads.
pub(super) fn wants_its_cores(facts: &RunFacts<'_>) -> bool {
    let generator = &facts.run.generator;
    let time = facts.run.measured as f64 * generator.threads as f64;
    (generator.cpu + generator.run_delay) as f64 > CPU_BUSY * time && adds_to_responses(facts)
}

/// Whether late sends explain a missed latency objective; without objectives, whether they make up
/// most of the 99th percentile.
pub(super) fn explains_latency(facts: &RunFacts<'_>) -> bool {
    let late = facts.latency(LatencyMetric::Lateness);
    let response = facts.run.tally.latency.response();
    let part = |quantile: f64| {
        let whole = response.quantile(quantile).max(1) as f64;
        late.quantile(quantile) as f64 / whole >= EXPLAINS
    };
    let mut missed =
        facts.missed().filter(|missed| missed.unit == ValueUnit::Nanoseconds).peekable();
    if missed.peek().is_none() {
        return facts.objectives.is_empty() && part(0.99);
    }
    missed.any(|missed| {
        let value = missed.value.unwrap_or(0.0) as u64;
        let above = response.count() - response.count_up_to(value);
        part(1.0 - above as f64 / response.count().max(1) as f64)
    })
}

pub(super) fn quota(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound(THROTTLED, THROTTLED_MIN)?;
    let evidence = format!(
        "gake's own CPU quota, {} cores, throttled it in {} of the scheduler's periods ({}): the figures show that quota, not the target",
        units::number(facts.most("generator_quota")?),
        units::percent(seen.mean),
        seen.how_often()
    );
    let advice = "raise gake's CPU quota (docker --cpus, CPUQuota=), or lower the rate";
    let check = "nr_throttled in the cpu.stat of its control group grows";
    Some(Finding::new("generator_quota", evidence, advice, check))
}

/// The level: the share of periods in which the generator's own quota throttled it.
pub(crate) const THROTTLED: &str = "generator_throttled";
/// From this share on the quota is the limit.
pub(crate) const THROTTLED_MIN: f64 = 0.2;

/// Context: the workers waited for a core, but that does not explain the problem.
pub(super) fn run_delay(facts: &RunFacts<'_>) -> Option<Finding> {
    let part = delayed(facts)?;
    if !facts.is_troubled() {
        return None;
    }
    let evidence = format!(
        "the workers waited {} for a core ({} of their time), which explains little",
        units::duration(facts.run.generator.run_delay as f64),
        units::percent(part)
    );
    Some(Finding::new("run_delay", evidence, CORES, RUN_DELAY_CHECK).context())
}

pub(super) const CORES: &str =
    "give the generator cores of its own (taskset, cpusets), or another machine";
pub(super) const RUN_DELAY_CHECK: &str =
    "vmstat 1 (r, st); the second number of gake's /proc/PID/schedstat";

pub(super) fn ports(facts: &RunFacts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoLocalPort);
    let open = units::plural(facts.run.peak_connections, "connection");
    let evidence = if failed > 0 {
        format!(
            "{} ({}) failed: no free local port; at most {open} were open",
            units::plural(failed, "request"),
            units::percent(facts.of_due(failed)),
        )
    } else {
        let (waited, _) = starved(facts).filter(|_| facts.ports_are_short())?;
        format!(
            "{} waited for a connection for more than half of the run: {open} were open, and \
             beyond {} per source address the kernel is slow to find a free local port",
            units::plural(waited, "user"),
            units::count(facts.most("quick_ports").unwrap_or(0.0) as u64),
        )
    };
    let advice = if facts.run.plan.keepalive {
        "give more source addresses (--interface), or widen ip_local_port_range"
    } else {
        "keep connections alive, or give more source addresses (--interface)"
    };
    let check = "ss -Htan | wc -l here; sysctl net.ipv4.ip_local_port_range";
    Some(Finding::new("client_ports", evidence, advice, check))
}

pub(super) fn descriptors(facts: &RunFacts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoDescriptors);
    if failed == 0 {
        return None;
    }
    let evidence = format!(
        "{} ({}) failed: no free file descriptor; at most {} were open",
        units::plural(failed, "request"),
        units::percent(facts.of_due(failed)),
        units::plural(facts.run.peak_connections, "connection")
    );
    let advice = "raise the limit (ulimit -n), or bound the connections with -c";
    let check = "ulimit -n where gake is started; ls /proc/PID/fd | wc -l of gake";
    Some(Finding::new("client_descriptors", evidence, advice, check))
}
