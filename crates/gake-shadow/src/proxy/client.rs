//! One client's connection: served until it ends, is too slow, or becomes a tunnel.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::client_request;
use super::direct::{self, Then};
use super::forwarded::Origin;
use super::http2;
use super::near::Near;
use super::opening::Opening;
use super::parts;
use super::shared::count;
use super::stream::Stream;
use super::upstream::Upstream;
use super::watch::Watch;
use super::worker::Worker;

/// A TLS handshake may take this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Once we have said our last word, the client may take this long to see it, and send this much
/// that nobody reads: a close with bytes unread is a reset, which takes away what was written.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

/// What the requests of one connection share.
pub(crate) struct Client {
    pub(crate) worker: Rc<Worker>,
    pub(crate) peer: SocketAddr,
    pub(crate) watch: Rc<Watch>,
    pub(crate) origin: RefCell<Origin>,
    /// The master's side, when the protocol has been switched.
    pub(crate) tunnel: RefCell<Option<Upstream>>,
    turn: Cell<Turn>,
}

/// Who has to do something next, and is to blame when it takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The client may ask, or not.
    Idle,
    /// The client must send more of its body, or take more of the answer.
    Client,
    /// The client broke off in the middle of its body, or sent one that is not valid.
    BrokenOff,
    /// The backend must take more of the request, or send more of the answer.
    Backend,
}

impl Client {
    /// Counts names of a request that were taken out for their characters.
    pub(crate) fn note_odd(&self, names: u64) {
        if names > 0 {
            self.worker.counters().odd_names.fetch_add(names, Relaxed);
        }
    }

