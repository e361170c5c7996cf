//! Exchanges with backends: the frame path, and helpers for both paths.

pub(crate) mod outbound;
pub(crate) mod race;
pub(crate) mod request_body;
pub(crate) mod response;
pub(crate) mod service;
pub(crate) mod whole_body;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::clock::nanos;
use gake_core::record::Fault;
use http::{HeaderMap, StatusCode};

use crate::collect::{ExchangeCollector, OutcomeSlot};
use crate::exchange::BackendFailure;
use crate::message::head::RequestHead;
use crate::message::response_head::BackendResponseHead;
use crate::mirror::{PendingCopies, bits};
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::exchange::response::{Relay, ResponseBody, UpstreamResponse};
use crate::proxy::policy::headers::{self, ResponseLines};
use crate::proxy::state::count;
use crate::proxy::upstream::Upstream;
use crate::proxy::upstream::pool::BackendPool;
use crate::proxy::worker::ProxyWorker;

/// The end-to-end headers of a response.
pub(crate) fn end_to_end(head: &BackendResponseHead) -> HeaderMap {
    head.with_parsed(|head| ResponseLines::of(head.headers).map())
}

/// Records a failure, and returns the refusal for it.
pub(crate) fn failed(
    client: &Rc<ClientState>,
    pool: &BackendPool,
    slot: Option<Box<OutcomeSlot>>,
    fault: Fault,
) -> Refusal {
    if let Some(slot) = slot {
        slot.failed(match client.waiting_on() {
            WaitingOn::ClientAborted => BackendFailure::ClientGone,
            _ => BackendFailure::Fault(fault),
        });
    }
    match client.waiting_on() {
        WaitingOn::Client => {
            count(&client.worker.counters().client_timeouts);
            Refusal::body_timeout()
        }
        WaitingOn::ClientAborted => Refusal::body_incomplete(),
        WaitingOn::Idle | WaitingOn::Backend => Refusal::of_fault(&pool.target.backend.name, fault),
    }
}

/// Passes on a response whose head has arrived.
pub(crate) fn relay_response(
    client: &Rc<ClientState>,
    pool: &Rc<BackendPool>,
    upstream: Upstream,
    head: BackendResponseHead,
    mut slot: Option<Box<OutcomeSlot>>,
    upgrade: bool,
) -> Result<UpstreamResponse, Refusal> {
    let counters = client.worker.counters();
    let status = head.status();
    let switched = status == StatusCode::SWITCHING_PROTOCOLS;
    if head.with_parsed(|head| ResponseLines::of(head.headers).is_unsupported)
        || (switched && !upgrade)
    {
        return Err(failed(client, pool, slot, Fault::Malformed("an unsupported response")));
    }
    counters.responses[usize::from(status.as_u16() / 100).min(5)].fetch_add(1, Relaxed);
    if switched {
        count(&counters.upgrades);
        if let Some(mut slot) = slot {
            let mut headers = head.map();
            headers::add_via(&mut headers);
            slot.head(status, &headers);
            slot.done(true);
        }
        return Ok(UpstreamResponse { head, body: ResponseBody::Switched(Box::new(upstream)) });
    }
    if let Some(slot) = &mut slot {
        slot.head(status, &end_to_end(&head));
    }
    let body = Relay::body(upstream, Rc::clone(pool), Rc::clone(client), slot);
    Ok(UpstreamResponse { head, body })
}

/// The header lines of a protocol switch.
pub(crate) fn switching(protocol: &[u8]) -> [(&[u8], &[u8]); 2] {
    [(b"upgrade", protocol), (b"connection", b"upgrade")]
}

/// A collector, if there are listeners.
pub(crate) fn collector(
    client: &ClientState,
    head: &RequestHead,
) -> Option<Arc<ExchangeCollector>> {
    let shared = &client.worker.shared;
    if shared.feed.is_empty() {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(ExchangeCollector::new(
        &shared.feed,
        nanos(now),
        client.peer,
        head,
        shared.config.limits.response_body,
    ))
}

/// Opens the entries of the chosen shadows.
pub(crate) fn entries(
    worker: &ProxyWorker,
    shadows: u32,
    collector: Option<&Arc<ExchangeCollector>>,
) -> Option<PendingCopies> {
    let slots = collector.map_or_else(Vec::new, |collector| {
        bits(shadows)
            .map(|shadow| {
                let config = &worker.shared.shadows[shadow].config;
                collector.slot(shadow + 1, &config.backend.name, config.role)
            })
            .collect()
    });
    (shadows != 0).then(|| PendingCopies::new(&worker.mirror, shadows, slots))
}
