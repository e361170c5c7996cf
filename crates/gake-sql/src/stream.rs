//! A connection to a database: bytes, bounded.

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

/// Bytes of a message at most: what is asked for takes a few hundred.
const MESSAGE_MAX: usize = 1 << 20;

/// Pause before another attempt at a Unix socket whose queue is full.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// A connection of either kind.
#[derive(Debug)]
pub(super) enum SqlStream {
    Tcp(BufReader<TcpStream>),
    Unix(BufReader<UnixStream>),
    Tls(Box<BufReader<TlsStream<TcpStream>>>),
}

impl SqlStream {
    pub(super) async fn open(dsn: &Dsn) -> Result<Self, String> {
        let opened = match &dsn.place {
            ServerAddress::Host(host, port) => {
                let opened = TcpStream::connect((host.as_str(), *port)).await;
                opened
                    .and_then(|tcp| tcp.set_nodelay(true).map(|()| Self::Tcp(BufReader::new(tcp))))
            }
            // Where its queue is full a TCP connection would wait. The caller limits the time.
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

    /// Goes on encrypted; the server has agreed to that.
    pub(super) async fn secure(self, dsn: &Dsn) -> Result<Self, String> {
        let (Self::Tcp(stream), ServerAddress::Host(host, _)) = (self, &dsn.place) else {
            return Err("only a TCP connection can be encrypted".to_owned());
        };
        // Whoever is between must not put an answer of his own before the encrypted ones.
        if !stream.buffer().is_empty() {
            return Err("it answers before the connection is encrypted".to_owned());
        }
        let config = config(&dsn.tls)?;
        let name = ServerName::try_from(host.clone())
            .map_err(|_| format!("{host:?} is not a name that a certificate can have"))?;
        let connected =
            TlsConnector::from(Arc::new(config)).connect(name, stream.into_inner()).await;
        let connected = connected.map_err(|error| format!("TLS: {error}"))?;
        Ok(Self::Tls(Box::new(BufReader::new(connected))))
    }

    /// Says goodbye if that needs no waiting; TLS would.
    pub(super) fn farewell(&self, bytes: &[u8]) {
        let _ = match self {
            Self::Tcp(stream) => stream.get_ref().try_write(bytes),
            Self::Unix(stream) => stream.get_ref().try_write(bytes),
            Self::Tls(_) => Ok(0),
        };
    }

    /// Whether somebody between could read what is sent.
    pub(super) fn is_open_to_listeners(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.write_all(bytes).await.map_err(lost)
    }

    /// The next `length` bytes.
    pub(super) async fn take(&mut self, length: usize) -> Result<Vec<u8>, String> {
        if length > MESSAGE_MAX {
            return Err(format!("it sends a message of {length} bytes"));
        }
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes).await.map_err(lost)?;
        Ok(bytes)
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
    // Databases speak no HTTP.
    config.alpn_protocols.clear();
    Ok(config)
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err has it")]
fn lost(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
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
