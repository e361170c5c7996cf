//! The journal of a run: the frames and decisions of its coordinator, in order, so that another one
//! can take over. Sans-IO.
//!
//! | field of an entry, behind its seal | bytes |
//! | --- | --- |
//! | the generation: which coordinator wrote it | 4, low byte first |
//! | its number among the entries of this coordinator, from 0 | 8 |
//! | its kind | 1 |
//! | its content | the rest |
//!
//! Agents keep a frame until its entry is stored: what a dead coordinator had not stored is resent
//! to the next one.

pub(crate) mod description;
pub(crate) mod stream;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::clock::Nanos;
use serde::{Deserialize, Serialize};

use crate::message::StopOrder;

/// Bytes before the content.
const HEADER: usize = 13;

/// When nothing was stored for this long, entries are resent from the first one that is not stored.
const AGAIN: Duration = Duration::from_millis(1_500);

/// The same when NATS has stored later entries but not the first, which was lost. Replies are
/// reordered by less than this.
const GAP_MAX: Duration = Duration::from_millis(200);

/// With a connection, a journal that stores nothing for longer is abandoned.
const STUCK_MAX: Duration = Duration::from_secs(10);

/// Maximum bytes that may wait to be stored.
const BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JournalEntry {
    /// A chunk of the run's description, encrypted, and whether it is the last.
    Description(Bytes, bool),
    /// The order to start follows: the epoch on the first coordinator's monotonic clock, and in
    /// Unix nanoseconds.
    Started(u64, u64),
    /// A chunk of a frame of the agent with this index, received at this instant of the run.
    Chunk(usize, Nanos, Bytes),
    /// A decision about the agents.
    Decision(Decision),
    /// A coordinator of this generation takes over; later entries of earlier ones are ignored.
    Attached,
    /// The run is complete, and the `teardown` of a script starts.
    Over,
}

/// The outcome of a periodic check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    /// The instant, since the epoch.
    pub(crate) at: Nanos,
    /// Agents that are lost, and why.
    pub(crate) lost: Vec<(usize, String)>,
    /// When the run was stopped.
    pub(crate) stopped: Option<Nanos>,
    /// The stop state of the run.
    pub(crate) asked: StopOrder,
    /// Who stopped the run, other than the run itself.
    pub(crate) stopped_by: Option<StoppedBy>,
}

/// Who stopped a run, other than the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoppedBy {
    /// A request ([`StopRecipient::request_stop`](crate::StopRecipient::request_stop)).
    Request,
    /// An interrupt of the coordinator ([`FleetSettings::interrupt`]).
    ///
    /// [`FleetSettings::interrupt`]: crate::FleetSettings::interrupt
    Interrupt,
}

