//! A spike of clients who stay: one request each, and no connection is given back before the end.

use std::time::Duration;

use gake_lab::LabConfig;

use crate::support::*;

#[test]
fn of_ten_clients_who_stay_one_is_served_and_two_wait_in_the_backlog() {
    // One is let in, and the backlog holds two (Linux: one more than asked). The server closes the
    // one who stays after 4 s, when the others have long given up.
    let config = LabConfig {
        threads: Some(1),
        max_connections: Some(1),
        accept_count: 1,
        connection_timeout: Some(Duration::from_secs(4)),
        service: "const:200ms".parse().ok(),
        ..LabConfig::default()
    };
    let lab = lab_with(config);
    let url = url(&lab, "/fast");
    // They come one after the other, so that no two handshakes are under way at once.
    let line = "-c 10 --once --connect-rate 20 --connect-timeout 1500ms";
    let json = run(&[&[url.as_str()], &*words(line)].concat());
    let (ok, late) = (json.count("requests.ok"), json.count("faults.connect_timeout"));
    // A machine that delays a handshake until the next has begun accepts one more.
    assert!((3..=4).contains(&ok), "{}", json.0);
    assert_eq!(ok + late, 10, "{}", json.0["faults"]);
    assert_eq!(lab.shutdown().requests, ok);
}

#[test]
fn each_client_has_one_request_on_a_connection_of_its_own() {
    let lab = lab();
    let url = url(&lab, "/delay/100ms");
    let ran = ran(&[&["run", url.as_str()], &*words("-c 40 --once -t 2 -o json")].concat()).done();
    assert!(ran.stderr.contains("1 iteration each, connections kept to the end"), "{ran:?}");
    let json = ran.json();
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (40, 40));
    let stats = lab.shutdown();
    // No connection was closed before all had a response.
    assert_eq!((stats.requests, stats.connections.peak), (40, 40));
}
