//! Buffers a complete request body.

use std::pin::Pin;
use std::rc::Rc;

use http::StatusCode;
use http_body::Body;

use crate::collect::ExchangeCollector;
use crate::message::body::{BodyBuffer, BufferedBody};
use crate::proxy::client::ClientState;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::deadline::before;
use crate::proxy::exchange::request_body::RequestBody;
use crate::proxy::state::count;

/// Reads a body up to the limit for copies.
pub(crate) async fn read(
    client: &Rc<ClientState>,
    mut incoming: RequestBody,
    collector: Option<&ExchangeCollector>,
) -> Result<BufferedBody, Refusal> {
    let worker = &client.worker;
    let limit = worker.shared.config.limits.shadow_body;
    let mut body_buffer = BodyBuffer::default();
    client.deadline.set(worker.timeout_ticks.client);
    while !incoming.is_end_stream() {
        let next = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx));
        let Some(frame) = before(&client.deadline, next).await else {
            count(&worker.counters().client_timeouts);
            return Err(Refusal::body_timeout());
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Refusal::body_incomplete())?;
        let frame = client.cleaned(frame);
        client.deadline.set(worker.timeout_ticks.client);
        if let Some(data) = frame.data_ref() {
            body_buffer.take(data, limit);
        } else if let Some(trailers) = frame.trailers_ref() {
            body_buffer.trailers(trailers);
        }
        if body_buffer.is_over() {
            let reason = "the request body exceeds the buffer limit";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
    }
    let seen = body_buffer.seen();
    let kept = body_buffer.finish();
    if let Some(collector) = collector {
        collector.body(&kept, seen, false);
    }
    client.request_received();
    Ok(kept)
}
