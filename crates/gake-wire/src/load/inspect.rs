//! Inspection of responses beyond faults.

use std::sync::Arc;

use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::clock::Clock;
use gake_core::plan::ExpectedStatus;
use gake_core::record::FAILED_BODY_BYTES;

use crate::client::keep_visitor::KeepVisitor;
use crate::client::visitor::ExchangeVisitor;
use crate::load::check::{BodyCheck, CHECKED_BYTES_MAX, decoded};
use crate::load::stream::StreamVisitor;

/// The checks of a load's responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The expected status codes.
    pub expect: ExpectedStatus,
    /// Whether the bodies of failed responses are counted.
    pub failed_bodies: bool,
    /// The check that the body of every other response must pass.
    pub body: Option<Arc<BodyCheck>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedCheck {
    Status,
    Body,
}

/// Inspects the responses of one lane, one after the other.
#[derive(Debug)]
pub(crate) struct Inspector {
    inspection: Inspection,
    /// The status; 0 before the head.
    status: u16,
    /// Maximum bytes of the body to hold; 0 for none.
    most: usize,
    coding: Vec<u8>,
    body: Vec<u8>,
    /// Whether the body had more bytes than are held.
    is_cut: bool,
}

/// Bytes of an encoded body held to decode its start.
const CODED_BYTES: usize = 4 * FAILED_BODY_BYTES;

/// The buffer capacity that a lane keeps for the next body.
const KEPT_CAPACITY: usize = 64 * 1024;

impl Inspector {
    pub(crate) fn new(inspection: Inspection) -> Self {
        let (coding, body) = (Vec::new(), Vec::new());
        Self { inspection, status: 0, most: 0, coding, body, is_cut: false }
    }

    /// Resets the state for the next response.
    pub(crate) fn begin(&mut self) {
        (self.status, self.most, self.is_cut) = (0, 0, false);
        self.coding.clear();
        self.body.clear();
        self.body.shrink_to(KEPT_CAPACITY);
    }

    pub(crate) fn failed_check(&self) -> Option<FailedCheck> {
        if self.status == 0 {
            return None;
        }
        if !self.inspection.expect.accepts(self.status) {
            return Some(FailedCheck::Status);
        }
        let check = self.inspection.body.as_ref()?;
        let is_met = !self.is_cut && check.is_met(&self.coding, &self.body);
        (!is_met).then_some(FailedCheck::Body)
    }

    /// The status and the start of the body of a failed response, if these are counted.
    pub(crate) fn failed_body(&self) -> Option<(u16, Vec<u8>)> {
        if !self.inspection.failed_bodies {
            return None;
        }
        let start = &self.body[..self.body.len().min(CODED_BYTES)];
        // An encoded body that was cut is decoded as far as possible, or shown encoded.
        let plain = decoded(&self.coding, start, CODED_BYTES).unwrap_or_else(|| start.to_vec());
        Some((self.status, plain))
    }

    /// Starts a response of this status; returns whether its head and body are needed.
    fn start(&mut self, status: u16) -> bool {
        self.begin();
        self.status = status;
        let is_expected = self.inspection.expect.accepts(status);
        self.most = match (is_expected, &self.inspection.body) {
            (true, Some(_)) => CHECKED_BYTES_MAX,
            (true, None) => 0,
            (false, _) if self.inspection.failed_bodies => CODED_BYTES,
            (false, _) => 0,
        };
        self.most > 0
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.most == 0 {
            return;
        }
        let held = self.most.saturating_sub(self.body.len()).min(bytes.len());
        self.body.extend_from_slice(&bytes[..held]);
        self.is_cut |= held < bytes.len();
    }
}

/// Shows a response to the visitors that keep it, inspect it and time its events.
pub(crate) struct WorkVisitor<'a, C> {
    pub(crate) keep: KeepVisitor,
    pub(crate) inspector: Option<&'a mut Inspector>,
    /// Boxed: futures without it stay small.
    pub(crate) stream: Option<Box<StreamVisitor<'a, C>>>,
}

impl<C: Clock> Visitor for WorkVisitor<'_, C> {
    #[inline]
    fn wants_head(&self) -> bool {
        self.keep.wants_head() || self.stream.is_some()
    }

    #[inline]
    fn may_want(&self) -> bool {
        self.wants_head() || self.inspector.is_some()
    }

    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        self.inspector.as_mut().is_some_and(|inspector| inspector.start(status))
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.keep.head(head);
        if let Some(inspector) = &mut self.inspector
            && inspector.start(head.status)
        {
            let coding = head.get("content-encoding").unwrap_or_default();
            inspector.coding.extend_from_slice(coding);
        }
        if let Some(stream) = &mut self.stream {
            stream.head(head);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.keep.body(bytes);
        if let Some(inspector) = &mut self.inspector {
            inspector.body(bytes);
        }
        if let Some(stream) = &mut self.stream {
            stream.body(bytes);
        }
    }
}

impl<C: Clock> ExchangeVisitor for WorkVisitor<'_, C> {}
