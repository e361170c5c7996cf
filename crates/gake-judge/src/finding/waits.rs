//! Inside a saturated target: what the threads wait for that hold its places, and where the other
//! requests are.

use gake_core::clock::SECOND;
use gake_core::record::{Gauge, GaugeSample};
use gake_text::units;

use super::Finding;
use super::database;
use super::facts::RunFacts;

/// Threads hold the places when this share of the places is accounted for, ...
const PLACES_MIN: f64 = 0.6;
/// ... and not many more threads than places wait for the same.
const PLACES_MAX: f64 = 1.4;
/// All requests wait for the server behind the target from this share of those in flight on.
const BEHIND: f64 = 0.7;
/// ... and from this multiple of the requests served at once on.
const TOO_MANY: f64 = 2.0;
/// The others are unread when at least this share of them is, ...
const UNREAD_MIN: f64 = 0.6;
/// ... and read when at most this share is unread.
const READ_MAX: f64 = 0.2;
/// Threads that wait for a lock are as many as the requests that wait.
const OTHERS_THREADS: (f64, f64) = (0.6, 1.3);
/// Connections for each request in flight.
const ONE_EACH: f64 = 0.8;
/// Fewer requests that wait say nothing.
const OTHERS_MIN: f64 = 3.0;
/// Fewer readings do not show that a pool is full all the time.
pub(super) const READINGS_MIN: u64 = 3;

/// Levels of threads by what they wait for, in words, with advice.
pub(super) const WAITS: [(&str, &str, &str); 2] = [
    (
        "sleeping_threads",
        "sleep",
        "look for a sleep, or a retry with a delay, in the request's code",
    ),
    (
        "child_threads",
        "wait for a child process",
        "look for the program that a request starts and waits for",
    ),
];

/// Where the requests are that are not being served.
#[derive(Clone, Copy, PartialEq)]
enum Others {
    /// Their threads wait for a futex.
    Lock,
    /// Their threads wait for a file lock.
    FileLock,
    /// In the buffers of their connections.
    Unread,
    /// Inside the target.
    Read,
}

impl Others {
    fn text(self) -> &'static str {
        match self {
            Self::Lock => "the others wait for a lock (futex)",
            Self::FileLock => "the others wait for a file lock",
            Self::Unread => "the others are unread (Recv-Q)",
            Self::Read => "the others have been read",
        }
    }

    /// What to do, and how to check it, when one request is served at a time, or several.
    fn advice(self, is_serial: bool) -> (&'static str, &'static str) {
        let stacks = "ps -eLo comm,wchan:24 | sort | uniq -c there; jstack, py-spy dump";
        match (self, is_serial) {
            (Self::Lock, true) => ("look for a lock that a request holds while it works", stacks),
            (Self::Lock, false) => ("look for a semaphore or a pool of that size", stacks),
            (Self::FileLock, _) => ("look for the file that each request locks", "lslocks"),
            (Self::Unread, true) => (
                "more workers, or find what blocks the event loop",
                "ss -Htn sport = :PORT | awk '$2' | wc -l on the target",
            ),
            (Self::Unread, false) => (
                "its workers are all taken: more workers, if it has the cores",
                "ss -Htn sport = :PORT | awk '$2' | wc -l on the target",
            ),
            (Self::Read, true) => {
                ("look for a lock, or an only connection, that a request holds", stacks)
            }
            (Self::Read, false) => {
                ("look for a pool or semaphore behind the workers, of that size", stacks)
            }
        }
    }
}

/// Adds to a finding that so many requests are served at once what the target's threads tell.
pub(super) fn specify(finding: &mut Finding, facts: &RunFacts<'_>) {
    let Some(served) = finding.served else { return };
    let held = behind(facts, served).or_else(|| held(facts, served));
    let is_behind = held.as_ref().is_some_and(|wait| wait.peer.is_some());
    let others = others(facts, served, held.is_some())
        .filter(|others| !is_behind || *others != Others::Read);
    // A pool of connections is named already.
    let new = held.iter().filter(|wait| {
        let is_named = wait.peer.is_some_and(|peer| finding.evidence.contains(peer));
        !is_named && !finding.evidence.contains(&wait.text)
    });
    let new = new.map(|wait| wait.text.as_str()).chain(others.map(Others::text));
    let new: String = new.map(|text| format!("; {text}")).collect();
    finding.evidence += &new;
    let pool = pool(facts, served, others == Some(Others::Read));
    if let Some(pool) = &pool {
        finding.evidence += &format!("; it has as many {pool} at work");
    }
    // A thread that sleeps while others wait for a lock works on behalf of the one that holds it.
    let advice = match (held, others) {
        (Some(wait), Some(Others::Read) | None) => (wait.advice, wait.check),
        (Some(wait), _) if is_behind => (wait.advice, wait.check),
        (_, Some(Others::Unread) | None) if let Some(pool) = &pool => {
            finding.advice = format!("more {pool}, if it has the cores");
            POOL_CHECK.clone_into(&mut finding.check);
            return;
        }
        (_, Some(others)) => others.advice(served.round() <= 1.0),
        (None, None) => return,
    };
    (finding.advice, finding.check) = (advice.0.to_owned(), advice.1.to_owned());
}

