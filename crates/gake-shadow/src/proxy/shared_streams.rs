//! Connections of one thread to a backend that speaks HTTP/2: many requests share each.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use gake_core::record::Fault;
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, Parts, Scheme};
use http::{HeaderMap, Method, Request, Uri, Version};
use http_body::Body;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;

use super::stream::Stream;
use super::target::Target;

/// Requests at once on a connection, at most. The codec ends a connection on which about 100 small
/// pieces of answers wait, and each answer of gRPC has one.
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
pub(crate) struct SharedStreams<B> {
    lines: RefCell<Vec<Line<B>>>,
    /// Ticks after which an idle connection is not trusted any more.
    keep: u64,
}

struct Line<B> {
    sender: SendRequest<B>,
    state: Rc<State>,
}

#[derive(Debug)]
struct State {
    open: Cell<usize>,
    /// What the backend allows.
    most: Cell<usize>,
    /// The tick of its last use.
    since: Cell<u64>,
    /// A request on it was not answered in time: it may have died in silence, and takes no other.
    is_doubted: Cell<bool>,
}

/// Room for one request.
pub(crate) struct Place<B> {
    pub(crate) sender: SendRequest<B>,
    state: Rc<State>,
    /// Whether the connection has been used before: then the backend may close it just as we ask.
    pub(crate) used: bool,
}

impl<B> SharedStreams<B> {
    pub(crate) fn new(keep: u64) -> Self {
        Self { lines: RefCell::default(), keep }
    }

    /// Room on a connection that is open; `now` is the present tick.
    pub(crate) fn take(&self, now: u64) -> Option<Place<B>> {
        let mut lines = self.lines.borrow_mut();
        lines.retain(|line| {
            let rests = line.state.open.get() == 0;
            let is_old = rests && now.saturating_sub(line.state.since.get()) > self.keep;
            !is_old && !line.state.is_doubted.get() && !line.sender.is_closed()
        });
        let line = lines.iter().find(|line| line.state.open.get() < line.state.most.get())?;
        line.state.since.set(now);
        Some(Place::new(&line.sender, &line.state, true))
    }
}

impl<B> SharedStreams<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + 'static,
{
    /// Room on a new connection, which others may share from now on.
    pub(crate) async fn open(&self, stream: Stream, now: u64) -> Result<Place<B>, hyper::Error> {
        let (sender, mut connection) = Builder::new(Local)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(HEAD_BYTES)
            .max_concurrent_reset_streams(RESET_STREAMS)
            .max_local_error_reset_streams(None)
            .handshake(TokioIo::new(stream))
            .await?;
        let most = Cell::new(STREAMS);
        let (open, since, is_doubted) = (Cell::new(0), Cell::new(now), Cell::new(false));
        let state = Rc::new(State { open, most, since, is_doubted });
        let told = Rc::clone(&state);
        tokio::task::spawn_local(poll_fn(move |cx| {
            // An error is told to the requests.
            let ended = Pin::new(&mut connection).poll(cx).is_ready();
            told.most.set(connection.current_max_send_streams().min(STREAMS));
            if ended { Poll::Ready(()) } else { Poll::Pending }
        }));
        let place = Place::new(&sender, &state, false);
        self.lines.borrow_mut().push(Line { sender, state });
        Ok(place)
    }
}

impl<B> Place<B> {
    fn new(sender: &SendRequest<B>, state: &Rc<State>, used: bool) -> Self {
        state.open.set(state.open.get() + 1);
        Self { sender: sender.clone(), state: Rc::clone(state), used }
    }

    /// A request was not answered in time: nobody else is put on its connection.
    pub(crate) fn doubt(&self) {
        self.state.is_doubted.set(true);
    }
}

impl<B> Drop for Place<B> {
    fn drop(&mut self) {
        self.state.open.set(self.state.open.get() - 1);
    }
}

/// Starts the tasks of connections on their own thread.
#[derive(Debug, Clone, Copy)]
struct Local;

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// A request as HTTP/2 says it: the authority in place of `Host`, and no framing of HTTP/1.1.
///
/// # Errors
/// When its host or target cannot be said in HTTP/2.
pub(crate) fn request<B>(
    method: Method,
    target: &Uri,
    mut headers: HeaderMap,
    to: &Target,
    body: B,
) -> Result<Request<B>, Fault> {
    let host = headers.remove(HOST).filter(|host| !host.is_empty());
    let host = host.unwrap_or_else(|| to.own_host.clone());
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    let mut parts = Parts::default();
    parts.scheme = Some(if to.backend.is_tls() { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Authority::try_from(host.as_bytes()).ok();
    parts.path_and_query = target.path_and_query().cloned();
    let bad = Fault::Malformed("the request cannot be said in HTTP/2");
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| bad)?;
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Ok(request)
}
