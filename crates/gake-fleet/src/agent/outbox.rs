//! Frames that the coordinator has not acknowledged.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::frame::Frame;

/// Maximum size in bytes. Beyond it the agent aborts: the coordinator has not acknowledged anything
/// for long.
const BYTES_MAX: usize = 64 << 20;

/// Size in bytes from which lines of a script's log are dropped, to save room for figures.
const BEHIND: usize = BYTES_MAX / 16;

/// Frames are resent when nothing was acknowledged for this long.
const AGAIN: Duration = Duration::from_millis(1_500);

/// Frames in order, kept until they are acknowledged.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The number of the first kept frame.
    first: u64,
    kept: VecDeque<Frame>,
    bytes: usize,
    /// The latest acknowledgement or resend.
    moved: Instant,
}

impl Outbox {
    pub(crate) fn new(now: Instant) -> Self {
        Self { first: 0, kept: VecDeque::new(), bytes: 0, moved: now }
    }

    /// Stores a frame and returns its number.
    pub(crate) fn push(&mut self, frame: Frame, now: Instant) -> u64 {
        if self.kept.is_empty() {
            self.moved = now;
        }
        self.bytes += frame.len();
        self.kept.push_back(frame);
        self.first + self.kept.len() as u64 - 1
    }

    /// Whether the maximum size is exceeded.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    /// Whether only figures may be added.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes > BEHIND
    }

    /// Whether all frames are acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Acknowledges the first `count` frames of the run.
    pub(crate) fn taken(&mut self, count: u64, now: Instant) {
        while self.first < count {
            let Some(frame) = self.kept.pop_front() else { return };
            self.first += 1;
            self.bytes -= frame.len();
            self.moved = now;
        }
    }

    /// All frames with their numbers, if a resend is due.
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
    fn frames_are_kept_until_they_are_acknowledged() {
        let start = Instant::now();
        let mut outbox = Outbox::new(start);
        let numbers: Vec<_> = (0..4).map(|_| outbox.push(Frame::aborted("x"), start)).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(outbox.again(start + AGAIN / 2).count(), 0, "not yet");
        outbox.taken(2, start + AGAIN / 2);
        assert_eq!(outbox.again(start + AGAIN).count(), 0, "something moved");
        let late = start + AGAIN * 2;
        let again: Vec<_> = outbox.again(late).map(|(number, _)| number).collect();
        assert_eq!(again, [2, 3]);
        assert_eq!(outbox.again(late).count(), 0, "once");
        // Old acknowledgements, and those beyond the last frame, are ignored.
        outbox.taken(1, late);
        outbox.taken(9, late);
        assert!(outbox.is_empty());
        assert_eq!(outbox.push(Frame::aborted("x"), late), 4);
        assert!(!outbox.is_behind());
        outbox.push(Frame::aborted(&"x".repeat(BEHIND)), late);
        assert!(outbox.is_behind() && !outbox.is_full());
    }
}
