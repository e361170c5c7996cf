//! A copy and its response, independent of the protocol.

use std::time::SystemTime;

use gake_core::record::{Fault, Phase};

use super::backend::ShadowBackend;
use crate::collect::OutcomeSlot;
use crate::config::MarkerSecret;
use crate::message::body::ShadowRequest;
use crate::message::head::RequestHead;
use crate::proxy::deadline::{Deadline, before};
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::edits;
use crate::proxy::upstream::link::Scratch;

pub(super) struct ShadowResponse {
    pub(super) status: u16,
    pub(super) bytes: u64,
    /// The body exceeded the limit.
    pub(super) cut: bool,
}

/// The context in which a copy is sent.
pub(super) struct ShadowExchange<'a> {
    pub(super) backend: &'a ShadowBackend,
    pub(super) secret: Option<&'a MarkerSecret>,
    pub(super) deadline: &'a Deadline,
    pub(super) scratch: &'a Scratch,
    /// Bytes of a response's body to read, roughly.
    pub(super) limit: u64,
    pub(super) slot: Option<&'a mut OutcomeSlot>,
}

impl ShadowExchange<'_> {
    /// Opens a connection to the shadow.
    pub(super) async fn stream(&mut self) -> Result<SocketStream, Fault> {
        let stream = before(self.deadline, self.backend.target.connect())
            .await
            .ok_or(Fault::Timeout(Phase::Connect))??;
        if let Some(slot) = &mut self.slot {
            slot.connected();
        }
        Ok(stream)
    }

    /// The head of the copy for this shadow, with the marker.
    pub(super) fn head(&self, request: &ShadowRequest) -> RequestHead {
        let (head, target) = (&request.head, &self.backend.target);
        let Some((name, value)) = &self.backend.config.marker else {
            return edits::for_backend(head, target, &[]);
        };
        let signed = self
            .secret
            .map(|secret| secret.sign(value, SystemTime::now(), head.method(), head.target()));
        let marker = (name.as_str().as_bytes(), signed.as_ref().unwrap_or(value).as_bytes());
        edits::for_backend(head, target, &[marker])
    }
}
