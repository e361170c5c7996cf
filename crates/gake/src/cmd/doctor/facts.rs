//! Facts from the system: limits, sysctls, processor.

use std::fs;
use std::net::IpAddr;

use rustix::process::{Resource, getrlimit};

use super::parse;

/// Facts from the system; `None` where it does not report one.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// File descriptors that a process gets, and may ask for; [`u64::MAX`] without a limit.
    pub descriptors: (u64, u64),
    /// Open files of the whole system: now, and at most.
    pub files: Option<(u64, u64)>,
    /// Sockets that a user may watch.
    pub epoll_watches: Option<u64>,
    /// The first and the last port of outgoing connections.
    pub ports: Option<(u16, u16)>,
    /// Whether a socket can have a range of its own among them.
    pub has_socket_port_ranges: bool,
    /// Addresses of this machine that are not loopback.
    pub addresses: Option<Vec<IpAddr>>,
    /// The longest backlog of a listener.
    pub somaxconn: Option<u64>,
    /// Connections that may be half open at a listener.
    pub syn_backlog: Option<u64>,
    /// Whether ports in TIME_WAIT are used again: 0 no, 1 yes, 2 on loopback.
    pub tw_reuse: Option<u64>,
    /// Pages that TCP may use: relaxed below the first, under pressure from the second, none
    /// beyond the third.
    pub tcp_mem: Option<[u64; 3]>,
    /// Connections that the firewall tracks: now, and at most. `None` when it tracks none.
    pub conntrack: Option<(u64, u64)>,
    /// Bytes of memory available without swapping.
    pub memory: Option<u64>,
    /// Bytes that the control group still allows, when it bounds them.
    pub memory_group: Option<u64>,
    /// Cores that the process may use.
    pub cores: u64,
    /// Cores that its control group lets it use, when that has a quota.
    pub cpu_quota: Option<f64>,
    /// Cores of the machine.
    pub cores_online: Option<u64>,
    /// How the frequency is chosen.
    pub governor: Option<String>,
    /// The kernel's clock source.
    pub clock: Option<String>,
    /// Threads that run or want to, on average over the last minute.
    pub load: Option<f64>,
}

impl Facts {
    /// Reads everything; never fails.
    pub fn read() -> Self {
        let limit = getrlimit(Resource::Nofile);
        Self {
            descriptors: (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX)),
            files: text("/proc/sys/fs/file-nr").and_then(|text| parse::file_nr(&text)),
            epoll_watches: number("/proc/sys/fs/epoll/max_user_watches"),
            ports: text("/proc/sys/net/ipv4/ip_local_port_range")
                .and_then(|text| parse::port_range(&text)),
            has_socket_port_ranges: gake_wire::has_socket_port_ranges(),
            addresses: addresses(),
            somaxconn: number("/proc/sys/net/core/somaxconn"),
            syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            tw_reuse: number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            tcp_mem: text("/proc/sys/net/ipv4/tcp_mem").and_then(|text| parse::numbers(&text)),
            conntrack: number("/proc/sys/net/netfilter/nf_conntrack_count")
                .zip(number("/proc/sys/net/netfilter/nf_conntrack_max")),
            memory: text("/proc/meminfo").and_then(|text| parse::available(&text)),
            memory_group: memory_group(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            cpu_quota: gake_watch::own_cpu_quota(),
            cores_online: text("/proc/stat").map(|text| gake_watch::cores_in_stat(&text)),
            governor: word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: text("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }

    /// Ports of outgoing connections from one address.
    pub fn ports_count(&self) -> Option<u64> {
        self.ports.map(|(first, last)| u64::from(last - first) + 1)
    }

    /// Connections from one source address to one target that open at full speed.
    pub fn ports_per_source(&self) -> Option<u64> {
        let share = if self.has_socket_port_ranges { 18 } else { 9 };
        self.ports_count().map(|ports| ports * share / 20)
    }

    /// Bytes of available memory.
    pub fn memory_free(&self) -> Option<u64> {
        match (self.memory, self.memory_group) {
            (Some(machine), Some(group)) => Some(machine.min(group)),
            (machine, group) => machine.or(group),
        }
    }
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn word(path: &str) -> Option<String> {
    text(path).map(|text| text.trim().to_owned()).filter(|word| !word.is_empty())
}

fn number(path: &str) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

fn addresses() -> Option<Vec<IpAddr>> {
    let mut addresses = parse::local_v4(&text("/proc/net/fib_trie")?);
    addresses.extend(text("/proc/net/if_inet6").map_or(Vec::new(), |text| parse::local_v6(&text)));
    Some(addresses)
}

/// What the process's control group still allows, of version 2 or 1. In a container the group's
/// own directory is mounted at the root, so that is read, too.
fn memory_group() -> Option<u64> {
    let groups = text("/proc/self/cgroup")?;
    let (v2, v1) = (parse::group(&groups, ""), parse::group(&groups, "memory"));
    let room = |directory: String, limit: &str, used: &str| {
        let limit = number(&format!("{directory}/{limit}"))?;
        // Version 1 writes "no limit" as a number near 2^63.
        let used = number(&format!("{directory}/{used}"))?;
        (limit < 1 << 60).then(|| limit.saturating_sub(used))
    };
    let in_v2 = |path: &str| room(format!("/sys/fs/cgroup{path}"), "memory.max", "memory.current");
    let in_v1 = |path: &str| {
        let directory = format!("/sys/fs/cgroup/memory{path}");
        room(directory, "memory.limit_in_bytes", "memory.usage_in_bytes")
    };
    v2.and_then(in_v2).or_else(|| in_v2("")).or_else(|| v1.and_then(in_v1)).or_else(|| in_v1(""))
}
