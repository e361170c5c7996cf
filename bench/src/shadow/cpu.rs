//! CPU time of a server while it runs: of all its threads, and of its children.

use std::fs;
use std::time::Duration;

/// CPU time that the threads of a process and of its children have taken so far; nothing of none.
pub(super) fn of(pid: Option<libc::pid_t>) -> Duration {
    let Some(pid) = pid else { return Duration::ZERO };
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = list.split_whitespace().filter_map(|child| child.parse().ok());
    Duration::from_nanos(std::iter::once(pid).chain(children).map(threads_ns).sum())
}

fn threads_ns(pid: libc::pid_t) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let stat = |path: std::path::PathBuf| fs::read_to_string(path.join("schedstat")).ok();
    threads.flatten().filter_map(|thread| parse(&stat(thread.path())?)).sum()
}

/// Nanoseconds on a CPU: the first field.
fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_grows_with_its_work() {
        assert_eq!(parse("1187450 12000 3\n"), Some(1_187_450));
        let us = libc::pid_t::try_from(std::process::id()).ok();
        let before = of(us);
        let mut sum = 0_u64;
        let start = std::time::Instant::now();
        while of(us) == before {
            assert!(start.elapsed() < Duration::from_secs(10), "/proc has no schedstat");
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(of(None), Duration::ZERO);
    }
}
