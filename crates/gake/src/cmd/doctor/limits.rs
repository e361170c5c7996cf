//! The system's limits: files, the network, memory.

use gake_text::units::{bytes, count, number};

use super::check::{Check, Group, Status, at_least, at_most};
use super::demand;
use super::facts::Facts;

/// How long Linux keeps the port of a connection that it closed first.
const TIME_WAIT_S: f64 = 60.0;

/// Everything that is counted.
pub fn groups(facts: &Facts) -> [Group; 3] {
    [
        Group { name: "files", checks: vec![descriptors(facts), files(facts), epoll(facts)] },
        Group {
            name: "network",
            checks: vec![
                ports(facts),
                addresses(facts),
                tw_reuse(facts),
                somaxconn(facts),
                syn_backlog(facts),
                conntrack(facts),
            ],
        },
        Group { name: "memory", checks: vec![memory(facts), tcp_mem(facts)] },
    ]
}

fn descriptors(facts: &Facts) -> Check {
    let (soft, hard) = facts.descriptors;
    let value = match (soft, hard) {
        (_, u64::MAX) => "no limit".to_owned(),
        (soft, hard) if soft == hard => format!("{} a process", count(hard)),
        (soft, hard) => {
            format!("{} a process ({} now; gake raises it itself)", count(hard), count(soft))
        }
    };
    Check::new("file descriptors", at_least(hard as f64, 65_536.0, 4_096.0), value).advise(
        "each connection takes one: raise the hard limit (`ulimit -Hn`, LimitNOFILE= of a unit, \
         --ulimit nofile= of a container) for more connections than that",
    )
}

fn files(facts: &Facts) -> Check {
    let name = "open files, system";
    let Some((open, most)) = facts.files else { return Check::unknown(name) };
    let free = most.saturating_sub(open);
    let status = at_least(free as f64, 100_000.0, 10_000.0);
    Check::new(name, status, format!("{} of {}", count(open), count(most)))
        .advise("raise fs.file-max: a connection with both ends on this machine takes two")
}

fn epoll(facts: &Facts) -> Check {
    let name = "watched sockets";
    let Some(most) = facts.epoll_watches else { return Check::unknown(name) };
    Check::new(name, at_least(most as f64, 100_000.0, 10_000.0), format!("{} a user", count(most)))
        .advise("raise fs.epoll.max_user_watches: each connection takes one")
}

fn ports(facts: &Facts) -> Check {
    let name = "local ports";
    let (Some((first, last)), Some(ports), Some(quick)) =
        (facts.ports, facts.ports_count(), facts.ports_per_source())
    else {
        return Check::unknown(name);
    };
    let quick = count(quick);
    let value = format!(
        "{first}-{last}: {quick} connections to one target from one address, then opening slows \
         down; {} at most",
        count(ports)
    );
    Check::new(name, at_least(ports as f64, 28_000.0, 5_000.0), value)
        .advise("widen net.ipv4.ip_local_port_range, or give more addresses with --interface")
}

fn addresses(facts: &Facts) -> Check {
    let name = "source addresses";
    let value = match &facts.addresses {
        None => "unknown; any of 127.0.0.0/8 on loopback".to_owned(),
        Some(addresses) => {
            let mut shown: Vec<_> = addresses.iter().take(3).map(ToString::to_string).collect();
            match addresses.len() {
                0 => shown.push("none".to_owned()),
                n if n > 3 => shown.push(format!("{} more", count(n as u64 - 3))),
                _ => {}
            }
            format!("{} to other machines; any of 127.0.0.0/8 on loopback", shown.join(", "))
        }
    };
    Check::good(name, value)
}

fn tw_reuse(facts: &Facts) -> Check {
    let name = "closed ports";
    let Some(reuse) = facts.tw_reuse else { return Check::unknown(name) };
    let (status, value) = match reuse {
        1 => (Status::Good, "used again after 1 s (tcp_tw_reuse 1)"),
        2 => (Status::Note, "used again after 1 s on loopback, 60 s elsewhere (tcp_tw_reuse 2)"),
        _ => (Status::Note, "used again after 60 s (tcp_tw_reuse 0)"),
    };
    let bound = facts.ports_count().map_or("few new connections".to_owned(), |ports| {
        format!("at most {} new connections a second", number(ports as f64 / TIME_WAIT_S))
    });
    Check::new(name, status, value).advise(format!(
        "without keep-alive that sustains {bound} from one address to one target: set \
         net.ipv4.tcp_tw_reuse=1, or give more addresses with --interface"
    ))
}

fn somaxconn(facts: &Facts) -> Check {
    let name = "listen backlog";
    let Some(most) = facts.somaxconn else { return Check::unknown(name) };
    Check::new(name, at_least(most as f64, 1_024.0, 0.0), format!("{} at most", count(most)))
        .advise("raise net.core.somaxconn when the target runs here: it drops bursts beyond it")
}

