//! The thread-pool model against queueing theory.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, eventually, start};
use gake_lab::{Lab, LabConfig, Metastable};

/// A busy machine may be late; it must not be early.
const SLACK: Duration = Duration::from_millis(90);

fn pool(threads: usize, service: &str) -> Lab {
    let service = Some(service.parse().unwrap());
    start(LabConfig { threads: Some(threads), service, ..LabConfig::default() })
}

/// Sends `n` concurrent requests and returns the sorted response times.
fn at_once(lab: &Lab, n: usize, target: &str) -> Vec<Duration> {
    let mut clients: Vec<Client> = (0..n).map(|_| Client::connect(lab.addr())).collect();
    let begun = Instant::now();
    for client in &mut clients {
        client.send_get(target);
    }
    let readers: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            thread::spawn(move || {
                assert_eq!(client.read_response(false).status, 200);
                begun.elapsed()
            })
        })
        .collect();
    let mut times: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    times.sort();
    times
}

#[test]
fn six_requests_for_four_threads_take_one_round_and_two() {
    let lab = pool(4, "const:200ms");
    let times = at_once(&lab, 6, "/fast");
    let round = Duration::from_millis(200);
    for (index, time) in times.iter().enumerate() {
        let rounds = if index < 4 { 1 } else { 2 };
        assert!(*time >= round * rounds, "{index}: {time:?}");
        assert!(*time < round * rounds + SLACK, "{index}: {time:?}");
    }
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.responses[&200], stats.service.count), (6, 6, 6));
    assert!(stats.service.mean() >= round);
}

