//! Which processes have the cores: the target, the generator, both, or others.
//!
//! A process's demand for CPU is the time it ran plus the time it waited for a core. The cause of a
//! shortage is the process that had the cores in that time.

use std::collections::BTreeSet;

use gake_core::clock::SECOND;
use gake_core::record::{Gauge, MACHINE};
use gake_text::units;

use super::facts::RunFacts;
use super::{Finding, generator};

/// Share of a CPU from which on it is used up: the scheduler never gives a process all of it.
const USED_UP: f64 = 0.9;
/// The same for the whole machine.
const MACHINE_USED_UP: f64 = 0.95;
/// The target is the cause from this share of the machine on.
const TARGETS: f64 = 0.6;
/// Other processes are the cause from this share on.
const OTHERS: f64 = 0.25;
/// A target lacks CPU when it waits for this share of its demand.
const LACKS_CPU: f64 = 0.2;
/// The generator contributes from this share on.
const GENERATORS: f64 = 0.15;
/// A quota is the limit when it throttled the target in this share of the periods.
const THROTTLED: f64 = 0.3;

const MORE_CORES: &str = "profile its work per request, or give it cores; larger pools do not help";

pub(super) fn find(facts: &RunFacts<'_>) -> Option<Finding> {
    quota(facts)
        .or_else(|| on_this_machine(facts))
        .or_else(|| target_elsewhere(facts))
        .or_else(|| own_cpu(facts))
        .or_else(|| one_thread(facts))
        .or_else(|| delayed(facts))
}

fn quota(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("cpu_throttled", THROTTLED)?;
    let evidence = format!(
        "the CPU quota of the target's control group, {} cores, throttled it in {} of the \
         scheduler's periods ({})",
        units::number(facts.most("cpu_quota")?),
        units::percent(seen.mean),
        seen.how_often()
    );
    let advice = "raise its quota (docker --cpus, limits.cpu, CPUQuota=), or do less work";
    let check = "nr_throttled in the cpu.stat of its control group grows";
    Some(Finding::new("target_cpu_quota", evidence, advice, check))
}

/// Shares of this machine's CPU in the seconds in which it was used up.
struct CpuShares {
    busy: f64,
    target: f64,
    generator: f64,
    /// Cores that the target waited for.
    waited: f64,
    /// Cores that it used or waited for.
    wanted: f64,
    busiest_thread: f64,
    readings: usize,
}

impl CpuShares {
    fn others(&self) -> f64 {
        (self.busy - self.target - self.generator).max(0.0)
    }

    /// `None` unless the machine was used up for a significant part of the time.
    fn of(facts: &RunFacts<'_>) -> Option<Self> {
        facts.at_bound("machine_cpu", MACHINE_USED_UP)?;
        let busy = facts.run.watched.machine("machine_cpu")?;
        let full = full_seconds(busy, facts.warmup());
        let machine =
            |name: &str| facts.run.watched.machine(name).and_then(|gauge| mean_in(gauge, &full));
        // The user's `--watch` and gake itself may both read the target: take one of them, never
        // the sum.
        let target = |name| facts.gauges(name).filter(local).filter_map(|g| mean_in(g, &full));
        let largest = |name| target(name).reduce(f64::max);
        let waited = largest("cores_waited").unwrap_or(0.0);
        Some(Self {
            busy: machine("machine_cpu")?,
            generator: machine("generator_cpu")?,
            target: largest("cpu")?,
            waited,
            wanted: largest("cores")? + waited,
            busiest_thread: largest("busiest_thread").unwrap_or(0.0),
            readings: full.len(),
        })
    }
}

/// Whether a gauge is of a process on this machine.
fn local(gauge: &&Gauge) -> bool {
    gauge.source == MACHINE || gauge.source.starts_with("port:") || gauge.source.starts_with("pid:")
}

fn full_seconds(busy: &Gauge, warmup: u64) -> BTreeSet<u64> {
    let full = busy.samples().iter().filter(|s| s.at >= warmup && s.mean >= MACHINE_USED_UP);
    full.map(|sample| sample.at / SECOND).collect()
}

