//! Serves HTTP/2 clients: concurrent requests on the frame path, each with its own deadline.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::deadline::{Deadline, before};
use crate::proxy::exchange::end_to_end;
use crate::proxy::exchange::request_body::RequestBody;
use crate::proxy::exchange::response::{ResponseBody, UpstreamResponse};
use crate::proxy::exchange::service;
use crate::proxy::http2::intake::Intakes;
use crate::proxy::http2::outflow::Outflow;
use crate::proxy::http2::read_budget::{BudgetedStream, CODEC_BUDGET, ReadBudget};
use crate::proxy::policy::headers;
use crate::proxy::state::count;
use crate::proxy::stream::SocketStream;

/// Concurrent requests of a connection.
const STREAMS: u32 = 128;
/// Flow-control window of a request's body.
const STREAM_WINDOW: u32 = 64 << 10;
/// Large enough for all streams, so that unread bodies do not block others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS;
/// Bytes of a response buffered for the client.
const SEND_BUFFER: usize = 32 << 10;
/// Maximum streams of a connection reset for protocol errors.
const BROKEN_STREAMS: usize = 1_024;

/// The distinctive part of the preface of HTTP/2 with prior knowledge.
const PREFACE: &[u8] = b"PRI * HTTP/2";

pub(crate) fn is_preface(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFACE)
}

