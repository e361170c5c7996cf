//! Batches over one connection, which is reopened after errors.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Carrier, FigureBatch, LostFigures};

/// Time limit for connecting and for writing.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
const WAITING_MAX: usize = 8 << 20;
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) trait LineDelivery: Send {
    type Connection: Send;

    fn address(&self) -> &str;

    /// Opens a connection within [`TIMEOUT`].
    fn open(&self) -> io::Result<Self::Connection>;

    /// Writes a batch. After an error the connection is discarded.
    fn deliver(&self, connection: &mut Self::Connection, batch: &FigureBatch) -> io::Result<()>;
}

pub(crate) struct LineCarrier(String);

impl LineCarrier {
    pub(crate) fn new(address: &str) -> Self {
        Self(address.to_owned())
    }
}

impl LineDelivery for LineCarrier {
    type Connection = TcpStream;

    fn address(&self) -> &str {
        &self.0
    }

    fn open(&self) -> io::Result<TcpStream> {
        connected(&self.0)
    }

    fn deliver(&self, stream: &mut TcpStream, batch: &FigureBatch) -> io::Result<()> {
        stream.write_all(&batch.bytes)
    }
}

pub(super) fn connected(address: &str) -> io::Result<TcpStream> {
    let first = address.to_socket_addrs()?.next();
    let address = first.ok_or_else(|| io::Error::other("the name has no address"))?;
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Keeps batches until a connection has taken them.
pub(crate) struct Reconnecting<D: LineDelivery> {
    delivery: D,
    connection: Option<D::Connection>,
    waiting: VecDeque<FigureBatch>,
    bytes: usize,
    /// No attempt to connect before this.
    not_before: Instant,
    error: Option<String>,
    lost: LostFigures,
}

impl<D: LineDelivery> Reconnecting<D> {
    pub(crate) fn new(delivery: D) -> Self {
        Self {
            delivery,
            connection: None,
            waiting: VecDeque::new(),
            bytes: 0,
            not_before: Instant::now(),
            error: None,
            lost: LostFigures::default(),
        }
    }

    /// Delivers the queue as far as possible. A batch sent over a failed connection is sent again:
    /// duplicate figures with their instant are harmless.
    fn flush(&mut self) {
        while let Some(batch) = self.waiting.front() {
            if self.connection.is_none() {
                if Instant::now() < self.not_before {
                    return;
                }
                match self.delivery.open() {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => return self.failed(&error),
                }
            }
            let Some(connection) = &mut self.connection else { return };
            if let Err(error) = self.delivery.deliver(connection, batch) {
                return self.failed(&error);
            }
            self.bytes -= batch.bytes.len();
            self.waiting.pop_front();
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.connection = None;
        self.not_before = Instant::now() + PAUSE;
        self.error = Some(error.to_string());
    }
}

impl<D: LineDelivery> Carrier for Reconnecting<D> {
    fn check(&mut self) -> Result<(), String> {
        let opened = self.delivery.open();
        let failed = |error| format!("{}: {error}", self.delivery.address());
        self.connection = Some(opened.map_err(failed)?);
        Ok(())
    }

    fn carry(&mut self, batch: FigureBatch) {
        if self.bytes + batch.bytes.len() > WAITING_MAX {
            let why =
                self.error.clone().unwrap_or_else(|| "the destination is too slow".to_owned());
            self.lost.add(batch.rows, why);
        } else {
            self.bytes += batch.bytes.len();
            self.waiting.push_back(batch);
        }
        self.flush();
    }

    fn finish(&mut self) {
        let end = Instant::now() + super::RETRY;
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

    fn lost(&self) -> LostFigures {
        self.lost.clone()
    }
}
