//! Starting, counting, pausing, stopping.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, eventually, start};
use expect_test::expect;
use gake_lab::{Lab, LabConfig, LabError, ServiceTime, Stall};

#[test]
fn what_clients_send_is_what_the_lab_counts() {
    let lab = start(LabConfig::default());
    let addr = lab.addr();
    let clients: Vec<_> = (0..8)
        .map(|number| {
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                for turn in 0..200 {
                    let target = if turn % 4 == number % 4 { "/status/500" } else { "/fast" };
                    client.get(target);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    eventually("all are closed", || lab.stats().connections.open == 0);
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.in_flight), (1600, 0));
    assert_eq!((stats.routes["/fast"], stats.routes["/status"]), (1200, 400));
    assert_eq!((stats.responses[&200], stats.responses[&500]), (1200, 400));
    assert_eq!((stats.connections.opened, stats.connections.peak <= 8), (8, true));
    assert!(stats.bytes_out > 1600 * 50);
}

#[test]
fn arrivals_are_recorded_up_to_the_cap_in_order() {
    let lab = start(LabConfig { record_arrivals: 10, ..LabConfig::default() });
    let begun = Instant::now();
    let mut clients = [Client::connect(lab.addr()), Client::connect(lab.addr())];
    for turn in 0..15 {
        clients[turn % 2].get("/fast");
        clients[0].get("/metrics");
    }
    let arrivals = lab.arrivals();
    assert_eq!(arrivals.len(), 10);
    assert!(arrivals.is_sorted());
    assert!(arrivals[0] >= begun && arrivals[9] <= Instant::now());
}

#[test]
fn a_pause_stops_everything_and_loses_nothing() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.get("/fast");
    let begun = Instant::now();
    lab.pause(Duration::from_millis(300));
    thread::sleep(Duration::from_millis(100));
    // The kernel still connects and takes the request.
    let mut other = Client::connect(lab.addr());
    client.send_get("/fast");
    other.send_get("/metrics");
    client.read_response(false);
    other.read_response(false);
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(lab.shutdown().requests, 2);
}

#[test]
fn a_stall_is_planned_from_the_first_request() {
    let stall = Stall { after: Duration::from_millis(100), length: Duration::from_millis(300) };
    let lab = start(LabConfig { stall: Some(stall), ..LabConfig::default() });
    let mut client = Client::connect(lab.addr());
    client.get("/metrics");
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_millis(800) {
        let sent = Instant::now();
        client.get("/fast");
        longest = longest.max(sent.elapsed());
    }
    assert!(longest >= Duration::from_millis(280), "{longest:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn a_stall_is_repeated_and_its_time_reported() {
    let stall = Stall { after: Duration::from_millis(50), length: Duration::from_millis(100) };
    let stall_every = Some(Duration::from_millis(300));
    let lab = start(LabConfig { stall: Some(stall), stall_every, ..LabConfig::default() });
    let mut client = Client::connect(lab.addr());
    let begun = Instant::now();
    let mut long = 0;
    // Three stalls begin within the first 650 ms.
    while begun.elapsed() < Duration::from_millis(800) {
        let sent = Instant::now();
        client.get("/fast");
        long += u32::from(sent.elapsed() >= Duration::from_millis(80));
    }
    assert!(long >= 2, "{long} stalls");
    assert!(lab.shutdown().stalled >= Duration::from_millis(200));
}

#[test]
fn a_stall_can_be_asked_for() {
    let lab = start(LabConfig::default());
    let begun = Instant::now();
    let response = common::get(&lab, "/stall?for=200ms");
    assert_eq!(response.text(), "stalled for 200ms\n");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.control_requests), (0, 1));
}

#[test]
fn a_stop_ends_a_pause() {
    let lab = start(LabConfig::default());
    lab.pause(Duration::from_secs(3600));
    thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    lab.shutdown();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn after_shutdown_the_port_is_free() {
    let lab = start(LabConfig::default());
    let addr = lab.addr();
    let client = Client::connect(addr);
    drop(lab);
    assert!(std::net::TcpStream::connect(addr).is_err());
    let again = start(LabConfig { listen: addr, ..LabConfig::default() });
    assert_eq!(again.addr(), addr);
    drop(client);
}

#[test]
fn a_unix_socket_serves_too_and_is_removed() {
    let path = std::env::temp_dir().join(format!("gake-lab-{}.sock", std::process::id()));
    // A stale one, as a killed server leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let lab = start(LabConfig { unix_socket: Some(path.clone()), ..LabConfig::default() });
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /fast HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("Hello from the lab.\n"), "{response}");

    let taken = LabConfig { unix_socket: Some(path.clone()), ..LabConfig::default() };
    assert!(matches!(Lab::start(taken), Err(LabError::UnixSocket { .. })));
    drop(lab);
    assert!(!path.exists());
}

#[test]
fn invalid_settings_are_one_sentence_each() {
    let default = LabConfig::default;
    let errors = [
        LabConfig { threads: Some(0), ..default() },
        LabConfig { max_connections: Some(0), ..default() },
        LabConfig { connection_timeout: Some(Duration::ZERO), ..default() },
        LabConfig { connection_timeout: Some(Duration::MAX), ..default() },
        LabConfig { service: Some(ServiceTime::Constant(Duration::MAX)), ..default() },
        LabConfig {
            stall: Some(Stall { after: Duration::MAX, length: Duration::ZERO }),
            ..default()
        },
        LabConfig { cores: 1_000_000, ..default() },
        LabConfig { queue: Some(1), ..default() },
        LabConfig { leak_every: Some(9), ..default() },
        LabConfig { stall_every: Some(Duration::from_secs(1)), ..default() },
    ]
    .map(|config| Lab::start(config).unwrap_err().to_string());
    expect![[r#"
        threads must be at least 1: with none no request is ever served
        max_connections must be at least 1: with none no client gets in
        connection_timeout must be longer than 0
        timeouts, stalls and service times must be at most 24h
        timeouts, stalls and service times must be at most 24h
        timeouts, stalls and service times must be at most 24h
        cores must be at most 1024
        queue needs threads: without a limit no request waits
        leak_every needs threads: without a limit there is nothing to exhaust
        stall_every needs stall"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn an_address_that_cannot_be_listened_on_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let default = LabConfig::default;
    let busy = taken.local_addr().unwrap();
    let long = "x".repeat(200);
    let unix = |path: &str| LabConfig { unix_socket: Some(path.into()), ..default() };
    for (config, address) in [
        (LabConfig { listen: busy, ..default() }, busy.to_string()),
        (LabConfig { listen: "192.0.2.1:80".parse().unwrap(), ..default() }, "192.0.2.1:80".into()),
        (unix("/nowhere/at/all.sock"), "/nowhere/at/all.sock".to_owned()),
        (unix(&long), long.clone()),
    ] {
        let error = Lab::start(config).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on {address}: ")), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