/// Serves a connection until a disconnect, an idle timeout, or the end of a drain.
pub(crate) async fn serve(client: &Rc<ClientState>, io: ClientIo) {
    let worker = &client.worker;
    let room = ReadBudget::new();
    let head_bytes = u32::try_from(worker.shared.config.limits.head_bytes).unwrap_or(u32::MAX);
    let handshake = Builder::new()
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(head_bytes)
        .max_local_error_reset_streams(Some(BROKEN_STREAMS))
        .data_frame_budget(CODEC_BUDGET)
        .handshake(BudgetedStream::new(io, &room));
    let Some(Ok(mut connection)) = before(&client.deadline, handshake).await else { return };
    let streams = Streams::new(client);
    let mut is_draining = false;
    poll_fn(|cx| {
        client.deadline.register(cx);
        if streams.poll(&mut connection, cx).is_ready() {
            return Poll::Ready(());
        }
        if worker.is_stopping() && !is_draining {
            is_draining = true;
            connection.graceful_shutdown();
            if streams.poll(&mut connection, cx).is_ready() {
                return Poll::Ready(());
            }
        }
        if room.renew() {
            cx.waker().wake_by_ref();
        }
        // Requests have their own deadlines.
        let is_idle = streams.0.open.get() == 0;
        if is_idle && client.deadline.fired() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    // This fails the running requests.
    drop(connection);
    streams.0.intakes.take_in();
}

/// The requests of a connection, each with a task.
#[derive(Clone)]
struct Streams(Rc<RequestTable>);

struct RequestTable {
    connection: Rc<ClientState>,
    open: Cell<u32>,
    spare: RefCell<Vec<Rc<Deadline>>>,
    intakes: Intakes,
}

struct OpenRequest {
    streams: Streams,
    client: Rc<ClientState>,
}

impl Streams {
    fn new(client: &Rc<ClientState>) -> Self {
        Self(Rc::new(RequestTable {
            connection: Rc::clone(client),
            open: Cell::new(0),
            spare: RefCell::default(),
            intakes: Intakes::default(),
        }))
    }

    /// Drives the connection and starts requests; ready at the end of the connection.
    fn poll(
        &self,
        connection: &mut Connection<BudgetedStream<ClientIo>, Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let ended = loop {
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => self.begin(request, respond),
                // On an error the codec has sent a GOAWAY.
                Poll::Ready(_) => break Poll::Ready(()),
                Poll::Pending => break Poll::Pending,
            }
        };
        // Once for all new requests, because it visits every stream.
        self.0.intakes.take_in();
        ended
    }

    fn begin(&self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let RequestTable { connection, open, spare, intakes } = &*self.0;
        let deadline = spare.borrow_mut().pop();
        let deadline = deadline.unwrap_or_else(|| Rc::new(connection.worker.ticker.deadline()));
        let client = Rc::new(connection.stream(deadline));
        open.set(open.get() + 1);
        connection.deadline.clear();
        let (head, body) = request.into_parts();
        let body = RequestBody::Http2(intakes.request(body, &head.headers));
        let request = Request::from_parts(head, body);
        tokio::task::spawn_local(
            OpenRequest { streams: self.clone(), client }.run(request, respond),
        );
    }
}

impl OpenRequest {
    /// Serves the request; a timeout resets the stream.
    async fn run(self, request: Request<RequestBody>, respond: SendResponse<Bytes>) {
        let client = &self.client;
        let mut serving = pin!(respond_to(client, request, respond));
        poll_fn(|cx| {
            if serving.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            client.deadline.register(cx);
            if client.deadline.fired() {
                let counters = client.worker.counters();
                match client.waiting_on() {
                    WaitingOn::Backend => count(&counters.broken_responses),
                    // Includes a client that does not read the end of a response.
                    _ => count(&counters.client_timeouts),
                }
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let RequestTable { connection, open, spare, .. } = &*self.streams.0;
        open.set(open.get() - 1);
        if open.get() == 0 {
            connection.deadline.set(connection.worker.timeout_ticks.head);
        }
        self.client.deadline.clear();
        // An upload that is still running keeps the deadline.
        if Rc::strong_count(&self.client) == 1 {
            spare.borrow_mut().push(Rc::clone(&self.client.deadline));
        }
    }
}

/// Serves a request, unless the client resets its stream.
async fn respond_to(
    client: &Rc<ClientState>,
    request: Request<RequestBody>,
    mut respond: SendResponse<Bytes>,
) {
    let is_head = request.method() == Method::HEAD;
    let mut handling = pin!(service::handle_http2(Rc::clone(client), request));
    let result = poll_fn(|cx| match handling.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => respond.poll_reset(cx).map(|_| None),
    });
    let Some(result) = result.await else { return };
    let (head, body) = in_http2(client, result);
    let is_whole = is_head || body.is_end_stream();
    match respond.send_response(head, is_whole) {
        Ok(to) if !is_whole => Outflow::new(to, body, Reason::INTERNAL_ERROR).await,
        Ok(_) => read_out(body).await,
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Reads a response to HEAD to its end, which may follow the head.
async fn read_out(mut body: ResponseBody) {
    while !body.is_end_stream() {
        let next = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        if !matches!(next, Some(Ok(_))) {
            return;
        }
    }
}

/// Converts a response to HTTP/2.
fn in_http2(
    client: &ClientState,
    result: Result<UpstreamResponse, Refusal>,
) -> (Response<()>, ResponseBody) {
    let (mut head, body) = match result {
        Ok(UpstreamResponse { head, body }) => {
            let mut response = Response::new(body);
            *response.status_mut() = head.status();
            *response.headers_mut() = end_to_end(&head);
            headers::add_via(response.headers_mut());
            response
        }
        Err(refusal) => {
            let (status, text) = refusal.into_text();
            let mut response = Response::new(ResponseBody::Text(Some(text)));
            *response.status_mut() = status;
            let plain = HeaderValue::from_static("text/plain");
            response.headers_mut().insert(CONTENT_TYPE, plain);
            response
        }
    }
    .into_parts();
    headers::strip_for_http2(&mut head.headers);
    if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream()) {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    if !head.headers.contains_key(DATE)
        && let Ok(date) = HeaderValue::from_bytes(&client.worker.date.now())
    {
        head.headers.insert(DATE, date);
    }
    (Response::from_parts(head, ()), body)
}

/// The client's stream for the codec; writes extend the deadline.
pub(crate) struct ClientIo {
    stream: SocketStream,
    /// Bytes read before the codec started.
    early: Bytes,
    client: Rc<ClientState>,
}

impl AsyncRead for ClientIo {
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

impl ClientIo {
    pub(crate) fn new(stream: SocketStream, early: Bytes, client: &Rc<ClientState>) -> Self {
        Self { stream, early, client: Rc::clone(client) }
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.client.deadline.extend();
        }
        written
    }
}

impl AsyncWrite for ClientIo {
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
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
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
