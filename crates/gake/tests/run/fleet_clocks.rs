//! Agents whose clocks do not fit.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::fleet::{HERE, Nats, TOKEN, agents, run_of, with};
use crate::support::*;

/// How much later bytes arrive on the way through [`far`], in each direction.
const WAY: Duration = Duration::from_millis(170);

/// Passes on bytes, late.
fn late(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        thread::sleep(WAY);
        if to.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
}

/// The URL of a NATS server that is far away from its clients.
fn far(nats: &Nats) -> String {
    let server = nats.url.trim_start_matches("nats://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            let (back, there) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || late(client, there));
            thread::spawn(move || late(server, back));
        }
    });
    url
}

#[test]
fn an_agent_whose_clock_is_not_known_well_enough_is_refused_and_another_is_taken() {
    let (nats, lab) = (Nats::start(), lab());
    let url = url(&lab, "/fast");
    let mut away = with(&nats, TOKEN, &[&["agent", "--name", "away"], HERE].concat());
    let away = start(away.env("GAKE_NATS", far(&nats)));
    // Time for it to connect; it is asked once more at the end.
    let line = format!("run {url} -r 40 -d 100ms --agents 1 --agents-wait 8s");
    let refused = start(&mut with(&nats, TOKEN, &words(&line))).wait();
    refused.refused(1, "agent away is too far away: its clock is known to within");
    assert_eq!(lab.stats().requests, 0);
    // One beside it can do the run.
    let near = agents(&nats, &["near"], HERE);
    let ran = start(&mut run_of(&nats, &url, "-r 40 -d 100ms --agents 1")).wait().done();
    assert!(ran.stderr.contains("agent near: "), "{ran:?}");
    crate::fleet::end(near);
    crate::fleet::end(vec![away]);
}
