//! A cache of response heads.
//!
//! Under load, a server repeats the same few heads; only `Date` changes, once a second. Comparing a
//! head with a cached one costs a hundredth of parsing it.

use super::head::Framing;
use super::types::Version;

/// Longer heads are not cached.
const HEAD_BYTES_MAX: usize = 1024;

/// Enough for a few endpoints, or a few servers behind one address.
const HEADS_MAX: usize = 4;

/// After this many misses in a row, all heads are assumed to differ: only one in [`LEARN_EVERY`] is
/// cached, to notice when that changes.
const MISSES_MAX: u32 = 16;

/// See [`MISSES_MAX`].
const LEARN_EVERY: u32 = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct ParsedHead {
    pub(super) status: u16,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
}

#[derive(Debug)]
struct KnownHead {
    bytes: Vec<u8>,
    parsed: ParsedHead,
    /// The same head has another framing in the response to HEAD.
    request_is_head: bool,
}

/// The most recent distinct heads of an origin, shared by its connections.
#[derive(Debug, Default)]
pub struct KnownHeads {
    heads: Vec<KnownHead>,
    /// The one to replace next.
    oldest: usize,
    misses: u32,
}

impl KnownHeads {
    /// An empty cache.
    pub const fn new() -> Self {
        Self { heads: Vec::new(), oldest: 0, misses: 0 }
    }

    /// The length and parsed of the cached head that `bytes` begin with.
    #[inline]
    pub(super) fn recall(
        &mut self,
        bytes: &[u8],
        request_is_head: bool,
    ) -> Option<(usize, ParsedHead)> {
        let same = |known: &&KnownHead| {
            known.request_is_head == request_is_head && bytes.starts_with(&known.bytes)
        };
        let known = self.heads.iter().find(same)?;
        self.misses = 0;
        Some((known.bytes.len(), known.parsed))
    }

    pub(super) fn learn(&mut self, head: &[u8], request_is_head: bool, parsed: ParsedHead) {
        self.misses = self.misses.saturating_add(1);
        let learns = self.misses <= MISSES_MAX || self.misses.is_multiple_of(LEARN_EVERY);
        if !learns || head.len() > HEAD_BYTES_MAX {
            return;
        }
        if self.heads.len() < HEADS_MAX {
            self.heads.push(KnownHead { bytes: head.to_vec(), parsed, request_is_head });
            return;
        }
        let oldest = &mut self.heads[self.oldest];
        oldest.bytes.clear();
        oldest.bytes.extend_from_slice(head);
        oldest.parsed = parsed;
        oldest.request_is_head = request_is_head;
        self.oldest = (self.oldest + 1) % HEADS_MAX;
    }
}
