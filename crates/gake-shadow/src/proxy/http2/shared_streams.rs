//! One thread's HTTP/2 connections to a backend, each shared by many requests.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::{Authority, Parts, Scheme};
use http::{Method, Request, Response, Uri, Version};
use http_body::Body;

use crate::message::head::RequestHead;
use crate::proxy::http2::intake::{Intakes, StreamBody};
use crate::proxy::http2::outflow::Outflow;
use crate::proxy::http2::read_budget::{BudgetedStream, CODEC_BUDGET, ReadBudget};
use crate::proxy::http2::status_watch::{ExpectedHeads, StatusWatch};
use crate::proxy::policy::headers::strip_for_http2;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::target::BackendTarget;

/// Concurrent requests of a connection.
const STREAMS: usize = 64;
/// Flow-control window of a response's body.
const STREAM_WINDOW: u32 = 256 << 10;
/// Large enough for all streams, so that slow clients do not block others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32;
/// Bytes of a request buffered for the backend.
const SEND_BUFFER: usize = 64 << 10;
/// Bytes of a response's head.
const HEAD_BYTES: u32 = 128 << 10;
/// Reset streams that the codec remembers: of disconnected clients and truncated responses.
const RESET_STREAMS: usize = 1_024;

pub(crate) struct SharedStreams {
    connections: RefCell<Vec<SharedConnection>>,
    /// Ticks after which an idle connection is discarded.
    keep: u64,
}

struct SharedConnection {
    sender: SendRequest<Bytes>,
    state: Rc<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    open: Cell<usize>,
    /// Concurrent streams that the backend allows.
    most: Cell<usize>,
    /// The tick of its last use.
    since: Cell<u64>,
    /// A request on it timed out: the connection may be dead, and gets no further requests.
    is_suspect: Cell<bool>,
    intakes: Intakes,
}

/// The right to send one request.
pub(crate) struct StreamLease {
    sender: SendRequest<Bytes>,
    state: Rc<ConnectionState>,
    /// Whether the connection has been used: then the backend may close it concurrently.
    pub(crate) used: bool,
}

/// A request that could not be started.
pub(crate) struct UnsentRequest<B> {
    pub(crate) error: h2::Error,
    /// `None` if it can never be sent.
    pub(crate) request: Option<Box<Request<B>>>,
}

/// A request that waits for its response's head.
pub(crate) struct PendingResponse<B> {
    response: Option<StreamBody>,
    /// The rest of the upload.
    upload: Option<Outflow<B>>,
}

impl SharedStreams {
    pub(crate) fn new(keep: u64) -> Self {
        Self { connections: RefCell::default(), keep }
    }

    /// A lease on an open connection; `now` is the current tick.
    pub(crate) fn take(&self, now: u64) -> Option<StreamLease> {
        let mut connections = self.connections.borrow_mut();
        connections.retain_mut(|shared| {
            let is_idle = shared.state.open.get() == 0;
            let is_expired = is_idle && now.saturating_sub(shared.state.since.get()) > self.keep;
            !is_expired && !shared.state.is_suspect.get() && is_open(&mut shared.sender).is_ok()
        });
        let shared =
            connections.iter().find(|shared| shared.state.open.get() < shared.state.most.get())?;
        shared.state.since.set(now);
        Some(StreamLease::new(&shared.sender, &shared.state, true))
    }

    /// A lease on a new connection, which other requests may then share.
    pub(crate) async fn open(
        &self,
        stream: SocketStream,
        now: u64,
    ) -> Result<StreamLease, h2::Error> {
        let (room, heads) = (ReadBudget::new(), ExpectedHeads::default());
        let watch = StatusWatch::new(&heads);
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_max_send_streams(STREAMS)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BUFFER)
            .max_header_list_size(HEAD_BYTES)
            .max_concurrent_reset_streams(RESET_STREAMS)
            .max_local_error_reset_streams(None)
            .data_frame_budget(CODEC_BUDGET)
            .handshake(BudgetedStream::watched(stream, &room, watch))
            .await?;
        let state = Rc::new(ConnectionState {
            open: Cell::new(0),
            most: Cell::new(STREAMS),
            since: Cell::new(now),
            is_suspect: Cell::new(false),
            intakes: Intakes::watched(heads),
        });
        tokio::task::spawn_local(run(connection, room, Rc::clone(&state)));
        let lease = StreamLease::new(&sender, &state, false);
        self.connections.borrow_mut().push(SharedConnection { sender, state });
        Ok(lease)
    }
}

