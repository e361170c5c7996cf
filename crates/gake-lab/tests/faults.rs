//! Responses broken on purpose, invalid input, clients that disconnect.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use common::{Client, eventually, start};
use gake_lab::LabConfig;

#[test]
fn reset_is_a_reset_before_any_byte() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.send_get("/reset");
    let (bytes, ended) = client.read_to_end();
    assert_eq!(bytes, b"");
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(lab.shutdown().cut, 1);
}

#[test]
fn reset_after_some_bytes_delivers_them() {
    let lab = start(LabConfig::default());
    for after in [0, 1, 100, 200_000] {
        let mut client = Client::connect(lab.addr());
        client.send_get(&format!("/reset?after={after}"));
        let (bytes, ended) = client.read_to_end();
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(body_of(&bytes).len(), after);
    }
    assert_eq!(lab.shutdown().cut, 4);
}

#[test]
fn close_is_an_orderly_end_without_a_response() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    // An unread body would turn the close into a reset.
    client.send(b"POST /close HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    client.send(&[b'a'; 100_000]);
    let (bytes, ended) = client.read_to_end();
    assert_eq!(bytes, b"");
    ended.unwrap();
    assert_eq!(lab.shutdown().cut, 1);
}

#[test]
fn close_after_some_bytes_truncates_the_body() {
    let lab = start(LabConfig::default());
    for after in [0, 1, 100, 200_000] {
        let mut client = Client::connect(lab.addr());
        client.send_get(&format!("/close?after={after}"));
        let (bytes, ended) = client.read_to_end();
        ended.unwrap();
        assert_eq!(body_of(&bytes).len(), after);
        let promise = format!("content-length: {}\r\n", after + 1024);
        assert!(String::from_utf8_lossy(&bytes).contains(&promise));
    }
    assert_eq!(lab.shutdown().cut, 4);
}

#[test]
fn hang_lasts_until_the_client_goes() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.set_timeout(Duration::from_millis(50));
    client.send_get("/hang");
    let (bytes, ended) = client.read_to_end();
    assert_eq!(bytes, b"");
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(lab.stats().in_flight, 1);
    drop(client);
    eventually("the hang ends", || lab.stats().in_flight == 0);
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.aborted, stats.unfinished), (1, 1, 0));
}

#[test]
fn a_stop_ends_what_hangs_within_a_bound() {
    let lab = start(LabConfig::default());
    let mut clients: Vec<Client> = (0..50).map(|_| Client::connect(lab.addr())).collect();
    for client in &mut clients {
        client.send_get("/hang");
    }
    eventually("all hang", || lab.stats().in_flight == 50);
    let begun = Instant::now();
    let stats = lab.shutdown();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!((stats.requests, stats.unfinished, stats.in_flight), (50, 50, 0));
    assert_eq!(stats.connections.open, 0);
    for mut client in clients {
        assert_eq!(client.read_to_end().0, b"");
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_is_counted() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.send_get("/bytes/1000000000000");
    client.read_line();
    drop(client);
    eventually("the abort counts", || lab.stats().aborted == 1);
    let mut client = Client::connect(lab.addr());
    client.send(b"POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
    eventually("it has begun", || lab.stats().in_flight == 1);
    drop(client);
    eventually("the abort counts", || lab.stats().aborted == 2);
    assert_eq!(lab.shutdown().in_flight, 0);
}

#[test]
fn garbage_is_refused_and_counted_apart() {
    let lab = start(LabConfig::default());
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], b"hello\r\n\r\n"]
    {
        let mut client = Client::connect(lab.addr());
        client.send(garbage);
        let (bytes, _) = client.read_to_end();
        assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 400"));
    }
    eventually("both count", || lab.stats().malformed == 2);
    // A head without an end is dropped too, and other clients are served.
    let mut client = Client::connect(lab.addr());
    client.send(b"GET /fast HTTP/1.1\r\n");
    client.send(&b"X-Filling: 0123456789012345678901234567890123456789\r\n".repeat(99));
    client.send(&b"X-More: 1\r\n".repeat(99));
    client.send(b"\r\n");
    assert!(client.read_to_end().0.starts_with(b"HTTP/1.1 431"));
    assert_eq!(common::get(&lab, "/fast").status, 200);
    assert_eq!(lab.shutdown().requests, 1);
}

#[test]
fn a_request_byte_by_byte_is_a_request() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for byte in b"GET /fast HTTP/1.0\r\n\r\n" {
        client.send(&[*byte]);
    }
    let (bytes, ended) = client.read_to_end();
    ended.unwrap();
    assert!(bytes.ends_with(b"Hello from the lab.\n"));
}

fn body_of(response: &[u8]) -> &[u8] {
    let head = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    &response[head..]
}