impl JournalEntry {
    /// The entry as it is stored, before its seal.
    pub(crate) fn encode(&self, generation: u32, number: u64) -> Bytes {
        let mut bytes = Vec::with_capacity(HEADER + 64);
        bytes.extend_from_slice(&generation.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        match self {
            Self::Description(part, is_last) => {
                bytes.push(if *is_last { b'M' } else { b'm' });
                bytes.extend_from_slice(part);
            }
            Self::Started(epoch, unix_ns) => {
                bytes.push(b'S');
                bytes.extend_from_slice(&epoch.to_le_bytes());
                bytes.extend_from_slice(&unix_ns.to_le_bytes());
            }
            Self::Chunk(index, now, part) => {
                bytes.push(b'P');
                bytes.extend_from_slice(&(*index as u32).to_le_bytes());
                bytes.extend_from_slice(&now.to_le_bytes());
                bytes.extend_from_slice(part);
            }
            Self::Decision(decision) => {
                bytes.push(b'D');
                // Numbers and strings: this cannot fail.
                bytes.extend(serde_json::to_vec(decision).unwrap_or_default());
            }
            Self::Attached => bytes.push(b'A'),
            Self::Over => bytes.push(b'O'),
        }
        bytes.into()
    }

    fn decode(kind: u8, content: Bytes) -> Option<Self> {
        Some(match kind {
            b'M' | b'm' => Self::Description(content, kind == b'M'),
            b'S' => {
                let (epoch, rest) = content.split_first_chunk::<8>()?;
                let unix_ns = rest.first_chunk::<8>()?;
                Self::Started(u64::from_le_bytes(*epoch), u64::from_le_bytes(*unix_ns))
            }
            b'P' => {
                let (index, rest) = content.split_first_chunk::<4>()?;
                let (now, part) = rest.split_first_chunk::<8>()?;
                let part = content.slice_ref(part);
                Self::Chunk(u32::from_le_bytes(*index) as usize, u64::from_le_bytes(*now), part)
            }
            b'D' => Self::Decision(serde_json::from_slice(&content).ok()?),
            b'A' => Self::Attached,
            b'O' => Self::Over,
            _ => return None,
        })
    }
}

/// The entry with which the coordinator of `generation` takes over.
pub(crate) fn attached(generation: u32) -> Bytes {
    JournalEntry::Attached.encode(generation, 0)
}

pub(crate) fn generation(entry: &[u8]) -> Option<u32> {
    entry.first_chunk().copied().map(u32::from_le_bytes)
}

/// Reads a journal from its start: each entry once, in order of its number.
#[derive(Debug, Default)]
pub(crate) struct JournalReader {
    generation: u32,
    next: u64,
}

impl JournalReader {
    /// Decodes an entry; `None` for duplicates and entries of a coordinator that was replaced.
    pub(crate) fn take(&mut self, bytes: &Bytes) -> Option<JournalEntry> {
        let (generation, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (kind, content) = rest.split_first()?;
        let generation = u32::from_le_bytes(*generation);
        if *kind == b'A' && generation > self.generation || self.generation == 0 {
            (self.generation, self.next) = (generation, 0);
        }
        if generation != self.generation || *kind == b'A' {
            return None;
        }
        if u64::from_le_bytes(*number) != self.next {
            return None;
        }
        self.next += 1;
        JournalEntry::decode(*kind, bytes.slice_ref(content))
    }
}

/// A journal being written, and the frames that are stored in it.
#[derive(Debug)]
pub(crate) struct Journal {
    generation: u32,
    /// The number of the first unstored entry.
    first: u64,
    waiting: VecDeque<PendingEntry>,
    bytes: usize,
    /// Number of waiting entries that were sent in this attempt.
    sent: usize,
    attempt: u32,
    /// Entries after the first one that this attempt has stored.
    later: BTreeSet<u64>,
    /// Since when there are such entries.
    gap: Option<Instant>,
    /// Number of stored frames by agent.
    frames: Vec<u64>,
    /// Number of waiting entries with decisions.
    decisions: usize,
    /// The latest time at which an entry was stored, or entries were resent.
    moved: Instant,
    /// The latest time at which an entry was stored, or none waited.
    stored: Instant,
}

#[derive(Debug)]
struct PendingEntry {
    bytes: Bytes,
    effect: EntryEffect,
}

/// What the storing of an entry permits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EntryEffect {
    /// The agent and number of frames that may be acknowledged.
    pub(crate) frames: Option<(usize, u64)>,
    /// Whether it is a decision, which agents may learn then.
    pub(crate) is_decision: bool,
}

/// An entry to be written.
#[derive(Debug)]
pub(crate) struct EntryWrite {
    /// Replies to earlier attempts are ignored, since they may have been stored out of order.
    pub(crate) attempt: u32,
    pub(crate) number: u64,
    pub(crate) bytes: Bytes,
}

impl Journal {
    /// The journal of a coordinator of `generation`, starting at entry number `first`; `frames` are
    /// stored already, by agent.
    pub(crate) fn new((generation, first): (u32, u64), frames: Vec<u64>, now: Instant) -> Self {
        Self {
            generation,
            first,
            waiting: VecDeque::new(),
            bytes: 0,
            sent: 0,
            attempt: 0,
            later: BTreeSet::new(),
            gap: None,
            frames,
            decisions: 0,
            moved: now,
            stored: now,
        }
    }

