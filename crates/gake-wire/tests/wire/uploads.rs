//! Requests with bodies: small, large, and larger than the server reads.

use std::time::Duration;

use gake_core::record::Fault;

use crate::client::{Setup, fault_of, status_of};
use crate::server::{Again, Head, Request, Reset, Server, Skip, Wait, ok, send};

const LARGE: usize = 8 << 20;

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + (at % 23) as u8).collect()
}

#[test]
fn bodies_of_any_size_arrive_whole() {
    for length in [0, 1, 16 * 1024, 16 * 1024 + 1, 300_000, LARGE] {
        let server = Server::start([vec![Request, ok(1), Again]]);
        Setup::post(server.url("/up"), body(length)).run(async |client| {
            let mut lane = client.lane();
            for _ in 0..2 {
                let exchange = lane.fire().await;
                assert_eq!(status_of(&exchange), 200);
                assert!(exchange.written && exchange.bytes_out > length as u64);
            }
            assert_eq!(client.counts().opened, 1);
        });
        for request in server.requests() {
            let (_, came) = request.split_once("\r\n\r\n").unwrap();
            assert!(came.as_bytes() == body(length), "{length} bytes");
        }
    }
}

#[test]
fn a_slow_reader_gets_the_whole_body() {
    let wait = Wait(Duration::from_millis(100));
    let server = Server::start([vec![Head, wait, Skip(LARGE), ok(1)]]);
    let exchange = Setup::post(server.url("/"), body(LARGE)).fire();
    assert_eq!(status_of(&exchange), 200);
    assert!(exchange.written);
    assert!(exchange.service() >= 100_000_000);
}

#[test]
fn an_early_response_is_a_response() {
    let refusal = send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    // The open connection must not be reused: the body is incomplete.
    let server = Server::start([vec![Head, refusal.clone(), Wait(Duration::from_secs(5))]]);
    Setup::post(server.url("/"), body(64 << 20)).run(async |client| {
        let exchange = client.lane().fire().await;
        assert_eq!(status_of(&exchange), 413);
        assert!(!exchange.written && exchange.bytes_out > 0);
        assert_eq!(client.gauges().open, 0);
    });
    // The common case: the server responds and resets.
    let later = Wait(Duration::from_millis(50));
    let server = Server::start([vec![Head, refusal, later.clone(), Reset]]);
    let exchange = Setup::post(server.url("/"), body(64 << 20)).fire();
    assert_eq!(status_of(&exchange), 413);
    // A reset without a response is a write fault.
    let server = Server::start([vec![Head, later, Reset]]);
    let exchange = Setup::post(server.url("/"), body(64 << 20)).fire();
    assert!(matches!(fault_of(&exchange), Fault::Write | Fault::Reset), "{exchange:?}");
    assert!(!exchange.written);
}

#[test]
fn a_header_requests_chunks() {
    let server = Server::start([vec![Head, Skip(5 + 10), ok(1)]]);
    let setup = Setup::post(server.url("/"), "hello").with(|s| {
        s.requests[0].request.headers.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    });
    assert_eq!(status_of(&setup.fire()), 200);
    assert!(!server.requests()[0].contains("Content-Length"));
}
