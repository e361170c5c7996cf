//! The live streams of a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use gake_core::record::GrpcStatus;

/// No slot, or no stream.
const NONE: u32 = u32::MAX;

/// What is known of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// 0: the slot is free.
    pub(super) id: u32,
    /// Who hears of it.
    pub(super) owner: u32,
    /// The status of the final head; 0 before it.
    pub(super) status: u16,
    /// `grpc-status` of the trailers, or of a head that is the whole answer.
    pub(super) grpc_status: Option<GrpcStatus>,
    pub(super) is_head: bool,
    /// Whether head and body are shown to the owner.
    pub(super) is_shown: bool,
    /// Whether any frame of the answer has come.
    pub(super) has_begun: bool,
    pub(super) interim: u32,
    /// Bytes of the body so far, and how many the head announced.
    pub(super) body: u64,
    pub(super) announced: Option<u64>,
    /// Bytes received that no WINDOW_UPDATE has answered.
    pub(super) unacknowledged: u32,
    /// What may still be sent. A change of the server's settings can make it negative.
    pub(super) window: i64,
    pub(super) bytes_in: u64,
    /// In a box: few requests have one, and each stream is moved.
    pub(super) upload: Option<Box<Upload>>,
    pub(super) queued: Queued,
}

/// The part of a request's body that is not in the output yet.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) body: Arc<[u8]>,
    pub(super) at: usize,
    /// Pieces after `body`.
    pub(super) more: VecDeque<Arc<[u8]>>,
    /// Whether further pieces may come.
    pub(super) is_open: bool,
    /// Whether it is among the bodies that wait to be sent.
    pub(super) is_queued: bool,
    /// Whether it has waited for a window.
    pub(super) has_waited: bool,
}

impl Upload {
    /// Of `body`; `is_open`: whether further pieces may come.
    pub(super) fn new(body: Arc<[u8]>, is_open: bool) -> Self {
        let more = VecDeque::new();
        Self { body, at: 0, more, is_open, is_queued: !is_open, has_waited: false }
    }

    /// Bytes of the piece that are left, once those before it are sent; whether they are the last.
    pub(super) fn left(&mut self) -> (usize, bool) {
        if self.at == self.body.len()
            && let Some(next) = self.more.pop_front()
        {
            (self.body, self.at) = (next, 0);
        }
        (self.body.len() - self.at, self.more.is_empty() && !self.is_open)
    }
}

/// Where in the connection's output the frames of a stream are.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Queued {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) bytes: u64,
}

/// Streams by slot, which stays while the stream lives, and by number.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    /// Number and slot, open-addressed by the number's half: numbers in sequence rarely collide.
    places: Vec<(u32, u32)>,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), places: vec![(0, NONE); 4] }
    }

    #[inline]
    pub(super) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot of the live stream with this number.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        let mask = self.places.len() - 1;
        let mut at = (id >> 1) as usize & mask;
        loop {
            match self.places[at] {
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

    /// The live streams with their slots.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        (0..).zip(&mut self.slots).filter(|(_, stream)| stream.id != 0)
    }

    /// Adds a stream, and says its slot.
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
                // Room to give every slot back, so that doing so never allocates.
                self.free.reserve(self.slots.len());
                (self.slots.len() - 1) as u32
            }
        };
        if self.live() * 2 > self.places.len() {
            self.grow();
        }
        self.place(id, slot);
        slot
    }

    /// Ends a stream, whose slot is free then.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Stream {
        let stream = std::mem::take(&mut self.slots[slot as usize]);
        self.displace(stream.id);
        self.free.push(slot);
        stream
    }

    #[cold]
    fn grow(&mut self) {
        let wider = vec![(0, NONE); self.places.len() * 2];
        for (id, slot) in std::mem::replace(&mut self.places, wider) {
            if id != 0 {
                self.place(id, slot);
            }
        }
    }

    /// Whoever is farther from its home has the place, so that those who share a home stand in a
    /// row.
    #[inline]
    fn place(&mut self, id: u32, slot: u32) {
        let mask = self.places.len() - 1;
        let far = |at: usize, id: u32| at.wrapping_sub((id >> 1) as usize) & mask;
        let mut one = (id, slot);
        let mut at = (id >> 1) as usize & mask;
        while self.places[at].0 != 0 {
            if far(at, self.places[at].0) < far(at, one.0) {
                std::mem::swap(&mut self.places[at], &mut one);
            }
            at = (at + 1) & mask;
        }
        self.places[at] = one;
    }

    /// Takes a number out, and moves up those behind it, to the first that is at home: of numbers
    /// in sequence all are.
    #[inline]
    fn displace(&mut self, id: u32) {
        let mask = self.places.len() - 1;
        let mut hole = (id >> 1) as usize & mask;
        while self.places[hole].0 != id {
            hole = (hole + 1) & mask;
        }
        loop {
            let at = (hole + 1) & mask;
            let (next, slot) = self.places[at];
            if next == 0 || (next >> 1) as usize & mask == at {
                break;
            }
            self.places[hole] = (next, slot);
            hole = at;
        }
        self.places[hole] = (0, NONE);
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
            let mut streams = Streams::new();
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
