//! One request: checked, chosen for, sent to the master, and copied.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::clock::nanos;
use gake_core::record::Fault;
use http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;

use super::answer::{AnswerBody, Relay};
use super::ask::{self, Ask};
use super::client::{Client, Turn};
use super::headers;
use super::pool::Pool;
use super::refusal::Refusal;
use super::request_body::RequestBody;
use super::send_body::{Keep, SendBody, Tee};
use super::shared::count;
use super::upstream::Upstream;
use super::worker::Worker;
use super::{choice, gather, guard, loops, race};
use crate::collect::{Collector, Slot};
use crate::exchange::{BackendFailure, Role};
use crate::hooks::{self, ChangeScope};
use crate::mirror::Pending;
use crate::mirror::copy::{Copy, CopyBody, Keeper, Kept};
use choice::Choice;

/// Bytes of a body, at most, that is read whole so that it can be sent again.
const KEPT_BYTES: u64 = 64 << 10;

/// A request without its body.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

/// Answers a request, whatever happens.
pub(crate) async fn handle(
    client: Rc<Client>,
    request: Request<RequestBody>,
) -> Response<AnswerBody> {
    let counters = client.worker.counters();
    count(&counters.requests);
    client.asked();
    serve(&client, request).await.unwrap_or_else(|refusal| {
        count(if refusal.is_backends() { &counters.master_faults } else { &counters.refused });
        client.answered();
        refusal.answer()
    })
}

async fn serve(
    client: &Rc<Client>,
    mut request: Request<RequestBody>,
) -> Result<Response<AnswerBody>, Refusal> {
    let worker = &client.worker;
    let shared = &worker.shared;
    if shared.loops.is_ours(request.headers()) {
        return Err(loops::refusal());
    }
    if request.version() == Version::HTTP_2 {
        guard::from_http2(&mut request)?;
    }
    // Whatever is before a client of HTTP/1.0 does not know that the connection has changed.
    let is_old = request.version() == Version::HTTP_10;
    guard::check(&mut request)?;
    let (parts, incoming) = request.into_parts();
    let mut head = Head { method: parts.method, uri: parts.uri, headers: parts.headers };
    // A server that does not know the protocol ignores the wish; so does HTTP/2, which has none.
    // Whoever reads the answer to HEAD must know that it has no body.
    let may_switch = !is_old && !shared.master.backend.http2 && head.method != Method::HEAD;
    let upgrade = upgrade(&head.headers).filter(|_| may_switch);
    headers::strip_hop_by_hop(&mut head.headers);
    client.note_odd(shared.inbound.clean(&mut head.headers));
    client.origin.borrow_mut().tell(&mut head.headers, shared.config.forwarded);
    shared.loops.add_via(&mut head.headers);
    let collector = collector(client, &head);
    match choice::choose(client, &head, upgrade.is_some()).await? {
        Choice::Race { master, shadows } => {
            let contenders = race::Contenders { master, shadows, collector };
            // Boxed because it is rare: a request's future is moved, so it is kept small.
            Box::pin(race::run(client, head, incoming, contenders)).await
        }
        Choice::Master { shadows } => {
            to_master(client, head, incoming, shadows, collector, upgrade).await
        }
    }
}

