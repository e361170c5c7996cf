//! The direct path: requests and responses pass as bytes.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use gake_core::record::{Fault, Phase};

use crate::collect::OutcomeSlot;
use crate::exchange::{BackendFailure, Role};
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::client::side::{ClientSide, NextStep, RefusalContext};
use crate::proxy::client::transaction::{Transaction, TransactionEnd};
use crate::proxy::client::tunnel;
use crate::proxy::client::upload::Upload;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::exchange;
use crate::proxy::policy::choice;
use crate::proxy::state::count;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::edits;
use crate::proxy::upstream::link::{BackendLink, is_stale};

/// Prepares the exchange at once: a future would hold its arguments and the exchange made of them
/// side by side, and is moved to its place as a whole.
pub(crate) fn serve<'a>(
    client: &'a Rc<ClientState>,
    stream: &'a mut SocketStream,
    received: &'a mut HeadBuffer,
    request: ClientRequest,
) -> impl Future<Output = NextStep> + 'a {
    let worker = &client.worker;
    count(&worker.counters().requests);
    client.request_received();
    let shadows = choice::all(worker, &request.head, request.upgrade.is_some());
    let collector = exchange::collector(client, &request.head);
    let name = &worker.master.target.backend.name;
    let slot = collector.as_ref().map(|collector| collector.slot(0, name, Role::Master));
    let copies = exchange::entries(worker, shadows, collector.as_ref());
    let limit = worker.shared.config.limits.shadow_body;
    let upload = Upload::new(&request, limit, copies, collector);
    let target = &worker.master.target;
    let head = match &request.upgrade {
        Some(protocol) => edits::for_backend(&request.head, target, &exchange::switching(protocol)),
        None => edits::for_backend(&request.head, target, &[]),
    };
    let side = ClientSide { client, stream, received };
    let mut exchange = DirectExchange { side, request, head: head.into_bytes(), upload, slot };
    async move { exchange.run().await }
}

struct DirectExchange<'a> {
    side: ClientSide<'a>,
    request: ClientRequest,
    /// The head for the master.
    head: Bytes,
    upload: Upload,
    slot: Option<Box<OutcomeSlot>>,
}

impl DirectExchange<'_> {
    /// What is rare is boxed, to keep the future small.
    async fn run(&mut self) -> NextStep {
        let worker = &self.side.client.worker;
        let mut open = worker.master.take_link(worker.ticker.now());
        loop {
            let was_open = open.is_some();
            let mut link = match open.take() {
                Some(link) => link,
                None => match Box::pin(self.side.connect()).await {
                    Some(Ok(link)) => link,
                    Some(Err(fault)) => {
                        // An unreachable master does not affect the shadows.
                        self.upload.send_copies();
                        return Box::pin(self.fault(fault, self.request.closes)).await;
                    }
                    None => return NextStep::Gone,
                },
            };
            if let Some(slot) = self.slot.as_mut().filter(|_| !was_open) {
                slot.connected();
            }
            match self.request.upgrade {
                Some(_) => link.start_upgrade(),
                None => link.start(self.request.is_head()),
            }
            let Self { side, request, head, upload, slot } = &mut *self;
            let mut transaction =
                Transaction::new(side, (request, head), link, upload, slot.as_deref_mut());
            let end = poll_fn(|cx| transaction.poll(cx)).await;
            let (begun, closes) = (transaction.state.has_begun(), transaction.closes);
            let is_ended_by_close = transaction.state.is_ended_by_close;
            // Only repeat what cannot take effect twice, and whose body is still available.
            let is_idempotent = request.head.method().is_idempotent();
            let repeats = transaction.sent == 0 || (!request.has_body() && is_idempotent);
            let link = transaction.link.take();
            if let (TransactionEnd::Switched, Some(link)) = (end, link) {
                return Box::pin(self.switched(link)).await;
            }
            if let TransactionEnd::Failed(fault) = end
                && was_open
                && repeats
                && is_stale(fault)
            {
                count(&worker.counters().stale_reconnects);
                continue;
            }
            if !begun {
                return Box::pin(self.failed(end, closes)).await;
            }
            let then = self.ended(end, closes);
            if is_ended_by_close && matches!(end, TransactionEnd::Answered) {
                self.side.stream.set_close_is_error(false);
            }
            let is_cut = is_ended_by_close && !matches!(end, TransactionEnd::Answered);
            return if is_cut { NextStep::Gone } else { then };
        }
    }

    /// Runs a tunnel after a protocol switch.
    async fn switched(&mut self, link: BackendLink) -> NextStep {
        count(&self.side.client.worker.counters().upgrades);
        if let Some(slot) = self.slot.take() {
            slot.done(true);
        }
        let ClientSide { client, stream, received } = &mut self.side;
        let side = (stream, received.take());
        tunnel::run(client, side, link.into_stream()).await;
        NextStep::Gone
    }

    /// Ends an exchange whose response has begun.
    fn ended(&mut self, end: TransactionEnd, closes: bool) -> NextStep {
        match end {
            TransactionEnd::Answered => {
                if let Some(slot) = self.slot.take() {
                    slot.done(false);
                }
                self.side.finish_response(closes || !self.upload.is_complete())
            }
            TransactionEnd::Aborted(fault) => {
                self.record_fault(fault);
                NextStep::Close
            }
            TransactionEnd::TooSlow => {
                if self.side.client.waiting_on() == WaitingOn::Backend {
                    self.record_fault(Fault::Timeout(Phase::Body));
                }
                self.side.too_slow()
            }
            TransactionEnd::BodyAborted => NextStep::Close,
            TransactionEnd::Failed(_) | TransactionEnd::Gone | TransactionEnd::Switched => {
                NextStep::Gone
            }
        }
    }

    /// Ends an exchange without a response from the master.
    async fn failed(&mut self, end: TransactionEnd, closes: bool) -> NextStep {
        match end {
            TransactionEnd::Failed(fault) | TransactionEnd::Aborted(fault) => {
                self.fault(fault, closes).await
            }
            TransactionEnd::TooSlow if self.side.client.waiting_on() == WaitingOn::Client => {
                count(&self.side.client.worker.counters().client_timeouts);
                self.record_fault(Fault::Timeout(Phase::FirstByte));
                self.refuse(Refusal::body_timeout(), true).await
            }
            TransactionEnd::TooSlow => self.fault(Fault::Timeout(Phase::FirstByte), closes).await,
            TransactionEnd::BodyAborted => self.refuse(Refusal::body_incomplete(), true).await,
            TransactionEnd::Answered | TransactionEnd::Switched | TransactionEnd::Gone => {
                NextStep::Gone
            }
        }
    }

    /// Responds to a fault of the master. The connection must close if the request's body was not
    /// read completely.
    async fn fault(&mut self, fault: Fault, closes: bool) -> NextStep {
        self.record_fault(fault);
        let name = &self.side.client.worker.master.target.backend.name;
        let refusal = Refusal::of_fault(name, fault);
        let closes = closes || !self.upload.is_complete();
        self.refuse(refusal, closes).await
    }

    async fn refuse(&mut self, refusal: Refusal, closes: bool) -> NextStep {
        let (is_head, is_http10) = (self.request.is_head(), self.request.is_http10);
        self.side.refuse(refusal, RefusalContext { is_head, is_http10, closes }).await
    }

    /// Records a fault for listeners.
    fn record_fault(&mut self, fault: Fault) {
        if let Some(slot) = self.slot.take() {
            slot.failed(BackendFailure::Fault(fault));
        }
    }
}
