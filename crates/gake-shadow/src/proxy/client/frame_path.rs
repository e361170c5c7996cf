//! A request in HTTP/1.1 that does not pass as bytes: its body comes and is answered in parts.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_wire::http1::Visitor;
use http_body::{Body, Frame};

use crate::proxy::client::body::ClientStream;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::client::response_writer::{
    ResponseContext, ResponseState, ResponseWriter, TOGETHER,
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

/// How a request ends.
#[derive(Debug, Clone, Copy)]
enum FrameEnd {
    Answered,
    /// The answer broke off; its beginning was passed on.
    Aborted,
    /// The client has left.
    Gone,
    TooSlow,
}

/// A request under way.
struct FrameExchange<'a> {
    client: &'a Rc<ClientState>,
    side: Rc<ClientStream>,
    stage: Stage,
    state: ResponseState,
    is_head: bool,
    is_http10: bool,
    takes_trailers: bool,
    /// The client was told that the connection ends, or wants it to.
    closes: bool,
    /// What the client has not taken yet.
    out: Vec<u8>,
    taken: usize,
    end: Option<FrameEnd>,
}

enum Stage {
    /// The head of the answer is awaited.
    Handling(Handling),
    Body(ResponseBody),
}

/// Answers a request. Returns what comes after it, and the client's stream with what came behind the
/// request; `None` when the client is gone.
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

/// What comes after a request.
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
                // Closing an idle connection is not a fault.
                WaitingOn::Idle => {}
                WaitingOn::Client | WaitingOn::ClientAborted => {
                    count(&worker.counters().client_timeouts)
                }
                WaitingOn::Backend => count(&worker.counters().broken_responses),
            }
            // The connection is dropped with all it had.
            Some((NextStep::Gone, stream, received))
        }
        FrameEnd::Aborted => Some((NextStep::Close, stream, received)),
        FrameEnd::Answered => {
            if let Some(far) = switched.and_then(|upstream| upstream.into_stream()) {
                let near = (stream, received.take());
                tunnel::run(client, near, far).await;
                return None;
            }
            // What has not come of the request keeps the next one from being read.
            let closes = closes || !is_complete || worker.is_stopping();
            Some((if closes { NextStep::Close } else { NextStep::Next }, stream, received))
        }
    }
}

impl FrameExchange<'_> {
    /// Reads and writes what can be read and written.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<FrameEnd> {
        loop {
            let mut moves = true;
            while moves && self.end.is_none() && self.out.len() < TOGETHER {
                moves = self.advance(cx);
            }
            match self.pass_on(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(FrameEnd::Gone),
                Poll::Pending => return self.wait(cx),
            }
            if let Some(end) = self.end {
                return Poll::Ready(end);
            }
            if !moves {
                return self.wait(cx);
            }
        }
    }

    /// Adds what has come of the answer; whether there was something.
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

    /// The head of the answer has come, or there will be none.
    fn begin(&mut self, response: Result<UpstreamResponse, Refusal>) {
        let worker = &self.client.worker;
        self.side.begin_response(&mut self.out);
        self.closes |= worker.is_stopping();
        // Nothing that follows on a connection with a doubtful request is trusted.
        self.closes |= response.as_ref().is_err_and(|refusal| !refusal.is_backends());
        let context = ResponseContext {
            request_is_head: self.is_head,
            is_http10: self.is_http10,
            takes_trailers: self.takes_trailers,
            is_empty: response.as_ref().is_ok_and(|response| response.body.is_end_stream()),
            closes: self.closes,
            date: &worker.date.now(),
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
            // Until the answer is whole, a close would make it seem so.
            self.side.set_close_is_error();
            self.closes = true;
        }
        self.stage = Stage::Body(body);
        self.end_if_whole();
    }

    /// A part of the body has come.
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

    /// The body has ended.
    fn finish(&mut self) {
        self.state.finish(&mut self.out);
        self.end = Some(FrameEnd::Answered);
    }

    /// Writes to the client what there is for it; `false` when it takes no more.
    fn pass_on(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
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
        // While nothing is on its way no buffer is kept.
        (self.out, self.taken) = (Vec::new(), 0);
        Poll::Ready(flushed)
    }

    /// Nothing can be done now.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<FrameEnd> {
        if self.side.is_gone(cx) {
            return Poll::Ready(FrameEnd::Gone);
        }
        let deadline = &self.client.deadline;
        deadline.register(cx);
        if deadline.fired() { Poll::Ready(FrameEnd::TooSlow) } else { Poll::Pending }
    }
}
