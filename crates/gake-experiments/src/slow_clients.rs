//! Clients that never complete a request.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use gake_session::Failure;

use crate::server::ExperimentServer;

/// The interval between two bytes of a slow client, and the polling interval of the lab's threads.
const BYTE_EVERY: Duration = Duration::from_millis(50);
/// The connect timeout; a full backlog delays connects.
const CONNECTING: Duration = Duration::from_secs(2);
/// How long the slow clients may take to get their threads.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that send a body a byte at a time until they are dropped.
#[derive(Debug)]
pub struct SlowClients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl SlowClients {
    /// Connects; a server of the user's may accept fewer than `count`.
    pub fn start(server: &ExperimentServer, path: &str, count: usize) -> Result<Self, Failure> {
        let mut clients = Self { stop: Arc::default(), threads: Vec::new() };
        let (address, path) = server.plain(path)?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000000\r\n\r\n"
        );
        let is_lab = server.figures().is_some();
        for _ in 0..count {
            let mut stream = match begin(&address, head.as_bytes()) {
                Ok(stream) => stream,
                // The user's server may be at its limit: it is busy with those that are connected.
                Err(_) if !is_lab && !clients.threads.is_empty() => break,
                Err(error) => {
                    let why = format!("a slow client cannot connect: {error}");
                    return Err(Failure::could_not(why));
                }
            };
            let stop = Arc::clone(&clients.stop);
            clients.threads.push(std::thread::spawn(move || {
                // The server may have ended.
                while !stop.load(Relaxed) && stream.write_all(b"x").is_ok() {
                    sleep(BYTE_EVERY);
                }
            }));
        }
        // They must have their threads before the load starts.
        let until = Instant::now() + PATIENCE;
        while is_lab && count > 0 && Instant::now() < until {
            if server.figure("gake_lab_threads_busy")? >= count as f64 {
                break;
            }
            sleep(BYTE_EVERY);
        }
        Ok(clients)
    }

    pub fn count(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for SlowClients {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has ended too.
            let _ = thread.join();
        }
    }
}

/// Connects to one of the addresses of a server and starts a request.
fn begin(address: &str, head: &[u8]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(mut stream) => return stream.write_all(head).map(|()| stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
