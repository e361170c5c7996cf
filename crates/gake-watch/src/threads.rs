//! Threads of processes: how much they run and wait for a core, their states and waits.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::record::LevelUnit;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::level::Level;
use crate::waits::{Wait, Waits};

/// Maximum number of threads read; each is a file.
const THREADS_MAX: usize = 1_024;

/// Groups of threads with a level each.
const GROUPS_MAX: usize = 4;

/// A thread of a group works when it ran at least this share as often as the busiest one: a primary
/// process that looks after its workers does not.
const WORKS: f64 = 0.2;

/// Minimum interval between two readings for a rate.
pub(crate) const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// A reading of many threads takes long: readings are so many times as far apart as one takes, so that
/// they need one percent of a core, but not further than this.
const INTERVAL_PER_COST: u32 = 100;
const INTERVAL_MAX: Duration = Duration::from_secs(4);

/// The scheduling counters of one thread (`/proc/PID/task/TID/schedstat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SchedStat {
    /// Nanoseconds on a core.
    ran: u64,
    /// Nanoseconds runnable without a core.
    waited: u64,
    /// Time slices on a core.
    slices: u64,
}

impl SchedStat {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { ran: next()?, waited: next()?, slices: next()? })
    }

    fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
            slices: self.slices.saturating_sub(before.slices),
        }
    }
}

/// Reads the threads of processes. A thread that has not run since the last reading is in the same
/// state, and waits for the same: only its counters are read.
#[derive(Debug, Default)]
pub(crate) struct ThreadSampler {
    threads: HashMap<(i32, i32), Thread>,
    groups: Vec<Group>,
    at: Option<Instant>,
    /// CPU time of the last reading.
    cost: Duration,
    /// Whether the waits of a process may be read.
    waits_are_readable: bool,
}

#[derive(Debug, Clone)]
struct Thread {
    name: Arc<str>,
    scheduled: SchedStat,
    /// As in `/proc/PID/task/TID/stat`: `R`, `S`, `D`, `T`.
    state: Option<char>,
    wait: Option<Wait>,
}

/// The activity of all threads between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Activity {
    /// Mean number of threads runnable without a core.
    pub(crate) waiting: f64,
    pub(crate) slices: f64,
    /// The share of the time in which the busiest thread was runnable, with or without a core.
    pub(crate) busiest: f64,
}

impl ThreadSampler {
    /// The activity since the last reading; `None` at the first, and too soon after the last.
    pub(crate) fn read(&mut self, processes: &[i32], now: Instant) -> Option<Activity> {
        let elapsed = self.at.map(|at| now.saturating_duration_since(at));
        if elapsed.is_some_and(|elapsed| elapsed < interval(self.cost)) {
            return None;
        }
        let begun = cpu_time();
        let mut found = HashMap::with_capacity(self.threads.len());
        for pid in processes {
            let Some(folder) = open(rustix::fs::CWD, &format!("/proc/{pid}/task")) else {
                continue;
            };
            for tid in tasks(*pid).take(THREADS_MAX.saturating_sub(found.len())) {
                let id = (*pid, tid);
                if let Some(thread) = self.thread(id, &folder) {
                    found.insert(id, thread);
                }
            }
        }
        let activity = elapsed.map(|elapsed| activity(&self.threads, &found, elapsed));
        self.groups = groups(&self.threads, &found);
        (self.threads, self.at) = (found, Some(now));
        self.cost = cpu_time().saturating_sub(begun);
        activity
    }

    /// A thread of the process with this folder of threads; `None` if it has ended.
    fn thread(&mut self, (pid, tid): (i32, i32), folder: &OwnedFd) -> Option<Thread> {
        let mut buffer = [0; FILE_MAX];
        let scheduled = SchedStat::parse(read(folder, tid, "schedstat", &mut buffer)?)?;
        let last = self.threads.get(&(pid, tid));
        if let Some(last) =
            last.filter(|last| last.scheduled == scheduled && last.state != Some('R'))
        {
            return Some(last.clone());
        }
        let stat = read(folder, tid, "stat", &mut buffer)?;
        let (name, state) = (name(stat).into(), state(stat));
        let wait = read(folder, tid, "syscall", &mut buffer).and_then(|line| {
            self.waits_are_readable = true;
            Wait::parse(pid, line)
        });
        Some(Thread { name, scheduled, state, wait })
    }

