//! What the watched target said of itself: a level at its bound needs no guess.

use gake_core::record::{Gauge, LevelUnit};
use gake_text::units;

use super::Finding;
use super::facts::{AtBound, Facts};

/// A share of a whole is used up from here on.
const USED_UP: f64 = 0.95;
/// Connections are at their limit from here on when others wait to be accepted: a server may count
/// some that clients have given up, and not count them as open.
const NEARLY: f64 = 0.85;
/// Requests wait for what this part of those in flight wait for.
const MOST: f64 = 0.5;
/// Garbage collection that takes this part of the time, or of the CPU, is the limit.
const COLLECTING: f64 = 0.15;
/// Pages read from a disk for each request, when memory is short; or, when the disk is so fast that
/// nobody is seen to wait for it, when a control group's bound is why.
const MAJOR_FAULTS: f64 = 0.2;
const MAJOR_FAULTS_OF_BOUND: f64 = 1.0;
/// A source is silent that did not answer for this part of its readings, and this often.
const SILENT: f64 = 0.2;
const SILENT_MIN: u64 = 2;

/// A process that ends under the load: whatever else is seen follows from that.
pub(super) fn ended(facts: &Facts<'_>) -> Option<Finding> {
    let process = |source: &str| source.starts_with("pid:") || source.starts_with("port:");
    let gone = facts.unanswered().into_iter().find(|silent| process(silent.source))?;
    if facts.counts().failed + facts.counts().unfinished == 0 {
        return None;
    }
    let evidence = format!(
        "{} was there in {} readings and then no more: the process ended or was started again",
        gone.source,
        units::count(gone.answered)
    );
    let advice = "look at its log for the crash, and at the kernel's for the out-of-memory killer";
    let check = "dmesg, or journalctl -k, on the target";
    Some(Finding::new("target_ended", evidence, advice, check))
}

pub(super) fn memory(facts: &Facts<'_>) -> Option<Finding> {
    let faults = facts.mean("major_faults")?;
    let threads = facts.mean("disk_threads").unwrap_or(0.0);
    let each = faults / facts.rate().max(1.0);
    let refused = facts.mean("memory_refused").filter(|refused| *refused > 0.0);
    let waits = each >= MAJOR_FAULTS && threads >= 1.0;
    let is_bound = refused.is_some() && each >= MAJOR_FAULTS_OF_BOUND;
    if !(waits || is_bound && (facts.is_closed() || facts.is_troubled())) {
        return None;
    }
    let mut evidence = format!(
        "the target read {} pages a second back from the disk, {} for each request, since memory \
         is short",
        units::number(faults),
        units::number(each)
    );
    if let Some(refused) = refused {
        evidence.push_str(&format!(
            "; its control group's bound refused it memory {} times a second",
            units::number(refused)
        ));
    }
    let advice = "give it more memory (the machine's, or its control group's bound), or make it \
                  use less";
    let check = "pidstat -r 1 on the target (majflt/s); vmstat 1 (si); memory.events of its group";
    Some(Finding::new("target_memory", evidence, advice, check))
}

/// Garbage collection.
pub(super) fn collector(facts: &Facts<'_>) -> Option<Finding> {
    let seen = facts.at_bound("gc", COLLECTING)?;
    let evidence = format!(
        "{} spent {} of the time on garbage collection ({} at most; {} or more {})",
        seen.source,
        units::percent(seen.mean),
        units::percent(seen.max.min(1.0)),
        units::percent(COLLECTING),
        seen.how_often()
    );
    let advice = "give it a larger heap, or allocate less for a request";
    let check = "jstat -gcutil PID 1000 (GCT), or GODEBUG=gctrace=1, on the target";
    Some(Finding::new("target_gc", evidence, advice, check))
}

pub(super) fn disk(facts: &Facts<'_>) -> Option<Finding> {
    let threads = facts.mean("disk_threads")?;
    if facts.at_disk() < MOST {
        return None;
    }
    let evidence = format!(
        "{} of the target's threads waited for a disk in the mean, with {} requests in flight",
        units::number(threads),
        units::number(facts.in_flight())
    );
    let advice = "the disk is the limit: write less or in larger parts, sync less often, or get a \
                  faster one";
    let check = "iostat -x 1 on the target (w_await, %util); ps -eLo stat,wchan,comm shows D";
    Some(Finding::new("target_disk", evidence, advice, check))
}

