//! Levels of the watched target that are at their bound.

use gake_core::record::{Gauge, LevelUnit};
use gake_text::units;

use super::Finding;
use super::facts::{AtBound, RunFacts};

/// A resource is used up from this share on.
const USED_UP: f64 = 0.95;
/// The same for connections while others wait to be accepted: a server may count some that clients
/// have closed, and not count them as open.
const NEARLY: f64 = 0.85;
/// A disk or lock is the limit when this share of the requests in flight waits for it.
const WAITING: f64 = 0.5;
/// Garbage collection is the limit from this share of the time, or of the CPU, on.
const COLLECTING: f64 = 0.15;
/// Pages read back from disk per request, when memory is short and threads wait for them ...
const MAJOR_FAULTS: f64 = 0.2;
/// ... or when a control group refused memory: a fast disk shows no waiting threads.
const MAJOR_FAULTS_REFUSED: f64 = 1.0;
/// A source is silent when this share and this number of its reads failed.
const SILENT: f64 = 0.2;
const SILENT_MIN: u64 = 2;

/// The process ended under the load, which explains everything else.
pub(super) fn ended(facts: &RunFacts<'_>) -> Option<Finding> {
    let process = |source: &str| source.starts_with("pid:") || source.starts_with("port:");
    let gone = facts.silent_sources().into_iter().find(|silent| process(silent.source))?;
    if facts.counts().failed + facts.counts().unfinished == 0 {
        return None;
    }
    let evidence = format!(
        "{} was gone after {} readings: the process ended or was restarted",
        gone.source,
        units::count(gone.answered)
    );
    let advice = "look at its log for a crash, and dmesg for the out-of-memory killer";
    let check = "dmesg, or journalctl -k, on the target";
    Some(Finding::new("target_ended", evidence, advice, check))
}

/// The process was stopped by a signal or a debugger (state T).
pub(super) fn stopped(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("stopped_threads", 1.0)?;
    let evidence = format!(
        "{} of the target's threads were stopped (state T) {}",
        units::number(seen.max),
        seen.how_often()
    );
    let advice = "continue it with kill -CONT PID, and find what sent SIGSTOP";
    Some(Finding::new("target_stopped", evidence, advice, "ps -eo pid,stat,comm: its state is T"))
}

pub(super) fn memory(facts: &RunFacts<'_>) -> Option<Finding> {
    let faults = facts.mean("major_faults")?;
    let threads = facts.mean("disk_threads").unwrap_or(0.0);
    let each = faults / facts.rate().max(1.0);
    let refused = facts.mean("memory_refused").filter(|refused| *refused > 0.0);
    let waits = each >= MAJOR_FAULTS && threads >= 1.0;
    let is_refused = refused.is_some() && each >= MAJOR_FAULTS_REFUSED;
    if !(waits || is_refused && (facts.is_closed() || facts.is_troubled())) {
        return None;
    }
    let mut evidence = format!(
        "the target read {} pages a second back from disk, {} per request: memory is short",
        units::number(faults),
        units::number(each)
    );
    if let Some(refused) = refused {
        evidence.push_str(&format!(
            "; its control group refused it memory {} times a second",
            units::number(refused)
        ));
    }
    let advice = "give it more memory (machine or control group), or reduce its use";
    let check = "pidstat -r 1 (majflt/s) on the target; memory.events of its group";
    Some(Finding::new("target_memory", evidence, advice, check))
}

pub(super) fn collector(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("gc", COLLECTING).filter(|seen| seen.mean >= COLLECTING);
    let Some(seen) = seen else { return concurrent(facts) };
    let evidence = format!(
        "{} spent {} of the time on garbage collection (at most {}; {} or more {})",
        seen.source,
        units::percent(seen.mean),
        units::percent(seen.max.min(1.0)),
        units::percent(COLLECTING),
        seen.how_often()
    );
    Some(Finding::new("target_gc", evidence, LESS_GARBAGE, GC_CHECK))
}

const LESS_GARBAGE: &str = "give it a larger heap, or allocate less for a request";
const GC_CHECK: &str = "jstat -gcutil PID 1000 (GCT), or GODEBUG=gctrace=1, on the target";

/// A collector that runs beside the program, as Go's, and takes its CPU.
fn concurrent(facts: &RunFacts<'_>) -> Option<Finding> {
    let (collecting, ran) = (facts.mean("gc_cores")?, facts.mean("cores")?);
    if collecting < CONCURRENT * ran.max(1.0) {
        return None;
    }
    let evidence = format!(
        "the target used {} cores, {} of them for garbage collection",
        units::number(ran),
        units::number(collecting)
    );
    Some(Finding::new("target_gc", evidence, LESS_GARBAGE, GC_CHECK))
}

/// A concurrent collector is the limit from this share of the CPU on; Go aims at a quarter while it
/// runs.
const CONCURRENT: f64 = 0.2;

