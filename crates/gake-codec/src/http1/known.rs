//! Heads seen before, which need no parsing.
//!
//! A server under load sends the same few heads again and again, but for the `Date` once a
//! second. Comparing a head with a known one costs a hundredth of parsing it.

use super::head::Framing;
use super::types::Version;

/// Bytes of the longest head kept. Longer ones are parsed every time.
const LONGEST: usize = 1024;

/// Heads kept at once: a few endpoints, or a few servers behind one address.
const HEADS_MAX: usize = 4;

/// After this many unknown heads in a row, the heads are taken to be all different, and only one
/// in [`LEARN_EVERY`] is kept, to find out when that changes.
const MISSES_MAX: u32 = 16;

/// See [`MISSES_MAX`].
const LEARN_EVERY: u32 = 64;

/// What a final head means for the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meaning {
    pub(super) status: u16,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
}

#[derive(Debug)]
struct KnownHead {
    bytes: Vec<u8>,
    meaning: Meaning,
    /// The same head means another body for HEAD.
    request_is_head: bool,
}

/// The last different heads of an origin, and what they mean. Its connections share them.
#[derive(Debug, Default)]
pub struct KnownHeads {
    heads: Vec<KnownHead>,
    /// The one to be replaced next.
    oldest: usize,
    /// Unknown heads in a row.
    misses: u32,
}

impl KnownHeads {
    /// No head is known yet.
    pub const fn new() -> Self {
        Self { heads: Vec::new(), oldest: 0, misses: 0 }
    }

    /// The length and meaning of the head that `bytes` begin with, when it is known.
    #[inline]
    pub(super) fn recall(
        &mut self,
        bytes: &[u8],
        request_is_head: bool,
    ) -> Option<(usize, Meaning)> {
        let same = |known: &&KnownHead| {
            known.request_is_head == request_is_head && bytes.starts_with(&known.bytes)
        };
        let known = self.heads.iter().find(same)?;
        self.misses = 0;
        Some((known.bytes.len(), known.meaning))
    }

    /// Keeps a whole head and what it means.
    pub(super) fn learn(&mut self, head: &[u8], request_is_head: bool, meaning: Meaning) {
        self.misses = self.misses.saturating_add(1);
        let learns = self.misses <= MISSES_MAX || self.misses.is_multiple_of(LEARN_EVERY);
        if !learns || head.len() > LONGEST {
            return;
        }
        if self.heads.len() < HEADS_MAX {
            self.heads.push(KnownHead { bytes: head.to_vec(), meaning, request_is_head });
            return;
        }
        let oldest = &mut self.heads[self.oldest];
        oldest.bytes.clear();
        oldest.bytes.extend_from_slice(head);
        oldest.meaning = meaning;
        oldest.request_is_head = request_is_head;
        self.oldest = (self.oldest + 1) % HEADS_MAX;
    }
}
