//! Many users, and the limits of the machines at both ends.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use gake_lab::LabConfig;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::support::*;

/// Descriptors needed by one process for `connections`.
fn need_descriptors(connections: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let hard = maximum.unwrap_or(u64::MAX);
    assert!(
        hard >= connections + 100,
        "this test needs a hard limit of {} open files (ulimit -Hn), not {hard}",
        connections + 100
    );
}

#[test]
fn fifteen_thousand_users_at_once_are_all_answered() {
    need_descriptors(15_000);
    let peer = Peer::lab(&["--accept-count", "4096"]);
    let url = format!("{}/delay/8s", peer.url);
    let json = run(&words(&format!("{url} -n 15000 -c 15000 --timeout 60s --connect-timeout 60s")));
    let end = peer.end();
    assert_eq!(json.count("requests.ok"), 15_000, "{}", json.0["faults"]);
    assert_eq!(json.count("connections.opened"), 15_000);
    assert_eq!(number_after(&end, "requests"), 15_000, "{end}");
    // All are there at once, unless the machine needs more than 8 s to connect them.
    let peak = number_after(&end, "peak");
    assert!((10_000..=15_000).contains(&peak), "{end}");
}

#[test]
fn max_connections_bounds_what_ten_thousand_users_reach() {
    need_descriptors(10_000);
    let limits =
        LabConfig { max_connections: Some(8_192), accept_count: 100, ..LabConfig::default() };
    let lab = lab_with(limits);
    let url = url(&lab, "/hang");
    let line = "-n 10000 -c 10000 -o json --timeout 90s --connect-timeout 90s";
    let run = start(&mut gake(&[&["run", &url], &*words(line)].concat()));
    eventually("all who may are there", || lab.stats().requests >= 8_192);
    sleep(Duration::from_secs(3));
    let stats = lab.stats();
    assert_eq!((stats.connections.peak, stats.requests), (8_192, 8_192));
    run.signal(Signal::INT);
    sleep(Duration::from_millis(500));
    run.signal(Signal::INT);
    let json = run.wait().json();
    // The kernel completes the handshake of more, on the client's side alone with SYN cookies.
    assert!(json.count("requests.written") >= 8_192, "{}", json.0["requests"]);
    assert_eq!(json.count("requests.unfinished"), 10_000, "{}", json.0["requests"]);
}

#[test]
fn running_out_of_descriptors_is_named_as_the_generators_limit() {
    let lab = lab();
    let url = url(&lab, "/delay/20ms");
    let script = "ulimit -n 100 && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_gake")]);
    let ran = start(command.args(["run", &url]).args(words("-c 300 -n 3000 -o json"))).wait();
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("the 100 file descriptors"), "said before the run: {ran:?}");
    let json = ran.json();
    assert!(json.count("faults.no_descriptors") > 0);
    assert!(json.findings().contains(&"client_descriptors"), "{:?}", json.findings());
    assert_eq!(json.text("verdict.validity"), "invalid");
    // What never had a socket was not sent.
    assert_eq!(json.count("requests.unsent"), json.count("faults.no_descriptors"));
    assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{}", json.0["requests"]);
    assert_eq!(json.count("requests.written"), lab.shutdown().requests);
}

#[test]
fn running_out_of_local_ports_is_named_as_the_generators_limit() {
    // A network of its own, in which there are 100 ports.
    let script = "ip link set lo up && \
                  echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", script, "sh"]);
    // One source address, since gake takes several by itself towards loopback.
    let line = "run demo -c 150 -n 1500 -o json --interface 127.0.0.1";
    command.arg(env!("CARGO_BIN_EXE_gake")).args(words(line));
    let ran = start(&mut command).wait();
    assert!(
        !ran.stderr.contains("unshare: "),
        "this test needs to make a network namespace (unshare --map-root-user --net): {ran:?}"
    );
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let json = ran.json();
    assert!(json.count("faults.no_local_port") > 0, "{}", json.0["faults"]);
    assert_eq!(json.count("requests.unsent"), json.count("faults.no_local_port"));
    assert!(json.findings().contains(&"client_ports"), "{:?}", json.findings());
    assert_eq!(json.text("verdict.validity"), "invalid");
    assert!(json.count("connections.peak") <= 100);
}

#[test]
fn more_source_addresses_give_more_ports() {
    let script = "ip link set lo up && \
                  echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_gake"));
    command.args(words("run demo -c 150 -n 1500 -o json --interface 127.0.0.2-127.0.0.5"));
    let json = start(&mut command).wait().done().json();
    assert_eq!(json.count("requests.ok"), 1_500, "{}", json.0["faults"]);
    assert_eq!(json.count("connections.opened"), 150);
}

#[test]
fn idle_connections_are_held_beside_the_load() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let line = format!("run {url} -r 50 -d 1s -c 2 --idle-connections 300 -o json");
    let run = start(&mut gake(&words(&line)));
    eventually("they are open", || lab.stats().connections.open >= 300);
    let json = run.wait_for(Duration::from_secs(60)).done().json();
    assert_eq!(json.count("requests.ok"), 50);
    assert_eq!(
        (json.count("connections.idle_lost"), json.count("connections.idle_failed")),
        (0, 0)
    );
    assert!(lab.shutdown().connections.opened >= 301);
}
