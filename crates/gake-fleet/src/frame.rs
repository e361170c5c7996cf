//! Figures on their way: numbered frames, in chunks that fit into a message of NATS.
//!
//! | chunk of a message, behind its seal | bytes |
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

/// The number of a sign of life, which is not a frame.
pub(crate) const ALIVE: u64 = u64::MAX;

/// What a frame holds.
#[derive(Debug)]
pub(crate) enum FrameContent {
    /// What a worker recorded.
    Interval(Box<Interval>),
    /// How a worker ended.
    Ended(WorkerEnd),
    /// Whether the agent sends arrivals of a lost one.
    Handover(HandoverReply),
    /// What a script does beside its figures.
    Script(ScriptEvent),
    /// The agent is done.
    Last(AgentEnd),
    /// The agent gives up; why, in a sentence.
    GaveUp(String),
}

/// A frame as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    kind: u8,
    bytes: Vec<u8>,
}

/// Why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0}")]
    Exact(#[from] ExactError),
    #[error("a frame makes no sense: {0}")]
    Senseless(&'static str),
}

impl Frame {
    /// The frame of a worker's message.
    ///
    /// # Errors
    /// When it holds a number that cannot be written; recorded values never do.
    pub(crate) fn of(message: &Message) -> Result<Self, serde_json::Error> {
        Ok(match message {
            Message::Interval(interval) => {
                Self { kind: b'I', bytes: exact::encode(interval.as_ref())? }
            }
            Message::Ended(end) => Self { kind: b'E', bytes: exact::encode(end)? },
        })
    }

    /// The frame of an answer to a handover.
    pub(crate) fn handover(answer: &HandoverReply) -> Self {
        Self { kind: b'H', bytes: serde_json::to_vec(answer).unwrap_or_default() }
    }

    /// The frame of what a script does beside its figures.
    pub(crate) fn script(event: &ScriptEvent) -> Self {
        Self { kind: b'S', bytes: serde_json::to_vec(event).unwrap_or_default() }
    }

    /// The frame of an agent that is done.
    pub(crate) fn last(word: &AgentEnd) -> Self {
        Self { kind: b'L', bytes: serde_json::to_vec(word).unwrap_or_default() }
    }

    /// The frame of an agent that gives up.
    pub(crate) fn gave_up(why: &str) -> Self {
        Self { kind: b'G', bytes: why.as_bytes().to_vec() }
    }

    /// Whether nothing follows it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.kind, b'L' | b'G')
    }

    /// Its size in memory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its chunks of at most `chunk` bytes of content each, as frame `number`.
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
        serde_json::from_slice(&self.bytes).map_err(|_| FrameError::Senseless(otherwise))
    }

    fn content(&self) -> Result<FrameContent, FrameError> {
        Ok(match self.kind {
            b'I' => FrameContent::Interval(Box::new(exact::decode(&self.bytes)?)),
            b'E' => FrameContent::Ended(exact::decode(&self.bytes)?),
            b'H' => FrameContent::Handover(self.json("an answer cannot be read")?),
            b'S' => FrameContent::Script(self.json("what its script does cannot be read")?),
            b'L' => FrameContent::Last(self.json("its end cannot be read")?),
            b'G' => FrameContent::GaveUp(String::from_utf8_lossy(&self.bytes).into_owned()),
            _ => return Err(FrameError::Senseless("it is of no known kind")),
        })
    }
}

/// A sign of life: no frame.
pub(crate) fn alive() -> Vec<u8> {
    let mut bytes = ALIVE.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; HEADER - 8]);
    bytes
}

/// Puts the frames of one agent together, in order. What is missing is waited for: the agent sends
/// it again, from the first frame that was not taken.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// The number of the frame that comes next.
    next: u64,
    /// The chunks of it that are there.
    chunks: u32,
    bytes: Vec<u8>,
}

impl Assembler {
    /// How many frames are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.next
    }

    /// How many frames are taken, and chunks of the next one.
    pub(crate) fn progress(&self) -> (u64, u32) {
        (self.next, self.chunks)
    }

    /// Takes a chunk; the content of the frame when it completes one.
    ///
    /// # Errors
    /// When it is not a chunk of a frame, or the frame makes no sense.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Result<Option<FrameContent>, FrameError> {
        let (header, content) =
            chunk.split_at_checked(HEADER).ok_or(FrameError::Senseless("it is cut off"))?;
        let number = |at: usize, length: usize| {
            let bytes = header[at..at + length].iter().rev();
            bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (frame, index, of, kind) = (number(0, 8), number(8, 4), number(12, 4), header[16]);
        // Older ones were taken; between this and a newer one something is missing.
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
            return Err(FrameError::Senseless("it is too long"));
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
            // Doubled, lost and out of order at first; then everything is sent again.
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
    fn a_sign_of_life_is_no_frame() {
        let mut assembler = Assembler::default();
        assert!(assembler.take(&alive()).unwrap().is_none());
        assert_eq!(assembler.taken(), 0);
    }
}
