//! Readers of the kernel's texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Exactly `N` numbers.
pub fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Vec<u64> =
        text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// `/proc/sys/fs/file-nr`: open, free (always 0) and most.
pub fn file_nr(text: &str) -> Option<(u64, u64)> {
    numbers(text).map(|[open, _, most]| (open, most))
}

/// `ip_local_port_range`: the first and the last.
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let [first, last] = numbers(text)?;
    let range = (u16::try_from(first).ok()?, u16::try_from(last).ok()?);
    (range.0 <= range.1).then_some(range)
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
pub fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The path of the process in the hierarchy of `controller` (version 1; "" is version 2), from
/// `/proc/self/cgroup`. The root is the empty path.
pub fn group<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.trim_end_matches('/'))
    })
}

/// The addresses of this machine in `/proc/net/fib_trie`, without loopback, each once.
pub fn local_v4(text: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let mut last = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !addresses.contains(&IpAddr::V4(address))
        {
            addresses.push(IpAddr::V4(address));
        }
    }
    addresses
}

/// The addresses in `/proc/net/if_inet6` that reach other machines without naming an interface.
pub fn local_v6(text: &str) -> Vec<IpAddr> {
    let hex = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let usable = |address: &Ipv6Addr| {
        !address.is_loopback() && !address.is_unicast_link_local() && !address.is_unspecified()
    };
    let addresses = text.lines().filter_map(hex).map(Ipv6Addr::from_bits);
    addresses.filter(usable).map(IpAddr::V6).collect()
}

/// The second number of `schedstat`: nanoseconds spent runnable without a core.
pub fn run_delay(text: &str) -> Option<u64> {
    numbers::<3>(text).map(|[_, delay, _]| delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exactly_as_many() {
        assert_eq!(numbers("287832\t383779\t575664\n"), Some([287_832, 383_779, 575_664]));
        assert_eq!(numbers::<2>("1 2 3"), None);
        assert_eq!(numbers::<1>(""), None);
        assert_eq!(numbers::<1>("-1"), None);
        assert_eq!(file_nr("534\t0\t2465620\n"), Some((534, 2_465_620)));
        assert_eq!(run_delay("301203 42 17\n"), Some(42));
    }

    #[test]
    fn a_port_range_has_an_order() {
        assert_eq!(port_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(port_range("60999 32768"), None);
        assert_eq!(port_range("1 70000"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        let text = "MemTotal:  24646180 kB\nMemAvailable:   23733600 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(23_733_600 * 1024));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: lots\n"), None);
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let mixed = "5:devices:/\n4:memory:/jobs/a:b\n2:cpu,cpuacct:/x\n0::/user.slice/\n";
        assert_eq!(group(mixed, "memory"), Some("/jobs/a:b"));
        assert_eq!(group(mixed, "cpu"), Some("/x"));
        assert_eq!(group(mixed, ""), Some("/user.slice"));
        assert_eq!(group("0::/\n", ""), Some(""));
        assert_eq!(group("0::/\n", "memory"), None);
        assert_eq!(group("nonsense", ""), None);
    }

    #[test]
    fn addresses_are_those_that_reach_others() {
        let trie = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
        |-- 127.0.0.1
           /32 host LOCAL
        |-- 192.0.2.2
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
        |-- 192.0.2.2
           /32 host LOCAL
";
        assert_eq!(local_v4(trie), ["192.0.2.2".parse::<IpAddr>().unwrap()]);
        let inet6 = "\
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
fd000000000000000000000000000002 04 40 00 82     eth0
00000000000000000000000000000001 01 80 10 80       lo
";
        assert_eq!(local_v6(inet6), ["fd00::2".parse::<IpAddr>().unwrap()]);
    }
}
