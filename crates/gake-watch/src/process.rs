//! Processes of this machine, by id or by listening port.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Instant;

use gake_core::record::LevelUnit;
use procfs::WithCurrentSystemInfo;
use procfs::process::{LimitValue, Process};

use crate::cgroup::Cgroup;
use crate::diag;
use crate::jvm::JvmFiles;
use crate::level::Level;
use crate::listener_processes::{ListenerProcesses, all_pids, inodes, nothing_listens_on};
use crate::rates::CounterRates;
use crate::sockets;
use crate::threads::{INTERVAL_MIN, ThreadSampler};
use crate::waits::Waits;

/// Readings between searches for new processes that listen on a port.
const SEARCH_AGAIN: u32 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessSelector {
    Pid(i32),
    Ports(Vec<u16>),
}

#[derive(Debug)]
pub(crate) struct Processes {
    selector: ProcessSelector,
    pids: Vec<i32>,
    readings: u32,
    listening: ListenerProcesses,
    rates: CounterRates,
    counters: CounterHistory,
    threads: ThreadSampler,
    jvms: JvmFiles,
    cgroup: Option<Cgroup>,
    queues: sockets::ListenerQueues,
    cores: f64,
}

impl Processes {
    pub(crate) fn new(selector: ProcessSelector) -> Self {
        Self {
            selector,
            pids: Vec::new(),
            readings: 0,
            listening: ListenerProcesses::default(),
            rates: CounterRates::default(),
            counters: CounterHistory::default(),
            threads: ThreadSampler::default(),
            jvms: JvmFiles::default(),
            cgroup: None,
            queues: sockets::ListenerQueues::default(),
            cores: crate::cores::count(),
        }
    }

    /// All current levels, summed over the processes.
    pub(crate) fn read(&mut self, now: Instant) -> Result<Vec<Level>, String> {
        let processes = self.processes()?;
        let mut levels = self.usage(&processes, now);
        let first = &processes[0];
        let table = sockets::table(first);
        let inodes: HashSet<u64> =
            processes.iter().flat_map(|process| inodes(process.pid())).collect();
        let listeners = sockets::listeners(&table, self.ports(), &inodes);
        levels.extend(sockets::levels(&table, &listeners));
        levels.extend(sockets::upstream(&table, &listeners, &inodes));
        if let Some(waits) = self.threads.waits() {
            levels.extend(waits.levels(&table, &sockets::listening_ports(&table, &inodes)));
        }
        let inodes = listeners.iter().map(|entry| entry.inode).collect();
        levels.extend(self.queues.levels(&diag::listeners().unwrap_or_default(), &inodes));
        let netstat = fs::read_to_string(format!("/proc/{}/net/netstat", first.pid()));
        if let Ok(netstat) = netstat {
            levels.extend(sockets::overflows(&netstat, now, &mut self.rates));
        }
        Ok(levels)
    }

    /// The resources they use, without their sockets.
    pub(crate) fn read_usage(&mut self, now: Instant) -> Result<Vec<Level>, String> {
        let processes = self.processes()?;
        let mut levels = self.usage(&processes, now);
        if let Some(found) = self.threads.waits() {
            levels.extend(waits(&found, &processes));
        }
        Ok(levels)
    }

    pub(crate) fn pids(&self) -> &[i32] {
        &self.pids
    }

    fn processes(&mut self) -> Result<Vec<Process>, String> {
        self.search()?;
        let processes: Vec<Process> =
            self.pids.iter().filter_map(|pid| Process::new(*pid).ok()).collect();
        if !processes.is_empty() {
            return Ok(processes);
        }
        Err(match &self.selector {
            ProcessSelector::Pid(pid) => format!("there is no process {pid}"),
            ProcessSelector::Ports(ports) => nothing_listens_on(ports),
        })
    }

    fn ports(&self) -> Option<&[u16]> {
        match &self.selector {
            ProcessSelector::Ports(ports) => Some(ports),
            ProcessSelector::Pid(_) => None,
        }
    }

    /// Finds the processes, and searches again now and then.
    fn search(&mut self) -> Result<(), String> {
        let alive = |pid: &i32| Process::new(*pid).is_ok_and(|process| process.is_alive());
        let stale = self.readings.is_multiple_of(SEARCH_AGAIN) || !self.pids.iter().all(alive);
        self.readings = self.readings.wrapping_add(1);
        if stale || self.pids.is_empty() {
            self.pids = match &self.selector {
                ProcessSelector::Pid(pid) => vec![*pid],
                ProcessSelector::Ports(ports) => with_descendants(self.listening.on(ports)?),
            };
            self.cgroup = self.pids.first().map(|pid| Cgroup::of(*pid));
        }
        Ok(())
    }

