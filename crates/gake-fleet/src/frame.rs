//! Frames of figures: numbered, and sent in chunks that fit into a NATS message.
//!
//! | field of a message, behind its seal | bytes |
//! | --- | --- |
//! | the frame's number, from 0 | 8, low byte first |
//! | the chunk's number, and how many there are | 4 each |
//! | the kind of the frame | 1 |
//! | a chunk of its content | the rest |

use gake_core::exact::{self, ExactError, READ_MAX};
use gake_core::record::{Interval, WorkerEnd};
use gake_run::Message;
use serde::de::DeserializeOwned;

use crate::message::{AgentEnd, HandoverReply};
use crate::script::ScriptEvent;

/// Bytes before the content.
pub(crate) const HEADER: usize = 17;

/// The frame number of a heartbeat, which is not a frame.
pub(crate) const HEARTBEAT: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) enum FrameContent {
    /// Figures of a worker.
    Interval(Box<Interval>),
    Ended(WorkerEnd),
    Handover(HandoverReply),
    Script(usize, ScriptEvent),
    /// The agent has completed its slice.
    Last(AgentEnd),
    /// The agent has aborted its slice, for this reason.
    Aborted(String),
}

/// An encoded frame.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    kind: u8,
    bytes: Vec<u8>,
}

/// Why a frame is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0}")]
    Exact(#[from] ExactError),
    #[error("a frame is not valid: {0}")]
    Invalid(&'static str),
}

impl Frame {
    /// Encodes a worker's message.
    ///
    /// # Errors
    /// When it contains a number that cannot be encoded; recorded values never do.
    pub(crate) fn of(message: &Message) -> Result<Self, serde_json::Error> {
        Ok(match message {
            Message::Interval(interval) => {
                Self { kind: b'I', bytes: exact::encode(interval.as_ref())? }
            }
            Message::Ended(end) => Self { kind: b'E', bytes: exact::encode(end)? },
        })
    }

    /// Encodes the reply to a handover.
    pub(crate) fn handover(reply: &HandoverReply) -> Self {
        Self { kind: b'H', bytes: serde_json::to_vec(reply).unwrap_or_default() }
    }

    /// Encodes an event of the script with this index.
    pub(crate) fn script(number: usize, event: &ScriptEvent) -> Self {
        Self { kind: b'S', bytes: serde_json::to_vec(&(number, event)).unwrap_or_default() }
    }

    /// The last frame of a completed slice.
    pub(crate) fn last(word: &AgentEnd) -> Self {
        Self { kind: b'L', bytes: serde_json::to_vec(word).unwrap_or_default() }
    }

    /// The last frame of an aborted slice.
    pub(crate) fn aborted(why: &str) -> Self {
        Self { kind: b'G', bytes: why.as_bytes().to_vec() }
    }

    /// Whether it is the last frame.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.kind, b'L' | b'G')
    }

    /// The size of its content, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Splits the frame into chunks of at most `chunk` bytes of content, as frame `number`.
    pub(crate) fn chunks(&self, number: u64, chunk: usize) -> impl Iterator<Item = Vec<u8>> {
        let chunk = chunk.max(1);
        let of = self.bytes.len().div_ceil(chunk).max(1);
        (0..of).map(move |index| {
            let content = &self.bytes[index * chunk..self.bytes.len().min((index + 1) * chunk)];
            let mut bytes = Vec::with_capacity(HEADER + content.len());
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&(index as u32).to_le_bytes());
            bytes.extend_from_slice(&(of as u32).to_le_bytes());
            bytes.push(self.kind);
            bytes.extend_from_slice(content);
            bytes
        })
    }

    fn json<T: DeserializeOwned>(&self, otherwise: &'static str) -> Result<T, FrameError> {
        serde_json::from_slice(&self.bytes).map_err(|_| FrameError::Invalid(otherwise))
    }

    fn content(&self) -> Result<FrameContent, FrameError> {
        Ok(match self.kind {
            b'I' => FrameContent::Interval(Box::new(exact::decode(&self.bytes)?)),
            b'E' => FrameContent::Ended(exact::decode(&self.bytes)?),
            b'H' => FrameContent::Handover(self.json("its reply to a handover")?),
            b'S' => {
                let (number, event) = self.json("its script event")?;
                FrameContent::Script(number, event)
            }
            b'L' => FrameContent::Last(self.json("its end")?),
            b'G' => FrameContent::Aborted(String::from_utf8_lossy(&self.bytes).into_owned()),
            _ => return Err(FrameError::Invalid("unknown kind")),
        })
    }
}

