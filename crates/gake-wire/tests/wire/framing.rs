//! Every framing of a response, and whether the connection persists.

use gake_codec::http1::request::RequestError;

use crate::client::{Setup, request, status_of};
use crate::server::{Act, Again, Hold, Request, Server, Wait, ok, send};
use gake_wire::WireError;
use std::time::Duration;

const TIMES: usize = 3;

/// Fires three times at a server that plays `script` on each connection;
/// returns the number of connections.
fn opened(method: &str, status: u16, script: Vec<Act>) -> u64 {
    let server = Server::start([script]);
    Setup::of(vec![request(method, &server.url("/"))]).run(async |client| {
        let mut lane = client.lane();
        for _ in 0..TIMES {
            let exchange = lane.fire().await;
            assert_eq!(status_of(&exchange), status);
            assert!(exchange.written);
        }
        let counts = client.counts();
        assert_eq!((counts.stale_reconnects, counts.excess), (0, 0));
        assert_eq!(server.requests().len(), TIMES);
        counts.opened
    })
}

fn persistent(method: &str, status: u16, response: &str) {
    assert_eq!(opened(method, status, vec![Request, send(response), Again]), 1, "{response:?}");
}

fn closed(method: &str, status: u16, response: &str) {
    assert_eq!(opened(method, status, vec![Request, send(response)]), TIMES as u64, "{response:?}");
}

#[test]
fn a_length_or_chunks_keep_the_connection() {
    persistent("GET", 200, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    persistent(
        "GET",
        200,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;e=f\r\nabc\r\n0\r\nT: x\r\n\r\n",
    );
    persistent("GET", 500, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn some_responses_never_have_a_body() {
    persistent("HEAD", 200, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    persistent("GET", 204, "HTTP/1.1 204 No Content\r\n\r\n");
    persistent("GET", 304, "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000000\r\n\r\n");
}

#[test]
fn interim_responses_are_skipped() {
    persistent(
        "GET",
        200,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
}

#[test]
fn without_a_length_the_body_ends_with_the_connection() {
    closed("GET", 200, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
    closed("GET", 200, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    closed("GET", 200, "HTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn the_server_decides_whether_the_connection_persists() {
    let length = "Content-Length: 1\r\n\r\nx";
    closed("GET", 200, &format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{length}"));
    closed("GET", 200, &format!("HTTP/1.0 200 OK\r\n{length}"));
    persistent("GET", 200, &format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{length}"));
}

#[test]
fn a_split_response_is_the_same() {
    let script = vec![
        Request,
        Act::Drip(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
            Duration::from_micros(200),
        ),
        Again,
    ];
    assert_eq!(opened("GET", 200, script), 1);
}

#[test]
fn excess_bytes_cost_the_connection() {
    // In the same segment, and in one that comes on the idle connection.
    for tail in
        [vec![send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx!")], vec![ok(1), send("!")]]
    {
        let script = [vec![Request], tail, vec![Hold]].concat();
        let server = Server::start([script]);
        Setup::get(server.url("/")).run(async |client| {
            let mut lane = client.lane();
            for _ in 0..3 {
                assert_eq!(status_of(&lane.fire().await), 200);
                // Long enough for the second segment to arrive.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let counts = client.counts();
            assert_eq!(counts.opened, 3);
            assert!(counts.excess >= 2, "{counts:?}");
            assert_eq!(counts.stale_reconnects, 0);
        });
    }
}

#[test]
fn without_keep_alive_each_request_takes_a_connection() {
    let server = Server::start([vec![Request, ok(2), Wait(Duration::from_millis(10))]]);
    let setup = Setup::get(server.url("/")).with(|s| s.settings.keepalive = false);
    setup.run(async |client| {
        client.lane().fire_ok(5).await;
        assert_eq!((client.counts().opened, client.gauges().open), (5, 0));
    });
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert!(requests.iter().all(|request| request.contains("\r\nConnection: close\r\n")));
}

#[test]
fn an_invalid_request_is_refused_before_the_run() {
    let error = Setup::of(vec![request("CONNECT", "http://127.0.0.1/")]).prepare().unwrap_err();
    assert!(matches!(error, WireError::Request(RequestError::Connect)), "{error}");
    let error = Setup::of(Vec::new()).prepare().unwrap_err();
    assert!(matches!(error, WireError::Nothing), "{error}");
}