    fn usage(&mut self, processes: &[Process], now: Instant) -> Vec<Level> {
        let mut usage = ProcessUsage::default();
        for process in processes {
            usage.add(process);
        }
        let mut levels = Vec::new();
        let pids: Vec<i32> = processes.iter().map(Process::pid).collect();
        let grown = self.counters.growth(now, usage.counters);
        if let Some(grown) = grown {
            let cores = grown.ticks / procfs::ticks_per_second() as f64;
            levels.push(Level::new("cpu", LevelUnit::Share, cores / self.cores));
            levels.push(Level::new("cores", LevelUnit::Count, cores));
        }
        levels.push(Level::new("rss", LevelUnit::Bytes, usage.rss as f64));
        levels.push(Level::new("threads", LevelUnit::Count, usage.threads as f64));
        let has_own_tables = self.listening.is_in_threads();
        if let Some(share) = usage.descriptors_share.filter(|_| !has_own_tables) {
            levels.push(Level::new("descriptors", LevelUnit::Share, share));
            levels.push(Level::new("descriptors_open", LevelUnit::Count, usage.descriptors as f64));
        }
        if let Some(activity) = self.threads.read(&pids, now) {
            levels.push(Level::new("context_switches", LevelUnit::PerSecond, activity.slices));
            levels.push(Level::new("cores_waited", LevelUnit::Count, activity.waiting));
            levels.push(Level::new("busiest_thread", LevelUnit::Share, activity.busiest));
        }
        levels.extend(self.threads.group_levels());
        let held = self.threads.held();
        levels.push(Level::new("disk_threads", LevelUnit::Count, held.disk as f64));
        levels.push(Level::new("stopped_threads", LevelUnit::Count, held.stopped as f64));
        if let Some(grown) = grown {
            levels.push(Level::new("major_faults", LevelUnit::PerSecond, grown.major_faults));
        }
        levels.extend(self.collecting(&pids, now));
        levels.extend(self.limits(now));
        levels
    }

    /// The share of the time in which Java virtual machines were stopped to collect garbage: the
    /// largest of all processes.
    fn collecting(&mut self, pids: &[i32], now: Instant) -> Option<Level> {
        self.jvms.keep(pids);
        let shares = pids.iter().filter_map(|pid| {
            let seconds = self.jvms.collecting_seconds(*pid)?;
            self.rates.rate(&format!("gc of {pid}"), now, seconds)
        });
        shares.reduce(f64::max).map(|share| Level::new("gc", LevelUnit::Share, share))
    }

    fn limits(&mut self, now: Instant) -> Vec<Level> {
        let Some(cgroup) = &self.cgroup else { return Vec::new() };
        let mut levels = cgroup.quota(["cpu_quota", "cpu_throttled"], &mut self.rates, now);
        if let Some(count) = cgroup.memory_refused()
            && let Some(rate) = self.rates.rate("memory refused", now, count as f64)
        {
            levels.push(Level::new("memory_refused", LevelUnit::PerSecond, rate));
        }
        levels
    }
}

/// Levels of what the threads of processes wait for, with the table of sockets if it is needed.
fn waits(waits: &Waits, processes: &[Process]) -> Vec<Level> {
    if !waits.needs_table() {
        return waits.levels(&[], &HashSet::new());
    }
    let table = sockets::table(&processes[0]);
    let inodes = processes.iter().flat_map(|process| inodes(process.pid())).collect();
    waits.levels(&table, &sockets::listening_ports(&table, &inodes))
}

/// Processes with their descendants: a listening process may delegate to them, as the primary of
/// Node's cluster does. Children of this process are not the target's.
fn with_descendants(mut pids: Vec<i32>) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let all = all_pids().unwrap_or_default().into_iter();
    let parents: Vec<(i32, i32)> = all.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut at = 0;
    while let Some(parent) = pids.get(at).copied() {
        at += 1;
        let children = parents.iter().filter(|(pid, of)| {
            *of == parent && *pid != own && parent != own && !pids.contains(pid)
        });
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        pids.extend(children);
    }
    pids
}

/// The parent of a process: the second field after its name, which is in parentheses and may hold
/// any character.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[derive(Debug, Clone, Copy)]
struct ProcessCounters {
    ticks: u64,
    major_faults: u64,
}

/// The counters of each process at the last reading.
#[derive(Debug, Default)]
struct CounterHistory {
    last: Option<(Instant, HashMap<i32, ProcessCounters>)>,
}

/// Growth of the counters per second, summed over processes.
#[derive(Debug, Clone, Copy)]
struct CounterGrowth {
    ticks: f64,
    major_faults: f64,
}

