//! The frame path: serves HTTP/1.1 requests whose bodies pass as frames through
//! [`exchange`](crate::proxy::exchange).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_codec::http1::Visitor;
use http_body::{Body, Frame};

use crate::proxy::client::body::ClientStream;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::client::response_writer::{
    ResponseContext, ResponseState, ResponseWriter, WRITE_BYTES,
};
use crate::proxy::client::side::NextStep;
use crate::proxy::client::tunnel;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::exchange::request_body::RequestBody;
use crate::proxy::exchange::response::{ResponseBody, UpstreamResponse};
use crate::proxy::exchange::service;
use crate::proxy::state::count;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::Upstream;

type Handling = Pin<Box<dyn Future<Output = Result<UpstreamResponse, Refusal>>>>;

#[derive(Debug, Clone, Copy)]
enum FrameEnd {
    Answered,
    /// The response ended early; its beginning was passed on.
    Aborted,
    /// The client has disconnected.
    Gone,
    TooSlow,
}

struct FrameExchange<'a> {
    client: &'a Rc<ClientState>,
    side: Rc<ClientStream>,
    stage: Stage,
    state: ResponseState,
    is_head: bool,
    is_http10: bool,
    takes_trailers: bool,
    /// The connection closes after the response.
    closes: bool,
    /// Unwritten bytes for the client.
    out: Vec<u8>,
    taken: usize,
    end: Option<FrameEnd>,
}

enum Stage {
    /// Waiting for the response's head.
    Handling(Handling),
    Body(ResponseBody),
}

/// Serves a request. Returns the next step, and the stream with the bytes received after the request;
/// `None` if the client is gone.
pub(crate) async fn serve(
    client: &Rc<ClientState>,
    stream: SocketStream,
    received: HeadBuffer,
    request: ClientRequest,
) -> Option<(NextStep, SocketStream, HeadBuffer)> {
    let (is_head, is_http10) = (request.is_head(), request.is_http10);
    let ClientRequest { head, body, expects, upgrade, closes, takes_trailers, .. } = request;
    let side = ClientStream::new(stream, received, body, expects);
    let incoming = RequestBody::Http1(side.body(client));
    let handling = service::handle(Rc::clone(client), head, upgrade, incoming);
    let stage = Stage::Handling(Box::pin(handling));
    let mut exchange = FrameExchange {
        client,
        side: Rc::clone(&side),
        stage,
        state: ResponseState::default(),
        is_head,
        is_http10,
        takes_trailers,
        closes,
        out: Vec::new(),
        taken: 0,
        end: None,
    };
    let end = poll_fn(|cx| exchange.poll(cx)).await;
    let closes = exchange.closes;
    let (is_ended_by_close, is_whole) =
        (exchange.state.is_ended_by_close, matches!(end, FrameEnd::Answered));
    let switched = match exchange.stage {
        Stage::Body(ResponseBody::Switched(upstream)) => Some(upstream),
        Stage::Handling(_) | Stage::Body(_) => None,
    };
    let (then, stream, received) = next_step(client, &side, (end, closes), switched).await?;
    if is_ended_by_close && is_whole {
        stream.set_close_is_error(false);
    }
    let is_cut = is_ended_by_close && !is_whole;
    Some((if is_cut { NextStep::Gone } else { then }, stream, received))
}

async fn next_step(
    client: &Rc<ClientState>,
    side: &ClientStream,
    (end, closes): (FrameEnd, bool),
    switched: Option<Box<Upstream>>,
) -> Option<(NextStep, SocketStream, HeadBuffer)> {
    let worker = &client.worker;
    let (stream, mut received, is_complete) = side.end()?;
    match end {
        FrameEnd::Gone => None,
        FrameEnd::TooSlow => {
            match client.waiting_on() {
                // Closing an idle connection is no fault.
                WaitingOn::Idle => {}
                WaitingOn::Client | WaitingOn::ClientAborted => {
                    count(&worker.counters().client_timeouts)
                }
                WaitingOn::Backend => count(&worker.counters().broken_responses),
            }
            // The connection is dropped.
            Some((NextStep::Gone, stream, received))
        }
        FrameEnd::Aborted => Some((NextStep::Close, stream, received)),
        FrameEnd::Answered => {
            if let Some(far) = switched.and_then(|upstream| upstream.into_stream()) {
                let near = (stream, received.take());
                tunnel::run(client, near, far).await;
                return None;
            }
            // After an incomplete request the next one cannot be read.
            let closes = closes || !is_complete || worker.is_stopping();
            Some((if closes { NextStep::Close } else { NextStep::Next }, stream, received))
        }
    }
}

