//! Sends a copy to a shadow in HTTP/2, on connections shared by the thread's lanes.

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

/// Sends a copy and reads the response, retrying on a new connection if the old one was stale;
/// `now` is the current tick.
pub(super) async fn send(
    exchange: &mut ShadowExchange<'_>,
    copy: &Arc<ShadowRequest>,
    streams: &SharedStreams,
    now: u64,
) -> Result<ShadowResponse, Fault> {
    let (head, method) = (exchange.head(copy), copy.head.method());
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
        let body = ShadowBody::new(Arc::clone(copy));
        let request = shared_streams::request(&head, &exchange.backend.target, body)?;
        let (error, unsent) = match lease.ask(request) {
            Err(unsent) => (unsent.error, unsent.request.is_some()),
            Ok(pending) => match before(exchange.deadline, pending).await {
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

/// Reads a response up to the limit. Dropping it before its end resets the stream.
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