    /// Number of stored frames by agent.
    pub(crate) fn frames(&self) -> &[u64] {
        &self.frames
    }

    /// Whether all entries are stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a decision is not stored yet, which agents must not learn.
    pub(crate) fn is_deciding(&self) -> bool {
        self.decisions > 0
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: &JournalEntry, effect: EntryEffect, now: Instant) {
        if self.waiting.is_empty() {
            (self.moved, self.stored) = (now, now);
        }
        let number = self.first + self.waiting.len() as u64;
        let bytes = entry.encode(self.generation, number);
        self.bytes += bytes.len();
        self.decisions += usize::from(effect.is_decision);
        self.waiting.push_back(PendingEntry { bytes, effect });
    }

    /// The next entry to be sent.
    pub(crate) fn unsent(&mut self) -> Option<EntryWrite> {
        let waiting = self.waiting.get(self.sent)?;
        let number = self.first + self.sent as u64;
        self.sent += 1;
        Some(EntryWrite { attempt: self.attempt, number, bytes: waiting.bytes.clone() })
    }

    /// Handles the acknowledgement of an entry that was sent in an attempt. Entries of one attempt
    /// are stored in order, whatever the order of replies; entries after a lost one are stored
    /// again.
    pub(crate) fn stored(&mut self, attempt: u32, number: u64, now: Instant) {
        let sent = self.first..self.first + self.sent as u64;
        if attempt != self.attempt || !sent.contains(&number) {
            return;
        }
        self.later.insert(number);
        let before = self.first;
        while self.later.remove(&self.first) {
            self.first_is_stored();
        }
        if self.first > before {
            (self.moved, self.stored, self.gap) = (now, now, None);
        }
        if !self.later.is_empty() {
            self.gap.get_or_insert(now);
        }
    }

    fn first_is_stored(&mut self) {
        let Some(entry) = self.waiting.pop_front() else { return };
        self.first += 1;
        self.sent -= 1;
        self.bytes -= entry.bytes.len();
        self.decisions -= usize::from(entry.effect.is_decision);
        if let Some((agent, count)) = entry.effect.frames
            && let Some(frames) = self.frames.get_mut(agent)
        {
            *frames = count;
        }
    }

    /// Resends all unstored entries.
    fn begin_attempt(&mut self) {
        self.attempt += 1;
        (self.sent, self.gap) = (0, None);
        self.later.clear();
    }

