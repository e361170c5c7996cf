//! The UDP socket of one connection.
//!
//! It is connected to its peer, so that the kernel tells when nothing listens there, and each
//! connection has its own, as those of different users do: servers and balancers distribute
//! connections by address and port.

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

use super::receive::{Room, Waiting};

/// A connected UDP socket.
pub(crate) struct QuicSocket {
    io: UdpSocket,
    state: UdpSocketState,
    waiting: Mutex<Waiting>,
    is_refused: AtomicBool,
    refusal: Notify,
}

impl QuicSocket {
    /// A socket that is connected and does not block. The current runtime watches it.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Arc<Self>> {
        let state = UdpSocketState::new((&socket).into())?;
        let io = UdpSocket::from_std(socket)?;
        let (is_refused, refusal) = (AtomicBool::new(false), Notify::new());
        Ok(Arc::new(Self { io, state, waiting: Mutex::default(), is_refused, refusal }))
    }

    /// Waits until the peer's machine says that nothing listens there.
    pub(crate) async fn refused(&self) {
        while !self.is_refused.load(Relaxed) {
            self.refusal.notified().await;
        }
    }

    /// Takes note of an error. What could not be sent or read is a lost packet to QUIC.
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
            // An earlier datagram was refused. The call that tells so sends nothing itself.
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
        let mut room = Room::new(buffers, meta);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pass_on(&mut room);
        while room.filled() == 0 {
            ready!(self.io.poll_recv_ready(cx))?;
            let read = |messages: &mut [IoSliceMut<'_>], about: &mut [RecvMeta]| {
                self.state.recv((&self.io).into(), messages, about)
            };
            let receive = || waiting.receive(&mut room, read);
            if let Err(error) = self.io.try_io(Interest::READABLE, receive) {
                self.note(&error);
            }
        }
        Poll::Ready(Ok(room.filled()))
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
        // Joined ones are taken apart before quinn gets them.
        1
    }
}

impl fmt::Debug for QuicSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicSocket").field("io", &self.io).finish_non_exhaustive()
    }
}

/// Waits until the socket can be written. One connection alone writes to it.
#[derive(Debug)]
struct Writable(Arc<QuicSocket>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.io.poll_send_ready(cx)
    }
}
