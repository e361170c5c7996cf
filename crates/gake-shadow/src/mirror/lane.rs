//! A lane to a shadow: sends one copy at a time.

use std::rc::Rc;
use std::sync::Arc;

use gake_core::record::Fault;

use super::backend::ShadowBackend;
use super::exchange::{ShadowExchange, ShadowResponse};
use super::lane_queue::LaneQueue;
use super::ledger::Category;
use super::{CopyJob, http1, http2};
use crate::collect::OutcomeSlot;
use crate::exchange::BackendFailure;
use crate::hooks;
use crate::message::body::ShadowRequest;

/// Sends queued copies until it is dropped.
pub(super) async fn run(queue: Rc<LaneQueue>) {
    let shared = Arc::clone(&queue.shared);
    let backend = &shared.shadows[queue.shadow];
    let deadline = queue.ticker.deadline();
    let mut link = None;
    let time = queue.ticker.ticks(backend.config.timeout);
    loop {
        let CopyJob { mut request, mut ticket, mut slot } = queue.next().await;
        ticket.dequeue();
        if backend.gate.is_killed() {
            ticket.end(Category::Killed);
            not_sent(slot, Category::Killed);
            continue;
        }
        if let Some(hooks) = &shared.hooks
            && hooks.munges(&backend.config.backend.name) != hooks::ChangeScope::No
        {
            let name = &backend.config.backend.name;
            match Box::pin(hooks::munge_whole(hooks, name, &request)).await {
                Some(changed) => request = unmarked(changed, backend),
                None => {
                    ticket.end(Category::MungeFailed);
                    not_sent(slot, Category::MungeFailed);
                    continue;
                }
            }
        }
        if let Some(slot) = &mut slot {
            slot.restart();
        }
        deadline.set(time);
        let secret = shared.config.marker_secret.as_ref();
        let mut exchange = ShadowExchange {
            backend,
            secret,
            deadline: &deadline,
            scratch: &queue.scratch,
            limit: shared.config.limits.response_body,
            slot: slot.as_deref_mut(),
        };
        let sent = if backend.target.backend.http2 {
            let now = queue.ticker.now();
            Box::pin(http2::send(&mut exchange, &request, &queue.streams, now)).await
        } else {
            http1::send(&mut exchange, &request, &mut link).await
        };
        match sent {
            Ok(ShadowResponse { status, bytes, cut }) => {
                ticket.record_response(status, bytes);
                ticket.end(if cut { Category::Cut } else { Category::Ok });
                if let Some(slot) = slot {
                    slot.done(cut);
                }
            }
            Err(fault) => {
                let is_timeout = matches!(fault, Fault::Timeout(_) | Fault::ConnectTimeout);
                ticket.end(if is_timeout { Category::Timeout } else { Category::ConnErr });
                if let Some(slot) = slot {
                    slot.failed(BackendFailure::Fault(fault));
                }
            }
        }
        deadline.clear();
    }
}

/// Removes a marker set by a hook.
fn unmarked(request: Arc<ShadowRequest>, backend: &ShadowBackend) -> Arc<ShadowRequest> {
    match &backend.config.marker {
        Some((name, _)) if request.head.has(name.as_str()) => {
            let ShadowRequest { head, body } = &*request;
            let (head, body) = (head.without(name.as_str()), body.clone());
            Arc::new(ShadowRequest { head, body })
        }
        _ => request,
    }
}

fn not_sent(slot: Option<Box<OutcomeSlot>>, category: Category) {
    if let Some(slot) = slot {
        slot.failed(BackendFailure::NotSent(category.name()));
    }
}
