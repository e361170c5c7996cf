//! Time-outs of every phase.

use std::time::Duration;

use gake_core::record::{Exchange, Fault, Phase};

use crate::client::{Setup, fault_of, millis, status_of};
use crate::server::{Act, Again, Drip, Hold, Request, Server, Wait, ok, send};

const LIMIT: u64 = 400;

/// A time-out is never early, and late by little more than the interval of scans.
fn timed_out(exchange: &Exchange, phase: Phase, fired: u64) {
    assert_eq!(fault_of(exchange), Fault::Timeout(phase));
    let took = millis(exchange.done - fired);
    assert!((LIMIT..LIMIT + 400).contains(&took), "{took} ms");
    assert!(exchange.written && exchange.connect.is_some());
    // A time-out has a TCP sample.
    assert!(exchange.tcp.is_some());
}

fn fire(script: Vec<Act>, phase: Phase) {
    let server = Server::start([script]);
    let setup = Setup::get(server.url("/"))
        .with(|s| s.settings.timeouts.total = Duration::from_millis(LIMIT));
    setup.run(async |client| {
        let fired = gake_core::clock::Clock::now(&client.clock);
        timed_out(&client.lane().fire().await, phase, fired);
        assert_eq!(client.gauges().open, 0);
    });
}

#[test]
fn no_first_byte() {
    fire(vec![Request, Hold], Phase::FirstByte);
}

#[test]
fn a_head_that_never_ends() {
    fire(vec![Request, send("HTTP/1.1 200 OK\r\nX: "), Hold], Phase::Body);
}

#[test]
fn a_byte_at_a_time() {
    let head = send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    fire(vec![Request, head, Drip(vec![b'x'; 1000], Duration::from_millis(10))], Phase::Body);
}

#[test]
fn an_endless_body_times_out() {
    let head = send("HTTP/1.1 200 OK\r\n\r\n");
    fire(vec![Request, head, Act::Flood(vec![b'x'; 64 * 1024])], Phase::Body);
}

#[test]
fn an_unread_request_times_out() {
    let server = Server::start([vec![Wait(Duration::from_secs(10))]]);
    let setup = Setup::post(server.url("/"), vec![b'x'; 32 << 20])
        .with(|s| s.settings.timeouts.total = Duration::from_millis(LIMIT));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::Timeout(Phase::FirstByte));
    assert!(!exchange.written && exchange.bytes_out > 0);
}

#[test]
fn the_first_byte_has_its_own_time_out() {
    let slow = vec![Request, Wait(Duration::from_secs(5)), ok(1)];
    let body = vec![
        Request,
        send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"),
        Wait(Duration::from_millis(LIMIT + 300)),
        send("x"),
        Again,
    ];
    let server = Server::start([slow, body]);
    let setup = Setup::get(server.url("/"))
        .with(|s| s.settings.timeouts.first_byte = Some(Duration::from_millis(LIMIT)));
    setup.run(async |client| {
        let mut lane = client.lane();
        let fired = gake_core::clock::Clock::now(&client.clock);
        timed_out(&lane.fire().await, Phase::FirstByte, fired);
        // It does not apply to the rest, also on a reused connection.
        assert_eq!(status_of(&lane.fire().await), 200);
        let reused = lane.fire().await;
        assert_eq!(status_of(&reused), 200);
        assert!(millis(reused.service()) >= LIMIT + 300);
        assert_eq!(client.counts().opened, 2);
    });
}

#[test]
fn a_time_out_belongs_to_its_own_request() {
    // The second request starts shortly before the first one's deadline.
    let server = Server::start([vec![Request, Wait(Duration::from_millis(250)), ok(1), Again]]);
    let setup = Setup::get(server.url("/"))
        .with(|s| s.settings.timeouts.total = Duration::from_millis(LIMIT));
    setup.run(async |client| client.lane().fire_ok(4).await);
}

#[test]
fn every_lane_has_its_own() {
    let server = Server::start([vec![Request, Hold], vec![Request, ok(1), Again]]);
    let setup = Setup::get(server.url("/"))
        .with(|s| s.settings.timeouts.total = Duration::from_millis(LIMIT));
    setup.run(async |client| {
        let mut hanging = client.lane();
        let (hung, ()) = tokio::join!(hanging.fire(), async {
            client.until("the first request is there", |_| server.requests().len() == 1).await;
            let mut lane = client.lane();
            for _ in 0..20 {
                lane.fire_ok(1).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert_eq!(fault_of(&hung), Fault::Timeout(Phase::FirstByte));
    });
}