#[test]
fn one_thread_serves_in_the_order_of_arrival_across_connections() {
    let lab = pool(1, "const:40ms");
    let (done, finished) = mpsc::channel();
    let mut readers = Vec::new();
    for number in 0..20 {
        let mut client = Client::connect(lab.addr());
        client.send_get("/fast");
        eventually("it has arrived", || lab.stats().requests == number + 1);
        let done = done.clone();
        readers.push(thread::spawn(move || {
            client.read_response(false);
            done.send((Instant::now(), number)).unwrap();
        }));
    }
    drop(done);
    let mut order: Vec<_> = finished.iter().collect();
    order.sort();
    let order: Vec<_> = order.into_iter().map(|(_, number)| number).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn without_a_pool_all_are_served_together() {
    let lab =
        start(LabConfig { service: Some("const:100ms".parse().unwrap()), ..LabConfig::default() });
    let times = at_once(&lab, 50, "/fast");
    assert!(times[0] >= Duration::from_millis(100));
    // Serially they would take five seconds.
    assert!(times[49] < Duration::from_secs(2), "{:?}", times[49]);
}

#[test]
fn the_delay_of_a_route_holds_a_thread_too() {
    let lab = start(LabConfig { threads: Some(1), ..LabConfig::default() });
    let times = at_once(&lab, 3, "/delay/50ms");
    assert!(times[2] >= Duration::from_millis(150), "{times:?}");
    assert_eq!(at_once(&lab, 3, "/fast").len(), 3);
}

#[test]
fn a_thread_is_held_until_the_response_is_handed_over() {
    let lab = start(LabConfig { threads: Some(1), ..LabConfig::default() });
    let mut streaming = Client::connect(lab.addr());
    streaming.send_get("/stream/2?every=150ms");
    eventually("it streams", || lab.stats().threads_busy == 1);
    let begun = Instant::now();
    common::get(&lab, "/fast");
    assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[test]
fn the_lab_can_be_asked_while_all_threads_are_busy() {
    let lab = start(LabConfig { threads: Some(2), ..LabConfig::default() });
    let mut clients: Vec<Client> = (0..5).map(|_| Client::connect(lab.addr())).collect();
    for client in &mut clients {
        client.send_get("/hang");
    }
    eventually("three wait", || lab.stats().waiting == 3);
    let metrics = common::get(&lab, "/metrics");
    for line in ["gake_lab_queue 3", "gake_lab_threads_busy 2", "gake_lab_in_flight 5"] {
        assert!(metrics.text().lines().any(|l| l == line), "{line}: {}", metrics.text());
    }
    assert_eq!(common::get(&lab, "/config").status, 200);
    // The hanging clients leave one by one, and the next request takes the worker.
    while let Some(client) = clients.pop() {
        drop(client);
        let left = clients.len() as u64;
        eventually("one less", || {
            let stats = lab.stats();
            (stats.in_flight, stats.threads_busy) == (left, left.min(2))
        });
    }
}

#[test]
fn an_abandoned_request_still_takes_its_turn_and_its_time() {
    let lab = pool(1, "const:100ms");
    let begun = Instant::now();
    for number in 0..3 {
        let mut client = Client::connect(lab.addr());
        client.send_get("/fast");
        eventually("it has arrived", || lab.stats().requests == number + 1);
    }
    eventually("they have gone", || lab.stats().in_flight == 0);
    assert!(lab.stats().waiting > 0, "abandoned requests still wait");
    common::get(&lab, "/fast");
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    let stats = lab.shutdown();
    assert_eq!((stats.aborted, stats.responses[&200], stats.service.count), (3, 1, 4));
}

#[test]
fn the_service_times_of_a_seed_are_the_same_on_any_number_of_cores() {
    let mean = |cores, seed| {
        let service = Some("uniform:1us,2ms".parse().unwrap());
        let config = LabConfig { cores, seed, service, ..LabConfig::default() };
        let lab = Lab::start(config).unwrap();
        for _ in 0..2 {
            let mut client = Client::connect(lab.addr());
            for _ in 0..60 {
                client.get("/fast");
            }
        }
        lab.shutdown().service
    };
    let one = mean(1, 9);
    let two = mean(2, 9);
    assert_eq!((one.count, two.count), (120, 120));
    // Both sums have the same 120 draws and differ by the timer's lateness.
    assert!((one.sum_s - two.sum_s).abs() < 0.1, "{one:?} {two:?}");
    assert!(one.sum_s > 0.08, "{one:?}");
}

#[test]
fn a_full_queue_rejects_at_once() {
    let service = Some("const:300ms".parse().unwrap());
    let lab =
        start(LabConfig { threads: Some(2), queue: Some(1), service, ..LabConfig::default() });
    let mut held: Vec<Client> = (0..3).map(|_| Client::connect(lab.addr())).collect();
    for client in &mut held {
        client.send_get("/fast");
    }
    eventually("one request waits", || lab.stats().waiting == 1);
    let mut refused = Client::connect(lab.addr());
    assert_eq!(refused.get("/fast").status, 503);
    for client in &mut held {
        assert_eq!(client.read_response(false).status, 200);
    }
    // A rejected connection stays usable.
    assert_eq!(refused.get("/fast").status, 200);
    let stats = lab.shutdown();
    assert_eq!((stats.responses[&200], stats.responses[&503], stats.service.count), (4, 1, 4));
}

#[test]
fn an_overload_leaves_it_slower_until_it_has_rested() {
    let (wait, rest) = (Duration::from_millis(60), Duration::from_millis(400));
    let lab = start(LabConfig {
        threads: Some(1),
        service: Some("const:50ms".parse().unwrap()),
        metastable: Some(Metastable { wait, factor: 3.0, rest }),
        ..LabConfig::default()
    });
    let longer = Duration::from_millis(150);
    let mut client = Client::connect(lab.addr());
    // A single client never waits.
    client.get("/fast");
    assert!(lab.stats().service.mean() < longer);
    // The third of three waits 100 ms and takes three times as long.
    let times = at_once(&lab, 3, "/fast");
    assert!(times[2] >= Duration::from_millis(50 + 50) + longer, "{times:?}");
    let begun = Instant::now();
    client.get("/fast");
    let slow = begun.elapsed();
    assert!(slow >= longer || begun.elapsed() > rest, "{slow:?}");
    thread::sleep(rest + SLACK);
    let before = lab.stats().service;
    client.get("/fast");
    let after = lab.stats().service;
    assert!(after.sum_s - before.sum_s < longer.as_secs_f64(), "{before:?} {after:?}");
    lab.shutdown();
}

#[test]
fn a_leaking_pool_serves_as_many_rounds_as_it_has_threads() {
    let config = LabConfig { threads: Some(3), leak_every: Some(4), ..LabConfig::default() };
    let lab = start(LabConfig { service: "const:1ms".parse().ok(), ..config });
    let mut client = Client::connect(lab.addr());
    for _ in 0..12 {
        assert_eq!(client.get("/fast").status, 200);
    }
    // The thirteenth finds no worker.
    client.send_get("/fast");
    eventually("it waits", || lab.stats().waiting == 1);
    let stats = lab.shutdown();
    assert_eq!((stats.responses[&200], stats.threads_busy), (12, 3));
}
