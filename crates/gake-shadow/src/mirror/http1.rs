//! Sends a copy to a shadow in HTTP/1.1, over its lane's connection.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::record::{Fault, Phase};
use http::{Method, StatusCode};

use super::copy_writer::CopyWriter;
use super::exchange::{ShadowExchange, ShadowResponse};
use crate::collect::OutcomeSlot;
use crate::message::body::ShadowRequest;
use crate::proxy::deadline::before;
use crate::proxy::policy::headers::ResponseLines;
use crate::proxy::upstream::link::{BackendLink, Scratch, is_stale};

/// Reads per poll, for fairness to other tasks.
const READS: usize = 16;

/// Sends a copy and reads the response, retrying on a new connection if the kept one was stale. A
/// reusable connection is stored in `kept`.
pub(super) async fn send(
    exchange: &mut ShadowExchange<'_>,
    request: &ShadowRequest,
    kept: &mut Option<BackendLink>,
) -> Result<ShadowResponse, Fault> {
    loop {
        let mut link = match kept.take().and_then(BackendLink::ready) {
            Some(link) => link,
            None => BackendLink::new(Box::pin(exchange.stream()).await?),
        };
        let stale = link.used;
        let mut writer = CopyWriter::new(exchange.head(request), &request.body);
        let method = request.head.method();
        link.start(*method == Method::HEAD);
        let mut recorder =
            ResponseRecorder { status: 0, bytes: 0, slot: exchange.slot.as_deref_mut() };
        let running =
            exchange_on(&mut link, &mut writer, &mut recorder, exchange.scratch, exchange.limit);
        let end = before(exchange.deadline, running).await;
        let ResponseRecorder { status, bytes, .. } = recorder;
        return match end {
            None if status == 0 => Err(Fault::Timeout(Phase::FirstByte)),
            None => Err(Fault::Timeout(Phase::Body)),
            Some(Ok(ResponseEnd::Whole { reusable })) => {
                *kept = Some(link).filter(|_| reusable);
                Ok(ShadowResponse { status, bytes, cut: false })
            }
            // The connection is dropped with the unread rest.
            Some(Ok(ResponseEnd::Cut)) => Ok(ShadowResponse { status, bytes, cut: true }),
            Some(Err(fault)) => {
                let again = writer.is_untouched() || method.is_idempotent();
                if stale && again && status == 0 && is_stale(fault) {
                    continue;
                }
                Err(fault)
            }
        };
    }
}

enum ResponseEnd {
    Whole {
        reusable: bool,
    },
    /// At the limit.
    Cut,
}

/// Writes a copy while reading its response.
async fn exchange_on(
    link: &mut BackendLink,
    writer: &mut CopyWriter,
    recorder: &mut ResponseRecorder<'_>,
    scratch: &Scratch,
    limit: u64,
) -> Result<ResponseEnd, Fault> {
    let (mut is_written, mut broken) = (false, None);
    poll_fn(|cx| {
        if !is_written && broken.is_none() {
            match writer.poll(link, cx) {
                Poll::Ready(Ok(())) => is_written = true,
                // The response may have arrived already.
                Poll::Ready(Err(fault)) => broken = Some(fault),
                Poll::Pending => {}
            }
        }
        for _ in 0..READS {
            match link.poll_read(cx, scratch, recorder) {
                Poll::Ready(Ok(Some(response))) => {
                    let reusable = response.reusable() && is_written;
                    let cut = recorder.bytes > limit;
                    let end = if cut { ResponseEnd::Cut } else { ResponseEnd::Whole { reusable } };
                    return Poll::Ready(Ok(end));
                }
                Poll::Ready(Ok(None)) if recorder.bytes > limit => {
                    return Poll::Ready(Ok(ResponseEnd::Cut));
                }
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(broken.unwrap_or(fault))),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Records a response as it is parsed.
struct ResponseRecorder<'a> {
    /// 0 before the head.
    status: u16,
    bytes: u64,
    slot: Option<&'a mut OutcomeSlot>,
}

impl Visitor for ResponseRecorder<'_> {
    fn wants_head(&self) -> bool {
        self.slot.is_some()
    }

    fn wants_head_of(&mut self, status: u16) -> bool {
        self.status = status;
        false
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        if let Some(slot) = &mut self.slot
            && let Ok(status) = StatusCode::from_u16(head.status)
        {
            slot.head(status, &ResponseLines::of(head.headers).map());
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(slot) = &mut self.slot {
            slot.data(&Bytes::copy_from_slice(bytes));
        }
    }
}