fn syn_backlog(facts: &Facts) -> Check {
    let name = "half-open connections";
    let Some(most) = facts.syn_backlog else { return Check::unknown(name) };
    Check::new(name, at_least(most as f64, 512.0, 0.0), format!("{} a listener", count(most)))
        .advise("raise net.ipv4.tcp_max_syn_backlog when the target runs here")
}

fn conntrack(facts: &Facts) -> Check {
    let name = "tracked connections";
    let Some((now, most)) = facts.conntrack else {
        return Check::good(name, "none: no firewall counts connections here");
    };
    let full = now as f64 / most.max(1) as f64;
    // A small table harms nothing until it fills, which a load test can do.
    let status = match at_most(full, 0.5, 0.9) {
        Status::Good if most < 262_144 => Status::Note,
        status => status,
    };
    Check::new(name, status, format!("{} of {}", count(now), count(most))).advise(
        "raise net.netfilter.nf_conntrack_max, or exempt the target with NOTRACK: when the table \
         is full new connections are dropped without a word",
    )
}

fn memory(facts: &Facts) -> Check {
    let name = "memory";
    let Some(free) = facts.memory_free() else { return Check::unknown(name) };
    let group = facts.memory_group.is_some_and(|group| Some(group) == facts.memory_free());
    let value = format!(
        "{}{}: about {} connections to another machine, {} within this one",
        bytes(free as f64),
        if group { " left to the control group" } else { " available" },
        count(round(free / demand::REMOTE_BYTES)),
        count(round(free / demand::LOCAL_BYTES)),
    );
    Check::new(name, at_least(free as f64, 1e9, 2e8), value)
        .advise("free memory, or keep connections to what fits")
}

fn tcp_mem(facts: &Facts) -> Check {
    let name = "TCP buffers";
    let Some([_, pressure, most]) = facts.tcp_mem else { return Check::unknown(name) };
    let page = rustix::param::page_size() as u64;
    let value = format!(
        "{} at most; the kernel saves from {} connections with unread data",
        bytes(most.saturating_mul(page) as f64),
        count(pressure)
    );
    Check::new(name, at_least(pressure as f64, 20_000.0, 5_000.0), value)
        .advise("raise net.ipv4.tcp_mem: each connection with unread data takes a page at least")
}

/// Two digits: the estimate is not more precise.
pub fn round(n: u64) -> u64 {
    let scale = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / scale * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            descriptors: (1_024, 1_048_576),
            files: Some((534, 2_465_620)),
            epoll_watches: Some(5_490_265),
            ports: Some((32_768, 60_999)),
            addresses: Some(vec!["192.0.2.2".parse().unwrap()]),
            somaxconn: Some(4_096),
            syn_backlog: Some(2_048),
            tw_reuse: Some(1),
            tcp_mem: Some([287_832, 383_779, 575_664]),
            memory: Some(24_000_000_000),
            cores: 2,
            ..Facts::default()
        }
    }

    fn find(facts: &Facts, name: &str) -> Check {
        let checks = groups(facts).into_iter().flat_map(|group| group.checks);
        checks.into_iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn a_well_set_machine_is_good_throughout() {
        for check in groups(&facts()).into_iter().flat_map(|group| group.checks) {
            assert_eq!((check.status, check.advice), (Status::Good, None), "{}", check.name);
        }
    }

    #[test]
    fn nothing_known_is_no_fault() {
        let nothing = Facts { descriptors: (u64::MAX, u64::MAX), ..Facts::default() };
        for check in groups(&nothing).into_iter().flat_map(|group| group.checks) {
            assert_eq!(check.status, Status::Good, "{}", check.name);
        }
    }

    #[test]
    fn limits_are_named_with_advice() {
        let tight = Facts {
            descriptors: (256, 1_024),
            ports: Some((60_000, 60_999)),
            tw_reuse: Some(2),
            conntrack: Some((60_000, 65_536)),
            memory_group: Some(150_000_000),
            ..facts()
        };
        for (name, status, value, advice) in [
            ("file descriptors", Status::Bad, "1,024", "ulimit -Hn"),
            ("local ports", Status::Bad, "1,000 at most", "ip_local_port_range"),
            ("closed ports", Status::Note, "60 s elsewhere", "16.7 new connections a second"),
            ("tracked connections", Status::Bad, "60,000 of 65,536", "nf_conntrack_max"),
            ("memory", Status::Bad, "150 MB left to the control group", "free memory"),
        ] {
            let check = find(&tight, name);
            assert_eq!(check.status, status, "{name}");
            assert!(check.value.contains(value), "{name}: {}", check.value);
            assert!(check.advice.is_some_and(|text| text.contains(advice)), "{name}");
        }
    }

    #[test]
    fn estimates_have_two_digits() {
        assert_eq!([round(0), round(7), round(99), round(12_345)], [0, 7, 99, 12_000]);
    }
}
