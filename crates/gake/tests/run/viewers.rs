//! Ten viewers of the live page for as long as it takes: what the run holds is bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::*;

/// Viewers that read; one more asks for the events and never reads.
const READERS: usize = 9;

/// How often each of the late ones comes anew.
const VISIT: Duration = Duration::from_secs(5);

/// How long they watch, in seconds. `GAKE_VIEWERS=600` is the long form.
fn seconds() -> u64 {
    std::env::var("GAKE_VIEWERS").map_or(12, |seconds| seconds.parse().unwrap())
}

/// The resident set of a process, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    if status.contains("VmRSS:") { number_after(&status, "VmRSS:") } else { 0 }
}

fn follow(address: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    Some(stream)
}

/// A viewer's bytes, its largest event, and whether it saw the end.
#[derive(Default)]
struct Seen {
    bytes: AtomicU64,
    largest: AtomicU64,
    has_ended: AtomicBool,
}

/// Reads events for `time` at most, or until the end of the run; gives whether that came.
fn view(address: &str, time: Duration, seen: &Seen) -> bool {
    let Some(stream) = follow(address) else {
        thread::sleep(Duration::from_millis(50));
        return false;
    };
    let begun = Instant::now();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while begun.elapsed() < time && reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        seen.bytes.fetch_add(line.len() as u64, Relaxed);
        seen.largest.fetch_max(line.len() as u64, Relaxed);
        if line == b"event: end\n" {
            seen.has_ended.store(true, Relaxed);
            return true;
        }
        line.clear();
    }
    false
}

#[test]
fn ten_viewers_are_shown_a_run_in_bounded_memory() {
    let seconds = seconds();
    let lab = lab();
    let duration = format!("{seconds}s");
    let target = url(&lab, "/fast");
    let args = ["run", &target, "-r", "200", "-d", &duration, "-t", "1", "--web=127.0.0.1:0", "-q"];
    let mut child = gake(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let url = stderr
        .by_ref()
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("live page: http://").map(str::to_owned));
    let address = url.unwrap().trim_end_matches('/').to_owned();
    let rest = thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
    let hung = follow(&address);
    let seen = Seen::default();
    let mut sizes = Vec::new();
    let is_over = AtomicBool::new(false);
    let status = thread::scope(|scope| {
        for number in 0..READERS {
            let (address, seen, is_over) = (&address, &seen, &is_over);
            // One in three leaves and comes back, and gets the missed events.
            let time = if number % 3 == 0 { VISIT } else { Duration::MAX };
            scope.spawn(move || while !is_over.load(Relaxed) && !view(address, time, seen) {});
        }
        let begun = Instant::now();
        let end = begun + Duration::from_secs(seconds) + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > end {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            // Not while the report is made.
            if begun.elapsed() < Duration::from_secs(seconds) {
                sizes.push((resident(child.id()), seen.bytes.load(Relaxed)));
            }
            thread::sleep(Duration::from_millis(200));
        };
        is_over.store(true, Relaxed);
        status
    });
    assert!(status.is_some_and(|status| matches!(status.code(), Some(0 | 3))), "{status:?}");
    drop(hung);
    rest.join().unwrap().unwrap();
    assert!(seen.has_ended.load(Relaxed), "no viewer saw the end");
    // From when all have come.
    let half = sizes.len() / 2;
    let most = |sizes: &[(u64, u64)]| sizes.iter().map(|size| size.0).max().unwrap();
    let (early, late) = (most(&sizes[half / 2..half]), most(&sizes[half + half / 2..]));
    let sent = (sizes[sizes.len() - 1].1 - sizes[half].1) / 1_024;
    let largest = seen.largest.load(Relaxed);
    println!(
        "resident: {} KiB at first, {early} in the second quarter, {late} in the last; \
         {sent} KiB to {READERS} viewers in the second half, {largest} bytes in the largest event",
        sizes[0].0
    );
    // The run's own seconds take some, and the allocator keeps what threads have given back.
    assert!(
        late <= early + early / 10 + 8_192,
        "it grows: {early} KiB, then {late} KiB: {sizes:?}"
    );
    assert!(largest < 1 << 20, "{largest} bytes in an event");
    lab.shutdown();
}