    /// Periodic check: resends entries when nothing was stored for long.
    ///
    /// # Errors
    /// Why the journal must be abandoned.
    pub(crate) fn look(&mut self, now: Instant, is_connected: bool) -> Result<(), &'static str> {
        if self.bytes > BYTES_MAX {
            return Err("NATS is too slow for the journal");
        }
        if self.waiting.is_empty() || !is_connected {
            (self.moved, self.stored) = (now, now);
            // Entries in flight when the connection broke may be lost.
            if !is_connected && self.sent > 0 {
                self.begin_attempt();
            }
            return Ok(());
        }
        if now.duration_since(self.stored) > STUCK_MAX {
            return Err("NATS does not store the journal");
        }
        let is_lost = self.gap.is_some_and(|since| now.duration_since(since) >= GAP_MAX);
        if is_lost || now.duration_since(self.moved) >= AGAIN {
            self.moved = now;
            self.begin_attempt();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn part(number: u64) -> JournalEntry {
        JournalEntry::Chunk(number as usize % 3, number * 7, Bytes::from(number.to_string()))
    }

    #[test]
    fn entries_are_decoded() {
        let decision =
            Decision { at: 9, lost: vec![(1, "it is silent".to_owned())], ..Decision::default() };
        let entries = [
            JournalEntry::Description(Bytes::from_static(b"x"), false),
            JournalEntry::Description(Bytes::new(), true),
            JournalEntry::Started(5, 6),
            part(5),
            JournalEntry::Decision(decision),
            JournalEntry::Over,
        ];
        let mut reader = JournalReader::default();
        for (number, entry) in entries.iter().enumerate() {
            let bytes = entry.encode(7, number as u64);
            assert_eq!(reader.take(&bytes).as_ref(), Some(entry));
            assert_eq!(reader.take(&bytes), None, "once");
        }
        assert_eq!(reader.take(&Bytes::from_static(b"short")), None);
    }

    #[test]
    fn entries_of_a_replaced_coordinator_are_ignored() {
        let mut reader = JournalReader::default();
        assert_eq!(reader.take(&part(0).encode(4, 0)), Some(part(0)));
        assert_eq!(reader.take(&attached(6)), None);
        assert_eq!(reader.take(&part(1).encode(4, 1)), None, "too late");
        assert_eq!(reader.take(&attached(5)), None);
        assert_eq!(reader.take(&part(2).encode(6, 0)), Some(part(2)));
    }

    #[test]
    fn lost_entries_are_resent_soon() {
        let start = Instant::now();
        let mut journal = Journal::new((3, 0), vec![0; 3], start);
        (0..4).for_each(|number| journal.push(&part(number), EntryEffect::default(), start));
        while journal.unsent().is_some() {}
        // Reordered replies are not a loss.
        journal.stored(0, 1, start);
        journal.stored(0, 0, start);
        assert_eq!(journal.first, 2);
        journal.stored(0, 3, start);
        assert!(journal.look(start + GAP_MAX / 2, true).is_ok() && journal.unsent().is_none());
        assert!(journal.look(start + GAP_MAX, true).is_ok());
        let again: Vec<_> = std::iter::from_fn(|| journal.unsent()).collect();
        let again: Vec<_> = again.iter().map(|unsent| (unsent.attempt, unsent.number)).collect();
        assert_eq!(again, [(1, 2), (1, 3)]);
        journal.stored(0, 2, start);
        assert_eq!(journal.first, 2, "a reply to an earlier attempt");
        journal.stored(1, 3, start);
        journal.stored(1, 2, start);
        assert!(journal.is_stored());
    }

    proptest! {
        /// Whatever is lost, entries that count as stored are read in order.
        #[test]
        fn stored_entries_are_read(
            steps in vec((0u8..4, any::<bool>(), any::<bool>()), 0..80),
        ) {
            let start = Instant::now();
            let mut now = start;
            let mut journal = Journal::new((3, 0), vec![0; 3], start);
            let (mut stream, mut replies, mut pushed) = (Vec::new(), VecDeque::new(), 0);
            for (step, is_lost, is_reply_lost) in steps {
                match step {
                    0 => {
                        journal.push(&part(pushed), EntryEffect::default(), now);
                        pushed += 1;
                    }
                    1 => while let Some(unsent) = journal.unsent() {
                        if is_lost && unsent.number % 2 == 0 {
                            continue;
                        }
                        stream.push(unsent.bytes.clone());
                        if !is_reply_lost {
                            replies.push_back((unsent.attempt, unsent.number));
                        }
                    },
                    2 => {
                        // Sometimes replies are reordered.
                        let reply = if is_lost { replies.pop_back() } else { replies.pop_front() };
                        if let Some((attempt, number)) = reply {
                            journal.stored(attempt, number, now);
                        }
                    }
                    _ => {
                        now += AGAIN;
                        let _ = journal.look(now, !is_lost);
                    }
                }
            }
            let mut reader = JournalReader::default();
            let read: Vec<_> = stream.iter().filter_map(|bytes| reader.take(bytes)).collect();
            prop_assert!(read.len() as u64 >= journal.first, "{} of {}", read.len(), journal.first);
            for (number, entry) in read.iter().enumerate() {
                prop_assert_eq!(entry, &part(number as u64));
            }
        }
    }
}
