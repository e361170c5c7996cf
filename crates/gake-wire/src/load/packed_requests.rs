//! Many prepared requests of HTTP/1.1, packed.

use std::collections::HashMap;

use gake_codec::http1::request::RenderedRequest;

use crate::client::request::PreparedRequest;
use crate::load::feed::LabelledRequest;
use crate::load::packed_list::PackedList;

/// Requests whose bytes are packed. One that is sent is unpacked into memory of the lane, which costs
/// some copies.
#[derive(Debug, Default)]
pub(crate) struct PackedRequests {
    /// What is written first; the tag is the kind.
    first: PackedList,
    /// Everything else, which many requests have in common.
    kinds: Vec<LabelledRequest>,
    numbers: HashMap<KindKey, u32>,
}

/// Origin, label, flags and address of the large body.
type KindKey = (u32, u16, [bool; 4], usize);

impl PackedRequests {
    /// Whether a request is only bytes of HTTP/1.1.
    pub(crate) fn can_hold(request: &PreparedRequest) -> bool {
        request.http2.is_none()
            && request.http3.is_none()
            && request.websocket.is_none()
            && request.message.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    pub(crate) fn push(&mut self, mut one: LabelledRequest) {
        let first = std::mem::take(&mut one.request.rendered.first);
        let RenderedRequest { rest, is_head, idempotent, replayable, closes, .. } =
            &one.request.rendered;
        let flags = [*is_head, *idempotent, *replayable, *closes];
        // The kind keeps the body, so that no other one gets its address.
        let body = rest.as_ref().map_or(0, |rest| rest.as_ptr().addr());
        let key = (one.request.origin, one.label, flags, body);
        let kind = *self.numbers.entry(key).or_insert_with(|| {
            self.kinds.push(one);
            self.kinds.len() as u32 - 1
        });
        self.first.push(kind, &first);
    }

    /// Unpacks a request into `made`, without an allocation once `made` has been used.
    #[inline]
    pub(crate) fn unpack<'a>(
        &self,
        number: usize,
        made: &'a mut Option<Box<LabelledRequest>>,
    ) -> &'a LabelledRequest {
        let made = made.get_or_insert_with(|| Box::new(LabelledRequest::of_kind(&self.kinds[0])));
        let mut first = std::mem::take(&mut made.request.rendered.first);
        let kind = self.first.get(number, &mut first);
        **made = LabelledRequest::of_kind(&self.kinds[kind as usize]);
        made.request.rendered.first = first;
        made
    }

    pub(crate) fn kinds_mut(&mut self) -> &mut [LabelledRequest] {
        &mut self.kinds
    }
}

impl LabelledRequest {
    /// A request of a kind, without its own bytes.
    fn of_kind(Self { request, label }: &Self) -> Self {
        let (http2, http3, websocket, message) = (None, None, None, None);
        let (origin, rendered) = (request.origin, request.rendered.clone());
        let request = PreparedRequest { origin, rendered, http2, http3, websocket, message };
        Self { request, label: *label }
    }
}