/// A lock within the target: what holds it decides the rate, whatever else there is.
pub(super) fn lock(facts: &Facts<'_>) -> Option<Finding> {
    let blocked = facts.mean("lock_waiting")?;
    if blocked < MOST * facts.in_flight().max(2.0) {
        return None;
    }
    let evidence = format!(
        "{} of the target's threads waited for a lock in the mean, with {} requests in flight",
        units::number(blocked),
        units::number(facts.in_flight())
    );
    let advice = "find the lock and hold it shorter: a profile of waiting threads names it (jstack, \
                  Go's mutex profile)";
    let check = "jstack PID | grep -c BLOCKED, or /debug/pprof/mutex, on the target";
    Some(Finding::new("target_lock", evidence, advice, check))
}

/// `all 200 busy in 8 of 12 readings (72 % in the mean)`.
pub(super) fn used(seen: &AtBound<'_>, busy: Option<f64>) -> String {
    let which = match busy {
        Some(busy) => format!("all {} ", units::number(busy)),
        None => format!("{} or more of them ", units::percent(USED_UP)),
    };
    format!("{which}busy {} ({} in the mean)", seen.how_often(), units::percent(seen.mean))
}

pub(super) fn at_share<'a>(facts: &Facts<'a>, name: &'a str) -> Option<AtBound<'a>> {
    facts.at_bound(name, USED_UP)
}

pub(super) fn pool(facts: &Facts<'_>) -> Option<Finding> {
    let seen = at_share(facts, "pool")?;
    let evidence =
        format!("{} had its worker threads {}", seen.source, used(&seen, facts.most("pool_busy")));
    let advice = "the pool is the limit: what the threads wait for decides whether more of them \
                  help (server.tomcat.threads.max, or the like)";
    let check = "tomcat.threads.busy against tomcat.threads.config.max; jstack PID shows what they \
                 wait for";
    Some(Finding::new("target_pool", evidence, advice, check))
}

pub(super) fn connections(facts: &Facts<'_>) -> Option<Finding> {
    let waiting = facts.at_bound("accept_queue", 1.0);
    let seen = at_share(facts, "connections")
        .or_else(|| facts.at_bound("connections", NEARLY).filter(|_| waiting.is_some()))?;
    let mut evidence = format!(
        "{} had {} of the connections it allows {}",
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
    let advice = "raise the limit (server.tomcat.max-connections, worker_connections), or close \
                  connections that idle";
    let check = "ss -tan state established '( sport = :PORT )' | wc -l against the setting";
    Some(Finding::new("target_connections", evidence, advice, check))
}

pub(super) fn descriptors(facts: &Facts<'_>) -> Option<Finding> {
    let share = facts.most("descriptors").filter(|share| *share >= USED_UP)?;
    let evidence = format!("the target had {} of its file descriptors open", units::percent(share));
    let advice = "raise its limit (ulimit -n, LimitNOFILE=); without descriptors it cannot accept";
    let check = "ls /proc/PID/fd | wc -l against Max open files in /proc/PID/limits";
    Some(Finding::new("target_descriptors", evidence, advice, check))
}

/// A source that shares the target's threads or connections starves with it: that it does not
/// answer is a reading.
pub(super) fn silent(facts: &Facts<'_>) -> Option<Finding> {
    let fetched =
        |source: &str| ["prometheus:", "actuator:"].iter().any(|kind| source.starts_with(kind));
    let silent = facts.unanswered().into_iter().find(|silent| {
        let all = silent.times + silent.answered;
        let part = silent.times as f64 / all.max(1) as f64;
        fetched(silent.source) && silent.times >= SILENT_MIN && part >= SILENT
    })?;
    let mut evidence = format!(
        "{} did not answer {} of {} times under the load",
        silent.source,
        units::count(silent.times),
        units::count(silent.times + silent.answered)
    );
    let said: Vec<_> = silent.last.iter().filter_map(|gauge| last_share(gauge)).collect();
    if !said.is_empty() {
        evidence.push_str(&format!("; the last that it said, {}, is of before", said.join(", ")));
    }
    let advice = "it probably waits for the threads or connections that the load has taken: give \
                  it a port of its own (management.server.port), and watch port:PORT, which needs \
                  no answer";
    Some(Finding::new("target_silent", evidence, advice, "curl -m 1 the same URL under the load"))
}

fn last_share(gauge: &Gauge) -> Option<String> {
    let value = gauge.last().filter(|_| gauge.unit == LevelUnit::Share)?;
    Some(format!("{} {}", gauge.name.replace('_', " "), units::percent(value)))
}