/// The mean of the samples in these seconds.
fn mean_in(gauge: &Gauge, seconds: &BTreeSet<u64>) -> Option<f64> {
    let within = gauge.samples().iter().filter(|sample| seconds.contains(&(sample.at / SECOND)));
    let (sum, count) = within.fold((0.0, 0u32), |(sum, n), sample| (sum + sample.mean, n + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Target and generator share a machine whose CPU is used up.
fn on_this_machine(facts: &RunFacts<'_>) -> Option<Finding> {
    if !facts.machine_flag("target_here") {
        return None;
    }
    let shares = CpuShares::of(facts)?;
    let wants =
        shares.wanted >= USED_UP * facts.machine_cores() || shares.busiest_thread >= USED_UP;
    let shares_text = format!(
        "this machine's CPU was used up (in {}): {} by the target, {} by the generator, {} by \
         others",
        units::plural(shares.readings as u64, "reading"),
        units::percent(shares.target),
        units::percent(shares.generator),
        units::percent(shares.others()),
    );
    let check = "top, or pidstat -u 1, on this machine";
    if shares.target >= TARGETS {
        return Some(Finding::new("target_cpu", shares_text, MORE_CORES, check));
    }
    // A target that gets all the CPU it demands is not slow for lack of it; nor does an idle one
    // demand any.
    let served = wants && shares.waited < LACKS_CPU * shares.wanted;
    let wanted = wants || generator::wants_its_cores(facts) || generator::explains_latency(facts);
    if served || !wanted {
        return None;
    }
    if shares.others() >= OTHERS && shares.others() >= shares.target {
        return Some(taken_by_others(facts, shares_text));
    }
    if shares.generator >= 2.0 * shares.target
        && let Some(own) = own_cpu(facts)
    {
        return Some(own);
    }
    if shares.generator >= GENERATORS {
        let evidence = format!("the target and the generator share cores: {shares_text}");
        let advice = "give each its own cores (taskset) or machine: the target can do more";
        return Some(Finding::new("shared_cores", evidence, advice, check));
    }
    wants.then(|| Finding::new("target_cpu", shares_text, MORE_CORES, check))
}

fn taken_by_others(facts: &RunFacts<'_>, shares_text: String) -> Finding {
    let named = facts.run.watched.gauges().iter().filter_map(|gauge| {
        let name = gauge.name.strip_prefix("cpu of ").filter(|_| !gauge.is_targets())?;
        Some((name, gauge.mean_from(facts.warmup())?))
    });
    let most = named.max_by(|a, b| a.1.total_cmp(&b.1));
    let mut evidence = shares_text;
    if let Some((name, share)) = most {
        evidence.push_str(&format!(" (most of it {name}, {})", units::percent(share)));
    }
    if facts.most("machine_steal").is_some_and(|steal| steal >= OTHERS / 2.0) {
        evidence.push_str("; the host took cores away (steal)");
    }
    Finding::new("run_delay", evidence, generator::CORES, "top, or pidstat -u 1, on this machine")
}

/// A target on another machine that reports its CPU as used up.
fn target_elsewhere(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("cpu", USED_UP)?;
    let evidence = format!(
        "{} used {} or more of its machine's CPU {} ({} on average)",
        seen.source,
        units::percent(USED_UP),
        seen.how_often(),
        units::percent(seen.mean)
    );
    Some(Finding::new("target_cpu", evidence, MORE_CORES, "top, or mpstat 1, on the target"))
}

fn own_cpu(facts: &RunFacts<'_>) -> Option<Finding> {
    if !facts.generator_is_busy() {
        return None;
    }
    let generator = &facts.run.generator;
    let evidence = format!(
        "the busiest of {} used {} of its core",
        units::plural(generator.threads as u64, "worker"),
        units::percent(generator.busiest.min(1.0))
    );
    let advice = if generator.threads < generator.cores {
        "give it more cores with --threads, or lower the rate"
    } else {
        "lower the rate, or generate from more cores: the server may do more"
    };
    Some(Finding::new("generator_cpu", evidence, advice, "top -H -p of gake's process"))
}

/// One thread does the server's work, with cores to spare.
fn one_thread(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("busiest_thread", USED_UP)?;
    let (ran, waited) = (facts.mean("cores")?, facts.mean("cores_waited").unwrap_or(0.0));
    if waited >= LACKS_CPU * (ran + waited) {
        return None;
    }
    let evidence = format!(
        "one thread of the target was busy for {} of the time or more {}; the target used {} \
         cores in all",
        units::percent(USED_UP),
        seen.how_often(),
        units::number(ran)
    );
    let advice = "spread its work over workers or processes; more cores do not help";
    Some(Finding::new("target_thread", evidence, advice, "top -H -p PID on the target"))
}

/// The target waits for a core while this machine has cores to spare: its affinity keeps it from
/// them, or other processes come first.
pub(super) fn starved(facts: &RunFacts<'_>) -> Option<Finding> {
    // A target waits for a core in any second in which all are used.
    let machine = facts.run.watched.machine("machine_cpu")?;
    let idle = machine.samples().iter().filter(|s| s.at >= facts.warmup() && s.mean <= 1.0 - SPARE);
    let idle: BTreeSet<u64> = idle.map(|sample| sample.at / SECOND).collect();
    let level = |name| facts.gauges(name).filter_map(|g| mean_in(g, &idle)).reduce(f64::max);
    let (ran, waited) = (level("cores")?, level("cores_waited")?);
    let spare = 1.0 - mean_in(machine, &idle)?;
    let wanted = ran + waited;
    let is_starved = idle.len() >= IDLE_MIN && wanted >= STARVED_MIN && waited >= STARVED * wanted;
    // A throttled process waits for a core, too.
    if !is_starved || quota(facts).is_some() {
        return None;
    }
    let evidence = format!(
        "the target used {} cores and waited for {} more, while {} of this machine's CPU was idle",
        units::number(ran),
        units::number(waited),
        units::percent(spare)
    );
    let advice = "other programs come first: check its affinity (taskset -p) and nice value";
    let check = "top's P and NI; the second number of its /proc/PID/schedstat grows";
    Some(Finding::new("target_starved", evidence, advice, check))
}

/// A starved target demands at least this many cores and waits for this share of them, in these many
/// readings in which this share of the machine is idle.
const IDLE_MIN: usize = 2;
const STARVED_MIN: f64 = 1.0;
const STARVED: f64 = 0.75;
const SPARE: f64 = 0.25;

/// The workers waited for a core, which explains the problem; it is not known which process had it.
fn delayed(facts: &RunFacts<'_>) -> Option<Finding> {
    let part = generator::delayed(facts)?;
    let own = &facts.run.generator;
    let so = if generator::explains_latency(facts) {
        "and requests left that late".to_owned()
    } else if generator::starves(facts) {
        let had = units::duration(own.cpu as f64);
        format!("but had one for only {had}: requests are sent and responses read late")
    } else {
        return None;
    };
    let evidence = format!(
        "the workers waited {} for a core ({} of their time), {so}",
        units::duration(own.run_delay as f64),
        units::percent(part)
    );
    Some(Finding::new("run_delay", evidence, generator::CORES, generator::RUN_DELAY_CHECK))
}

/// Whether the target has CPU to spare, so that requests wait for something else; `None` when
/// unknown.
pub(super) fn idle(facts: &RunFacts<'_>) -> Option<bool> {
    let cores = facts.most("cpu_quota").unwrap_or(facts.machine_cores());
    match wanted(facts) {
        Some(wanted) => Some(wanted < IDLE * cores && busiest(facts) < IDLE),
        None => facts.mean("cpu").map(|share| share < IDLE),
    }
}

/// Whether the generator's machine, which is the target's, has no core to spare.
pub(super) fn machine_is_full(facts: &RunFacts<'_>) -> bool {
    let busy = facts.run.watched.machine("machine_cpu");
    facts.machine_flag("target_here")
        && busy.and_then(|gauge| gauge.mean_from(facts.warmup())) >= Some(USED_UP)
}

/// The share of the time in which the busiest thread of a target on this machine wants a core.
pub(super) fn busiest(facts: &RunFacts<'_>) -> f64 {
    let gauges = facts.gauges("busiest_thread").filter(local);
    gauges.filter_map(|gauge| gauge.mean_from(facts.warmup())).fold(0.0, f64::max)
}

/// The cores that a target on this machine used or waited for; `None` when unknown.
pub(super) fn wanted(facts: &RunFacts<'_>) -> Option<f64> {
    let local = |name| facts.gauges(name).filter(local).filter_map(|g| g.mean_from(facts.warmup()));
    let waited = local("cores_waited").reduce(f64::max).unwrap_or(0.0);
    Some(local("cores").reduce(f64::max)? + waited)
}

/// Below this share of its available CPU a target has CPU to spare.
const IDLE: f64 = 0.75;
