//! The ways to a server: names, addresses, sockets, sources.

use std::net::ToSocketAddrs;

use gake_lab::{Lab, LabConfig};

use crate::support::*;

#[test]
fn a_name_can_be_given_its_address() {
    let lab = lab();
    let port = lab.addr().port();
    let url = format!("http://no-such-host.invalid:{port}/fast");
    let rule = format!("no-such-host.invalid:{port}:127.0.0.1");
    let json = run(&[&url, "-n", "40", "-c", "4", "--resolve", &rule]);
    assert_eq!(json.count("requests.ok"), 40);
    assert_eq!(json.text("plan.target"), url, "it is named as the user did");
    let url = "http://no-such-host.invalid/fast";
    let rule = format!("no-such-host.invalid:80:127.0.0.1:{port}");
    let json = run(&[url, "-n", "40", "-c", "4", "--connect-to", &rule]);
    assert_eq!(json.count("requests.ok"), 40);
    assert_eq!(lab.shutdown().requests, 80);
}

#[test]
fn localhost_is_found_in_either_address_family() {
    let v4 = lab();
    let v6 = lab_with(LabConfig { listen: "[::1]:0".parse().unwrap(), ..LabConfig::default() });
    // Not every machine's hosts file has it in both families.
    let known: Vec<_> = ("localhost", 0).to_socket_addrs().unwrap().collect();
    let known = |lab: &Lab| known.iter().any(|address| address.ip() == lab.addr().ip());
    for lab in [&v4, &v6].into_iter().filter(|lab| known(lab)) {
        let url = format!("http://localhost:{}/fast", lab.addr().port());
        let json = run(&[&url, "-n", "40", "-c", "4"]);
        assert_eq!(json.count("requests.ok"), 40, "{}", json.0["faults"]);
        assert_eq!(lab.stats().requests, 40);
    }
}

#[test]
fn ipv6_addresses_are_targets() {
    let lab = lab_with(LabConfig { listen: "[::1]:0".parse().unwrap(), ..LabConfig::default() });
    let json = run(&[&url(&lab, "/fast"), "-r", "200", "-d", "300ms"]);
    assert_eq!((json.count("requests.ok"), lab.shutdown().requests), (60, 60));
}

#[test]
fn unix_sockets_are_targets_and_a_missing_one_is_a_refused_connection() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lab.sock");
    let socket = path.to_str().unwrap();
    let lab = lab_with(LabConfig { unix_socket: Some(path.clone()), ..LabConfig::default() });
    let json = run(&["http://name/fast", "-n", "80", "-c", "8", "--unix-socket", socket]);
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (80, 8));
    assert_eq!(lab.shutdown().requests, 80);
    let ran =
        ran(&["run", "http://name/", "-n", "3", "-o", "json", "--unix-socket", "/no/such/sock"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.json().count("faults.connect_refused"), 3);
}

#[test]
fn connections_come_from_the_sources_given() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let json = run(&[&url, "-n", "90", "-c", "9", "--interface", "127.0.0.2-127.0.0.4"]);
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (90, 9));
    // An address that is not this machine's is found out before the run.
    ran(&["run", &url, "-n", "5", "--interface", "192.0.2.77"]).refused(2, "192.0.2.77");
    assert_eq!(lab.shutdown().requests, 90);
}
