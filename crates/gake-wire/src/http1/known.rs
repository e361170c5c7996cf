//! A head seen before needs no parsing.
//!
//! A server under load sends the same head again and again, but for its `Date` once a second.
//! Comparing it with the last one costs a hundredth of parsing it.

use super::Version;
use super::head::Framing;

/// Longest head kept. Longer ones are parsed every time.
const LONGEST: usize = 1024;

/// After so many heads in a row that were not the last one again, a connection's heads are taken
/// to be all different, and no more are kept.
const MISSES_MAX: u8 = 16;

/// What a final head means for the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meaning {
    pub(super) status: u16,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
}

/// The last head of a connection, and what it means.
#[derive(Debug, Default)]
pub(super) struct Known {
    bytes: Vec<u8>,
    /// What `bytes` mean; none as long as there are none.
    meaning: Option<Meaning>,
    /// The same head means another body for HEAD.
    request_is_head: bool,
    misses: u8,
}

impl Known {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), meaning: None, request_is_head: false, misses: 0 }
    }

    /// The length and meaning of the head that `bytes` begin with, when it is the known one.
    #[inline]
    pub(super) fn recall(
        &mut self,
        bytes: &[u8],
        request_is_head: bool,
    ) -> Option<(usize, Meaning)> {
        let meaning = self.meaning?;
        if self.request_is_head != request_is_head || !bytes.starts_with(&self.bytes) {
            return None;
        }
        self.misses = 0;
        Some((self.bytes.len(), meaning))
    }

    /// Keeps a whole head and what it means.
    pub(super) fn learn(&mut self, head: &[u8], request_is_head: bool, meaning: Meaning) {
        if self.misses >= MISSES_MAX || head.len() > LONGEST {
            self.meaning = None;
            return;
        }
        self.misses += 1;
        self.bytes.clear();
        self.bytes.extend_from_slice(head);
        self.request_is_head = request_is_head;
        self.meaning = Some(meaning);
    }
}
