//! The generator's machine: its CPU by process, and the target if it runs here, too.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use gake_core::record::LevelUnit;
use procfs::process::{Process, all_processes};

use crate::cgroup::{Cgroup, own_cgroup};
use crate::cores;
use crate::diag;
use crate::level::Level;
use crate::process::{ProcessSelector, Processes};
use crate::rates::CounterRates;
use crate::sockets::{self, ListenerQueues};

/// Other programs are searched while at least this share of the machine is busy.
const BUSY: f64 = 0.8;
/// A program is named from this share of the machine on.
const NAMED: f64 = 0.1;
/// The delay of the first search of the targets' processes, unless it belongs to the first reading: it
/// would take the core from the first requests, and a shorter run needs no search.
const SEARCH_AFTER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Machine {
    targets: Vec<SocketAddr>,
    /// Whether the targets' addresses are this machine's.
    here: bool,
    /// Whether they are on the loopback.
    loopback: bool,
    /// Connections that open without a slow search for a local port.
    quick_ports: Option<usize>,
    /// The targets' processes, if they run on this machine.
    processes: Option<Processes>,
    queues: ListenerQueues,
    times: Option<CpuTicks>,
    rates: CounterRates,
    programs: OtherPrograms,
    /// Of the machine, whose shares these are; the generator may be kept to some of them.
    cores: f64,
    own_group: Cgroup,
    /// Readings from this instant on have the targets' processes.
    search: Instant,
}

impl Machine {
    /// The machine that loads `targets`. With `usage`, processes here that listen on their ports
    /// are read, too, at the first reading or 20 ms later.
    pub(crate) fn new(
        targets: &[SocketAddr],
        (usage, at_first): (bool, bool),
        ports: Option<usize>,
    ) -> Self {
        let here = !targets.is_empty() && targets.iter().all(|target| is_ours(*target));
        let loopback =
            here && targets.iter().all(|target| target.ip().to_canonical().is_loopback());
        let listening = targets.iter().map(SocketAddr::port).collect();
        Self {
            targets: targets.to_vec(),
            here,
            loopback,
            quick_ports: ports,
            processes: (usage && here).then(|| Processes::new(ProcessSelector::Ports(listening))),
            queues: ListenerQueues::default(),
            times: None,
            rates: CounterRates::default(),
            programs: OtherPrograms::default(),
            cores: cores::count(),
            own_group: own_cgroup(),
            search: Instant::now() + if at_first { Duration::ZERO } else { SEARCH_AFTER },
        }
    }

    /// When a further reading is due, the first that has the targets' processes.
    pub(crate) fn second_reading(&self) -> Option<Instant> {
        let is_missing = self.processes.as_ref().is_some_and(|one| one.pids().is_empty());
        is_missing.then_some(self.search)
    }

    pub(crate) fn read(&mut self, now: Instant) -> Vec<Level> {
        let share = |name: &str, value: f64| Level::new(name, LevelUnit::Share, value);
        let mut levels = vec![
            share("target_here", f64::from(u8::from(self.here))),
            share("target_loopback", f64::from(u8::from(self.loopback))),
            Level::new("machine_cores", LevelUnit::Count, self.cores),
        ];
        let ports = self.quick_ports.map(|n| Level::new("quick_ports", LevelUnit::Count, n as f64));
        levels.extend(ports);
        levels.extend(self.usage(now));
        if self.here {
            levels.extend(self.listeners());
        }
        // No levels if they belong to another user or namespace, or the port is forwarded.
        let processes = self.processes.as_mut().filter(|_| now >= self.search);
        let found = processes.and_then(|processes| {
            let found = processes.read_usage(now).ok()?;
            let own = i32::try_from(std::process::id()).unwrap_or_default();
            // A target within this process is indistinguishable from the generator.
            (cfg!(test) || !processes.pids().contains(&own)).then_some(found)
        });
        levels.extend(found.into_iter().flatten());
        levels
    }

    /// CPU use of the machine, the generator and other programs.
    fn usage(&mut self, now: Instant) -> Vec<Level> {
        let share = |name: &str, value: f64| Level::new(name, LevelUnit::Share, value);
        let mut levels = Vec::new();
        let Some(times) = fs::read_to_string("/proc/stat").ok().and_then(|t| CpuTicks::parse(&t))
        else {
            return levels;
        };
        let since = self.times.map(|before| times.since(before));
        // Ticks are 10 ms: too few give no reliable share.
        if since.is_some_and(|since| since.all < 20.0 * self.cores) {
            return levels;
        }
        self.times = Some(times);
        let own = Process::myself().and_then(|me| me.stat()).map(|stat| stat.utime + stat.stime);
        let own = own.ok().and_then(|ticks| self.rates.rate("own", now, seconds(ticks)));
        let Some(since) = since else { return levels };
        let busy = 1.0 - since.idle / since.all;
        levels.push(share("machine_cpu", busy));
        levels.push(share("machine_steal", since.steal / since.all));
        levels.extend(own.map(|own| share("generator_cpu", own / self.cores)));
        let names = ["generator_quota", "generator_throttled"];
        levels.extend(self.own_group.quota(names, &mut self.rates, now));
        let ours = self.processes.as_ref().map_or(&[][..], Processes::pids);
        let top = self.programs.look(busy >= BUSY, ours, now);
        if let Some((name, cores)) = top.filter(|(_, cores)| *cores >= NAMED * self.cores) {
            levels.push(share(&format!("cpu of {name}"), cores / self.cores));
        }
        levels
    }

