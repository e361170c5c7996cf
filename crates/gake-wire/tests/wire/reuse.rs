//! Idle connections that the server ends.

use std::time::Duration;

use gake_core::record::{Fault, Phase};

use crate::client::{Client, Setup, fault_of, status_of};
use crate::server::{Again, Request, Reset, Server, Wait, ok};

const LATER: Duration = Duration::from_millis(60);

/// Waits until the server has ended its connections, and the runtime has seen that.
async fn until_ended(client: &Client, server: &Server) {
    client.until("the server ends the connection", |_| server.is_over()).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[test]
fn an_idle_connection_that_has_ended_is_replaced_before_writing() {
    for post in [false, true] {
        let server = Server::start([vec![Request, ok(1)]]);
        let setup = match post {
            true => Setup::post(server.url("/"), "body"),
            false => Setup::get(server.url("/")),
        };
        setup.run(async |client| {
            let mut lane = client.lane();
            for _ in 0..3 {
                let exchange = lane.fire().await;
                assert_eq!(status_of(&exchange), 200);
                assert!(exchange.connect.is_some());
                until_ended(client, &server).await;
            }
            let counts = client.counts();
            assert_eq!((counts.opened, counts.stale_reconnects), (3, 2));
            assert_eq!((server.seen().len(), server.requests().len()), (3, 3));
        });
    }
}

#[test]
fn an_idle_connection_that_was_reset_is_replaced_as_well() {
    let server = Server::start([vec![Request, ok(1), Wait(LATER), Reset]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(1).await;
        until_ended(client, &server).await;
        lane.fire_ok(1).await;
        assert_eq!(client.counts().stale_reconnects, 1);
    });
}

#[test]
fn an_idempotent_request_is_retried_once() {
    let server = Server::start([vec![Request, ok(1), Request], vec![Request, ok(1), Again]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(1).await;
        let second = lane.fire().await;
        assert_eq!(status_of(&second), 200);
        // Both writes count, and so does the time of the first.
        assert_eq!(second.bytes_out, 2 * server.requests()[0].len() as u64);
        assert!(second.written && second.connect.is_some());
        let counts = client.counts();
        assert_eq!((counts.opened, counts.stale_reconnects), (2, 1));
        assert_eq!(server.requests().len(), 3);
    });
}

#[test]
fn there_is_no_second_retry() {
    let server = Server::start([vec![Request, ok(1), Request], vec![Request]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(1).await;
        assert_eq!(fault_of(&lane.fire().await), Fault::ClosedEarly(Phase::FirstByte));
        let counts = client.counts();
        assert_eq!((counts.opened, counts.stale_reconnects), (2, 1));
        assert_eq!(server.seen().len(), 2);
    });
}

#[test]
fn other_requests_are_not_retried() {
    let server = Server::start([vec![Request, ok(1), Request]]);
    Setup::post(server.url("/"), "once").run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(1).await;
        let second = lane.fire().await;
        assert_eq!(fault_of(&second), Fault::ClosedEarly(Phase::FirstByte));
        assert!(second.written);
        let counts = client.counts();
        assert_eq!((counts.opened, counts.stale_reconnects), (1, 0));
        assert_eq!(server.requests().len(), 2);
    });
}

#[test]
fn an_end_within_the_response_is_not_retried() {
    let cut = crate::server::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    let server = Server::start([vec![Request, ok(1), Request, cut]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(1).await;
        assert_eq!(fault_of(&lane.fire().await), Fault::ClosedEarly(Phase::Body));
        assert_eq!((client.counts().opened, server.seen().len()), (1, 1));
    });
}

#[test]
fn a_new_connection_is_not_retried() {
    let server = Server::start([vec![Request]]);
    assert_eq!(Setup::get(server.url("/")).fault(), Fault::ClosedEarly(Phase::FirstByte));
    assert_eq!(server.seen().len(), 1);
}
