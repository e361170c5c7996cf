//! What is looked at in answers besides their status.

use gake_core::plan::Expect;
use gake_core::record::FAILED_BODY_BYTES;

use crate::http1::{ResponseHead, Visitor};
use crate::kept::KeepVisitor;

/// What is looked at in the answers of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The status codes of answers that did not fail.
    pub expect: Expect,
    /// Whether the bodies of failed answers are counted.
    pub failed_bodies: bool,
}

/// What one lane has seen of the answer under way. Its room is used again for the next one.
#[derive(Debug)]
pub(crate) struct Inspector {
    inspection: Inspection,
    /// The status, of an answer whose body is wanted.
    status: Option<u16>,
    /// Bytes of the body that are held at most.
    most: usize,
    body: Vec<u8>,
}

impl Inspector {
    pub(crate) fn new(inspection: Inspection) -> Self {
        Self { inspection, status: None, most: 0, body: Vec::new() }
    }

    /// Forgets the last answer.
    pub(crate) fn begin(&mut self) {
        (self.status, self.most) = (None, 0);
        self.body.clear();
    }

    /// The status and the start of the body of the answer that was seen, when it failed.
    pub(crate) fn failed(&self) -> Option<(u16, &[u8])> {
        Some((self.status?, &self.body))
    }

    /// Begins an answer of this status; whether its head is of interest.
    fn answer(&mut self, status: u16) -> bool {
        self.begin();
        if self.inspection.failed_bodies && !self.inspection.expect.accepts(status) {
            (self.status, self.most) = (Some(status), FAILED_BODY_BYTES);
        }
        false
    }

    fn body(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.body.len()).min(bytes.len());
        self.body.extend_from_slice(&bytes[..room]);
    }
}

/// Shows an answer to what keeps it and to what inspects it.
pub(crate) struct WorkVisitor<'a> {
    pub(crate) keep: KeepVisitor,
    pub(crate) inspector: Option<&'a mut Inspector>,
}

impl Visitor for WorkVisitor<'_> {
    #[inline]
    fn wants_head(&self) -> bool {
        self.keep.wants_head()
    }

    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        self.inspector.as_mut().is_some_and(|inspector| inspector.answer(status))
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.keep.head(head);
        if let Some(inspector) = &mut self.inspector {
            inspector.answer(head.status);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.keep.body(bytes);
        if let Some(inspector) = &mut self.inspector {
            inspector.body(bytes);
        }
    }
}
