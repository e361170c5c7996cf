//! Serves a request on the frame path: chooses backends, sends it to the master, copies it.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body::Body;

use crate::collect::ExchangeCollector;
use crate::exchange::Role;
use crate::hooks::{self, ChangeScope};
use crate::message::body::{BufferedBody, ShadowBody, ShadowRequest};
use crate::message::head::RequestHead;
use crate::mirror::copy_plan::CopyPlan;
use crate::proxy::client::ClientState;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::exchange::outbound::{self, OutboundRequest};
use crate::proxy::exchange::race;
use crate::proxy::exchange::request_body::RequestBody;
use crate::proxy::exchange::request_body::{SendBody, Tee};
use crate::proxy::exchange::response::UpstreamResponse;
use crate::proxy::exchange::whole_body;
use crate::proxy::exchange::{collector, entries, failed, relay_response, switching};
use crate::proxy::http2;
use crate::proxy::policy::choice;
use crate::proxy::state::count;
use crate::proxy::upstream::edits;
use crate::proxy::upstream::pool::BackendPool;
use crate::proxy::worker::ProxyWorker;
use choice::BackendChoice;

/// Maximum bytes of a body that is buffered to be repeatable.
const BUFFERED_BYTES: u64 = 64 << 10;

pub(crate) async fn handle_http2(
    client: Rc<ClientState>,
    request: Request<RequestBody>,
) -> Result<UpstreamResponse, Refusal> {
    let (head, incoming) = request.into_parts();
    let rules = client.worker.shared.rules();
    let is_whole = incoming.is_end_stream();
    let read = http2::request::read(&head, is_whole, rules, &mut client.origin.borrow_mut());
    match read {
        Ok(ClientRequest { mut head, odd_names, .. }) => {
            client.number(&mut head);
            client.note_odd(odd_names);
            handle(Rc::clone(&client), head, None, incoming).await
        }
        Err(rejection) => {
            let counters = client.worker.counters();
            count(&counters.requests);
            count(&counters.refused);
            client.response_sent();
            Err(rejection.into_refusal())
        }
    }
}

/// Serves a request; `upgrade` is the protocol that the client wants to switch to.
pub(crate) async fn handle(
    client: Rc<ClientState>,
    head: RequestHead,
    upgrade: Option<Bytes>,
    incoming: RequestBody,
) -> Result<UpstreamResponse, Refusal> {
    let counters = client.worker.counters();
    count(&counters.requests);
    client.request_received();
    serve(&client, head, upgrade, incoming).await.inspect_err(|refusal| {
        count(if refusal.is_backends() { &counters.master_faults } else { &counters.refused });
        client.response_sent();
    })
}

async fn serve(
    client: &Rc<ClientState>,
    head: RequestHead,
    upgrade: Option<Bytes>,
    incoming: RequestBody,
) -> Result<UpstreamResponse, Refusal> {
    // HTTP/2 has no upgrades; ignoring the request for one is always allowed.
    let upgrade = upgrade.filter(|_| !client.worker.shared.master.backend.http2);
    let collector = collector(client, &head);
    match choice::choose(client, &head, upgrade.is_some()).await? {
        BackendChoice::Race { master, shadows } => {
            let contenders = race::Contenders { master, shadows, collector };
            // Boxed because it is rare, to keep the future small.
            Box::pin(race::run(client, head, incoming, contenders)).await
        }
        BackendChoice::Master { shadows } => {
            to_master(client, head, incoming, shadows, collector, upgrade).await
        }
    }
}

/// The master responds, and the shadows get copies.
async fn to_master(
    client: &Rc<ClientState>,
    head: RequestHead,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<ExchangeCollector>>,
    upgrade: Option<Bytes>,
) -> Result<UpstreamResponse, Refusal> {
    let worker = &client.worker;
    let pool = &worker.master;
    let mut slot = collector
        .as_ref()
        .map(|collector| collector.slot(0, &pool.target.backend.name, Role::Master));
    let munge = match &worker.shared.hooks {
        Some(hooks) => hooks.munges(&pool.target.backend.name),
        None => ChangeScope::No,
    };
    let mut outbound = if munge == ChangeScope::No && is_buffered(pool, &incoming, worker) {
        Box::pin(buffered(client, head, incoming, shadows, collector)).await?
    } else if munge == ChangeScope::No {
        streamed(client, head, incoming, shadows, collector)
    } else {
        let whole = munge == ChangeScope::Body;
        Box::pin(munged(client, head, incoming, shadows, collector, whole)).await?
    };
    outbound.head = match &upgrade {
        Some(protocol) => edits::for_backend(&outbound.head, &pool.target, &switching(protocol)),
        None => edits::for_backend(&outbound.head, &pool.target, &[]),
    };
    outbound.is_upgrade = upgrade.is_some();
    match outbound::send(client, pool, outbound, slot.as_deref_mut()).await {
        Ok((upstream, response)) => {
            relay_response(client, pool, upstream, response, slot, upgrade.is_some())
        }
        Err(fault) => Err(failed(client, pool, slot, fault)),
    }
}

