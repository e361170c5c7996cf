//! Connections of one thread to a backend that speaks HTTP/2: many requests share each.

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
use crate::proxy::policy::headers::strip_for_http2;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::target::BackendTarget;

/// Requests at once on a connection, at most.
const STREAMS: usize = 64;
/// Bytes of an answer that may come before they are passed on.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all answers of a connection: no slow client keeps the others from theirs.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32;
/// Bytes of a request that wait for the backend.
const SEND_BUFFER: usize = 64 << 10;
/// Bytes of the head of an answer.
const HEAD_BYTES: u32 = 128 << 10;
/// Streams of ours that were reset and are remembered: those of clients that left, and of answers
/// that were cut.
const RESET_STREAMS: usize = 1_024;

/// The connections.
pub(crate) struct SharedStreams {
    connections: RefCell<Vec<SharedConnection>>,
    /// Ticks after which an idle connection is not trusted any more.
    keep: u64,
}

struct SharedConnection {
    sender: SendRequest<Bytes>,
    state: Rc<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    open: Cell<usize>,
    /// What the backend allows.
    most: Cell<usize>,
    /// The tick of its last use.
    since: Cell<u64>,
    /// A request on it was not answered in time: it may have died in silence, and takes no other.
    is_suspect: Cell<bool>,
    intakes: Intakes,
}

/// A lease for one request.
pub(crate) struct StreamLease {
    sender: SendRequest<Bytes>,
    state: Rc<ConnectionState>,
    /// Whether the connection has been used before: then the backend may close it just as we ask.
    pub(crate) used: bool,
}

/// A request that was not begun.
pub(crate) struct UnsentRequest<B> {
    pub(crate) error: h2::Error,
    /// `None` when it can never be sent.
    pub(crate) request: Option<Box<Request<B>>>,
}

/// A request under way, until the head of its answer has come.
pub(crate) struct PendingResponse<B> {
    response: Option<StreamBody>,
    /// What is left of the request.
    upload: Option<Outflow<B>>,
}

impl SharedStreams {
    pub(crate) fn new(keep: u64) -> Self {
        Self { connections: RefCell::default(), keep }
    }

    /// A lease on a connection that is open; `now` is the present tick.
    pub(crate) fn take(&self, now: u64) -> Option<StreamLease> {
        let mut connections = self.connections.borrow_mut();
        connections.retain_mut(|shared| {
            let rests = shared.state.open.get() == 0;
            let is_old = rests && now.saturating_sub(shared.state.since.get()) > self.keep;
            !is_old && !shared.state.is_suspect.get() && is_open(&mut shared.sender).is_ok()
        });
        let shared =
            connections.iter().find(|shared| shared.state.open.get() < shared.state.most.get())?;
        shared.state.since.set(now);
        Some(StreamLease::new(&shared.sender, &shared.state, true))
    }

    /// A lease on a new connection, which others may share from now on.
    pub(crate) async fn open(
        &self,
        stream: SocketStream,
        now: u64,
    ) -> Result<StreamLease, h2::Error> {
        let room = ReadBudget::new();
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
            .handshake(BudgetedStream::new(stream, &room))
            .await?;
        let state = Rc::new(ConnectionState {
            open: Cell::new(0),
            most: Cell::new(STREAMS),
            since: Cell::new(now),
            is_suspect: Cell::new(false),
            intakes: Intakes::default(),
        });
        tokio::task::spawn_local(run(connection, room, Rc::clone(&state)));
        let lease = StreamLease::new(&sender, &state, false);
        self.connections.borrow_mut().push(SharedConnection { sender, state });
        Ok(lease)
    }
}

/// Reads and writes a connection to its end.
async fn run(
    mut connection: Connection<BudgetedStream<SocketStream>, Bytes>,
    room: ReadBudget,
    state: Rc<ConnectionState>,
) {
    poll_fn(|cx| {
        // An error is told to the requests.
        let ended = Pin::new(&mut connection).poll(cx);
        state.most.set(connection.max_concurrent_send_streams().min(STREAMS));
        state.intakes.take_in();
        if room.renew() {
            cx.waker().wake_by_ref();
        }
        ended.map(drop)
    })
    .await;
    // Who still waits is told by this.
    drop(connection);
    state.intakes.take_in();
}

/// Whether a connection takes requests.
fn is_open(sender: &mut SendRequest<Bytes>) -> Result<(), h2::Error> {
    match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => ready,
        // It waits for room that an earlier request takes.
        Poll::Pending => Ok(()),
    }
}

impl StreamLease {
    fn new(sender: &SendRequest<Bytes>, state: &Rc<ConnectionState>, used: bool) -> Self {
        state.open.set(state.open.get() + 1);
        Self { sender: sender.clone(), state: Rc::clone(state), used }
    }

    /// Sends a request; its body follows while the answer is awaited, and beside the answer if need
    /// be.
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

    /// A request was not answered in time: its connection takes no other.
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

/// A request as HTTP/2 says it: the authority in place of `Host`, and no framing of HTTP/1.1.
///
/// # Errors
/// When its host or target cannot be said in HTTP/2.
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
    let bad = Fault::Malformed("the request cannot be said in HTTP/2");
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| bad)?;
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Ok(request)
}