impl CounterHistory {
    /// The growth in processes that exist in both readings; `None` at the first reading, too soon
    /// after the last, and when there are no such processes.
    fn growth(
        &mut self,
        now: Instant,
        found: HashMap<i32, ProcessCounters>,
    ) -> Option<CounterGrowth> {
        let elapsed = self.last.as_ref().map(|(at, _)| now.saturating_duration_since(*at));
        if elapsed.is_some_and(|elapsed| elapsed < INTERVAL_MIN) {
            return None;
        }
        let (_, before) = self.last.replace((now, found.clone()))?;
        let seconds = elapsed?.as_secs_f64();
        let both = found.iter().filter_map(|(pid, now)| Some((before.get(pid)?, now)));
        let grown = both.map(|(before, now)| CounterGrowth {
            ticks: now.ticks.saturating_sub(before.ticks) as f64 / seconds,
            major_faults: now.major_faults.saturating_sub(before.major_faults) as f64 / seconds,
        });
        grown.reduce(|a, b| CounterGrowth {
            ticks: a.ticks + b.ticks,
            major_faults: a.major_faults + b.major_faults,
        })
    }
}

#[derive(Debug, Default)]
struct ProcessUsage {
    counters: HashMap<i32, ProcessCounters>,
    rss: u64,
    threads: i64,
    descriptors: usize,
    /// The share of the process closest to its limit.
    descriptors_share: Option<f64>,
}

impl ProcessUsage {
    fn add(&mut self, process: &Process) {
        if let Ok(stat) = process.stat() {
            let counters =
                ProcessCounters { ticks: stat.utime + stat.stime, major_faults: stat.majflt };
            self.counters.insert(process.pid(), counters);
            self.rss += stat.rss_bytes().get();
            self.threads += stat.num_threads;
        }
        if let (Ok(open), Ok(limits)) = (process.fd_count(), process.limits()) {
            self.descriptors += open;
            let share = match limits.max_open_files.soft_limit {
                LimitValue::Value(most) => open as f64 / most.max(1) as f64,
                LimitValue::Unlimited => 0.0,
            };
            self.descriptors_share = Some(self.descriptors_share.unwrap_or(0.0).max(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    fn value(levels: &[Level], name: &str) -> Option<f64> {
        levels.iter().find(|level| level.name == name).map(|level| level.value)
    }

    #[test]
    fn a_listener_is_found_by_its_port_with_its_queue() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let clients: Vec<_> =
            (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let mut processes = Processes::new(ProcessSelector::Ports(vec![port]));
        let levels = processes.read(Instant::now()).unwrap();
        assert_eq!(value(&levels, "accept_queue"), Some(3.0));
        assert_eq!(value(&levels, "established"), Some(3.0));
        assert_eq!(processes.pids, [i32::try_from(std::process::id()).unwrap()]);
        drop(clients);
    }

    #[test]
    fn levels_of_a_process() {
        let mut processes =
            Processes::new(ProcessSelector::Pid(i32::try_from(std::process::id()).unwrap()));
        let start = Instant::now();
        let first = processes.read(start).unwrap();
        assert!(value(&first, "rss").unwrap() > 1e6, "{first:?}");
        assert!(value(&first, "threads").unwrap() >= 1.0);
        assert!((0.0..1.0).contains(&value(&first, "descriptors").unwrap()));
        assert_eq!(value(&first, "cpu"), None);
        let second = processes.read(start + Duration::from_secs(1)).unwrap();
        for name in ["cpu", "context_switches", "cores_waited", "busiest_thread", "major_faults"] {
            assert!(value(&second, name).is_some(), "{name}");
        }
    }

    #[test]
    fn descendants_belong_to_the_target() {
        // A shell that waits for another, selector waits as well.
        let mut parent = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 30; true'; true"])
            .spawn()
            .unwrap();
        let pid = i32::try_from(parent.id()).unwrap();
        let found = (0..200).map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            with_descendants(vec![pid])
        });
        let found = found.into_iter().find(|pids| pids.len() == 3).expect("sh, sh and sleep");
        assert_eq!(found[0], pid);
        for pid in found.iter().rev() {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        parent.wait().unwrap();
    }

    #[test]
    fn missing_processes_are_errors() {
        let gone = Processes::new(ProcessSelector::Pid(i32::MAX)).read(Instant::now()).unwrap_err();
        assert!(gone.contains("no process"), "{gone}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error =
            Processes::new(ProcessSelector::Ports(vec![free])).read(Instant::now()).unwrap_err();
        assert!(error.contains("nothing"), "{error}");
    }
}