/// Threads or processes of one name that are as many as the requests served at once, more than one.
/// Processes that have read the others have event loops: they are no pool.
fn pool(facts: &RunFacts<'_>, served: f64, others_are_read: bool) -> Option<String> {
    let kinds: &[&str] = if others_are_read { &[" threads"] } else { &[" processes", " threads"] };
    facts.run.watched.gauges().iter().find_map(|gauge| {
        let (name, kind) =
            kinds.iter().find_map(|kind| Some((gauge.name.strip_suffix(kind)?, kind)))?;
        let (working, count) = during(gauge, facts)?;
        let is_pool = working >= 1.5 && (working - served).abs() <= f64::max(0.5, SAME * served);
        let name: String = name.chars().filter(|one| !one.is_control()).collect();
        (is_pool && count >= READINGS_MIN).then(|| format!("\"{name}\"{kind}"))
    })
}

const POOL_CHECK: &str = "ps -eLo comm | sort | uniq -c on the target; that pool's setting";

/// Threads are as many as the requests served at once within this share.
const SAME: f64 = 0.1;

/// What the threads wait for that hold the places.
struct Wait<'a> {
    text: String,
    /// The server behind the target, if it is one.
    peer: Option<&'a str>,
    advice: &'static str,
    check: &'static str,
}

/// Threads that wait for a response of a server behind the target.
fn behind<'a>(facts: &RunFacts<'a>, served: f64) -> Option<Wait<'a>> {
    let (peer, threads, _) = awaited(facts).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let all = facts.in_flight();
    if threads < (PLACES_MIN * served).max(0.5) || threads > PLACES_MAX * all.max(served) {
        return None;
    }
    let named = database::by_port(peer).map(|name| format!(" ({name})")).unwrap_or_default();
    // More threads wait than are served: they wait for each other there, as for a row lock.
    let advice = if threads >= BEHIND * all || threads >= TOO_MANY * served {
        "the limit is behind the target: watch that server, too"
    } else {
        "a larger pool helps if that server has room; else less work for it"
    };
    let text = format!("{} for {peer}{named}", counted(threads, "wait", "waits"));
    Some(Wait {
        text,
        peer: Some(peer),
        advice,
        check: "ss -tnp dst PEER; ps -eLo comm,wchan:24 | sort | uniq -c",
    })
}

