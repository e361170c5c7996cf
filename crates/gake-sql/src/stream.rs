//! The byte stream to a database.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use gake_wire::{Protocol, TlsOptions};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::dsn::{Dsn, ServerAddress, TlsMode};

/// Maximum length of a message, in bytes; usual ones have a few hundred.
const MESSAGE_MAX: usize = 1 << 20;

/// Delay before retrying a Unix socket with a full backlog.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// The bytes to and from a database: TCP, a Unix socket, TLS, or a connection of the caller's.
pub trait SqlTransport: AsyncRead + AsyncWrite + Unpin + Sized {
    /// Starts TLS, which the server has agreed to.
    fn secure(self, dsn: &Dsn) -> impl Future<Output = Result<Self, String>>;

    /// Sends the goodbye if that does not block; not over TLS.
    fn farewell(&self, bytes: &[u8]);

    /// Whether the stream can be eavesdropped.
    fn is_open_to_listeners(&self) -> bool;

    /// Whether the server has closed an idle connection.
    fn has_ended(&mut self) -> bool {
        false
    }

    /// Writes all bytes.
    fn send(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), String>> {
        async move {
            self.write_all(bytes).await.map_err(lost)?;
            self.flush().await.map_err(lost)
        }
    }

    /// The next `length` bytes of a message, which has at most 1 MiB.
    fn take_bytes(&mut self, length: usize) -> impl Future<Output = Result<Vec<u8>, String>> {
        async move {
            if length > MESSAGE_MAX {
                return Err(format!(
                    "the server sent a message of {length} bytes, over the limit of {MESSAGE_MAX}"
                ));
            }
            self.take_unbounded(length).await
        }
    }

    /// The next `length` bytes, for which the caller has room.
    fn take_unbounded(&mut self, length: usize) -> impl Future<Output = Result<Vec<u8>, String>> {
        async move {
            let mut bytes = vec![0; length];
            self.read_exact(&mut bytes).await.map_err(lost)?;
            Ok(bytes)
        }
    }
}

/// A TCP, Unix or TLS stream.
#[derive(Debug)]
pub enum SqlStream {
    /// TCP.
    Tcp(BufReader<TcpStream>),
    /// A Unix socket.
    Unix(BufReader<UnixStream>),
    /// TLS over TCP.
    Tls(Box<BufReader<TlsStream<TcpStream>>>),
}

impl SqlStream {
    pub(super) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let opened = match &dsn.address {
            ServerAddress::Host(host, port) => {
                let opened = TcpStream::connect((host.as_str(), *port)).await;
                opened
                    .and_then(|tcp| tcp.set_nodelay(true).map(|()| Self::Tcp(BufReader::new(tcp))))
            }
            // Unlike TCP, connecting fails if the backlog is full. The caller has a time-out.
            ServerAddress::Socket(path) => loop {
                match UnixStream::connect(path).await {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::time::sleep(QUEUE_FULL).await;
                    }
                    opened => break opened.map(|unix| Self::Unix(BufReader::new(unix))),
                }
            },
        };
        opened.map_err(|error| format!("no connection: {error}"))
    }
}

impl SqlTransport for SqlStream {
    async fn secure(self, dsn: &Dsn) -> Result<Self, String> {
        let (Self::Tcp(stream), ServerAddress::Host(host, _)) = (self, &dsn.address) else {
            return Err("only a TCP connection can be encrypted".to_owned());
        };
        // Unencrypted bytes could have been injected.
        if !stream.buffer().is_empty() {
            return Err("the server sent data before TLS".to_owned());
        }
        let config = config(&dsn.tls)?;
        let name = ServerName::try_from(host.clone())
            .map_err(|_| format!("{host:?} is not a name that a certificate can have"))?;
        let connected =
            TlsConnector::from(Arc::new(config)).connect(name, stream.into_inner()).await;
        let connected = connected.map_err(|error| format!("TLS: {error}"))?;
        Ok(Self::Tls(Box::new(BufReader::new(connected))))
    }

    fn farewell(&self, bytes: &[u8]) {
        let _ = match self {
            Self::Tcp(stream) => stream.get_ref().try_write(bytes),
            Self::Unix(stream) => stream.get_ref().try_write(bytes),
            Self::Tls(_) => Ok(0),
        };
    }

    fn is_open_to_listeners(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

fn config(tls: &TlsMode) -> Result<ClientConfig, String> {
    let mut options = TlsOptions::default();
    match tls {
        TlsMode::Verified(roots) => options.cacert.extend(roots.clone()),
        TlsMode::Offered | TlsMode::Off | TlsMode::Required => options.insecure = true,
    }
    let config = options.config(Protocol::Http1).map_err(|error| error.to_string())?;
    let mut config = Arc::unwrap_or_clone(config);
    // No ALPN: not HTTP.
    config.alpn_protocols.clear();
    Ok(config)
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err has it")]
fn lost(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the connection was lost: {error}"),
    }
}

impl AsyncRead for SqlStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for SqlStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