/// The usual way: the master answers, and the shadows get copies.
async fn to_master(
    client: &Rc<Client>,
    head: Head,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<Collector>>,
    upgrade: Option<HeaderValue>,
) -> Result<Response<AnswerBody>, Refusal> {
    let worker = &client.worker;
    let pool = &worker.master;
    let mut slot = collector
        .as_ref()
        .map(|collector| collector.slot(0, &pool.target.backend.name, Role::Master));
    let munge = match &worker.shared.hooks {
        Some(hooks) => hooks.munges(&pool.target.backend.name),
        None => ChangeScope::No,
    };
    let mut ask = if munge == ChangeScope::No && is_kept_whole(pool, &incoming, worker) {
        Box::pin(kept_whole(client, head, incoming, shadows, collector)).await?
    } else if munge == ChangeScope::No {
        body_as_it_comes(client, head, incoming, shadows, collector)
    } else {
        let whole = munge == ChangeScope::Body;
        Box::pin(munged(client, head, incoming, shadows, collector, whole)).await?
    };
    headers::for_backend(&mut ask.head.headers, &pool.target);
    if let Some(protocol) = &upgrade {
        ask.head.headers.insert(UPGRADE, protocol.clone());
        ask.head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    match ask::run(client, pool, ask, slot.as_deref_mut()).await {
        Ok((upstream, answer)) => answered(client, pool, upstream, answer, slot, upgrade.is_some()),
        Err(fault) => Err(failed(client, pool, slot, fault)),
    }
}

/// No answer, or none that can be passed on.
pub(super) fn failed(
    client: &Rc<Client>,
    pool: &Pool,
    slot: Option<Box<Slot>>,
    fault: Fault,
) -> Refusal {
    if let Some(slot) = slot {
        slot.failed(match client.turn() {
            Turn::BrokenOff => BackendFailure::ClientGone,
            _ => BackendFailure::Fault(fault),
        });
    }
    match client.turn() {
        Turn::Client => {
            count(&client.worker.counters().client_timeouts);
            let reason = "the request's body did not come in time";
            Refusal::new(StatusCode::REQUEST_TIMEOUT, reason)
        }
        Turn::BrokenOff => Refusal::bad("the request's body did not come to its end"),
        Turn::Idle | Turn::Backend => Refusal::of_fault(&pool.target.backend.name, fault),
    }
}

/// Streams the body; the copies go out when it is whole.
fn body_as_it_comes(
    client: &Rc<Client>,
    head: Head,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<Collector>>,
) -> Ask {
    let pending = pending(client, &head, shadows, collector.as_ref());
    if incoming.is_end_stream() {
        let copies = pending.map(|(pending, copy)| (pending, Arc::new(copy)));
        let again = copies.as_ref().map(|(_, copy)| Arc::clone(copy));
        return Ask { head, body: SendBody::Empty, again, copies };
    }
    let keep = (pending.is_some() || collector.is_some()).then(|| {
        Box::new(Keep {
            keeper: Keeper::default(),
            limit: client.worker.shared.config.limits.shadow_body,
            chunked: head.headers.contains_key(TRANSFER_ENCODING),
            pending: pending.map(|(pending, copy)| pending.with(copy)),
            collector,
        })
    });
    let body = SendBody::Client(Tee::new(incoming, Rc::clone(client), keep));
    Ask { head, body, again: None, copies: None }
}

/// Whether a body is read before the master is asked. A server of HTTP/2 may refuse a request that
/// has been sent, as nginx does with the last ones of a connection: a small one can be sent again.
fn is_kept_whole(pool: &Pool, incoming: &RequestBody, worker: &Worker) -> bool {
    let most = KEPT_BYTES.min(worker.shared.config.limits.shadow_body);
    let length = incoming.size_hint().exact();
    pool.target.backend.http2 && length.is_some_and(|length| length > 0 && length <= most)
}

/// The same with a body that is whole before.
async fn kept_whole(
    client: &Rc<Client>,
    head: Head,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<Collector>>,
) -> Result<Ask, Refusal> {
    let body = gather::whole(client, incoming, collector.as_deref()).await?;
    let copy = Arc::new(Copy { body, ..copy_of(&head) });
    let pending = entries(&client.worker, shadows, collector.as_ref());
    client.asked();
    let copies = pending.map(|pending| (pending, Arc::clone(&copy)));
    let body = SendBody::Copy(CopyBody::new(Arc::clone(&copy)));
    Ok(Ask { head, body, again: Some(copy), copies })
}

/// The same when a hook changes what the master gets. The shadows' copies are changed on their own
/// way.
async fn munged(
    client: &Rc<Client>,
    head: Head,
    incoming: RequestBody,
    shadows: u32,
    collector: Option<Arc<Collector>>,
    whole: bool,
) -> Result<Ask, Refusal> {
    let Some(hooks) = &client.worker.shared.hooks else {
        return Ok(body_as_it_comes(client, head, incoming, shadows, collector));
    };
    let backend = &client.worker.master.target.backend.name;
    if !whole {
        let request = hooks::Request {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body: None,
        };
        let mut ask = body_as_it_comes(client, head, incoming, shadows, collector);
        if let Some(mut changed) = hooks.munge(backend, request).await {
            headers::same_framing(&ask.head.headers, &mut changed.headers);
            ask.head.method = changed.method;
            ask.head.uri = hooks::origin_form(changed.uri);
            ask.head.headers = changed.headers;
            ask.again = None;
        }
        client.asked();
        return Ok(ask);
    }
    let kept = gather::whole(client, incoming, collector.as_deref()).await?;
    let copy = Arc::new(Copy { body: kept, ..copy_of(&head) });
    let pending = pending(client, &head, shadows, collector.as_ref());
    let copies = pending.map(|(pending, _)| (pending, Arc::clone(&copy)));
    let changed = hooks::munge_copy(hooks, backend, &copy).await.unwrap_or(copy);
    client.asked();
    let head = Head {
        method: changed.method.clone(),
        uri: changed.uri.clone(),
        headers: changed.headers.clone(),
    };
    Ok(Ask { head, body: SendBody::Copy(CopyBody::new(changed)), again: None, copies })
}

/// The answer's head has come: what of it goes on, and the body behind it.
pub(super) fn answered(
    client: &Rc<Client>,
    pool: &Rc<Pool>,
    upstream: Upstream,
    answer: Response<()>,
    mut slot: Option<Box<Slot>>,
    upgrade: bool,
) -> Result<Response<AnswerBody>, Refusal> {
    let (mut head, ()) = answer.into_parts();
    let counters = client.worker.counters();
    let switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
    if headers::is_strangely_framed(&head.headers) || (switched && !upgrade) {
        return Err(failed(client, pool, slot, Fault::Malformed("an answer nobody asked for")));
    }
    counters.answers[usize::from(head.status.as_u16() / 100).min(5)].fetch_add(1, Relaxed);
    head.version = Version::HTTP_11;
    if switched {
        count(&counters.upgrades);
        headers::add_via(&mut head.headers);
        if let Some(mut slot) = slot {
            slot.head(head.status, &head.headers);
            slot.done(true);
        }
        *client.tunnel.borrow_mut() = Some(upstream);
        return Ok(Response::from_parts(head, AnswerBody::Empty));
    }
    headers::strip_answer(&mut head.headers);
    headers::single_length(&mut head.headers);
    if let Some(slot) = &mut slot {
        slot.head(head.status, &head.headers);
    }
    headers::add_via(&mut head.headers);
    let body = Relay::body(upstream, Rc::clone(pool), Rc::clone(client), slot);
    Ok(Response::from_parts(head, body))
}

/// The protocol to switch to, if it is one that may be passed on. Cleartext HTTP/2 is not: what
/// went through such a tunnel nobody would check.
fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(UPGRADE)?;
    let connection = headers.get_all(CONNECTION).iter();
    let meant = connection
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
    let name = protocol.as_bytes().to_ascii_lowercase();
    (meant && !name.windows(3).any(|part| part == b"h2c")).then(|| protocol.clone())
}

