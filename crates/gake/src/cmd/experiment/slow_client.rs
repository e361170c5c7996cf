//! `slow-client`: clients that send their bodies a byte at a time hold a thread each.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use gake_run::spec::Load;

use super::bench::{Bench, Stopped, limited, load_on};
use super::server::Server;
use super::theory;
use gake_session::Failure;

/// Threads of the server, and of the larger one.
const THREADS: u64 = 10;
const MORE_THREADS: u64 = 20;
/// Requests a second that are measured, which need three threads: 60/s × 50 ms.
const RATE: f64 = 60.0;
const SERVICE: Duration = Duration::from_millis(50);
/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(2);
/// Between two bytes of a slow client.
const BYTE_EVERY: Duration = Duration::from_millis(50);
/// How long the slow clients may take to get their threads.
const PATIENCE: Duration = Duration::from_secs(10);

/// Slow clients of a server whose threads are not known.
const OWN: [u64; 4] = [0, 10, 100, 400];

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return OWN.into_iter().try_for_each(|slow| own(bench, slow));
    }
    step(bench, THREADS, 0)?;
    step(bench, THREADS, THREADS / 2)?;
    step(bench, THREADS, THREADS)?;
    step(bench, MORE_THREADS, THREADS)
}

/// K slow clients leave T − K threads, which serve (T − K) / S.
fn step(bench: &mut Bench<'_>, threads: u64, slow: u64) -> Result<(), Stopped> {
    let name = format!("{slow} slow clients, {threads} threads");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(&format!("--threads {threads} --service const:50ms"))?;
    let slow_clients = SlowClients::start(&server, slow)?;
    let duration = bench.seconds(10.0, 3.0);
    let load = load_on(&server, "/fast", Load::rate(RATE, duration));
    let summary = bench.fire(&limited(load, LIMIT))?;
    drop(slow_clients);
    let (counts, sent) = (summary.run.tally.counts, (RATE * duration.as_secs_f64()) as u64);
    let capacity = (threads - slow) as f64 / SERVICE.as_secs_f64();
    let theory = format!("({threads} − {slow}) / 50 ms = {capacity:.0}/s, of {RATE:.0}/s asked");
    let expectations = if capacity > RATE {
        let mean = summary.run.tally.latency.response().mean();
        vec![
            theory::number("ok", counts.ok, sent * 99 / 100..=sent + 1, theory),
            theory::time("mean", mean, SERVICE..=SERVICE * 2, "50 ms: no queue".to_owned()),
            theory::no_cause(&summary),
        ]
    } else {
        vec![
            theory::number("ok", counts.ok, 0..=0, theory),
            theory::cause(&summary, "target_pool", &[]),
        ]
    };
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// The same on a server whose threads are not known.
fn own(bench: &mut Bench<'_>, slow: u64) -> Result<(), Stopped> {
    let name = format!("{slow} slow clients");
    if !bench.takes(&name, slow) {
        return Ok(());
    }
    let server = bench.server("")?;
    let slow_clients = SlowClients::start(&server, slow)?;
    let taken = slow_clients.threads.len() as u64;
    if taken < slow {
        bench.note(format!("{name}: the server took {taken} of them"));
    }
    let duration = bench.seconds(10.0, 3.0);
    let summary = bench.fire(&limited(load_on(&server, "", Load::rate(RATE, duration)), LIMIT))?;
    drop(slow_clients);
    bench.step(name, &server, summary, Vec::new());
    Ok(())
}

/// Connects to one of the addresses of a server; a full backlog delays it by `LIMIT` at most.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Clients that never end what they send.
struct SlowClients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl SlowClients {
    fn start(server: &Server, count: u64) -> Result<Self, Failure> {
        let mut clients = Self { stop: Arc::default(), threads: Vec::new() };
        let (address, path) = server.place("/fast")?;
        for _ in 0..count {
            let cannot =
                |error| Failure::could_not(format!("a slow client cannot connect: {error}"));
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000000\r\n\r\n"
            );
            let begun = connect(&address).and_then(|mut stream| {
                stream.write_all(head.as_bytes())?;
                Ok(stream)
            });
            let mut stream = match begun {
                Ok(stream) => stream,
                // A server of the user's that takes no more is busy with those that are in.
                Err(_) if !server.has_figures() && !clients.threads.is_empty() => break,
                Err(error) => return Err(cannot(error)),
            };
            let stop = Arc::clone(&clients.stop);
            clients.threads.push(std::thread::spawn(move || {
                // The server may have gone.
                while !stop.load(Relaxed) && stream.write_all(b"x").is_ok() {
                    sleep(BYTE_EVERY);
                }
            }));
        }
        // They have their threads before anybody else asks for one.
        let until = Instant::now() + PATIENCE;
        while count > 0 && server.has_figures() && Instant::now() < until {
            match server.figure("gake_lab_threads_busy")? {
                busy if busy >= count as f64 => break,
                _ => sleep(SERVICE),
            }
        }
        Ok(clients)
    }
}

impl Drop for SlowClients {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}
