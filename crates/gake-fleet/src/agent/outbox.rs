//! Frames that the coordinator has not taken yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::frame::Frame;

/// Bytes that may wait. Past that the agent gives up: the coordinator has not taken anything for
/// long.
const BYTES_MAX: usize = 64 << 20;

/// Bytes that may wait before a script's log is left out, so that it takes no place of figures.
const BEHIND: usize = BYTES_MAX / 16;

/// How long a frame may wait before it is sent again.
const AGAIN: Duration = Duration::from_millis(1_500);

/// Frames in their order, kept until they are taken.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The number of the first frame that is kept.
    first: u64,
    kept: VecDeque<Frame>,
    bytes: usize,
    /// When something was taken or sent again last.
    moved: Instant,
}

impl Outbox {
    pub(crate) fn new(now: Instant) -> Self {
        Self { first: 0, kept: VecDeque::new(), bytes: 0, moved: now }
    }

    /// Keeps a frame; its number.
    pub(crate) fn push(&mut self, frame: Frame, now: Instant) -> u64 {
        if self.kept.is_empty() {
            self.moved = now;
        }
        self.bytes += frame.len();
        self.kept.push_back(frame);
        self.first + self.kept.len() as u64 - 1
    }

    /// Whether more waits than is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    /// Whether it is so full that only figures may be added.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes > BEHIND
    }

    /// Whether everything was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The coordinator has taken the first `count` frames of all.
    pub(crate) fn taken(&mut self, count: u64, now: Instant) {
        while self.first < count {
            let Some(frame) = self.kept.pop_front() else { return };
            self.first += 1;
            self.bytes -= frame.len();
            self.moved = now;
        }
    }

    /// The frames to be sent again, with their numbers: all of them, when nothing moved for long.
    pub(crate) fn again(&mut self, now: Instant) -> impl Iterator<Item = (u64, &Frame)> {
        let is_due = now.duration_since(self.moved) >= AGAIN;
        if is_due {
            self.moved = now;
        }
        (self.first..).zip(&self.kept).take(if is_due { usize::MAX } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_kept_until_they_are_taken() {
        let start = Instant::now();
        let mut outbox = Outbox::new(start);
        let numbers: Vec<_> = (0..4).map(|_| outbox.push(Frame::gave_up("x"), start)).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(outbox.again(start + AGAIN / 2).count(), 0, "not yet");
        outbox.taken(2, start + AGAIN / 2);
        assert_eq!(outbox.again(start + AGAIN).count(), 0, "something moved");
        let late = start + AGAIN * 2;
        let again: Vec<_> = outbox.again(late).map(|(number, _)| number).collect();
        assert_eq!(again, [2, 3]);
        assert_eq!(outbox.again(late).count(), 0, "once");
        // What an old message says changes nothing, nor does more than there is.
        outbox.taken(1, late);
        outbox.taken(9, late);
        assert!(outbox.is_empty());
        assert_eq!(outbox.push(Frame::gave_up("x"), late), 4);
        assert!(!outbox.is_behind());
        outbox.push(Frame::gave_up(&"x".repeat(BEHIND)), late);
        assert!(outbox.is_behind() && !outbox.is_full());
    }
}
