//! An open connection: reads with an idle time-out, writes one after the other, and its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use gake_k6::user::dial::{UserStream, open, resolve, tls_settings};
use gake_k6::user::vu::{OpenResource, Vu};
use gake_wire::StreamTlsOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::{Mutex, Notify};

use crate::later::{sleep, within};

/// Time limit of opening a connection.
const DIAL: Duration = Duration::from_secs(30);

/// Bytes of one read, as in the extension, whose reads are counted.
const READ_MAX: usize = 4096;

/// What a read came to.
pub(super) enum ReadEnd {
    Data(Vec<u8>),
    /// Nothing came within the idle time-out.
    Timeout,
    /// The peer ended the connection, or this end did.
    End,
    Failed(String),
}

pub(super) struct TcpConnection {
    vu: Rc<Vu>,
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    reader: Mutex<Option<ReadHalf<UserStream>>>,
    writer: Mutex<Option<WriteHalf<UserStream>>>,
    timeout: Cell<Option<Duration>>,
    is_closed: Cell<bool>,
    /// Wakes a read and writes when the time-out changes or the connection is closed.
    changed: Notify,
    ready: RefCell<Vec<u8>>,
}

impl TcpConnection {
    /// Connects; `times` gets how long the lookup and the connection took.
    pub(super) async fn open(
        vu: &Rc<Vu>,
        (host, port, is_tls): (&str, u16, bool),
        times: &mut (Option<u64>, Option<u64>),
    ) -> Result<Rc<Self>, String> {
        let begun = vu.now();
        let target = resolve(vu, host, port).await;
        let resolved = vu.now();
        times.0 = Some(resolved.saturating_sub(begun));
        let target = target.map_err(|error| error.message)?;
        let opened = async {
            let stream = open(vu, &target, DIAL).await.map_err(|error| error.message)?;
            let (local, peer) = (stream.inner().local(), stream.inner().peer());
            if !is_tls {
                return Ok((stream, local, peer));
            }
            let failed = |why: String| format!("TLS handshake failed: {why}");
            let tls = tls_settings(vu, host, &StreamTlsOptions::default()).map_err(failed)?;
            let stream = within(vu, DIAL, stream.secure(&tls)).await;
            let stream = stream.unwrap_or_else(|| Err("i/o timeout".to_owned()));
            Ok::<_, String>((stream.map_err(failed)?, local, peer))
        };
        let opened = opened.await;
        times.1 = Some(vu.now().saturating_sub(resolved));
        let (stream, local, peer) = opened?;
        let (reader, writer) = split(stream);
        let connection = Rc::new(Self {
            vu: Rc::clone(vu),
            local,
            peer,
            reader: Mutex::new(Some(reader)),
            writer: Mutex::new(Some(writer)),
            timeout: Cell::default(),
            is_closed: Cell::default(),
            changed: Notify::new(),
            ready: RefCell::new(vec![0; READ_MAX]),
        });
        let weak = Rc::downgrade(&connection);
        vu.register_open(weak);
        Ok(connection)
    }

    /// Sets the idle time-out; a read that waits begins to wait anew.
    pub(super) fn set_timeout(&self, timeout: Option<Duration>) {
        self.timeout.set(timeout);
        self.changed.notify_waiters();
    }

    /// Reads what comes first.
    pub(super) async fn read(&self) -> ReadEnd {
        let mut reader = self.reader.lock().await;
        let mut buffer = self.ready.take();
        buffer.resize(READ_MAX, 0);
        let end = loop {
            let Some(stream) = reader.as_mut().filter(|_| !self.is_closed.get()) else {
                break ReadEnd::End;
            };
            let pause = async {
                match self.timeout.get() {
                    Some(timeout) => sleep(&self.vu, timeout).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                read = stream.read(&mut buffer) => break match read {
                    Ok(0) => ReadEnd::End,
                    Ok(count) => ReadEnd::Data(buffer[..count].to_vec()),
                    // A server that leaves out the last message of TLS.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ReadEnd::End,
                    Err(error) => ReadEnd::Failed(self.go_text("read", &error)),
                },
                () = pause => break ReadEnd::Timeout,
            }
        };
        self.ready.replace(buffer);
        if self.is_closed.get() {
            *reader = None;
        }
        end
    }

    /// Writes bytes after the bytes of earlier calls: how many were written, and why not all.
    pub(super) async fn write(&self, bytes: &[u8]) -> (usize, Option<String>) {
        let mut writer = self.writer.lock().await;
        let mut written = 0;
        let why = loop {
            let Some(stream) = writer.as_mut().filter(|_| !self.is_closed.get()) else {
                break Some("use of closed network connection".to_owned());
            };
            if written == bytes.len() {
                break stream.flush().await.err().map(|error| self.go_text("write", &error));
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                count = stream.write(&bytes[written..]) => match count {
                    Ok(0) => break Some("write returned 0 bytes written".to_owned()),
                    Ok(count) => written += count,
                    Err(error) => break Some(self.go_text("write", &error)),
                },
            }
        };
        if self.is_closed.get() {
            *writer = None;
        }
        (written, why.map(|why| format!("failed to write data after {written} bytes: {why}")))
    }

    /// Ends the connection; reads and writes end, too.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.changed.notify_waiters();
        // One that is in use is dropped by its user.
        if let Ok(mut reader) = self.reader.try_lock() {
            *reader = None;
        }
        if let Ok(mut writer) = self.writer.try_lock() {
            *writer = None;
        }
    }

    /// An error of the system in Go's words.
    fn go_text(&self, call: &str, error: &io::Error) -> String {
        let why = match error.kind() {
            io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
            io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
            _ => return error.to_string(),
        };
        let shown =
            |address: Option<SocketAddr>| address.map_or_else(String::new, |ip| ip.to_string());
        format!("{call} tcp {}->{}: {call}: {why}", shown(self.local), shown(self.peer))
    }
}

impl OpenResource for TcpConnection {
    fn end(&self) {
        self.close();
    }
}
