//! The shadow proxy between sockets: an input is what a client says on one connection. Whatever it
//! says, the backends see requests in one framing, whole, and the shadow only such that the master
//! saw too.
//!
//! A hash of the input chooses whether it comes in one piece or two, and whether the client stays
//! for the first response before it closes its side.
#![no_main]

mod backend;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use backend::{Backend, Request};
use gake_shadow::config::{self, Config, Shadow};
use gake_shadow::{Category, Proxy, RunningProxy};
use libfuzzer_sys::fuzz_target;

/// Time enough for anything that must happen on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// How long a client waits for its first response.
const STAYS: Duration = Duration::from_millis(5);

struct Bench {
    proxy: RunningProxy,
    master: Backend,
    shadow: Backend,
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let (master, shadow) = (Backend::start("master"), Backend::start("shadow"));
        let place = |name, backend: &Backend| {
            config::Backend::new(name, &format!("http://{}", backend.addr)).expect("an origin")
        };
        let mut config = Config::new(place("master", &master));
        let mut copies = Shadow::new(place("shadow", &shadow));
        copies.methods = config::methods(&["all".to_owned()]).expect("all methods");
        config.shadows.push(copies);
        config.threads = 1;
        let proxy = Proxy::new(config).expect("sound settings").start().expect("a proxy");
        Bench { proxy, master, shadow }
    })
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Says it, closes the side that says, and reads to the end.
fn say(bench: &Bench, bytes: &[u8]) -> Vec<u8> {
    let choice = hash(bytes);
    let mut client = TcpStream::connect(bench.proxy.addr()).expect("a connection");
    client.set_nodelay(true).expect("no delay");
    let at = if choice & 1 == 0 { 0 } else { (choice >> 8) as usize % bytes.len() };
    // A proxy that has refused already takes no more.
    for piece in [&bytes[..at], &bytes[at..]] {
        let _ = client.write_all(piece);
    }
    let mut answers = vec![0; 4096];
    let mut first = 0;
    if choice & 2 == 0 {
        client.set_read_timeout(Some(STAYS)).expect("a time-out");
        first = client.read(&mut answers).unwrap_or(0);
    }
    answers.truncate(first);
    let _ = client.shutdown(Shutdown::Write);
    client.set_read_timeout(Some(LONG)).expect("a time-out");
    if let Err(error) = client.read_to_end(&mut answers) {
        let late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!late, "the connection is never closed");
    }
    answers
}

/// Waits until the client has left and every copy has its end.
fn settle(bench: &Bench) {
    let begun = Instant::now();
    loop {
        let state = &bench.proxy.control().shadows()[0];
        let ledger = &state.ledger;
        let at_rest = (ledger.in_flight, ledger.balance(), state.waiting) == (0, 0, 0);
        if at_rest && bench.proxy.control().stats().open == 0 {
            let sent = ledger.count(Category::Ok);
            assert_eq!((ledger.sent(), ledger.shed()), (sent, 0), "{ledger}");
            let seen = bench.shadow.seen();
            assert_eq!((seen.whole, seen.cut), (sent, 0), "copies seen whole and cut, and sent");
            return;
        }
        assert!(begun.elapsed() < LONG, "no rest: {ledger}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

fuzz_target!(|data: &[u8]| {
    if data.is_empty() {
        return;
    }
    let bench = bench();
    let answers = say(bench, data);
    let blank = data.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let is_http2 = data[blank..].starts_with(b"PRI * HTTP/2");
    let is_answer = is_http2 || answers.is_empty() || answers.starts_with(b"HTTP/1.");
    assert!(is_answer, "{}", answers.escape_ascii());
    settle(bench);
    let asked = bench.proxy.control().stats().requests;
    let copies = std::mem::take(&mut bench.shadow.seen().requests);
    let begun = Instant::now();
    // The master's thread may still have to read what a client left behind.
    while let Some(copy) = missing(&copies, &bench.master) {
        assert!(begun.elapsed() < LONG / 4, "the master never saw {copy:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut seen = bench.master.seen();
    assert!(seen.whole + seen.cut <= asked, "the master saw more than was asked");
    seen.requests.clear();
});

/// A copy that has no request of its own among the master's.
fn missing<'a>(copies: &'a [Request], master: &Backend) -> Option<&'a Request> {
    let seen = master.seen();
    let mut requests: Vec<&Request> = seen.requests.iter().collect();
    copies.iter().find(|copy| {
        let at = requests.iter().position(|request| request == copy);
        at.map(|at| requests.swap_remove(at)).is_none()
    })
}
