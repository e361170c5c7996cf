//! The routes of the lab, an independent server: both sides must count the same.

use std::time::Duration;

use gake_core::record::{Fault, Phase};
use gake_lab::{Lab, LabConfig};

use crate::client::{Setup, fault_of, millis, request, status_of};

fn lab() -> Lab {
    Lab::start(LabConfig { cores: 1, ..LabConfig::default() }).unwrap()
}

fn get(lab: &Lab, path: &str) -> Setup {
    Setup::get(format!("http://{}{path}", lab.addr()))
}

#[test]
fn both_sides_count_the_same() {
    let lab = lab();
    let ours = get(&lab, "/fast").run(async |client| {
        let mut lanes: Vec<_> = (0..3).map(|_| client.lane()).collect();
        let (mut bytes_in, mut bytes_out) = (0, 0);
        for round in 0..100 {
            let exchange = lanes[round % 3].fire().await;
            assert_eq!(status_of(&exchange), 200);
            assert_eq!(exchange.connect.is_some(), round == 0);
            bytes_in += exchange.bytes_in;
            bytes_out += exchange.bytes_out;
        }
        let gauges = client.gauges();
        // Sequential requests need one connection, on any lane.
        assert_eq!((gauges.open, gauges.peak, client.counts().opened), (1, 1, 1));
        (bytes_in, bytes_out)
    });
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.connections.opened), (100, 1));
    assert_eq!((stats.bytes_out, stats.bytes_in), ours);
}

#[test]
fn each_route_has_its_outcome() {
    let lab = lab();
    for (path, status) in [
        ("/", 200),
        ("/status/503", 503),
        ("/status/204", 204),
        ("/status/304", 304),
        ("/stream/5?every=2ms", 200),
        ("/nothing", 404),
    ] {
        get(&lab, path).run(async |client| {
            let mut lane = client.lane();
            for _ in 0..3 {
                assert_eq!(status_of(&lane.fire().await), status, "{path}");
            }
            assert_eq!(client.counts().opened, 1, "{path}");
        });
    }
    assert_eq!(get(&lab, "/reset").fault(), Fault::Reset);
    assert_eq!(get(&lab, "/reset?after=100").fault(), Fault::Reset);
    assert_eq!(get(&lab, "/close").fault(), Fault::ClosedEarly(Phase::FirstByte));
    assert_eq!(get(&lab, "/close?after=100").fault(), Fault::ClosedEarly(Phase::Body));
    let head = Setup::of(vec![request("HEAD", &format!("http://{}/bytes/1000", lab.addr()))]);
    assert_eq!(status_of(&head.fire()), 200);
}

#[test]
fn a_hanging_server_is_timed_out() {
    let lab = lab();
    let setup = get(&lab, "/hang").with(|s| s.settings.timeouts.total = Duration::from_millis(100));
    assert!(matches!(fault_of(&setup.fire()), Fault::Timeout(_)));
}

#[test]
fn a_large_body_is_counted_and_not_kept() {
    const LENGTH: u64 = 256 << 20;
    let lab = lab();
    let resident = || -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let before = resident();
    let exchange = get(&lab, &format!("/bytes/{LENGTH}")).fire();
    assert_eq!(status_of(&exchange), 200);
    assert!((LENGTH..LENGTH + 1000).contains(&exchange.bytes_in));
    // Other tests run in parallel, so the figure is not exact.
    assert!(resident().saturating_sub(before) < LENGTH / 2);
}

#[test]
fn the_delay_is_in_the_service_time() {
    let lab = lab();
    let exchange = get(&lab, "/delay/50ms").fire();
    assert!((50..2_000).contains(&millis(exchange.service())));
}

#[test]
fn tcp_is_sampled_once_a_second() {
    let lab = lab();
    get(&lab, "/delay/50ms").run(async |client| {
        let mut lane = client.lane();
        let mut samples = Vec::new();
        while client.clock_millis() < 2_300 {
            samples.extend(lane.fire().await.tcp);
        }
        assert_eq!(samples.len(), 2, "{samples:?}");
        assert!(samples.iter().all(|sample| sample.rtt > 0 && sample.rtt < 1_000_000_000));
    });
}
