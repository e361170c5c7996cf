//! A byte stream: TCP, a Unix socket, or TLS over either.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::tls::facts::TlsFacts;

#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    TcpTls(Box<TlsStream<TcpStream>>),
    UnixTls(Box<TlsStream<UnixStream>>),
}

impl Stream {
    /// Reads into `buffer`; 0 bytes mean the end.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::TcpTls(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::UnixTls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            // Nearly always the kernel takes the whole request, and no waker is needed.
            Self::Tcp(stream) => match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Pin::new(stream).poll_write(cx, bytes)
                }
                written => Poll::Ready(written),
            },
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::TcpTls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::UnixTls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Writes what the kernel takes of several buffers, with one system call on a plain stream.
    #[inline]
    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::TcpTls(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::UnixTls(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
        }
    }

    /// Whether bytes go to the kernel as they are: if none were written, the peer has seen none.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    /// The protocol negotiated by ALPN.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => None,
            Self::TcpTls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::UnixTls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => None,
            Self::TcpTls(stream) => TlsFacts::of(stream.get_ref().1),
            Self::UnixTls(stream) => TlsFacts::of(stream.get_ref().1),
        }
    }

    pub(crate) fn is_early_data_accepted(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            Self::TcpTls(stream) => stream.get_ref().1.is_early_data_accepted(),
            Self::UnixTls(stream) => stream.get_ref().1.is_early_data_accepted(),
        }
    }

    /// Writes what TLS has buffered.
    #[inline]
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::TcpTls(stream) => Pin::new(stream).poll_flush(cx),
            Self::UnixTls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    /// The TCP socket; `None` for a Unix socket.
    pub(crate) fn tcp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            Self::TcpTls(stream) => Some(stream.get_ref().0.as_fd()),
            Self::Unix(_) | Self::UnixTls(_) => None,
        }
    }
}
