//! Clients that speak HTTP/2: each request passes in parts, beside the others of its connection and
//! with a watch of its own.

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

/// Requests of a connection at once.
const STREAMS: u32 = 128;
/// Bytes of a request's body that may come before they are passed on.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same for all requests of a connection: bodies that are not read hold up no others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS;
/// Bytes of an answer that wait for the client.
const SEND_BUFFER: usize = 32 << 10;
/// Requests of a connection that were reset because they broke the protocol, at most.
const BROKEN_STREAMS: usize = 1_024;

/// What a client that knows that we speak HTTP/2 begins with, as far as no other request can.
const PREFACE: &[u8] = b"PRI * HTTP/2";

/// Whether a connection begins as one of HTTP/2.
pub(crate) fn is_preface(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFACE)
}

/// Serves a connection until the client leaves, asks nothing for a while, or is to leave.
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
    // One that does not even begin is let go.
    let Some(Ok(mut connection)) = before(&client.deadline, handshake).await else { return };
    let streams = Streams::new(client);
    let mut told = false;
    poll_fn(|cx| {
        client.deadline.register(cx);
        if streams.poll(&mut connection, cx).is_ready() {
            return Poll::Ready(());
        }
        if worker.is_stopping() && !told {
            told = true;
            connection.graceful_shutdown();
            if streams.poll(&mut connection, cx).is_ready() {
                return Poll::Ready(());
            }
        }
        if room.renew() {
            cx.waker().wake_by_ref();
        }
        // Requests have watches of their own.
        let rests = streams.0.open.get() == 0;
        if rests && client.deadline.fired() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    // The requests that are under way are told by this.
    drop(connection);
    streams.0.intakes.take_in();
}

/// The requests of one connection, each a task.
#[derive(Clone)]
struct Streams(Rc<RequestTable>);

struct RequestTable {
    connection: Rc<ClientState>,
    open: Cell<u32>,
    /// Watches of requests that have ended.
    spare: RefCell<Vec<Rc<Deadline>>>,
    /// Their bodies.
    intakes: Intakes,
}

/// A request that is under way.
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

    /// Reads and writes the connection, and begins what is asked; ready when it has ended.
    fn poll(
        &self,
        connection: &mut Connection<BudgetedStream<ClientIo>, Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let asked = loop {
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => self.begin(request, respond),
                // The codec has told the client what it did wrong.
                Poll::Ready(_) => break Poll::Ready(()),
                Poll::Pending => break Poll::Pending,
            }
        };
        // Once for all requests that came: it looks at every stream.
        self.0.intakes.take_in();
        asked
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
    /// Answers the request, unless whose turn it is takes too long: the stream is reset then.
    async fn run(self, request: Request<RequestBody>, respond: SendResponse<Bytes>) {
        let client = &self.client;
        let mut answering = pin!(answer(client, request, respond));
        poll_fn(|cx| {
            if answering.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            client.deadline.register(cx);
            if client.deadline.fired() {
                let counters = client.worker.counters();
                match client.waiting_on() {
                    WaitingOn::Backend => count(&counters.broken_responses),
                    // Also one who does not take the end of an answer that is whole.
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
        // The rest of a request that is still passed on keeps its own.
        if Rc::strong_count(&self.client) == 1 {
            spare.borrow_mut().push(Rc::clone(&self.client.deadline));
        }
    }
}

/// Answers a request, unless the client resets it.
async fn answer(
    client: &Rc<ClientState>,
    request: Request<RequestBody>,
    mut respond: SendResponse<Bytes>,
) {
    let is_head = request.method() == Method::HEAD;
    let mut handling = pin!(service::handle_http2(Rc::clone(client), request));
    let answer = poll_fn(|cx| match handling.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => respond.poll_reset(cx).map(|_| None),
    });
    let Some(answer) = answer.await else { return };
    let (head, body) = in_http2(client, answer);
    let is_whole = is_head || body.is_end_stream();
    match respond.send_response(head, is_whole) {
        Ok(to) if !is_whole => Outflow::new(to, body, Reason::INTERNAL_ERROR).await,
        Ok(_) => read_out(body).await,
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Reads an answer to HEAD to its end, which may come behind its head: only then it is whole.
async fn read_out(mut body: ResponseBody) {
    while !body.is_end_stream() {
        let next = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        if !matches!(next, Some(Ok(_))) {
            return;
        }
    }
}

/// An answer as HTTP/2 says it.
fn in_http2(
    client: &ClientState,
    answer: Result<UpstreamResponse, Refusal>,
) -> (Response<()>, ResponseBody) {
    let (mut head, body) = match answer {
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

/// The stream as a codec sees it; every byte the client takes gives it more time.
pub(crate) struct ClientIo {
    stream: SocketStream,
    /// Read before the codec was there.
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
