//! The memory of the machine.

use std::fs;

/// Bytes of memory of the machine or container; `None` where they are unknown.
#[must_use]
pub fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min()
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_machine_is_read() {
        assert_eq!(total("MemTotal:       24646180 kB\nMemFree: 1 kB\n"), Some(24_646_180 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
