//! A byte stream: a link, or TLS over one. A link is TCP, a Unix socket, or TLS to a proxy.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::tls::facts::TlsFacts;

/// What carries the bytes of an origin.
#[derive(Debug)]
pub(crate) enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// TLS to a proxy.
    Proxy(Box<TlsStream<TcpStream>>),
    /// TCP that is lent to a fast lane: it can neither be read nor written.
    Lent,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Link),
    Tls(Box<TlsStream<Link>>),
}

impl Link {
    /// The TCP socket; `None` for a Unix socket.
    fn tcp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            Self::Unix(_) | Self::Lent => None,
            Self::Proxy(stream) => Some(stream.get_ref().0.as_fd()),
        }
    }
}

impl AsyncRead for Link {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Proxy(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Lent => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncWrite for Link {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            // Nearly always the kernel takes the whole request, and no waker is needed.
            Self::Tcp(stream) => match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Pin::new(stream).poll_write(cx, bytes)
                }
                written => Poll::Ready(written),
            },
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Proxy(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Lent => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::Proxy(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Self::Lent => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) | Self::Lent => Poll::Ready(Ok(())),
            Self::Proxy(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Proxy(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Lent => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
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
            Self::Plain(link) => Pin::new(link).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(link) => Pin::new(link).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
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
            Self::Plain(link) => Pin::new(link).poll_write_vectored(cx, buffers),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
        }
    }

    /// Writes what TLS has buffered.
    #[inline]
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(link) => Pin::new(link).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(link) => Pin::new(link).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    /// Reads without waiting, and without a waker; `None` where bytes of TLS itself may come at any
    /// time, such as session tickets.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        match self {
            Self::Plain(Link::Tcp(stream)) => Some(stream.try_read(buffer)),
            Self::Plain(Link::Unix(stream)) => Some(stream.try_read(buffer)),
            Self::Plain(Link::Proxy(_) | Link::Lent) | Self::Tls(_) => None,
        }
    }

    /// Takes a plain TCP socket out, and out of the runtime; `None` for other streams.
    pub(crate) fn lend(&mut self) -> Option<std::net::TcpStream> {
        let Self::Plain(link @ Link::Tcp(_)) = self else { return None };
        match std::mem::replace(link, Link::Lent) {
            Link::Tcp(stream) => stream.into_std().ok(),
            Link::Unix(_) | Link::Proxy(_) | Link::Lent => None,
        }
    }

    /// Puts a lent socket back, into the runtime. If that fails, the connection is broken.
    pub(crate) fn take_back(&mut self, socket: std::net::TcpStream) {
        if let (Self::Plain(link), Ok(stream)) = (self, TcpStream::from_std(socket)) {
            *link = Link::Tcp(stream);
        }
    }

    /// Whether bytes go to the kernel as they are: if none were written, the peer has seen none.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(Link::Tcp(_) | Link::Unix(_)))
    }

    /// The protocol negotiated by ALPN.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => TlsFacts::of(stream.get_ref().1),
        }
    }

    pub(crate) fn is_early_data_accepted(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.is_early_data_accepted(),
        }
    }

    /// The TCP socket; `None` for a Unix socket.
    pub(crate) fn tcp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(link) => link.tcp(),
            Self::Tls(stream) => stream.get_ref().0.tcp(),
        }
    }
}