/// Threads that hold the places and wait for nothing outside.
fn held(facts: &RunFacts<'_>, served: f64) -> Option<Wait<'static>> {
    WAITS.iter().find_map(|(name, does, advice)| {
        let gauges = facts.gauges(name).filter_map(|gauge| busy(gauge, facts));
        let threads = gauges.map(|(mean, _)| mean).reduce(f64::max)?;
        let share = threads / served;
        if !(PLACES_MIN..=PLACES_MAX).contains(&share) {
            return None;
        }
        let text = self::does(threads, does);
        Some(Wait {
            text,
            peer: None,
            advice,
            check: "ps -eLo comm,wchan:24 | sort | uniq -c on the target",
        })
    })
}

/// `4 threads wait for a child process`.
pub(super) fn does(threads: f64, does: &str) -> String {
    let (first, rest) = does.split_once(' ').unwrap_or((does, ""));
    let text = counted(threads, first, &format!("{first}s"));
    format!("{text} {rest}").trim_end().to_owned()
}

/// `4 threads wait`, `one thread waits`.
fn counted(threads: f64, many: &str, one: &str) -> String {
    match threads.round() {
        ..=1.0 => format!("one thread {one}"),
        threads => format!("{} threads {many}", units::count(threads as u64)),
    }
}

/// The mean of a level during the load beyond the reading before it, and the number of readings.
fn busy(gauge: &Gauge, facts: &RunFacts<'_>) -> Option<(f64, u64)> {
    let (mean, readings) = during(gauge, facts)?;
    Some((mean - before(gauge), readings))
}

/// A level in the reading before the load; 0 without one.
pub(super) fn before(gauge: &Gauge) -> f64 {
    let first = gauge.samples().first().filter(|sample| sample.at < SECOND / 2);
    first.map_or(0.0, |sample| sample.mean)
}

/// The mean of a level during the load, and the number of readings.
fn during(gauge: &Gauge, facts: &RunFacts<'_>) -> Option<(f64, u64)> {
    let (sum, readings) = samples(gauge, facts).fold((0.0, 0), |(sum, readings), sample| {
        (sum + sample.mean * sample.readings as f64, readings + sample.readings)
    });
    (readings > 0).then(|| (sum / readings as f64, readings))
}

/// The median of a level during the load, and the share of the samples that are about the same.
pub(super) fn usual(gauge: &Gauge, facts: &RunFacts<'_>) -> Option<(f64, f64)> {
    let mut levels: Vec<f64> = samples(gauge, facts).map(|sample| sample.mean).collect();
    levels.sort_by(f64::total_cmp);
    let median = *levels.get(levels.len() / 2)?;
    let alike = levels.iter().filter(|level| (*level - median).abs() < ALIKE).count();
    let share = alike as f64 / levels.len() as f64;
    Some((median, share))
}

/// Levels differ by less than this in their means over a second.
const ALIKE: f64 = 0.5;

/// The samples of a level during the load.
pub(super) fn samples<'a>(
    gauge: &'a Gauge,
    facts: &RunFacts<'_>,
) -> impl Iterator<Item = &'a GaugeSample> {
    let (from, end) = (facts.warmup().max(SECOND / 2), facts.warmup() + facts.run.measured);
    gauge.samples().iter().filter(move |sample| (from..=end).contains(&sample.at))
}

/// How often the waits of threads were read; `None` where they cannot be.
pub(super) fn readings(facts: &RunFacts<'_>) -> Option<u64> {
    facts.gauges("futex_threads").filter_map(|gauge| Some(during(gauge, facts)?.1)).max()
}

/// Servers behind the target, each with the mean and the usual number of threads that wait for it.
/// The level is absent while there are none.
pub(super) fn awaited<'a>(facts: &RunFacts<'a>) -> impl Iterator<Item = (&'a str, f64, f64)> {
    let readings = readings(facts);
    facts.run.watched.gauges().iter().filter_map(move |gauge| {
        let peer = gauge.name.strip_suffix(" awaited")?;
        let (mean, count) = busy(gauge, facts)?;
        Some((peer, mean * count as f64 / readings? as f64, usual(gauge, facts)?.0))
    })
}

/// Where the requests are that wait; `None` when unknown. `is_held`: whether it is known what the
/// threads wait for that serve the others.
fn others(facts: &RunFacts<'_>, served: f64, is_held: bool) -> Option<Others> {
    let in_flight = facts.in_flight();
    let waiting = in_flight - served;
    if waiting < OTHERS_MIN {
        return None;
    }
    // With several streams on a connection its bytes say nothing of one of them.
    let is_one_each = facts.run.peak_connections as f64 >= ONE_EACH * in_flight;
    let unread = facts.gauges("unread_connections").filter_map(|gauge| during(gauge, facts));
    let unread = unread.map(|(mean, _)| mean / waiting).reduce(f64::max).filter(|_| is_one_each);
    if unread.is_some_and(|share| share >= UNREAD_MIN) {
        return Some(Others::Unread);
    }
    // Idle threads of a pool wait for a futex, too: these had none before the load. So may the
    // threads that serve, unless it is known what they wait for.
    let serving = if is_held { 0.0 } else { served };
    for (level, others) in
        [("futex_threads", Others::Lock), ("file_lock_threads", Others::FileLock)]
    {
        let threads = facts.gauges(level).filter_map(|gauge| busy(gauge, facts));
        let share = threads.map(|(mean, _)| (mean - serving) / waiting).fold(0.0, f64::max);
        if (OTHERS_THREADS.0..=OTHERS_THREADS.1).contains(&share) {
            return Some(others);
        }
    }
    unread.filter(|share| *share <= READ_MAX).map(|_| Others::Read)
}