/// Drives a connection to its end.
async fn run(
    mut connection: Connection<BudgetedStream<SocketStream>, Bytes>,
    room: ReadBudget,
    state: Rc<ConnectionState>,
) {
    poll_fn(|cx| {
        // An error also reaches the requests.
        let ended = Pin::new(&mut connection).poll(cx);
        state.most.set(connection.max_concurrent_send_streams().min(STREAMS));
        state.intakes.take_in();
        if room.renew() {
            cx.waker().wake_by_ref();
        }
        ended.map(drop)
    })
    .await;
    // This fails the pending requests.
    drop(connection);
    state.intakes.take_in();
}

/// Whether a connection accepts requests.
fn is_open(sender: &mut SendRequest<Bytes>) -> Result<(), h2::Error> {
    match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => ready,
        // Waiting for an earlier request to be sent.
        Poll::Pending => Ok(()),
    }
}

impl StreamLease {
    fn new(sender: &SendRequest<Bytes>, state: &Rc<ConnectionState>, used: bool) -> Self {
        state.open.set(state.open.get() + 1);
        Self { sender: sender.clone(), state: Rc::clone(state), used }
    }

    /// Sends a request. The body is uploaded while the response is pending, and, if necessary, while
    /// it is received.
    pub(crate) fn ask<B>(
        &mut self,
        request: Request<B>,
    ) -> Result<PendingResponse<B>, UnsentRequest<B>>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
    {
        if let Err(error) = is_open(&mut self.sender) {
            return Err(UnsentRequest { error, request: Some(Box::new(request)) });
        }
        let (head, body) = request.into_parts();
        let is_whole = body.is_end_stream();
        let sent = self.sender.send_request(Request::from_parts(head, ()), is_whole);
        let (response, to) = sent.map_err(|error| UnsentRequest { error, request: None })?;
        let upload = (!is_whole).then(|| Outflow::new(to, body, Reason::CANCEL));
        Ok(PendingResponse { response: Some(self.state.intakes.response(response)), upload })
    }

    /// Marks the connection after a timeout, so that it gets no further requests.
    pub(crate) fn mark_suspect(&self) {
        self.state.is_suspect.set(true);
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        self.state.open.set(self.state.open.get() - 1);
    }
}

impl<B: Body<Data = Bytes> + Unpin + 'static> Future for PendingResponse<B> {
    type Output = Result<Response<StreamBody>, h2::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(upload) = &mut this.upload
            && Pin::new(upload).poll(cx).is_ready()
        {
            this.upload = None;
        }
        let Some(response) = &mut this.response else { return Poll::Pending };
        let head = ready!(response.poll_head(cx))?;
        let Some(mut response) = this.response.take() else { return Poll::Pending };
        if let Some(upload) = this.upload.take() {
            response = response.with_upload(tokio::task::spawn_local(upload));
        }
        Poll::Ready(Ok(head.map(|()| response)))
    }
}

/// Converts a request to HTTP/2: with an authority in place of `Host`, and without framing headers.
///
/// # Errors
/// When its host or target cannot be expressed in HTTP/2.
pub(crate) fn request<B: Body>(
    head: &RequestHead,
    to: &BackendTarget,
    body: B,
) -> Result<Request<B>, Fault> {
    let (method, mut headers) = (head.method().clone(), head.map());
    let host = headers.remove(HOST).filter(|host| !host.is_empty());
    let host = host.unwrap_or_else(|| to.own_host.clone());
    strip_for_http2(&mut headers);
    let has_meaning = !matches!(method, Method::GET | Method::HEAD | Method::DELETE);
    if let Some(length) = body.size_hint().exact()
        && (length > 0 || has_meaning)
    {
        headers.entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    let mut parts = Parts::default();
    parts.scheme = Some(if to.backend.is_tls() { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Authority::try_from(host.as_bytes()).ok();
    parts.path_and_query = head.target().parse().ok();
    let bad = Fault::Malformed("the request cannot be expressed in HTTP/2");
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| bad)?;
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Ok(request)
}
