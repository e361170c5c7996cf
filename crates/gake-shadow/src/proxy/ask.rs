//! Asking a backend on the client's path: a connection from the pool or a new one, and once more
//! when an idle one turns out to be closed.

use std::rc::Rc;
use std::sync::Arc;

use gake_core::record::{Fault, Phase};
use http::{Request, Response};
use http_body::Body;

use super::client::Client;
use super::link::Link;
use super::pool::Pool;
use super::send_body::SendBody;
use super::service::Head;
use super::shared::count;
use super::upstream::Upstream;
use super::watch::before;
use super::{fault, headers, shared_streams};
use crate::collect::Slot;
use crate::mirror::Pending;
use crate::mirror::copy::{Copy, CopyBody};

/// What is asked.
pub(crate) struct Ask {
    pub(crate) head: Head,
    pub(crate) body: SendBody,
    /// The same, should it have to be asked again.
    pub(crate) again: Option<Arc<Copy>>,
    /// The shadows' copies of a request that is whole already. They go out with the request: were
    /// they sent before, a client that leaves while a connection is made would have asked the
    /// shadows alone.
    pub(crate) copies: Option<(Pending, Arc<Copy>)>,
}

/// Asks, and waits for the answer's head.
pub(crate) async fn run(
    client: &Rc<Client>,
    pool: &Pool,
    ask: Ask,
    mut slot: Option<&mut Slot>,
) -> Result<(Upstream, Response<()>), Fault> {
    let worker = &client.worker;
    let mut request = request(ask.head, ask.body, pool)?;
    let mut copies = ask.copies;
    let mut pooled = pool.take(worker.ticker.now());
    loop {
        let stale = pooled.is_some();
        let connected = match pooled.take() {
            Some(upstream) => Ok(upstream),
            None => Box::pin(connect(client, pool, slot.as_deref_mut())).await,
        };
        // A backend that cannot be reached keeps nothing from the shadows.
        if let Some((pending, copy)) = copies.take() {
            pending.send_copy(&copy);
        }
        let mut upstream = connected?;
        // Asking twice must not do anything twice, and the body is gone after the first time.
        let is_empty = request.body().is_end_stream();
        let is_kept = is_empty || ask.again.is_some();
        let is_idempotent = request.method().is_idempotent();
        let spare = (stale && is_empty && ask.again.is_none()).then(|| bare(&request));
        let unanswered = match upstream.ask(request, &client.watch, &worker.scratch).await {
            Ok(answer) => return Ok((upstream, answer)),
            Err(unanswered) => unanswered,
        };
        let (fault, untouched) = (unanswered.fault, unanswered.is_untouched);
        let closed = matches!(fault, Fault::ClosedEarly(_) | Fault::Reset | Fault::Write);
        let repeats = is_kept && (untouched || is_idempotent);
        request = match (unanswered.unsent, spare, &ask.again) {
            _ if !stale || !(closed || untouched) => return Err(fault),
            // Not a byte of it was written.
            (Some(request), ..) => *request,
            (None, Some(request), _) if repeats => request,
            (None, None, Some(copy)) if repeats => copied(copy, pool)?,
            (None, ..) => return Err(fault),
        };
        count(&worker.counters().stale_reconnects);
    }
}

async fn connect(
    client: &Rc<Client>,
    pool: &Pool,
    slot: Option<&mut Slot>,
) -> Result<Upstream, Fault> {
    client.watch.set(client.worker.patience.connect);
    let stream = before(&client.watch, pool.target.connect())
        .await
        .ok_or(Fault::Timeout(Phase::Connect))??;
    if let Some(slot) = slot {
        slot.connected();
    }
    client.watch.set(client.worker.patience.first_byte);
    if pool.target.backend.http2 {
        let place = pool.streams.open(stream, client.worker.ticker.now()).await;
        place.map(Upstream::shared).map_err(|error| fault::of(&error, Phase::Connect))
    } else {
        Ok(Upstream::new(Link::new(stream)))
    }
}

/// A request as its backend is asked.
fn request(head: Head, body: SendBody, pool: &Pool) -> Result<Request<SendBody>, Fault> {
    let Head { method, uri, headers } = head;
    if pool.target.backend.http2 {
        return shared_streams::request(method, &uri, headers, &pool.target, body);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The same request without a body.
fn bare(request: &Request<SendBody>) -> Request<SendBody> {
    let mut again = Request::new(SendBody::Empty);
    *again.version_mut() = request.version();
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    again
}

fn copied(copy: &Arc<Copy>, pool: &Pool) -> Result<Request<SendBody>, Fault> {
    let mut head =
        Head { method: copy.method.clone(), uri: copy.uri.clone(), headers: copy.headers.clone() };
    headers::for_backend(&mut head.headers, &pool.target);
    request(head, SendBody::Copy(CopyBody::new(Arc::clone(copy))), pool)
}
