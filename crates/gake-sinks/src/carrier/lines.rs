//! Lines over one TCP connection that is opened again when it breaks.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Batch, Carrier, Lost};

/// How long opening a connection, and writing, may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that may wait.
const WAITING_MAX: usize = 8 << 20;
/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes lines to an address.
pub(crate) struct Lines {
    address: String,
    stream: Option<TcpStream>,
    waiting: VecDeque<Batch>,
    bytes: usize,
    /// No attempt to connect before.
    not_before: Instant,
    error: Option<String>,
    lost: Lost,
}

impl Lines {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            stream: None,
            waiting: VecDeque::new(),
            bytes: 0,
            not_before: Instant::now(),
            error: None,
            lost: Lost::default(),
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut addresses = self.address.to_socket_addrs()?;
        let first = addresses.next();
        let address = first.ok_or_else(|| io::Error::other("the name has no address"))?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// Writes what waits, as far as it goes. What a broken connection took is written again: a
    /// line that comes twice changes nothing.
    fn flush(&mut self) {
        while let Some(batch) = self.waiting.front() {
            if self.stream.is_none() {
                if Instant::now() < self.not_before {
                    return;
                }
                match self.connect() {
                    Ok(stream) => self.stream = Some(stream),
                    Err(error) => return self.failed(&error),
                }
            }
            let Some(stream) = &mut self.stream else { return };
            if let Err(error) = stream.write_all(&batch.bytes) {
                return self.failed(&error);
            }
            self.bytes -= batch.bytes.len();
            self.waiting.pop_front();
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.stream = None;
        self.not_before = Instant::now() + PAUSE;
        self.error = Some(error.to_string());
    }
}

impl Carrier for Lines {
    fn check(&mut self) -> Result<(), String> {
        let stream = self.connect().map_err(|error| format!("{}: {error}", self.address))?;
        self.stream = Some(stream);
        Ok(())
    }

    fn carry(&mut self, batch: Batch) {
        if self.bytes + batch.bytes.len() > WAITING_MAX {
            let why = self.error.clone().unwrap_or_else(|| "it is too slow".to_owned());
            self.lost.add(batch.rows, why);
        } else {
            self.bytes += batch.bytes.len();
            self.waiting.push_back(batch);
        }
        self.flush();
    }

    fn finish(&mut self) {
        let end = Instant::now() + crate::exporter::RETRY;
        self.flush();
        while !self.waiting.is_empty() && Instant::now() < end {
            std::thread::sleep(PAUSE / 4);
            self.flush();
        }
        let rows = self.waiting.drain(..).map(|batch| batch.rows).sum();
        if rows > 0 {
            self.lost.add(rows, self.error.clone().unwrap_or_default());
        }
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }
}
