//! The client's side of a request on the direct path.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use gake_core::record::{Fault, Phase};
use tokio::io::AsyncWriteExt;

use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::refusal::{self, Refusal};
use crate::proxy::client::request::Rejection;
use crate::proxy::client::response_writer::ResponseContext;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::deadline::before;
use crate::proxy::state::count;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::link::BackendLink;

/// What happens after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Read the next request.
    Next,
    /// Close the connection gracefully.
    Close,
    /// Drop the connection.
    Gone,
}

/// The context of a refusal.
pub(crate) struct RefusalContext {
    pub(crate) is_head: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// The connection closes after the response.
    pub(crate) closes: bool,
}

pub(crate) struct ClientSide<'a> {
    pub(crate) client: &'a Rc<ClientState>,
    pub(crate) stream: &'a mut SocketStream,
    /// Bytes received after the request's head.
    pub(crate) received: &'a mut HeadBuffer,
}

impl ClientSide<'_> {
    /// Whether the client has disconnected. A client with pipelined data counts as connected.
    pub(crate) fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        self.received.is_empty() && self.received.has_ended(self.stream, cx)
    }

    /// Connects to the master; `None` if the client disconnects meanwhile.
    pub(crate) async fn connect(&mut self) -> Option<Result<BackendLink, Fault>> {
        let Self { client, .. } = *self;
        let worker = &client.worker;
        client.deadline.set(worker.timeout_ticks.connect);
        let mut connecting = pin!(worker.master.target.connect());
        let connected = poll_fn(|cx| {
            if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
                return Poll::Ready(Some(connected));
            }
            if self.is_gone(cx) {
                return Poll::Ready(None);
            }
            client.deadline.register(cx);
            match client.deadline.fired() {
                true => Poll::Ready(Some(Err(Fault::Timeout(Phase::Connect)))),
                false => Poll::Pending,
            }
        })
        .await?;
        client.deadline.set(worker.timeout_ticks.first_byte);
        Some(connected.map(BackendLink::new))
    }

    pub(crate) fn finish_response(&self, closes: bool) -> NextStep {
        self.client.response_sent();
        if closes || self.client.worker.is_stopping() { NextStep::Close } else { NextStep::Next }
    }

    /// Counts a timeout within a response.
    pub(crate) fn too_slow(&self) -> NextStep {
        let counters = self.client.worker.counters();
        match self.client.waiting_on() {
            WaitingOn::Client => count(&counters.client_timeouts),
            _ => count(&counters.broken_responses),
        }
        NextStep::Gone
    }

    /// Responds to a rejected request.
    pub(crate) async fn reject(&mut self, rejection: Rejection) -> NextStep {
        let worker = &self.client.worker;
        match rejection {
            Rejection::Malformed(status) => {
                count(&worker.counters().malformed);
                let response = refusal::malformed(status, &worker.date.now());
                self.write(&response, NextStep::Close).await
            }
            Rejection::Refused { refusal, is_head, is_http10 } => {
                count(&worker.counters().requests);
                self.refuse(refusal, RefusalContext { is_head, is_http10, closes: true }).await
            }
        }
    }

    /// Responds in place of the master.
    pub(crate) async fn refuse(&mut self, refusal: Refusal, refused: RefusalContext) -> NextStep {
        let RefusalContext { is_head, is_http10, closes } = refused;
        let worker = &self.client.worker;
        let counters = worker.counters();
        count(if refusal.is_backends() { &counters.master_faults } else { &counters.refused });
        let then = self.finish_response(closes);
        let response = refusal.bytes(&ResponseContext {
            request_is_head: is_head,
            is_http10,
            takes_trailers: false,
            is_empty: false,
            closes: then == NextStep::Close,
            date: &worker.date,
        });
        self.write(&response, then).await
    }

    async fn write(&mut self, response: &[u8], then: NextStep) -> NextStep {
        let written = async {
            self.stream.write_all(response).await?;
            self.stream.flush().await
        };
        match before(&self.client.deadline, written).await {
            Some(Ok(())) => then,
            _ => NextStep::Gone,
        }
    }
}