    /// The threads that cannot run, at the last reading.
    pub(crate) fn held(&self) -> HeldThreads {
        let count = |states: [char; 2]| {
            let is_one = |thread: &&Thread| thread.state.is_some_and(|one| states.contains(&one));
            self.threads.values().filter(is_one).count()
        };
        HeldThreads { disk: count(['D', 'D']), stopped: count(['T', 't']) }
    }

    /// Levels of the threads and processes that work, by name: the threads of a pool have one name.
    pub(crate) fn group_levels(&self) -> impl Iterator<Item = Level> {
        self.groups.iter().map(|group| {
            let kind = if group.are_processes { "processes" } else { "threads" };
            Level::new(format!("{} {kind}", group.name), LevelUnit::Count, group.working as f64)
        })
    }

    /// What the threads waited for at the last reading; `None` if that may not be read.
    pub(crate) fn waits(&self) -> Option<Waits> {
        let waits = self.threads.values().filter_map(|thread| thread.wait);
        self.waits_are_readable.then(|| Waits::of(waits))
    }
}

/// The time between two readings that take `cost` each. They come once a second, somewhat early or
/// late.
fn interval(cost: Duration) -> Duration {
    let wanted = (cost * INTERVAL_PER_COST).min(INTERVAL_MAX);
    wanted.saturating_sub(INTERVAL_MIN).max(INTERVAL_MIN)
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.try_into().unwrap_or_default()
}

fn activity(
    before: &HashMap<(i32, i32), Thread>,
    now: &HashMap<(i32, i32), Thread>,
    elapsed: Duration,
) -> Activity {
    let elapsed = elapsed.as_secs_f64();
    let mut sum = Activity::default();
    for (id, thread) in now {
        // All counters of a new thread are since the last reading.
        let last = before.get(id).map(|thread| thread.scheduled).unwrap_or_default();
        let done = thread.scheduled.since(last);
        sum.waiting += done.waited as f64 / 1e9 / elapsed;
        sum.slices += done.slices as f64 / elapsed;
        sum.busiest = sum.busiest.max((done.ran + done.waited) as f64 / 1e9 / elapsed);
    }
    sum.busiest = sum.busiest.min(1.0);
    sum
}

/// Threads or processes of one name.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    name: String,
    are_processes: bool,
    /// How many of them work.
    working: usize,
}

/// The largest groups of threads that work, by how often they ran between two readings. Threads
/// with the name of their process have been given none, as Go's.
fn groups(before: &HashMap<(i32, i32), Thread>, now: &HashMap<(i32, i32), Thread>) -> Vec<Group> {
    let mut slices: HashMap<(&str, bool), Vec<u64>> = HashMap::new();
    for (id @ (pid, tid), thread) in now {
        let is_process = pid == tid;
        let of_process = now.get(&(*pid, *pid)).map(|process| &process.name);
        let Some(last) = before.get(id) else { continue };
        if is_process || of_process != Some(&thread.name) {
            let ran = thread.scheduled.since(last.scheduled).slices;
            slices.entry((&thread.name, is_process)).or_default().push(ran);
        }
    }
    let mut groups: Vec<(u64, Group)> = Vec::new();
    for ((name, are_processes), slices) in slices {
        let busiest = slices.iter().copied().max().unwrap_or(0);
        let works = |ran: &&u64| **ran > 0 && **ran as f64 >= WORKS * busiest as f64;
        let working = slices.iter().filter(works).count();
        if working > 1 {
            let group = Group { name: name.to_owned(), are_processes, working };
            groups.push((slices.iter().sum(), group));
        }
    }
    groups.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    groups.truncate(GROUPS_MAX);
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Threads that cannot run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeldThreads {
    /// In the state D, waiting for a disk, including page-ins.
    pub(crate) disk: usize,
    /// In the state T, stopped by a signal or a debugger.
    pub(crate) stopped: usize,
}

/// The name in a `stat`, in parentheses, without the number at its end: `http-nio-8080-e`. The kernel
/// keeps 15 bytes.
fn name(stat: &str) -> &str {
    let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    let name = name.map_or("", |(name, _)| name);
    name.trim_end_matches(|end: char| end.is_ascii_digit() || " -_#:/.".contains(end))
}

/// The state in a `stat`, after the name in parentheses, which may contain any character.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Bytes that suffice for a file of a thread.
const FILE_MAX: usize = 1_024;

/// The text of a file of a thread, by three system calls and a short path: there may be a thousand.
fn read<'a>(
    folder: &OwnedFd,
    tid: i32,
    name: &str,
    buffer: &'a mut [u8; FILE_MAX],
) -> Option<&'a str> {
    let file = open(folder, &format!("{tid}/{name}"))?;
    let length = rustix::io::read(&file, &mut buffer[..]).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()
}

