//! Byte streams of protocols other than HTTP: they take the same way to their target as requests.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use gake_core::clock::Clock;
use gake_core::record::{Exchange, Fault, Phase};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::Client;
use crate::client::dial::{DialedStream, secure};
use crate::client::meter::OpenGuard;
use crate::client::network::Network;
use crate::client::request::PreparedRequest;
use crate::net::deadline::Deadline;
use crate::net::stream::{Link, Stream};
use crate::tls::TlsError;
use crate::tls::stream_options::StreamTlsOptions;

/// An open connection in clear text or over TLS. Dropping it closes the connection.
pub struct ByteStream {
    stream: Stream,
    peer: Option<SocketAddr>,
    traffic: StreamTraffic,
}

/// The bytes of an open stream, which count once it is closed.
struct StreamTraffic {
    open: OpenGuard,
    bytes_in: u64,
    bytes_out: u64,
}

/// TLS settings that are ready for handshakes.
#[derive(Clone)]
pub struct StreamTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for StreamTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Network {
    /// The TLS settings of streams to a server whose certificate is for `host`.
    ///
    /// # Errors
    /// A certificate or key cannot be used.
    pub fn stream_tls(&self, host: &str, own: &StreamTlsOptions) -> Result<StreamTls, TlsError> {
        let mut config = self.tls_for_streams(own)?;
        // No ALPN: not HTTP.
        config.alpn_protocols.clear();
        let host = host.trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::ServerName(host.to_owned()))?;
        Ok(StreamTls { config: Arc::new(config), name })
    }
}

impl<C: Clock + Clone + 'static> Client<C> {
    /// Opens a connection to the origin of `target`, in clear text even to one of `https`.
    ///
    /// # Errors
    /// The fault in connecting.
    pub async fn open_stream(
        &self,
        target: &PreparedRequest,
        deadline: Deadline,
    ) -> Result<ByteStream, Fault> {
        let shared = self.shared();
        shared.alarms.watch(&shared.clock);
        let now = shared.clock.now();
        let alarm = shared.alarms.set(deadline.end, deadline.shortest(now));
        let mut exchange = Exchange::unfinished(now);
        let connecting =
            shared.dialer.connect(target.origin, now, &mut exchange, (None, None), true);
        let opened = alarm.before(pin!(connecting)).await;
        let DialedStream { stream, peer, open, .. } =
            opened.unwrap_or(Err(Fault::Timeout(Phase::Connect)))?;
        Ok(ByteStream { stream, peer, traffic: StreamTraffic { open, bytes_in: 0, bytes_out: 0 } })
    }
}

impl ByteStream {
    /// Starts TLS, which ends with this future's drop.
    ///
    /// # Errors
    /// The handshake fails, or the stream has TLS already.
    pub async fn secure(self, tls: &StreamTls) -> Result<Self, Fault> {
        let Self { stream: Stream::Plain(link), peer, traffic } = self else {
            return Err(Fault::Tls("the connection has TLS already"));
        };
        let stream = secure(&tls.name, &tls.config, link, |_| {}).await?;
        Ok(Self { stream, peer, traffic })
    }

    /// The server's address, if it is one of TCP.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The address of this end, if it is one of TCP in clear text.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        match &self.stream {
            Stream::Plain(Link::Tcp(stream)) => stream.local_addr().ok(),
            _ => None,
        }
    }

    /// Writes what can be written at once; nothing over TLS.
    pub fn try_write(&self, bytes: &[u8]) {
        let _ = match &self.stream {
            Stream::Plain(Link::Tcp(stream)) => stream.try_write(bytes),
            Stream::Plain(Link::Unix(stream)) => stream.try_write(bytes),
            Stream::Plain(Link::Proxy(_) | Link::Lent) | Stream::Tls(_) => Ok(0),
        };
    }

    /// Whether the bytes are encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.poll_read(cx, buffer);
        let count = buffer.filled().len() - before;
        self.traffic.bytes_in += count as u64;
        read
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.traffic.bytes_out += count as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_shutdown(cx)
    }
}

impl Drop for StreamTraffic {
    fn drop(&mut self) {
        self.open.meter().add_bytes(self.bytes_in, self.bytes_out);
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}
