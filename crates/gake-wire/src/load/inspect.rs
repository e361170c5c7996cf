//! Inspection of responses beyond their status.

use std::sync::Arc;

use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::clock::Clock;
use gake_core::plan::Expect;
use gake_core::record::FAILED_BODY_BYTES;

use crate::client::kept::KeepVisitor;
use crate::client::visitor::ExchangeVisitor;
use crate::load::check::{BodyCheck, CHECKED_BYTES_MAX, decoded};
use crate::load::parts::PartsVisitor;

/// What is checked in the responses of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The status codes of answers that did not fail.
    pub expect: Expect,
    /// Whether the bodies of failed answers are counted.
    pub failed_bodies: bool,
    /// The check that the body of every other answer must pass.
    pub body: Option<Arc<BodyCheck>>,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Its status.
    Status,
    /// Its body.
    Body,
}

/// What one lane has seen of the answer under way. Its room is used again for the next one.
#[derive(Debug)]
pub(crate) struct Inspector {
    inspection: Inspection,
    /// The status; 0 before there is one.
    status: u16,
    /// Bytes of the body that are held at most; 0 when it is of no interest.
    most: usize,
    /// The content coding of the body.
    coding: Vec<u8>,
    body: Vec<u8>,
    /// Whether the body had more bytes than are held.
    is_cut: bool,
}

/// Bytes of a coded body from which the start of the body can be told.
const CODED_BYTES: usize = 4 * FAILED_BODY_BYTES;

/// Bytes that a lane keeps for the next body.
const KEPT_ROOM: usize = 64 * 1024;

impl Inspector {
    pub(crate) fn new(inspection: Inspection) -> Self {
        let (coding, body) = (Vec::new(), Vec::new());
        Self { inspection, status: 0, most: 0, coding, body, is_cut: false }
    }

    /// Forgets the last answer.
    pub(crate) fn begin(&mut self) {
        (self.status, self.most, self.is_cut) = (0, 0, false);
        self.coding.clear();
        self.body.clear();
        self.body.shrink_to(KEPT_ROOM);
    }

    /// What is wrong with the answer that was seen.
    pub(crate) fn wrong(&self) -> Option<Wrong> {
        if self.status == 0 {
            return None;
        }
        if !self.inspection.expect.accepts(self.status) {
            return Some(Wrong::Status);
        }
        let check = self.inspection.body.as_ref()?;
        let is_met = !self.is_cut && check.is_met(&self.coding, &self.body);
        (!is_met).then_some(Wrong::Body)
    }

    /// The status and the start of the body of an answer that failed, when that is to be counted.
    pub(crate) fn failed_body(&self) -> Option<(u16, Vec<u8>)> {
        if !self.inspection.failed_bodies {
            return None;
        }
        let start = &self.body[..self.body.len().min(CODED_BYTES)];
        // A coded body that is cut is told as far as it goes, or as it is.
        let plain = decoded(&self.coding, start, CODED_BYTES).unwrap_or_else(|| start.to_vec());
        Some((self.status, plain))
    }

    /// Begins an answer of this status; whether its head is of interest.
    fn answer(&mut self, status: u16) -> bool {
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
        let room = self.most.saturating_sub(self.body.len()).min(bytes.len());
        self.body.extend_from_slice(&bytes[..room]);
        self.is_cut |= room < bytes.len();
    }
}

/// Shows an answer to what keeps it, what inspects it and what times its parts.
pub(crate) struct WorkVisitor<'a, C> {
    pub(crate) keep: KeepVisitor,
    pub(crate) inspector: Option<&'a mut Inspector>,
    /// Apart, so that who times nothing carries nothing of it along.
    pub(crate) parts: Option<Box<PartsVisitor<'a, C>>>,
}

impl<C: Clock> Visitor for WorkVisitor<'_, C> {
    #[inline]
    fn wants_head(&self) -> bool {
        self.keep.wants_head() || self.parts.is_some()
    }

    #[inline]
    fn may_want(&self) -> bool {
        self.wants_head() || self.inspector.is_some()
    }

    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        self.inspector.as_mut().is_some_and(|inspector| inspector.answer(status))
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.keep.head(head);
        if let Some(inspector) = &mut self.inspector
            && inspector.answer(head.status)
        {
            let coding = head.get("content-encoding").unwrap_or_default();
            inspector.coding.extend_from_slice(coding);
        }
        if let Some(parts) = &mut self.parts {
            parts.head(head);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.keep.body(bytes);
        if let Some(inspector) = &mut self.inspector {
            inspector.body(bytes);
        }
        if let Some(parts) = &mut self.parts {
            parts.body(bytes);
        }
    }
}

impl<C: Clock> ExchangeVisitor for WorkVisitor<'_, C> {}
