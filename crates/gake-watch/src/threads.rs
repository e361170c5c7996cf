//! Activity of the threads of processes: running, waiting for a core, waiting for a disk.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of threads read; each is a file.
pub(crate) const THREADS_MAX: usize = 1_024;

/// Minimum interval between two readings for a rate.
pub(crate) const INTERVAL_MIN: Duration = Duration::from_millis(200);

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

#[derive(Debug, Default)]
pub(crate) struct ThreadSampler {
    last: HashMap<(i32, i32), SchedStat>,
    at: Option<Instant>,
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
        if elapsed.is_some_and(|elapsed| elapsed < INTERVAL_MIN) {
            return None;
        }
        let found: HashMap<_, _> = processes
            .iter()
            .flat_map(|pid| tasks(*pid).map(move |tid| (*pid, tid)))
            .take(THREADS_MAX)
            .filter_map(|(pid, tid)| {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
                Some(((pid, tid), SchedStat::parse(&text)?))
            })
            .collect();
        let activity = elapsed.map(|elapsed| activity(&self.last, &found, elapsed));
        (self.last, self.at) = (found, Some(now));
        activity
    }
}

fn activity(
    before: &HashMap<(i32, i32), SchedStat>,
    now: &HashMap<(i32, i32), SchedStat>,
    elapsed: Duration,
) -> Activity {
    let elapsed = elapsed.as_secs_f64();
    let mut sum = Activity::default();
    for (thread, scheduled) in now {
        // All counters of a new thread are since the last reading.
        let done = scheduled.since(before.get(thread).copied().unwrap_or_default());
        sum.waiting += done.waited as f64 / 1e9 / elapsed;
        sum.slices += done.slices as f64 / elapsed;
        sum.busiest = sum.busiest.max((done.ran + done.waited) as f64 / 1e9 / elapsed);
    }
    sum.busiest = sum.busiest.min(1.0);
    sum
}

/// Threads that cannot run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeldThreads {
    /// In the state D, waiting for a disk, including page-ins.
    pub(crate) disk: usize,
    /// In the state T, stopped by a signal or a debugger.
    pub(crate) stopped: usize,
}

pub(crate) fn held(processes: &[i32]) -> HeldThreads {
    let states = processes
        .iter()
        .flat_map(|pid| tasks(*pid).map(move |tid| format!("/proc/{pid}/task/{tid}/stat")))
        .take(THREADS_MAX)
        .filter_map(|path| state(&fs::read_to_string(path).ok()?));
    states.fold(HeldThreads::default(), |held, state| match state {
        'D' => HeldThreads { disk: held.disk + 1, ..held },
        'T' | 't' => HeldThreads { stopped: held.stopped + 1, ..held },
        _ => held,
    })
}

/// The state in a `stat`, after the name in parentheses, which may contain any character.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The threads of a process.
pub(crate) fn tasks(pid: i32) -> impl Iterator<Item = i32> {
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
        let thread = |ran, waited, slices| SchedStat { ran: ns(ran), waited: ns(waited), slices };
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
    fn the_state_follows_the_name() {
        assert_eq!(state("12 (a) D) b) S 1 2"), Some('S'));
        assert_eq!(state("12 (cat) D 1 2"), Some('D'));
        assert_eq!(state("nonsense"), None);
    }
}
