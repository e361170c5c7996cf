//! Batches over one connection, which is reopened after errors.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Carrier, DRAIN_MAX, FigureBatch, INTERRUPTED, LostFigures, WATCH};
use crate::spill::{Importance, Spill, SpillQueue};

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
    spill: Spill,
    waiting: SpillQueue,
    /// No attempt to connect before this.
    not_before: Instant,
    error: Option<String>,
}

impl<D: LineDelivery> Reconnecting<D> {
    pub(crate) fn new(delivery: D, spill: &Spill) -> Self {
        Self {
            delivery,
            connection: None,
            spill: spill.clone(),
            waiting: SpillQueue::new(WAITING_MAX, spill.clone()),
            not_before: Instant::now(),
            error: None,
        }
    }

    /// Delivers the queue as far as possible within `time`. A batch sent over a failed connection is
    /// sent again: duplicate figures with their instant are harmless. Returns whether anything was
    /// delivered.
    fn flush(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        let mut delivered = false;
        while !self.waiting.is_empty() && begun.elapsed() < time {
            if self.connection.is_none() {
                if Instant::now() < self.not_before {
                    break;
                }
                match self.delivery.open() {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        self.failed(&error);
                        break;
                    }
                }
            }
            let Some(connection) = &mut self.connection else { break };
            let Some(batch) = self.waiting.pop() else { break };
            if let Err(error) = self.delivery.deliver(connection, &batch) {
                self.waiting.put_back(batch);
                self.failed(&error);
                break;
            }
            delivered = true;
        }
        delivered
    }

    fn take(&mut self, batch: FigureBatch, importance: Importance) {
        self.waiting.push(batch, importance, self.error.as_deref());
        self.flush(TIMEOUT);
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
        self.take(batch, Importance::Figures);
    }

    fn carry_samples(&mut self, batch: FigureBatch) {
        self.take(batch, Importance::Samples);
    }

    fn finish(&mut self) {
        let begun = Instant::now();
        let mut end = begun + super::RETRY;
        loop {
            if self.flush(WATCH) {
                end = (Instant::now() + super::RETRY).min(begun + DRAIN_MAX);
            }
            if self.waiting.is_empty() || Instant::now() >= end {
                break;
            }
            if !self.spill.goes_on(self.delivery.address(), self.waiting.rows()) {
                return self.waiting.lose(INTERRUPTED);
            }
            if self.connection.is_none() {
                std::thread::sleep(PAUSE / 4);
            }
        }
        let why = self.error.take().unwrap_or_else(|| crate::spill::TOO_SLOW.to_owned());
        self.waiting.lose(&why);
    }

    fn lost(&self) -> LostFigures {
        self.waiting.lost.clone()
    }
}