pub(super) fn disk(facts: &RunFacts<'_>) -> Option<Finding> {
    let threads = facts.mean("disk_threads")?;
    if facts.at_disk() < WAITING {
        return None;
    }
    let evidence = format!(
        "on average {} of the target's threads waited for a disk, with {} requests in flight",
        units::number(threads),
        units::number(facts.in_flight())
    );
    let advice = "write less or in larger blocks, sync less often, or use a faster disk";
    let check = "iostat -x 1 on the target (w_await, %util)";
    Some(Finding::new("target_disk", evidence, advice, check))
}

pub(super) fn lock(facts: &RunFacts<'_>) -> Option<Finding> {
    let blocked = facts.mean("lock_waiting")?;
    if blocked < WAITING * facts.in_flight().max(2.0) {
        return None;
    }
    let evidence = format!(
        "on average {} of the target's threads waited for a lock, with {} requests in flight",
        units::number(blocked),
        units::number(facts.in_flight())
    );
    let advice = "find the lock (jstack, Go's mutex profile), and hold it for less time";
    let check = "jstack PID | grep -c BLOCKED, or /debug/pprof/mutex, on the target";
    Some(Finding::new("target_lock", evidence, advice, check))
}

/// `port:80: all 200 worker threads busy in 8 of 12 readings (72 % on average)`.
pub(super) fn used(seen: &AtBound<'_>, busy: Option<f64>, what: &str) -> String {
    let which = match busy {
        Some(busy) => format!("all {}", units::number(busy)),
        None => format!("at least {} of the", units::percent(USED_UP)),
    };
    let (often, mean) = (seen.how_often(), units::percent(seen.mean));
    format!("{}: {which} {what} busy {often} ({mean} on average)", seen.source)
}

pub(super) fn at_share<'a>(facts: &RunFacts<'a>, name: &'a str) -> Option<AtBound<'a>> {
    facts.at_bound(name, USED_UP)
}

pub(super) fn pool(facts: &RunFacts<'_>) -> Option<Finding> {
    let seen = at_share(facts, "pool")?;
    let evidence = used(&seen, facts.most("pool_busy"), "worker threads");
    let advice = "find what its threads wait for; enlarge it unless that is the limit";
    let check = "jstack PID; tomcat.threads.busy against tomcat.threads.config.max";
    Some(Finding::new("target_pool", evidence, advice, check))
}

pub(super) fn connections(facts: &RunFacts<'_>) -> Option<Finding> {
    let waiting = facts.at_bound("accept_queue", 1.0);
    let seen = at_share(facts, "connections")
        .or_else(|| facts.at_bound("connections", NEARLY).filter(|_| waiting.is_some()))?;
    let mut evidence = format!(
        "{} had up to {} of its allowed connections open {}",
        seen.source,
        units::percent(seen.max),
        seen.how_often()
    );
    if let Some(queue) = waiting {
        evidence.push_str(&format!(
            "; up to {} more waited to be accepted, {}",
            units::count(queue.max as u64),
            queue.how_often()
        ));
    }
    let advice = "raise it (max-connections, worker_connections), or close idle ones";
    let check = "ss -Htan state established sport = :PORT | wc -l on the target";
    Some(Finding::new("target_connections", evidence, advice, check))
}

pub(super) fn descriptors(facts: &RunFacts<'_>) -> Option<Finding> {
    let share = facts.most("descriptors").filter(|share| *share >= USED_UP)?;
    let evidence = format!("the target had {} of its file descriptors open", units::percent(share));
    let advice = "raise ulimit -n (LimitNOFILE=): without descriptors it cannot accept";
    let check = "ls /proc/PID/fd | wc -l against Max open files in /proc/PID/limits";
    Some(Finding::new("target_descriptors", evidence, advice, check))
}

/// A source that shares the target's threads or connections starves with it: its failed reads are
/// evidence.
pub(super) fn silent(facts: &RunFacts<'_>) -> Option<Finding> {
    let fetched =
        |source: &str| ["prometheus:", "actuator:"].iter().any(|kind| source.starts_with(kind));
    let silent = facts.silent_sources().into_iter().find(|silent| {
        let all = silent.failed + silent.answered;
        let failed = silent.failed as f64 / all.max(1) as f64;
        fetched(silent.source) && silent.failed >= SILENT_MIN && failed >= SILENT
    })?;
    let mut evidence = format!(
        "{} of {} reads of {} failed under the load",
        units::count(silent.failed),
        units::count(silent.failed + silent.answered),
        silent.source
    );
    let last: Vec<_> = silent.last.iter().filter_map(|gauge| last_share(gauge)).collect();
    if !last.is_empty() {
        evidence.push_str(&format!("; its last values before that: {}", last.join(", ")));
    }
    let advice = "give its metrics a port of their own, and watch port:PORT as well";
    Some(Finding::new("target_silent", evidence, advice, "curl -m 1 the same URL under the load"))
}

fn last_share(gauge: &Gauge) -> Option<String> {
    let value = gauge.last().filter(|_| gauge.unit == LevelUnit::Share)?;
    Some(format!("{} {}", gauge.name.replace('_', " "), units::percent(value)))
}
