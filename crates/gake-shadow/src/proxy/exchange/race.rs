//! A race: the request goes to several backends, and the first response to the client.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use gake_core::record::Fault;

use crate::collect::{ExchangeCollector, OutcomeSlot};
use crate::exchange::{BackendFailure, Role};
use crate::hooks::{self, ChangeScope};
use crate::message::body::{ShadowBody, ShadowRequest};
use crate::message::head::{Framing, RequestHead};
use crate::message::response_head::BackendResponseHead;
use crate::mirror::bits;
use crate::proxy::client::ClientState;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::exchange;
use crate::proxy::exchange::outbound::{self, OutboundRequest};
use crate::proxy::exchange::request_body::RequestBody;
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::exchange::response::UpstreamResponse;
use crate::proxy::exchange::whole_body;
use crate::proxy::upstream::Upstream;
use crate::proxy::upstream::edits;
use crate::proxy::upstream::pool::BackendPool;

pub(crate) struct Contenders {
    pub(crate) master: bool,
    pub(crate) shadows: u32,
    pub(crate) collector: Option<Arc<ExchangeCollector>>,
}

struct RaceResult {
    pool: Rc<BackendPool>,
    slot: Option<Box<OutcomeSlot>>,
    response: Result<(Upstream, BackendResponseHead), Fault>,
}

type Running = Pin<Box<dyn Future<Output = RaceResult>>>;

/// Sends the request, with its body buffered, to all contenders.
pub(crate) async fn run(
    client: &Rc<ClientState>,
    head: RequestHead,
    incoming: RequestBody,
    contenders: Contenders,
) -> Result<UpstreamResponse, Refusal> {
    let collector = contenders.collector;
    let mut body = whole_body::read(client, incoming, collector.as_deref()).await?;
    body.chunked = head.framing() == Framing::Chunked;
    let request = Arc::new(ShadowRequest { head, body });
    let mut running: Vec<Running> = Vec::new();
    if contenders.master {
        let pool = Rc::clone(&client.worker.master);
        running.push(Box::pin(runner(client, pool, 0, Role::Master, &request, collector.as_ref())));
    }
    for shadow in bits(contenders.shadows) {
        let pool = Rc::clone(&client.worker.contenders[shadow]);
        let role = client.worker.shared.shadows[shadow].config.role;
        running.push(Box::pin(runner(
            client,
            pool,
            shadow + 1,
            role,
            &request,
            collector.as_ref(),
        )));
    }
    drop(collector);
    let mut last = None;
    while !running.is_empty() {
        let (index, result) = std::future::poll_fn(|cx| {
            let mut all = running.iter_mut().enumerate();
            let first = all.find_map(|(index, one)| match one.as_mut().poll(cx) {
                Poll::Ready(result) => Some((index, result)),
                Poll::Pending => None,
            });
            first.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        drop(running.swap_remove(index));
        let RaceResult { pool, slot, response } = result;
        match response {
            // The losers are dropped with their connections.
            Ok((upstream, response)) => {
                return exchange::relay_response(client, &pool, upstream, response, slot, false);
            }
            Err(fault) => last = Some(exchange::failed(client, &pool, slot, fault)),
        }
    }
    Err(last.unwrap_or_else(|| Refusal::bad("there is no backend in the race")))
}

fn runner(
    client: &Rc<ClientState>,
    pool: Rc<BackendPool>,
    order: usize,
    role: Role,
    request: &Arc<ShadowRequest>,
    collector: Option<&Arc<ExchangeCollector>>,
) -> impl Future<Output = RaceResult> + use<> {
    let (client, mut request) = (Rc::clone(client), Arc::clone(request));
    let name = Arc::clone(&pool.target.backend.name);
    let mut slot = collector.map(|collector| {
        let mut slot = collector.slot(order, &name, role);
        slot.set_default_failure(BackendFailure::NotSent("race_lost"));
        slot
    });
    async move {
        if let Some(hooks) = &client.worker.shared.hooks
            && hooks.munges(&name) != ChangeScope::No
        {
            match hooks::munge_whole(hooks, &name, &request).await {
                Some(changed) => request = changed,
                None if role == Role::Master => {}
                None => return RaceResult { pool, slot, response: Err(Fault::Script) },
            }
        }
        let head = edits::for_backend(&request.head, &pool.target, &[]);
        let body = SendBody::Copy(ShadowBody::new(Arc::clone(&request)));
        let again = Some(request);
        let ask = OutboundRequest { head, is_upgrade: false, body, again, copies: None };
        let response = outbound::send(&client, &pool, ask, slot.as_deref_mut()).await;
        RaceResult { pool, slot, response }
    }
}
