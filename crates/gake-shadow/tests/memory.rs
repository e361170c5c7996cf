//! Memory per client with an incomplete request, counted at the allocator.
//!
//! The count covers the whole process, so this file has a single test.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use gake_shadow::config::{Backend, Config};
use gake_shadow::{Proxy, RunningProxy};
use gake_testkit::{Counting, live_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CLIENTS: usize = 300;

/// Maximum bytes per client besides those it sent.
const BYTES_EACH: usize = 3 << 10;

/// Bytes of the incomplete request.
const SENT: usize = 700;

/// Generous for a busy machine.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_slow_head_takes_little_memory_and_releases_it() {
    let proxy = proxy();
    // Opens the connections to the master before the count starts.
    let mut first: Vec<_> = (0..CLIENTS).map(|_| connect(proxy.addr())).collect();
    first.iter_mut().for_each(|client| assert_eq!(whole(client), "HTTP/1.1 200"));
    drop(first);
    until("the first have left", || proxy.control().stats().open == 0);
    let before = live_bytes();
    let taken = || live_bytes().saturating_sub(before);
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "a".repeat(SENT - 27));

    let mut slow: Vec<_> = (0..CLIENTS).map(|_| connect(proxy.addr())).collect();
    slow.iter_mut().for_each(|client| client.write_all(head.as_bytes()).unwrap());
    until("all have come", || proxy.control().stats().open == CLIENTS as u64);
    until("all heads are read", || taken() >= CLIENTS * SENT);
    let most = CLIENTS * (SENT + BYTES_EACH);
    assert!(taken() <= most, "{} bytes each", taken() / CLIENTS);
    drop(slow);
    until("all have left", || proxy.control().stats().open == 0);
    until("nothing is kept", || taken() < CLIENTS * 128);

    // The same on connections that have served a request.
    let mut slow: Vec<_> = (0..CLIENTS).map(|_| connect(proxy.addr())).collect();
    for client in &mut slow {
        assert_eq!(whole(client), "HTTP/1.1 200");
        client.write_all(head.as_bytes()).unwrap();
    }
    until("their buffers are given back", || taken() <= most);
    // They still work.
    for client in &mut slow {
        client.write_all(b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        assert_eq!((&*response(client), &*response(client)), ("HTTP/1.1 200", "HTTP/1.1 200"));
    }
    assert_eq!(proxy.control().stats().requests, 4 * CLIENTS as u64);
    drop(slow);
    until("all have left", || proxy.control().stats().open == 0);
    until("nothing is kept", || taken() < CLIENTS * 128);
    drop(proxy.stop(Duration::from_secs(20)));
}

fn proxy() -> RunningProxy {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            thread::spawn(move || {
                while read_head(&mut stream) {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
        }
    });
    let mut config = Config::new(Backend::new("master", &url).unwrap());
    config.threads = 2;
    config.timeouts.head = Duration::from_secs(600);
    Proxy::new(config).unwrap().start().unwrap()
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn whole(client: &mut TcpStream) -> String {
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    response(client)
}

/// Reads a response without a body; returns the start of its status line.
fn response(client: &mut TcpStream) -> String {
    let mut start = [0; 12];
    client.read_exact(&mut start).unwrap();
    assert!(read_head(client));
    String::from_utf8(start.to_vec()).unwrap()
}

/// Reads up to an empty line.
fn read_head(stream: &mut TcpStream) -> bool {
    let (mut last, mut byte) = ([0; 4], [0]);
    while last != *b"\r\n\r\n" {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        last = [last[1], last[2], last[3], byte[0]];
    }
    true
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}: not within a minute; {} live", live_bytes());
        thread::sleep(Duration::from_millis(5));
    }
}
