//! The memory of a client that sends no complete request, counted at the allocator.
//!
//! The count covers the whole process: this file must keep to one test.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use common::{Client, eventually, start};
use gake_lab::LabConfig;
use gake_testkit::{Counting, live_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CLIENTS: usize = 300;

/// Bytes per client; the clients' own side is included.
const BYTES_EACH: usize = 3 << 10;

#[test]
fn a_slow_head_costs_little_and_what_it_cost_is_given_back() {
    let lab = start(LabConfig::default());
    assert_eq!(common::get(&lab, "/fast").status, 200);
    eventually("the first has left", || lab.stats().connections.open == 0);
    let before = live_bytes();
    let taken = || live_bytes().saturating_sub(before);
    let clients = || -> Vec<_> { (0..CLIENTS).map(|_| Client::connect(lab.addr())).collect() };
    let head = b"GET /fast HTTP/1.1\r\nHost: lab\r\nX: a";

    let read_before = lab.stats().bytes_in;
    let mut slow = clients();
    slow.iter_mut().for_each(|client| client.send(head));
    eventually("all have come", || lab.stats().connections.open == CLIENTS as u64);
    let all = read_before + (CLIENTS * head.len()) as u64;
    eventually("all heads are read", || lab.stats().bytes_in == all);
    let most = CLIENTS * BYTES_EACH;
    assert!(taken() <= most, "{} bytes each", taken() / CLIENTS);
    drop(slow);
    eventually("all have left", || lab.stats().connections.open == 0);
    eventually("nothing is kept", || taken() < CLIENTS * 128);

    // The same for one that was served before and one that sent a body.
    let mut slow = clients();
    for (number, client) in slow.iter_mut().enumerate() {
        let response =
            if number % 2 == 0 { client.get("/fast") } else { client.post("/echo", b"x") };
        assert_eq!(response.status, 200);
        client.send(head);
    }
    eventually("their buffers are given back", || taken() <= most);
    // They are still served.
    for client in &mut slow {
        client.send(b"\r\n\r\n");
        assert_eq!(client.read_response(false).status, 200);
        assert_eq!(client.get("/bytes/100").body.len(), 100);
    }
    drop(slow);
    eventually("all have left", || lab.stats().connections.open == 0);
    eventually("nothing is kept", || taken() < CLIENTS * 128);
    assert_eq!(lab.shutdown().requests, 1 + 3 * CLIENTS as u64);
}
