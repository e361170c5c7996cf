//! A copy to a shadow that speaks HTTP/2: a stream of a connection that the thread's lanes share.

use std::sync::Arc;

use gake_core::record::{Fault, Phase};
use http::Response;
use http_body_util::BodyExt;

use super::lane::{Sending, Sent};
use crate::message::body::{ShadowBody, ShadowRequest};
use crate::proxy::fault;
use crate::proxy::intake::StreamBody;
use crate::proxy::link::is_stale;
use crate::proxy::shared_streams::{self, SharedStreams};
use crate::proxy::watch::before;

/// One copy and its answer, on a new connection if the old one turns out to be closed; `now` is
/// the present tick.
pub(super) async fn send(
    sending: &mut Sending<'_>,
    asked: &Arc<ShadowRequest>,
    streams: &SharedStreams,
    now: u64,
) -> Result<Sent, Fault> {
    let (head, method) = (sending.head(asked), asked.head.method());
    let mut taken = streams.take(now);
    loop {
        let mut place = match taken.take() {
            Some(place) => place,
            None => {
                let stream = sending.stream().await?;
                let opened = before(sending.watch, streams.open(stream, now)).await;
                let opened = opened.ok_or(Fault::Timeout(Phase::Connect))?;
                opened.map_err(|error| fault::of(&error, Phase::Connect))?
            }
        };
        let body = ShadowBody::new(Arc::clone(asked));
        let request = shared_streams::request(&head, &sending.backend.target, body)?;
        let (error, unsent) = match place.ask(request) {
            Err(unsent) => (unsent.error, unsent.request.is_some()),
            Ok(asked) => match before(sending.watch, asked).await {
                Some(Ok(answer)) => return read(sending, answer).await,
                Some(Err(error)) => (error, false),
                None => {
                    place.doubt();
                    return Err(Fault::Timeout(Phase::FirstByte));
                }
            },
        };
        let fault = fault::of(&error, Phase::FirstByte);
        let unsent = unsent || fault::is_untouched(&error);
        let again = unsent || (method.is_idempotent() && is_stale(fault));
        if !(place.used && again) {
            return Err(fault);
        }
    }
}

/// Reads an answer up to the limit. Dropped before its end, its stream is reset.
async fn read(sending: &mut Sending<'_>, answer: Response<StreamBody>) -> Result<Sent, Fault> {
    let status = answer.status();
    if let Some(slot) = &mut sending.slot {
        slot.head(status, answer.headers());
    }
    let (status, mut bytes) = (status.as_u16(), 0);
    let mut body = answer.into_body();
    loop {
        let frame = before(sending.watch, body.frame()).await;
        let Some(frame) = frame.ok_or(Fault::Timeout(Phase::Body))? else {
            return Ok(Sent { status, bytes, cut: false });
        };
        let frame = frame.map_err(|error| fault::of(&error, Phase::Body))?;
        bytes += frame.data_ref().map_or(0, |piece| piece.len() as u64);
        if let Some(slot) = &mut sending.slot {
            slot.frame(&frame);
        }
        if bytes > sending.limit {
            return Ok(Sent { status, bytes, cut: true });
        }
    }
}