/// A heartbeat, which is not a frame.
pub(crate) fn heartbeat() -> Vec<u8> {
    let mut bytes = HEARTBEAT.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; HEADER - 8]);
    bytes
}

/// Assembles the frames of one agent, in order. Missing chunks are waited for: the agent resends
/// from the first frame that is not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// The number of the next frame.
    next: u64,
    /// The number of its chunks received.
    chunks: u32,
    bytes: Vec<u8>,
}

impl Assembler {
    /// The number of frames received.
    pub(crate) fn taken(&self) -> u64 {
        self.next
    }

    /// The number of frames received, and of chunks of the next one.
    pub(crate) fn progress(&self) -> (u64, u32) {
        (self.next, self.chunks)
    }

    /// Adds a chunk. Returns the content of the frame that it completes.
    ///
    /// # Errors
    /// When the chunk or its frame is not valid.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Result<Option<FrameContent>, FrameError> {
        let (header, content) =
            chunk.split_at_checked(HEADER).ok_or(FrameError::Invalid("it is cut off"))?;
        let number = |at: usize, length: usize| {
            let bytes = header[at..at + length].iter().rev();
            bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (frame, index, of, kind) = (number(0, 8), number(8, 4), number(12, 4), header[16]);
        // Earlier frames are duplicates, and before later ones something is missing.
        if frame != self.next {
            return Ok(None);
        }
        if index == 0 {
            self.chunks = 0;
            self.bytes.clear();
        }
        if index != u64::from(self.chunks) || index >= of {
            return Ok(None);
        }
        if self.bytes.len() + content.len() > READ_MAX {
            return Err(FrameError::Invalid("it is too long"));
        }
        self.bytes.extend_from_slice(content);
        self.chunks += 1;
        if u64::from(self.chunks) < of {
            return Ok(None);
        }
        let frame = Frame { kind, bytes: std::mem::take(&mut self.bytes) };
        self.next += 1;
        self.chunks = 0;
        frame.content().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::ScenarioEnd;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn ended(worker: usize) -> Message {
        let end = ScenarioEnd { done: worker as u64, ..ScenarioEnd::default() };
        Message::Ended(WorkerEnd { worker, scenarios: vec![(0, end); worker % 5], log_lost: 0 })
    }

    proptest! {
        #[test]
        fn every_frame_arrives_once_and_in_order(
            size in 1usize..200, order in vec((0usize..40, any::<bool>()), 0..60),
        ) {
            let frames: Vec<_> = (0..6).map(|worker| Frame::of(&ended(worker)).unwrap()).collect();
            let chunks: Vec<Vec<u8>> = (0..)
                .zip(&frames)
                .flat_map(|(number, frame)| frame.chunks(number, size).collect::<Vec<_>>())
                .collect();
            let mut assembler = Assembler::default();
            let mut workers = Vec::new();
            let mut take = |chunk: &[u8]| {
                if let Some(FrameContent::Ended(end)) = assembler.take(chunk).unwrap() {
                    workers.push(end.worker);
                }
            };
            // Duplicated, lost and out of order at first; then everything is resent.
            for (at, lost) in order {
                if !lost {
                    take(&chunks[at % chunks.len()]);
                }
            }
            chunks.iter().for_each(|chunk| take(chunk));
            prop_assert_eq!(workers, (0..6).collect::<Vec<_>>());
            prop_assert_eq!(assembler.taken(), 6);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..60), kind: u8) {
            let mut assembler = Assembler::default();
            let _ = assembler.take(&bytes);
            let mut chunk = [0_u64.to_le_bytes().as_slice(), &[0, 0, 0, 0, 1, 0, 0, 0, kind]].concat();
            chunk.extend(bytes);
            let _ = assembler.take(&chunk);
        }
    }

    #[test]
    fn a_heartbeat_is_not_a_frame() {
        let mut assembler = Assembler::default();
        assert!(assembler.take(&heartbeat()).unwrap().is_none());
        assert_eq!(assembler.taken(), 0);
    }
}