impl FrameExchange<'_> {
    /// Makes progress in both directions.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<FrameEnd> {
        loop {
            let mut progress = true;
            while progress && self.end.is_none() && self.out.len() < WRITE_BYTES {
                progress = self.advance(cx);
            }
            match self.write_out(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(FrameEnd::Gone),
                Poll::Pending => return self.wait(cx),
            }
            if let Some(end) = self.end {
                return Poll::Ready(end);
            }
            if !progress {
                return self.wait(cx);
            }
        }
    }

    /// Processes available response data; `false` if there is none.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.stage {
            Stage::Handling(handling) => match handling.as_mut().poll(cx) {
                Poll::Ready(response) => {
                    self.begin(response);
                    true
                }
                Poll::Pending => false,
            },
            Stage::Body(body) => match Pin::new(body).poll_frame(cx) {
                Poll::Pending => false,
                Poll::Ready(next) => {
                    match next {
                        Some(Ok(frame)) => self.add(frame),
                        Some(Err(_)) => self.end = Some(FrameEnd::Aborted),
                        None => self.finish(),
                    }
                    true
                }
            },
        }
    }

    /// Begins the response, or a refusal.
    fn begin(&mut self, response: Result<UpstreamResponse, Refusal>) {
        let worker = &self.client.worker;
        self.side.begin_response(&mut self.out);
        self.closes |= worker.is_stopping();
        // After a refused request the connection is not trusted any more.
        self.closes |= response.as_ref().is_err_and(|refusal| !refusal.is_backends());
        let context = ResponseContext {
            request_is_head: self.is_head,
            is_http10: self.is_http10,
            takes_trailers: self.takes_trailers,
            is_empty: response.as_ref().is_ok_and(|response| response.body.is_end_stream()),
            closes: self.closes,
            date: &worker.date,
        };
        let UpstreamResponse { head, body } = match response {
            Ok(response) => response,
            Err(refusal) => {
                self.out.extend_from_slice(&refusal.bytes(&context));
                self.end = Some(FrameEnd::Answered);
                return;
            }
        };
        let (state, out) = (&mut self.state, &mut self.out);
        let mut writer = ResponseWriter { state, context, out, slot: None };
        head.with_parsed(|head| writer.head(head));
        if self.state.is_ended_by_close {
            // Until the response is complete, a normal close would look like its end.
            self.side.set_close_is_error();
            self.closes = true;
        }
        self.stage = Stage::Body(body);
        self.end_if_whole();
    }

    fn add(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => self.state.body(&data, &mut self.out),
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.state.trailers(trailers);
                }
                return self.finish();
            }
        }
        self.end_if_whole();
    }

    fn end_if_whole(&mut self) {
        let Stage::Body(body) = &self.stage else { return };
        if body.is_end_stream() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.state.finish(&mut self.out);
        self.end = Some(FrameEnd::Answered);
    }

    /// Writes buffered bytes to the client; `false` if it is gone.
    fn write_out(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.out.is_empty() {
            return Poll::Ready(true);
        }
        while self.taken < self.out.len() {
            match ready!(self.side.poll_write(cx, &self.out[self.taken..])) {
                None => return Poll::Ready(false),
                Some(written) => {
                    self.taken += written;
                    self.client.deadline.extend();
                }
            }
        }
        let flushed = ready!(self.side.poll_flush(cx));
        // Idle exchanges keep no buffer.
        (self.out, self.taken) = (Vec::new(), 0);
        Poll::Ready(flushed)
    }

    /// Waits for progress, unless the client is gone or the deadline has passed.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<FrameEnd> {
        if self.side.is_gone(cx) {
            return Poll::Ready(FrameEnd::Gone);
        }
        let deadline = &self.client.deadline;
        deadline.register(cx);
        if deadline.fired() { Poll::Ready(FrameEnd::TooSlow) } else { Poll::Pending }
    }
}
