//! Every way in which an answer says where it ends, and whether the connection goes on.

use gake_codec::http1::request::RequestError;

use crate::client::{Setup, request, status_of};
use crate::server::{Act, Again, Hold, Request, Server, Wait, ok, send};
use gake_wire::WireError;
use std::time::Duration;

const TIMES: usize = 3;

/// Fires three times at a server that answers each request on a connection with `answer`;
/// returns how many connections that took.
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

fn kept(method: &str, status: u16, answer: &str) {
    assert_eq!(opened(method, status, vec![Request, send(answer), Again]), 1, "{answer:?}");
}

fn closed(method: &str, status: u16, answer: &str) {
    assert_eq!(opened(method, status, vec![Request, send(answer)]), TIMES as u64, "{answer:?}");
}

#[test]
fn a_length_or_chunks_keep_the_connection() {
    kept("GET", 200, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    kept(
        "GET",
        200,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;e=f\r\nabc\r\n0\r\nT: x\r\n\r\n",
    );
    kept("GET", 500, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn some_answers_have_no_body_whatever_they_say() {
    kept("HEAD", 200, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    kept("GET", 204, "HTTP/1.1 204 No Content\r\n\r\n");
    kept("GET", 304, "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000000\r\n\r\n");
}

#[test]
fn interim_answers_are_passed_over() {
    kept(
        "GET",
        200,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
}

#[test]
fn without_a_length_the_end_is_the_end() {
    closed("GET", 200, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
    closed("GET", 200, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    closed("GET", 200, "HTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn the_server_says_whether_the_connection_goes_on() {
    let length = "Content-Length: 1\r\n\r\nx";
    closed("GET", 200, &format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{length}"));
    closed("GET", 200, &format!("HTTP/1.0 200 OK\r\n{length}"));
    kept("GET", 200, &format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{length}"));
}

#[test]
fn pieces_make_the_same_answer() {
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
fn what_follows_an_answer_costs_the_connection() {
    // In the same segment, and in one that comes while nothing is under way.
    for tail in
        [vec![send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx!")], vec![ok(1), send("!")]]
    {
        let script = [vec![Request], tail, vec![Hold]].concat();
        let server = Server::start([script]);
        Setup::get(server.url("/")).run(async |client| {
            let mut lane = client.lane();
            for _ in 0..3 {
                assert_eq!(status_of(&lane.fire().await), 200);
                // Long enough for the second segment to come and to be heard of.
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
fn without_keep_alive_each_request_has_its_connection() {
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
fn what_cannot_be_a_request_is_refused_before_the_run() {
    let error = Setup::of(vec![request("CONNECT", "http://127.0.0.1/")]).prepare().unwrap_err();
    assert!(matches!(error, WireError::Request(RequestError::Connect)), "{error}");
    let error = Setup::of(Vec::new()).prepare().unwrap_err();
    assert!(matches!(error, WireError::Nothing), "{error}");
}