    fn listeners(&mut self) -> Vec<Level> {
        let all = diag::listeners().unwrap_or_default();
        let reached =
            |one: &&diag::DiagSocket| self.targets.iter().any(|target| one.takes(*target));
        let ours: Vec<_> = all.iter().filter(reached).cloned().collect();
        let inodes: HashSet<u64> = ours.iter().map(|one| one.inode).collect();
        let mut levels = self.queues.levels(&ours, &inodes);
        if !ours.is_empty() {
            let waiting: u64 = ours.iter().map(|one| u64::from(one.queue)).sum();
            levels.push(Level::new("accept_queue", LevelUnit::Count, waiting as f64));
            let ports: Vec<u16> = self.targets.iter().map(SocketAddr::port).collect();
            levels.extend(sockets::unread(&ports));
        }
        levels
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}

/// Whether an address is one of this machine's: only those can be bound.
fn is_ours(address: SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

/// Ticks of all cores together, from the first line of /proc/stat.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CpuTicks {
    all: f64,
    /// Including iowait, in which another program could run.
    idle: f64,
    steal: f64,
}

impl CpuTicks {
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest is included in user.
        let ticks: [f64; 8] = ticks.get(..8)?.try_into().ok()?;
        Some(Self { all: ticks.iter().sum(), idle: ticks[3] + ticks[4], steal: ticks[7] })
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            idle: self.idle - before.idle,
            steal: self.steal - before.steal,
        }
    }
}

#[derive(Debug, Default)]
struct OtherPrograms {
    /// Ticks by process, at the last reading.
    last: Option<(Instant, HashMap<i32, u64>)>,
}

impl OtherPrograms {
    /// The program, other than this one and `ours`, that used the most CPU since the last reading,
    /// and its cores. Skipped unless `wanted`, since it reads a file per process.
    fn look(&mut self, wanted: bool, ours: &[i32], now: Instant) -> Option<(String, f64)> {
        if !wanted {
            self.last = None;
            return None;
        }
        let own = std::process::id();
        let mut ticks = HashMap::new();
        let mut used: HashMap<String, u64> = HashMap::new();
        for process in all_processes().ok()?.flatten() {
            let pid = process.pid();
            if ours.contains(&pid) || u32::try_from(pid) == Ok(own) {
                continue;
            }
            let Ok(stat) = process.stat() else { continue };
            let sum = stat.utime + stat.stime;
            ticks.insert(pid, sum);
            if let Some(before) = self.last.as_ref().and_then(|(_, last)| last.get(&pid)) {
                *used.entry(stat.comm).or_default() += sum.saturating_sub(*before);
            }
        }
        let before = self.last.replace((now, ticks));
        let elapsed = now.saturating_duration_since(before?.0).as_secs_f64();
        let (name, ticks) = used.into_iter().max_by_key(|(_, ticks)| *ticks)?;
        (elapsed > 0.0).then(|| (name, seconds(ticks) / elapsed))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    fn value(levels: &[Level], name: &str) -> Option<f64> {
        levels.iter().find(|level| level.name == name).map(|level| level.value)
    }

    #[test]
    fn ticks_are_of_all_cores() {
        let text = "cpu  10 0 20 60 5 1 2 2 0 0\ncpu0 1 1 1 1\n";
        let times = CpuTicks::parse(text).unwrap();
        assert_eq!(times, CpuTicks { all: 100.0, idle: 65.0, steal: 2.0 });
        assert_eq!(CpuTicks::parse("cpu 1 2\n"), None);
    }

    #[test]
    fn targets_on_this_machine_are_recognised() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut machine = Machine::new(&[listener.local_addr().unwrap()], (true, false), Some(9));
        let levels = machine.read(Instant::now());
        assert_eq!(value(&levels, "target_here"), Some(1.0));
        assert_eq!(value(&levels, "target_loopback"), Some(1.0));
        assert_eq!(value(&levels, "listener_dropped"), Some(0.0));
        assert_eq!(value(&levels, "quick_ports"), Some(9.0));
        assert!(value(&levels, "backlog").unwrap() >= 1.0, "{levels:?}");
        assert_eq!(value(&levels, "rss"), None);
        let levels = machine.read(Instant::now() + SEARCH_AFTER);
        assert!(value(&levels, "rss").is_some(), "{levels:?}");
        // Reserved for documentation (RFC 5737).
        let levels = Machine::new(&["192.0.2.1:80".parse().unwrap()], (true, true), None)
            .read(Instant::now());
        assert_eq!(value(&levels, "target_here"), Some(0.0));
        assert_eq!(value(&levels, "listener_dropped"), None);
    }

    #[test]
    fn cpu_of_the_machine_and_the_generator() {
        let mut machine = Machine::new(&[], (true, true), None);
        let begun = Instant::now();
        machine.read(begun);
        while begun.elapsed() < Duration::from_millis(600) {
            std::hint::spin_loop();
        }
        let levels = machine.read(Instant::now());
        let (busy, own) = (value(&levels, "machine_cpu"), value(&levels, "generator_cpu"));
        assert!(busy.unwrap() > 0.0 && own.unwrap() > 0.0, "{levels:?}");
        // Ticks are rounded.
        assert!(own.unwrap() <= busy.unwrap() + 0.1, "{levels:?}");
    }
}
