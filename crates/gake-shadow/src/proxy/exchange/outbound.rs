//! Sends a request to a backend on the client's path, repeating it if a pooled connection was stale.

use std::rc::Rc;
use std::sync::Arc;

use gake_core::record::{Fault, Phase};
use http_body::Body;

use crate::collect::OutcomeSlot;
use crate::message::body::{ShadowBody, ShadowRequest};
use crate::message::head::RequestHead;
use crate::message::response_head::BackendResponseHead;
use crate::mirror::PendingCopies;
use crate::proxy::client::ClientState;
use crate::proxy::deadline::before;
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::state::count;
use crate::proxy::upstream::fault;
use crate::proxy::upstream::link::BackendLink;
use crate::proxy::upstream::pool::BackendPool;
use crate::proxy::upstream::{Upstream, UpstreamRequest};

/// A request to send.
pub(crate) struct OutboundRequest {
    pub(crate) head: RequestHead,
    /// The head requests a protocol switch.
    pub(crate) is_upgrade: bool,
    pub(crate) body: SendBody,
    /// The complete request, if its body can be repeated.
    pub(crate) again: Option<Arc<ShadowRequest>>,
    /// The copies of a complete request. They are sent once there is a connection, so that a client
    /// that disconnects before does not reach only the shadows.
    pub(crate) copies: Option<(PendingCopies, Arc<ShadowRequest>)>,
}

/// Sends the request and waits for the response's head.
pub(crate) async fn send(
    client: &Rc<ClientState>,
    pool: &BackendPool,
    ask: OutboundRequest,
    mut slot: Option<&mut OutcomeSlot>,
) -> Result<(Upstream, BackendResponseHead), Fault> {
    let worker = &client.worker;
    let OutboundRequest { head, is_upgrade, mut body, again, mut copies } = ask;
    let mut pooled = Upstream::idle(pool, worker.ticker.now());
    loop {
        let stale = pooled.is_some();
        let connected = match pooled.take() {
            Some(upstream) => Ok(upstream),
            None => Box::pin(connect(client, pool, slot.as_deref_mut())).await,
        };
        // An unreachable backend does not affect the shadows.
        if let Some((pending, request)) = copies.take() {
            pending.send(&request);
        }
        let mut upstream = connected?;
        // Only repeat what cannot take effect twice, and whose body is still available.
        let is_empty = body.is_end_stream();
        let request = UpstreamRequest { head: &head, is_upgrade, body, target: &pool.target };
        let error = match upstream.ask(request, &client.deadline, &worker.scratch).await {
            Ok(response) => return Ok((upstream, response)),
            Err(error) => error,
        };
        let (fault, untouched) = (error.fault, error.is_untouched);
        let closed = matches!(fault, Fault::ClosedEarly(_) | Fault::Reset | Fault::Write);
        let repeats = untouched || head.method().is_idempotent();
        body = match (error.unsent, &again) {
            _ if !stale || !(closed || untouched) => return Err(fault),
            // Nothing was sent.
            (Some(body), _) => body,
            (None, Some(request)) if repeats => {
                SendBody::Copy(ShadowBody::new(Arc::clone(request)))
            }
            (None, None) if repeats && is_empty => SendBody::Empty,
            (None, _) => return Err(fault),
        };
        count(&worker.counters().stale_reconnects);
    }
}

async fn connect(
    client: &Rc<ClientState>,
    pool: &BackendPool,
    slot: Option<&mut OutcomeSlot>,
) -> Result<Upstream, Fault> {
    client.deadline.set(client.worker.timeout_ticks.connect);
    let stream = before(&client.deadline, pool.target.connect())
        .await
        .ok_or(Fault::Timeout(Phase::Connect))??;
    if let Some(slot) = slot {
        slot.connected();
    }
    client.deadline.set(client.worker.timeout_ticks.first_byte);
    if pool.target.backend.http2 {
        let lease = pool.streams.open(stream, client.worker.ticker.now()).await;
        lease.map(Upstream::shared).map_err(|error| fault::of(&error, Phase::Connect))
    } else {
        Ok(Upstream::new(BackendLink::new(stream)))
    }
}
