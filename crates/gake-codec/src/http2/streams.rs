//! The live streams of a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use gake_core::record::GrpcStatus;

/// No slot, or no stream.
const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// 0: the slot is free.
    pub(super) id: u32,
    /// The receiver of its events.
    pub(super) owner: u32,
    /// The status of the final head; 0 before it.
    pub(super) status: u16,
    /// `grpc-status` of the trailers, or of a head without a body.
    pub(super) grpc_status: Option<GrpcStatus>,
    pub(super) is_head: bool,
    /// Whether to report head and body to the owner.
    pub(super) is_shown: bool,
    /// Whether any frame of the response has come.
    pub(super) has_begun: bool,
    pub(super) interim: u32,
    /// Bytes of the body received, and announced by the head.
    pub(super) body: u64,
    pub(super) announced: Option<u64>,
    /// Bytes received and not yet returned by a WINDOW_UPDATE.
    pub(super) unacknowledged: u32,
    /// The window for sending. A change of the server's settings can make it negative.
    pub(super) window: i64,
    pub(super) bytes_in: u64,
    /// Boxed: few requests have one, and streams are moved.
    pub(super) upload: Option<Box<Upload>>,
    pub(super) queued: OutputRange,
}

/// The rest of a request's body, not yet in the output.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) body: Arc<[u8]>,
    pub(super) at: usize,
    /// Buffers after `body`.
    pub(super) more: VecDeque<Arc<[u8]>>,
    /// Whether further buffers may come.
    pub(super) is_open: bool,
    /// Whether it is in the queue of uploads.
    pub(super) is_queued: bool,
    /// Whether it has waited for a window.
    pub(super) has_waited: bool,
}

impl Upload {
    pub(super) fn new(body: Arc<[u8]>, is_open: bool) -> Self {
        let more = VecDeque::new();
        Self { body, at: 0, more, is_open, is_queued: !is_open, has_waited: false }
    }

    /// Remaining bytes of the current buffer, and whether it is the last.
    pub(super) fn left(&mut self) -> (usize, bool) {
        if self.at == self.body.len()
            && let Some(next) = self.more.pop_front()
        {
            (self.body, self.at) = (next, 0);
        }
        (self.body.len() - self.at, self.more.is_empty() && !self.is_open)
    }
}

/// The frames of a stream in the connection's output: the offsets around them, and their bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OutputRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) bytes: u64,
}

/// Streams by slot, which is fixed for a stream's life, and by number.
#[derive(Debug)]
pub(super) struct StreamTable {
    slots: Vec<Stream>,
    free: Vec<u32>,
    /// A Robin Hood hash table of numbers and slots. The hash is half the number, so that numbers in
    /// sequence rarely collide.
    index: Vec<(u32, u32)>,
}

impl StreamTable {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: vec![(0, NONE); 4] }
    }

    #[inline]
    pub(super) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot of the live stream with this number.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut at = (id >> 1) as usize & mask;
        loop {
            match self.index[at] {
                (known, slot) if known == id => return Some(slot),
                (0, _) => return None,
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        (0..).zip(&mut self.slots).filter(|(_, stream)| stream.id != 0)
    }

    /// Adds a stream and returns its slot.
    #[inline]
    pub(super) fn insert(&mut self, stream: Stream) -> u32 {
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                // Reserved now, so that freeing a slot never allocates.
                self.free.reserve(self.slots.len());
                (self.slots.len() - 1) as u32
            }
        };
        if self.live() * 2 > self.index.len() {
            self.grow();
        }
        self.index_insert(id, slot);
        slot
    }

    /// Removes a stream and frees its slot.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Stream {
        let stream = std::mem::take(&mut self.slots[slot as usize]);
        self.index_remove(stream.id);
        self.free.push(slot);
        stream
    }

    #[cold]
    fn grow(&mut self) {
        let wider = vec![(0, NONE); self.index.len() * 2];
        for (id, slot) in std::mem::replace(&mut self.index, wider) {
            if id != 0 {
                self.index_insert(id, slot);
            }
        }
    }

    /// Robin Hood insertion: the entry farther from its home bucket takes the bucket, so that
    /// entries of one home stay contiguous.
    #[inline]
    fn index_insert(&mut self, id: u32, slot: u32) {
        let mask = self.index.len() - 1;
        let far = |at: usize, id: u32| at.wrapping_sub((id >> 1) as usize) & mask;
        let mut one = (id, slot);
        let mut at = (id >> 1) as usize & mask;
        while self.index[at].0 != 0 {
            if far(at, self.index[at].0) < far(at, one.0) {
                std::mem::swap(&mut self.index[at], &mut one);
            }
            at = (at + 1) & mask;
        }
        self.index[at] = one;
    }

    /// Backward-shift deletion: moves up the following entries, to the first in its home bucket.
    #[inline]
    fn index_remove(&mut self, id: u32) {
        let mask = self.index.len() - 1;
        let mut hole = (id >> 1) as usize & mask;
        while self.index[hole].0 != id {
            hole = (hole + 1) & mask;
        }
        loop {
            let at = (hole + 1) & mask;
            let (next, slot) = self.index[at];
            if next == 0 || (next >> 1) as usize & mask == at {
                break;
            }
            self.index[hole] = (next, slot);
            hole = at;
        }
        self.index[hole] = (0, NONE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn streams_are_found_as_in_a_map(ends in prop::collection::vec(0_usize..40, 1..300)) {
            let mut streams = StreamTable::new();
            let mut model = BTreeMap::new();
            for (number, end) in ends.into_iter().enumerate() {
                let id = number as u32 * 2 + 1;
                let slot = streams.insert(Stream { id, ..Stream::default() });
                prop_assert!(!model.values().any(|known| *known == slot));
                model.insert(id, slot);
                if let Some((id, slot)) = model.iter().nth(end).map(|(id, slot)| (*id, *slot)) {
                    prop_assert_eq!(streams.remove(slot).id, id);
                    model.remove(&id);
                }
                prop_assert_eq!(streams.live(), model.len());
                for id in (1..number as u32 * 2 + 4).step_by(2) {
                    prop_assert_eq!(streams.find(id), model.get(&id).copied());
                }
            }
        }
    }
}
