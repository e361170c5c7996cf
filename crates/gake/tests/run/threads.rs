//! Nothing beside the workers delays an arrival: every other thread is of the lowest class, and
//! no thread waits for a huge page.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::*;

/// What the kernel calls SCHED_OTHER and SCHED_IDLE.
const OTHER: u64 = 0;
const IDLE: u64 = 5;

/// A thread of a process: its name, scheduling policy, and CPU time in clock ticks.
#[derive(Debug)]
struct Thread {
    name: String,
    policy: u64,
    nice: u64,
    ticks: u64,
}

/// The threads of a process by number.
fn threads(pid: u32) -> BTreeMap<u32, Thread> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let thread = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name is in parentheses; the fields after it count from 3 (proc_pid_stat(5)).
        let (number, rest) = stat.split_once(" (")?;
        let (name, fields) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let field = |number: usize| fields[number - 3].parse::<u64>().ok();
        let (policy, nice, ticks) = (field(41)?, field(19)?, field(14)? + field(15)?);
        Some((number.parse().ok()?, Thread { name: name.to_owned(), policy, nice, ticks }))
    };
    tasks.filter_map(thread).collect()
}

/// Whether a thread is one that sends: `gake-` and its number.
fn is_worker(thread: &Thread) -> bool {
    thread.name.strip_prefix("gake-").is_some_and(|rest| rest.parse::<u32>().is_ok())
}

#[test]
fn every_thread_but_workers_and_sampler_is_of_the_lowest_class_while_arrivals_are_due() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let lab = lab();
    let url = url(&lab, "/fast");
    let (log, out) = (file("log.csv"), file("run.hlog"));
    let watch = format!("pid:{}", std::process::id());
    let flags = words("-r 500 -d 60s -t 2 -v -o json");
    let args = [&["run", &url, "--log", &log, "--out", &out, "--watch", &watch], &*flags].concat();
    let run = start(&mut gake(&args));
    eventually("the second second is over", || lab.stats().requests > 1_000);
    let first = threads(run.pid());
    sleep(Duration::from_millis(2_500));
    let second = threads(run.pid());
    run.signal(Signal::INT);
    let ran = run.wait_for(PATIENCE);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(second.values().filter(|thread| is_worker(thread)).count(), 2, "{second:?}");
    let main = second.keys().next().copied().unwrap();
    for (number, thread) in &second {
        if is_worker(thread) {
            assert_eq!(thread.policy, OTHER, "{second:?}");
        } else if *number == main {
            // It waits for the others.
            let used = thread.ticks - first[number].ticks;
            assert_eq!(used, 0, "the main thread works while requests are due: {second:?}");
        } else if thread.name == "gake-watch" {
            // In the lowest class it would have no readings of a full machine.
            assert_eq!((thread.policy, thread.nice), (OTHER, 5), "{second:?}");
        } else {
            assert_eq!(thread.policy, IDLE, "{}: {second:?}", thread.name);
        }
    }
    assert!(second.len() >= 5, "the log, the sampler and more are there: {second:?}");
}

#[test]
fn memory_comes_in_small_pages() {
    let lab = lab();
    let run = start(&mut gake(&["run", &url(&lab, "/fast"), "-r", "100", "-d", "60s"]));
    eventually("requests are sent", || lab.stats().requests > 10);
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    run.signal(Signal::INT);
    run.wait_for(PATIENCE);
    // A kernel without huge pages has no such line (proc_pid_status(5)).
    let huge = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    assert!(huge.is_none_or(|enabled| enabled.trim() == "0"), "{status}");
}