    /// A piece of a request's body, or the fields behind it without what may not stand there.
    pub(crate) fn cleaned(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_trailers() {
            Ok(mut trailers) => {
                self.clean_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        }
    }

    /// Takes out of the fields behind a body what may not stand there.
    pub(crate) fn clean_trailers(&self, trailers: &mut HeaderMap) {
        self.note_odd(self.worker.shared.inbound.clean_trailers(trailers));
    }

    /// A request has come, its head or all of it; it is the backend's turn.
    pub(crate) fn asked(&self) {
        self.turn.set(Turn::Backend);
        self.watch.set(self.worker.patience.first_byte);
    }

    /// A piece of the request's body has come.
    pub(crate) fn sends(&self) {
        self.turn.set(Turn::Backend);
        self.watch.set(self.worker.patience.client);
    }

    /// The next piece of the request's body has not come yet.
    pub(crate) fn starves(&self) {
        self.turn.set(Turn::Client);
    }

    /// No more of the request's body will come.
    pub(crate) fn broke_off(&self) {
        self.turn.set(Turn::BrokenOff);
    }

    /// Whose turn it is.
    pub(crate) fn turn(&self) -> Turn {
        self.turn.get()
    }

    /// The answer's body begins to flow, as soon as the client takes it.
    pub(crate) fn body_begins(&self) {
        self.turn.set(Turn::Client);
        self.watch.set(self.worker.patience.idle);
    }

    /// A piece of the answer has come.
    pub(crate) fn body_moves(&self) {
        self.turn.set(Turn::Client);
        self.watch.extend();
    }

    /// The next piece of the answer has not come yet.
    pub(crate) fn body_waits(&self) {
        self.turn.set(Turn::Backend);
    }

    /// The answer is whole; the next request may come.
    pub(crate) fn answered(&self) {
        self.turn.set(Turn::Idle);
        self.worker.mirror.answered();
        self.watch.set(self.worker.patience.head);
    }

    /// The same client as one of several requests at once sees it.
    pub(super) fn stream(&self, watch: Rc<Watch>) -> Self {
        Self {
            worker: Rc::clone(&self.worker),
            peer: self.peer,
            watch,
            origin: self.origin.clone(),
            tunnel: RefCell::new(None),
            turn: Cell::new(Turn::Idle),
        }
    }
}

/// The stream as a codec sees it; every byte the client takes gives it more time.
pub(super) struct Watched {
    stream: Stream,
    /// Read before the codec was there.
    early: Bytes,
    client: Rc<Client>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(worker: Rc<Worker>, stream: TcpStream, peer: SocketAddr) {
    let counters = worker.shared.counters.get(worker.index);
    if let Some(counters) = counters {
        count(&counters.connections);
        count(&counters.open);
    }
    // In a scope of its own, so that the count follows the close.
    serve_open(Rc::clone(&worker), stream, peer).await;
    if let Some(counters) = counters {
        counters.open.fetch_sub(1, Relaxed);
    }
    worker.left();
}

async fn serve_open(worker: Rc<Worker>, stream: TcpStream, peer: SocketAddr) {
    let (stream, tls) = match &worker.acceptor {
        None => (Stream::Plain(stream), false),
        // Boxed, like all that is not there as long as the connection: thousands may wait.
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
            match Box::pin(handshake).await {
                Ok(Ok(stream)) => (Stream::Tls(Box::new(stream.into())), true),
                Ok(Err(_)) => return count(&worker.counters().malformed),
                Err(_) => return count(&worker.counters().client_timeouts),
            }
        }
    };
    let watch = Rc::new(worker.ticker.watch());
    watch.set(worker.patience.head);
    let client = Rc::new(Client {
        peer,
        watch,
        origin: RefCell::new(Origin::new(peer, worker.shared.config.listen.port(), tls)),
        tunnel: RefCell::new(None),
        turn: Cell::new(Turn::Idle),
        worker,
    });
    let mut opening = Opening::new(client.worker.shared.config.limits.head_bytes);
    let mut stream = stream;
    let mut is_first = true;
    let chosen = stream.has_chosen_http2();
    while chosen || opened(&client, &mut stream, &mut opening).await {
        if chosen || (is_first && http2::is_preface(opening.bytes())) {
            let early = opening.take();
            let io = Watched { stream, early, client: Rc::clone(&client) };
            return Box::pin(http2::serve(&client, io)).await;
        }
        is_first = false;
        let rules = client.worker.shared.rules();
        let read = client_request::read(opening.bytes(), rules, &mut client.origin.borrow_mut());
        let request = match read {
            Ok(request) => request,
            Err(rejection) => {
                let mut near = Near { client: &client, stream: &mut stream, opening: &mut opening };
                let then = Box::pin(near.reject(rejection)).await;
                return end(stream, then).await;
            }
        };
        opening.consume(request.length);
        client.note_odd(request.odd_names);
        if client.worker.passes_bytes {
            // Boxed for the same reason.
            match Box::pin(direct::serve(&client, &mut stream, &mut opening, request)).await {
                Then::Next => continue,
                then => return end(stream, then).await,
            }
        }
        // The same for all others.
        let serving = Box::pin(parts::serve(&client, stream, opening, request));
        let (then, rest, behind) = match serving.await {
            Some(after) => after,
            None => return,
        };
        if then != Then::Next {
            return end(rest, then).await;
        }
        (stream, opening) = (rest, behind);
    }
}

/// Ends a connection as the last request on it wants it.
async fn end(stream: Stream, then: Then) {
    match then {
        Then::Close => Box::pin(linger(stream)).await,
        // Dropped.
        Then::Next | Then::Gone => {}
    }
}

/// Waits for a request's head; `false` when the client has left, was too slow, or is to leave.
async fn opened(client: &Rc<Client>, stream: &mut Stream, opening: &mut Opening) -> bool {
    std::future::poll_fn(|cx| {
        client.watch.register(cx);
        if let Poll::Ready(came) = opening.poll(stream, cx) {
            return Poll::Ready(matches!(came, Ok(true)));
        }
        let leaves = client.worker.is_stopping() && opening.is_empty();
        if leaves || client.watch.fired() { Poll::Ready(false) } else { Poll::Pending }
    })
    .await
}

/// Says goodbye, and waits a moment for the client to hear it.
async fn linger(mut stream: Stream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut buffer = [0; 4096];
        let mut left = LINGER_BYTES;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    // A client that has left already ends it at once.
    let _ = tokio::time::timeout(LINGER, drain).await;
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let most = self.early.len().min(buffer.remaining());
            buffer.put_slice(&self.early.split_to(most));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Watched {
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.client.watch.extend();
        }
        written
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