/// What is known of an exchange, when somebody listens.
pub(super) fn collector(client: &Client, head: &Head) -> Option<Arc<Collector>> {
    let shared = &client.worker.shared;
    if shared.feed.is_empty() {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Collector::new(
        &shared.feed,
        nanos(now),
        client.peer,
        (&head.method, &head.uri, &head.headers),
        shared.config.limits.answer_body,
    ))
}

/// The entries of the chosen shadows, and their copy without its body.
fn pending(
    client: &Rc<Client>,
    head: &Head,
    shadows: u32,
    collector: Option<&Arc<Collector>>,
) -> Option<(Pending, Copy)> {
    Some((entries(&client.worker, shadows, collector)?, copy_of(head)))
}

/// The entries of the chosen shadows.
pub(super) fn entries(
    worker: &Worker,
    shadows: u32,
    collector: Option<&Arc<Collector>>,
) -> Option<Pending> {
    let slots = collector.map_or_else(Vec::new, |collector| {
        crate::mirror::bits(shadows)
            .map(|shadow| {
                let config = &worker.shared.shadows[shadow].config;
                collector.slot(shadow + 1, &config.backend.name, config.role)
            })
            .collect()
    });
    (shadows != 0).then(|| Pending::new(&worker.mirror, shadows, slots))
}

pub(super) fn copy_of(head: &Head) -> Copy {
    Copy {
        method: head.method.clone(),
        uri: head.uri.clone(),
        headers: head.headers.clone(),
        body: Kept::default(),
    }
}
