//! Crowds of clients that send half a request, or do not read.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::reply::{Events, NextEvent};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

const LARGE: usize = 32 << 20;

/// `/` is short, `/large` is more than the kernel holds, `/events` never has one.
struct TestSite {
    large: Arc<[u8]>,
    sent: Arc<AtomicUsize>,
    viewers: Arc<Mutex<usize>>,
}

struct Silence(Arc<Mutex<usize>>);

impl Events for Silence {
    fn next(&mut self, _: Instant) -> NextEvent {
        NextEvent::Nothing
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        *self.0.lock().unwrap() -= 1;
    }
}

impl Site for TestSite {
    fn reply(&self, request: &Request<'_>) -> Reply {
        match request.path {
            "/large" => Reply::new("200 OK", "text/plain", "", vec![Arc::clone(&self.large)]),
            "/events" => {
                *self.viewers.lock().unwrap() += 1;
                Reply::events("", Silence(Arc::clone(&self.viewers)))
            }
            _ => Reply::text("200 OK", "", "short\n"),
        }
    }

    fn sent(&self) {
        self.sent.fetch_add(1, Ordering::SeqCst);
    }
}

struct Running {
    address: SocketAddr,
    server: Server,
    sent: Arc<AtomicUsize>,
    viewers: Arc<Mutex<usize>>,
}

fn start() -> Running {
    let listener = listen("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sent, viewers) = (Arc::default(), Arc::default());
    let site = TestSite {
        large: vec![b'x'; LARGE].into(),
        sent: Arc::clone(&sent),
        viewers: Arc::clone(&viewers),
    };
    let server = Server::start("test", listener, site, || ()).unwrap();
    Running { address, server, sent, viewers }
}

impl Running {
    fn open(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> TcpStream {
        self.open(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }
}

/// What comes until the end.
fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn half_requests_hold_nothing() {
    let running = start();
    let half = || running.open("GET / HTTP/1.1\r\nHost: localhost\r\nX");
    let first = half();
    let crowd: Vec<_> = (0..PENDING_MAX).map(|_| half()).collect();
    assert!(rest(running.get("/")).ends_with("short\n"));
    // The first had to make place; the others have the time of all.
    assert_eq!(rest(first), "");
    assert_eq!(rest(crowd.into_iter().next_back().unwrap()), "");
}

#[test]
fn a_request_is_for_exactly_one_host_and_a_path() {
    let running = start();
    let status = |request: &str| {
        let text = rest(running.open(&format!("{request}\r\n\r\n")));
        text.get(9..12).unwrap_or("none").to_owned()
    };
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: localhost", "200"),
        ("GET / HTTP/1.0\r\nHost: [::1]:80", "200"),
        ("GET / HTTP/1.1", "403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost", "403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.test", "403"),
        ("GET / HTTP/1.1\r\nHost: evil.test", "403"),
        ("GET http://localhost/ HTTP/1.1\r\nHost: localhost", "400"),
        ("PRI * HTTP/2.0", "400"),
    ] {
        assert_eq!(status(request), expected, "{request}");
    }
}

#[test]
fn those_that_do_not_read_give_their_places_to_newcomers() {
    let running = start();
    let begun = Instant::now();
    let crowd: Vec<_> = (0..REPLIES_MAX)
        .map(|index| running.get(if index % 2 == 0 { "/events" } else { "/large" }))
        .collect();
    until("the viewers are there", || *running.viewers.lock().unwrap() == REPLIES_MAX / 2);
    // Short responses need no place.
    assert!(rest(running.get("/")).ends_with("short\n"));
    until("a newcomer gets a place", || {
        let large = rest(running.get("/large")).len() > LARGE;
        assert!(begun.elapsed() >= PATIENCE || !large, "no place was free before");
        large
    });
    drop(crowd);
    until("all have left", || *running.viewers.lock().unwrap() == 0);
}

#[test]
fn the_end_waits_for_replies_on_their_way_and_not_for_requests() {
    let running = start();
    let half = running.open("GET / HTTP/1.1\r\nHost: localhost\r\n");
    let mut large = running.get("/large");
    large.read_exact(&mut [0]).unwrap();
    let reading = thread::spawn(move || rest(large).len());
    running.server.finish(LONG);
    assert!(reading.join().unwrap() >= LARGE, "the whole of it");
    assert_eq!(rest(half), "");
    assert_eq!(running.sent.load(Ordering::SeqCst), 1);
}