fn open(folder: impl rustix::fd::AsFd, path: &str) -> Option<OwnedFd> {
    rustix::fs::openat(folder, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// The threads of a process.
fn tasks(pid: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    tasks.into_iter().flatten().flatten().filter_map(|task| task.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(seconds: f64) -> u64 {
        (seconds * 1e9) as u64
    }

    #[test]
    fn activity_is_growth() {
        let thread = |ran, waited, slices| {
            let scheduled = SchedStat { ran: ns(ran), waited: ns(waited), slices };
            Thread { name: "a".into(), scheduled, state: None, wait: None }
        };
        let before = HashMap::from([((1, 1), thread(5.0, 1.0, 10)), ((1, 2), thread(1.0, 0.0, 0))]);
        let now = HashMap::from([
            ((1, 1), thread(6.0, 1.5, 30)),
            ((1, 2), thread(1.0, 0.0, 0)),
            ((1, 3), thread(0.2, 0.3, 10)),
        ]);
        let seen = activity(&before, &now, Duration::from_secs(2));
        assert_eq!(seen, Activity { waiting: 0.4, slices: 15.0, busiest: 0.75 });
    }

    #[test]
    fn a_thread_that_computes_is_the_busiest() {
        let me = [i32::try_from(std::process::id()).unwrap()];
        let mut threads = ThreadSampler::default();
        let begun = Instant::now();
        assert_eq!(threads.read(&me, begun), None);
        while begun.elapsed() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }
        let seen = threads.read(&me, Instant::now()).unwrap();
        assert!(seen.busiest > 0.9, "{seen:?}");
        assert_eq!(threads.read(&me, Instant::now()), None);
    }

    #[test]
    fn long_readings_are_far_apart() {
        let ms = Duration::from_millis;
        for (cost, apart) in [(0, 200), (1, 200), (10, 800), (25, 2_300), (900, 3_800)] {
            assert_eq!(interval(ms(cost)), ms(apart), "{cost} ms");
        }
    }

    #[test]
    fn threads_that_work_are_counted_by_name() {
        let all = |ran: [u64; 7]| -> HashMap<_, _> {
            let named = [
                (1, 1, "gunicorn"),
                (2, 2, "gunicorn"),
                (3, 3, "gunicorn"),
                (4, 4, "java"),
                (4, 5, "http-nio-8080-e"),
                (4, 6, "http-nio-8080-e"),
                (4, 7, "java"),
            ];
            let thread = |((pid, tid, name), slices): ((i32, i32, &str), u64)| {
                let scheduled = SchedStat { slices, ..SchedStat::default() };
                ((pid, tid), Thread { name: name.into(), scheduled, state: None, wait: None })
            };
            named.into_iter().zip(ran).map(thread).collect()
        };
        let group = |name: &str, are_processes, working| Group {
            name: name.to_owned(),
            are_processes,
            working,
        };
        assert_eq!(
            groups(&all([9, 10, 10, 0, 0, 0, 0]), &all([10, 110, 90, 0, 300, 200, 300])),
            [group("http-nio-8080-e", false, 2), group("gunicorn", true, 2)]
        );
        assert_eq!(groups(&HashMap::new(), &all([1; 7])), []);
    }

    #[test]
    fn names_of_a_pool_are_one() {
        assert_eq!(name("12 (puma srv tp 003) S 1"), "puma srv tp");
        assert_eq!(name("12 (http-nio-8080-e) S 1"), "http-nio-8080-e");
        assert_eq!(name("12 (a) b) S 1"), "a) b");
        assert_eq!(name("nonsense"), "");
    }

    #[test]
    fn the_state_follows_the_name() {
        assert_eq!(state("12 (a) D) b) S 1 2"), Some('S'));
        assert_eq!(state("12 (cat) D 1 2"), Some('D'));
        assert_eq!(state("nonsense"), None);
    }
}