/// Streams the body; the copies are sent when it is complete.
fn streamed(
    client: &Rc<ClientState>,
    head: RequestHead,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<ExchangeCollector>>,
) -> OutboundRequest {
    let pending = entries(&client.worker, shadows, collector.as_ref());
    if incoming.is_end_stream() {
        let copies = pending.map(|pending| {
            let (head, body) = (head.clone(), BufferedBody::default());
            (pending, Arc::new(ShadowRequest { head, body }))
        });
        return OutboundRequest {
            head,
            is_upgrade: false,
            body: SendBody::Empty,
            again: None,
            copies,
        };
    }
    let limit = client.worker.shared.config.limits.shadow_body;
    let copy = CopyPlan::new(&head, limit, pending, collector).map(Box::new);
    let body = SendBody::Client(Tee::new(incoming, Rc::clone(client), copy));
    OutboundRequest { head, is_upgrade: false, body, again: None, copies: None }
}

/// Whether to buffer a body before sending it. HTTP/2 servers may refuse requests already sent, as
/// nginx does before it closes a connection; a buffered one can be repeated.
fn is_buffered(pool: &BackendPool, incoming: &RequestBody, worker: &ProxyWorker) -> bool {
    let most = BUFFERED_BYTES.min(worker.shared.config.limits.shadow_body);
    let length = incoming.size_hint().exact();
    pool.target.backend.http2 && length.is_some_and(|length| length > 0 && length <= most)
}

/// Buffers the body first.
async fn buffered(
    client: &Rc<ClientState>,
    head: RequestHead,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<ExchangeCollector>>,
) -> Result<OutboundRequest, Refusal> {
    let body = whole_body::read(client, incoming, collector.as_deref()).await?;
    let request = Arc::new(ShadowRequest { head: head.clone(), body });
    let pending = entries(&client.worker, shadows, collector.as_ref());
    client.request_received();
    let copies = pending.map(|pending| (pending, Arc::clone(&request)));
    let body = SendBody::Copy(ShadowBody::new(Arc::clone(&request)));
    Ok(OutboundRequest { head, is_upgrade: false, body, again: Some(request), copies })
}

/// Applies a hook to the master's request. The shadows' copies are changed in their lanes.
async fn munged(
    client: &Rc<ClientState>,
    head: RequestHead,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<ExchangeCollector>>,
    whole: bool,
) -> Result<OutboundRequest, Refusal> {
    let Some(hooks) = &client.worker.shared.hooks else {
        return Ok(streamed(client, head, incoming, shadows, collector));
    };
    let backend = &client.worker.master.target.backend.name;
    if !whole {
        let mut outbound = streamed(client, head, incoming, shadows, collector);
        if let Some(changed) = hooks::munge_head(hooks, backend, &outbound.head).await {
            outbound.head = changed;
        }
        client.request_received();
        return Ok(outbound);
    }
    let body = whole_body::read(client, incoming, collector.as_deref()).await?;
    // A buffered body has a length, whatever its framing was.
    let request = Arc::new(ShadowRequest { head: head.framed(body.framing()), body });
    let pending = entries(&client.worker, shadows, collector.as_ref());
    let copies = pending.map(|pending| (pending, Arc::clone(&request)));
    let changed = hooks::munge_whole(hooks, backend, &request).await.unwrap_or(request);
    client.request_received();
    let head = changed.head.clone();
    let body = SendBody::Copy(ShadowBody::new(changed));
    Ok(OutboundRequest { head, is_upgrade: false, body, again: None, copies })
}
