//! The UDP socket of one connection.
//!
//! It is connected to its peer, so that the kernel reports a closed port. Each connection has its own
//! socket, as different users would: servers and balancers distribute connections by address and
//! port.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use super::receive::{DatagramBacklog, DatagramBuffers};

pub(crate) struct QuicSocket {
    io: UdpSocket,
    state: UdpSocketState,
    backlog: Mutex<DatagramBacklog>,
    is_refused: AtomicBool,
    refusal: Notify,
}

impl QuicSocket {
    /// Wraps a connected, non-blocking socket, registered with the current runtime.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Arc<Self>> {
        let state = UdpSocketState::new((&socket).into())?;
        let io = UdpSocket::from_std(socket)?;
        let (is_refused, refusal) = (AtomicBool::new(false), Notify::new());
        Ok(Arc::new(Self { io, state, backlog: Mutex::default(), is_refused, refusal }))
    }

    /// Waits until the kernel reports that the port is closed.
    pub(crate) async fn refused(&self) {
        while !self.is_refused.load(Relaxed) {
            self.refusal.notified().await;
        }
    }

    /// Records an error. To QUIC, a datagram that could not be sent or read is a lost packet.
    fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.is_refused.store(true, Relaxed);
            self.refusal.notify_one();
        }
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || self.state.try_send((&self.io).into(), transmit);
        let mut sent = self.io.try_io(Interest::WRITABLE, send);
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            // An earlier datagram was refused. The call that reports it sends nothing.
            self.note(error);
            sent = self.io.try_io(Interest::WRITABLE, send);
        }
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(error) => {
                self.note(&error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut buffers = DatagramBuffers::new(buffers, meta);
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        backlog.drain_into(&mut buffers);
        while buffers.filled() == 0 {
            ready!(self.io.poll_recv_ready(cx))?;
            let read = |messages: &mut [IoSliceMut<'_>], about: &mut [RecvMeta]| {
                self.state.recv((&self.io).into(), messages, about)
            };
            let receive = || backlog.receive(&mut buffers, read);
            if let Err(error) = self.io.try_io(Interest::READABLE, receive) {
                self.note(&error);
            }
        }
        Poll::Ready(Ok(buffers.filled()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        // Coalesced datagrams are split before quinn gets them.
        1
    }
}

impl fmt::Debug for QuicSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicSocket").field("io", &self.io).finish_non_exhaustive()
    }
}

/// Waits until the socket is writable. Only one connection writes to it.
#[derive(Debug)]
struct Writable(Arc<QuicSocket>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.io.poll_send_ready(cx)
    }
}
