//! Connections of modules with protocols of their own, opened as k6's dialer does: block lists,
//! `hosts` and `dns` apply, and their bytes count in `data_sent` and `data_received`.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use gake_core::record::Fault;
use gake_wire::fault::{PROXY_REFUSED, go_errno_text, go_tls_error};
use gake_wire::lookup::{self, LookupError};
use gake_wire::{
    ByteStream, Client, Deadline, HttpRequest, PreparedRequest, StreamTls, StreamTlsOptions,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::clock::UserClock;
use super::vu::Vu;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DialError {
    /// Go's message.
    pub message: String,
    /// Whether an option of the script forbids it.
    pub is_blocked: bool,
}

/// A connection whose bytes count as the user's.
#[derive(Debug)]
pub struct UserStream {
    stream: ByteStream,
    vu: Rc<Vu>,
}

/// A host and port whose addresses are known and not blocked.
#[derive(Debug)]
pub struct DialTarget {
    client: Client<UserClock>,
    prepared: PreparedRequest,
    host: String,
    port: u16,
    /// The addresses of the host.
    pub addresses: Vec<IpAddr>,
}

/// Opens a connection in clear text within `timeout`.
///
/// # Errors
/// When it is blocked or fails.
pub async fn dial(
    vu: &Rc<Vu>,
    host: &str,
    port: u16,
    timeout: Duration,
) -> Result<UserStream, DialError> {
    open(vu, &resolve(vu, host, port).await?, timeout).await
}

/// Resolves a host.
///
/// # Errors
/// When it is blocked or has no address.
pub async fn resolve(vu: &Rc<Vu>, host: &str, port: u16) -> Result<DialTarget, DialError> {
    // Unlike that of HTTP, this client takes no proxy from the environment.
    let Some(client) = vu.grpc.borrow().clone() else {
        return Err(failed("no connections outside of a run".to_owned()));
    };
    let host = host.trim_matches(['[', ']']);
    let blocked = &vu.test.settings().blocked;
    if let Some(reason) = blocked.host(host) {
        return Err(DialError { message: reason.log_message, is_blocked: true });
    }
    let address = joined(host, port);
    let request = HttpRequest::new("GET", format!("http://{address}/"));
    let prepared = client.prepare(&request).await;
    let prepared = prepared.map_err(|fault| failed(go_text(fault, host, &address)))?;
    let addresses = client.network().addresses(&prepared);
    if let Some(reason) = blocked.address(&addresses) {
        return Err(DialError { message: reason.log_message, is_blocked: true });
    }
    Ok(DialTarget { client, prepared, host: host.to_owned(), port, addresses })
}

/// Opens a connection in clear text to a resolved host within `timeout`.
///
/// # Errors
/// When it fails.
pub async fn open(
    vu: &Rc<Vu>,
    target: &DialTarget,
    timeout: Duration,
) -> Result<UserStream, DialError> {
    let DialTarget { client, prepared, host, port, addresses } = target;
    match client.open_stream(prepared, Deadline::within(vu.now(), timeout)).await {
        Ok(stream) => Ok(UserStream { stream, vu: Rc::clone(vu) }),
        Err(fault) => {
            let host_port = || joined(host, *port);
            let address =
                addresses.first().map_or_else(host_port, |ip| joined(&ip.to_string(), *port));
            Err(failed(go_text(fault, host, &address)))
        }
    }
}

/// Why an option of the script forbids connections to a host, if it does. For code that opens them by
/// itself; it looks at names, and at addresses that are given as such.
#[must_use]
pub fn is_blocked(vu: &Vu, host: &str) -> Option<String> {
    let blocked = &vu.test.settings().blocked;
    let address = || blocked.address(&[host.parse().ok()?]);
    blocked.host(host).or_else(address).map(|reason| reason.log_message)
}

/// The TLS settings of connections to `host`: the run's, changed by `own`.
///
/// # Errors
/// When a certificate or key cannot be used.
pub fn tls_settings(vu: &Vu, host: &str, own: &StreamTlsOptions) -> Result<StreamTls, String> {
    match &*vu.grpc.borrow() {
        Some(client) => client.network().stream_tls(host, own).map_err(|error| error.to_string()),
        None => Err("no connections outside of a run".to_owned()),
    }
}

impl UserStream {
    /// Starts TLS.
    ///
    /// # Errors
    /// Go's message for a failed handshake.
    pub async fn secure(self, tls: &StreamTls) -> Result<Self, String> {
        let Self { stream, vu } = self;
        match stream.secure(tls).await {
            Ok(stream) => Ok(Self { stream, vu }),
            Err(Fault::Tls(reason)) => Err(go_tls_error(reason)),
            Err(Fault::ConnectReset | Fault::ClosedEarly(_)) => Err("EOF".to_owned()),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// The connection itself.
    #[must_use]
    pub fn inner(&self) -> &ByteStream {
        &self.stream
    }
}

impl AsyncRead for UserStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.vu.count_traffic(0, (buffer.filled().len() - before) as u64);
        read
    }
}

impl AsyncWrite for UserStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.vu.count_traffic(count as u64, 0);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn failed(message: String) -> DialError {
    DialError { message, is_blocked: false }
}

/// `host:port`, as Go joins them.
fn joined(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// Go's message for a fault in connecting to `address` of a host.
#[must_use]
pub fn go_text(fault: Fault, host: &str, address: &str) -> String {
    match fault {
        Fault::ConnectRefused => format!("dial tcp {address}: connect: connection refused"),
        Fault::ConnectReset => format!("dial tcp {address}: connect: connection reset by peer"),
        Fault::Unreachable(errno) => {
            format!("dial tcp {address}: connect: {}", go_errno_text(errno))
        }
        Fault::ConnectTimeout | Fault::Timeout(_) => format!("dial tcp {address}: i/o timeout"),
        Fault::Dns => match lookup::error(host) {
            LookupError { is_not_found: true, .. } => format!("lookup {host}: no such host"),
            unknown => unknown.text,
        },
        Fault::Malformed(_) => format!("dial tcp: lookup {host}: no such host"),
        Fault::Tls(reason) => go_tls_error(reason),
        Fault::Proxy(PROXY_REFUSED) => "dial tcp: connect: connection refused".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_version_6_are_in_brackets() {
        assert_eq!(joined("::1", 6379), "[::1]:6379");
        assert_eq!(joined("127.0.0.1", 6379), "127.0.0.1:6379");
        let text = go_text(Fault::ConnectRefused, "::1", &joined("::1", 1));
        assert_eq!(text, "dial tcp [::1]:1: connect: connection refused");
    }
}
