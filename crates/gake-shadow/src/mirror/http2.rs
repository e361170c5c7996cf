//! A copy to a shadow that speaks HTTP/2: a stream of a connection that the thread's lanes share.

use std::sync::Arc;

use gake_core::record::{Fault, Phase};
use http::Response;
use http_body_util::BodyExt;

use super::exchange::{ShadowExchange, ShadowResponse};
use crate::message::body::{ShadowBody, ShadowRequest};
use crate::proxy::deadline::before;
use crate::proxy::http2::intake::StreamBody;
use crate::proxy::http2::shared_streams::{self, SharedStreams};
use crate::proxy::upstream::fault;
use crate::proxy::upstream::link::is_stale;

/// One copy and its answer, on a new connection if the old one turns out to be closed; `now` is
/// the present tick.
pub(super) async fn send(
    exchange: &mut ShadowExchange<'_>,
    asked: &Arc<ShadowRequest>,
    streams: &SharedStreams,
    now: u64,
) -> Result<ShadowResponse, Fault> {
    let (head, method) = (exchange.head(asked), asked.head.method());
    let mut taken = streams.take(now);
    loop {
        let mut lease = match taken.take() {
            Some(lease) => lease,
            None => {
                let stream = exchange.stream().await?;
                let opened = before(exchange.deadline, streams.open(stream, now)).await;
                let opened = opened.ok_or(Fault::Timeout(Phase::Connect))?;
                opened.map_err(|error| fault::of(&error, Phase::Connect))?
            }
        };
        let body = ShadowBody::new(Arc::clone(asked));
        let request = shared_streams::request(&head, &exchange.backend.target, body)?;
        let (error, unsent) = match lease.ask(request) {
            Err(unsent) => (unsent.error, unsent.request.is_some()),
            Ok(asked) => match before(exchange.deadline, asked).await {
                Some(Ok(response)) => return read(exchange, response).await,
                Some(Err(error)) => (error, false),
                None => {
                    lease.mark_suspect();
                    return Err(Fault::Timeout(Phase::FirstByte));
                }
            },
        };
        let fault = fault::of(&error, Phase::FirstByte);
        let unsent = unsent || fault::is_untouched(&error);
        let again = unsent || (method.is_idempotent() && is_stale(fault));
        if !(lease.used && again) {
            return Err(fault);
        }
    }
}

/// Reads an answer up to the limit. Dropped before its end, its stream is reset.
async fn read(
    exchange: &mut ShadowExchange<'_>,
    response: Response<StreamBody>,
) -> Result<ShadowResponse, Fault> {
    let status = response.status();
    if let Some(slot) = &mut exchange.slot {
        slot.head(status, response.headers());
    }
    let (status, mut bytes) = (status.as_u16(), 0);
    let mut body = response.into_body();
    loop {
        let frame = before(exchange.deadline, body.frame()).await;
        let Some(frame) = frame.ok_or(Fault::Timeout(Phase::Body))? else {
            return Ok(ShadowResponse { status, bytes, cut: false });
        };
        let frame = frame.map_err(|error| fault::of(&error, Phase::Body))?;
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        if let Some(slot) = &mut exchange.slot {
            slot.frame(&frame);
        }
        if bytes > exchange.limit {
            return Ok(ShadowResponse { status, bytes, cut: true });
        }
    }
}
