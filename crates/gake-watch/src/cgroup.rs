//! Limits of a process's control group: CPU and memory, in cgroups version 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gake_core::record::LevelUnit;

use crate::level::Level;
use crate::rates::CounterRates;

const ROOT: &str = "/sys/fs/cgroup";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroup {
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
}

/// Scheduler periods of a group, and those in which its quota throttled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThrottleCounts {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
}

impl Cgroup {
    pub(crate) fn of(pid: i32) -> Self {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Self {
            cpu: folder(&text, "cpu", Path::new(ROOT)),
            memory: folder(&text, "memory", Path::new(ROOT)),
        }
    }

    /// The quota in cores, if there is one.
    pub(crate) fn cores(&self) -> Option<f64> {
        let cpu = self.cpu.as_ref()?;
        if let Ok(text) = fs::read_to_string(cpu.join("cpu.max")) {
            let (quota, period) = text.trim().split_once(' ')?;
            return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
        }
        let quota = number(&cpu.join("cpu.cfs_quota_us")).filter(|quota| *quota > 0.0)?;
        Some(quota / number(&cpu.join("cpu.cfs_period_us"))?)
    }

    pub(crate) fn throttled(&self) -> Option<ThrottleCounts> {
        let text = fs::read_to_string(self.cpu.as_ref()?.join("cpu.stat")).ok()?;
        let (periods, throttled) = (field(&text, "nr_periods")?, field(&text, "nr_throttled")?);
        Some(ThrottleCounts { periods, throttled })
    }

    /// The quota in cores, if there is one, and the share of the scheduler's periods throttled
    /// since the last reading, as levels of these `names`.
    pub(crate) fn quota(
        &self,
        names: [&str; 2],
        rates: &mut CounterRates,
        now: Instant,
    ) -> Vec<Level> {
        let Some(cores) = self.cores() else { return Vec::new() };
        let mut levels = vec![Level::new(names[0], LevelUnit::Count, cores)];
        if let Some(count) = self.throttled() {
            let periods = rates.rate("periods", now, count.periods as f64);
            let throttled = rates.rate("throttled", now, count.throttled as f64);
            if let (Some(periods), Some(throttled)) = (periods, throttled) {
                let share = if periods > 0.0 { throttled / periods } else { 0.0 };
                levels.push(Level::new(names[1], LevelUnit::Share, share));
            }
        }
        levels
    }

    /// How often it was refused memory at its limit, and had to reclaim some.
    pub(crate) fn memory_refused(&self) -> Option<u64> {
        let memory = self.memory.as_ref()?;
        match fs::read_to_string(memory.join("memory.events")) {
            Ok(text) => field(&text, "max"),
            Err(_) => number(&memory.join("memory.failcnt")).map(|count| count as u64),
        }
    }
}

pub(crate) fn own_cgroup() -> Cgroup {
    Cgroup::of(i32::try_from(std::process::id()).unwrap_or_default())
}

/// This process's CPU quota in cores, from its control group; `None` without a quota.
#[must_use]
pub fn own_cpu_quota() -> Option<f64> {
    own_cgroup().cores()
}

/// The folder of a controller, from the lines of `/proc/PID/cgroup`.
fn folder(text: &str, controller: &str, root: &Path) -> Option<PathBuf> {
    let parts = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let version_1 = parts().find(|(names, _)| names.split(',').any(|name| name == controller));
    let version_2 = || parts().find(|(names, _)| names.is_empty());
    let found = match version_1 {
        Some((_, path)) => root.join(controller).join(path.trim_start_matches('/')),
        None => root.join(version_2()?.1.trim_start_matches('/')),
    };
    found.is_dir().then_some(found)
}

/// A field of a file with a name and a number per line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut fields = text.lines().filter_map(|line| line.split_once(' '));
    fields.find(|(known, _)| *known == name)?.1.trim().parse().ok()
}

fn number(path: &Path) -> Option<f64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, file: &str, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }

    #[test]
    fn version_2() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("system.slice/app.service");
        write(&group, "cpu.max", "150000 100000\n");
        write(&group, "cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 150\n");
        write(&group, "memory.events", "low 0\nmax 12\noom 0\n");
        let lines = "0::/system.slice/app.service\n";
        let folder = |controller| folder(lines, controller, root.path());
        let group = Cgroup { cpu: folder("cpu"), memory: folder("memory") };
        assert_eq!(group.cores(), Some(1.5));
        assert_eq!(group.throttled(), Some(ThrottleCounts { periods: 200, throttled: 150 }));
        assert_eq!(group.memory_refused(), Some(12));
    }

    #[test]
    fn version_1() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("cpu/app");
        write(&group, "cpu.cfs_quota_us", "-1\n");
        write(&group, "cpu.cfs_period_us", "100000\n");
        write(&group, "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
        write(&root.path().join("memory/app"), "memory.failcnt", "3\n");
        let lines = "5:memory:/app\n4:cpu,cpuacct:/app\n0::/\n";
        let folder = |controller| folder(lines, controller, root.path());
        let cgroup = Cgroup { cpu: folder("cpu"), memory: folder("memory") };
        assert_eq!(cgroup.cores(), None);
        assert_eq!(cgroup.memory_refused(), Some(3));
        write(&group, "cpu.cfs_quota_us", "50000\n");
        assert_eq!(cgroup.cores(), Some(0.5));
    }

    #[test]
    fn missing_files_are_none() {
        let none = Cgroup { cpu: None, memory: None };
        assert_eq!((none.cores(), none.throttled(), none.memory_refused()), (None, None, None));
        assert_eq!(folder("nonsense", "cpu", Path::new("/nowhere")), None);
    }
}
