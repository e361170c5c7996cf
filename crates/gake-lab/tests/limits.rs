//! The bounds on connections: limit, backlog, timeout.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use common::{Client, eventually, start};
use gake_lab::LabConfig;

#[test]
fn connections_over_the_limit_wait_until_one_closes() {
    let lab = start(LabConfig { max_connections: Some(3), ..LabConfig::default() });
    let mut inside: Vec<Client> = (0..3).map(|_| Client::connect(lab.addr())).collect();
    for client in &mut inside {
        assert_eq!(client.get("/fast").status, 200);
    }
    // The kernel completes the fourth connection; the lab does not see it.
    let mut waiting = Client::connect(lab.addr());
    waiting.send_get("/fast");
    waiting.set_timeout(Duration::from_millis(150));
    assert!(waiting.read_to_end().1.is_err());
    let stats = lab.stats();
    assert_eq!((stats.connections.open, stats.requests), (3, 3));

    drop(inside.pop());
    waiting.set_timeout(common::PATIENCE);
    assert_eq!(waiting.read_response(false).status, 200);
    let stats = lab.stats();
    assert_eq!((stats.connections.peak, stats.connections.opened), (3, 4));
}

#[test]
fn the_limit_and_the_backlog_bound_what_connects() {
    let (limit, backlog) = (4, 3);
    let lab = start(LabConfig {
        max_connections: Some(limit),
        accept_count: backlog,
        ..LabConfig::default()
    });
    let mut connected = Vec::new();
    for _ in 0..limit {
        let mut client = Client::connect(lab.addr());
        client.get("/fast");
        connected.push(client);
    }
    let beyond: Vec<_> = (0..12).filter_map(|_| try_connect(lab.addr())).collect();
    // Linux holds one more than the backlog says.
    assert_eq!(beyond.len(), backlog as usize + 1);
    assert_eq!(lab.stats().connections.open, limit as u64);
}

#[test]
fn a_connection_without_a_request_is_closed_in_time() {
    let timeout = Duration::from_millis(150);
    let lab = start(LabConfig { connection_timeout: Some(timeout), ..LabConfig::default() });
    // First, keep-alive, and a head that does not end.
    for prelude in ["", "GET /fast HTTP/1.1\r\n\r\n", "GET /fast HTTP/1.1\r\n"] {
        let mut client = Client::connect(lab.addr());
        let mut begun = Instant::now();
        client.send(prelude.as_bytes());
        if prelude.ends_with("\r\n\r\n") {
            client.read_response(false);
            begun = Instant::now();
        }
        let (rest, ended) = client.read_to_end();
        ended.unwrap();
        assert_eq!(rest, b"", "{prelude:?}");
        // The keep-alive timer starts slightly before the response arrives here.
        assert!(begun.elapsed() + Duration::from_millis(20) >= timeout, "{prelude:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{prelude:?}");
    }
    eventually("all three count", || lab.stats().connections.timed_out == 3);
    assert_eq!(lab.shutdown().requests, 1);
}

#[test]
fn a_request_that_takes_long_is_not_timed_out() {
    let timeout = Duration::from_millis(50);
    let lab = start(LabConfig { connection_timeout: Some(timeout), ..LabConfig::default() });
    assert_eq!(common::get(&lab, "/delay/250ms").status, 200);
}

#[test]
fn two_listeners_share_the_places() {
    use std::os::unix::net::UnixStream;
    let path = std::env::temp_dir().join(format!("gake-lab-places-{}.sock", std::process::id()));
    let unix_socket = Some(path.clone());
    let lab = start(LabConfig { max_connections: Some(1), unix_socket, ..LabConfig::default() });
    for _ in 0..3 {
        assert_eq!(common::get(&lab, "/fast").status, 200);
        drop(UnixStream::connect(&path).unwrap());
    }
    eventually("all were accepted", || lab.stats().connections.opened == 6);
    assert_eq!(lab.shutdown().connections.peak, 1);
}

fn try_connect(addr: SocketAddr) -> Option<TcpStream> {
    TcpStream::connect_timeout(&addr, Duration::from_millis(100)).ok()
}
