//! What an agent knows of its slice. No network, no clock: what comes and when it came go in, and
//! what is to be done comes out.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use gake_core::clock::{Nanos, SECOND};

use super::outbox::Outbox;
use crate::frame::Frame;
use crate::message::{Control, Handover, StopOrder};

/// How long an agent goes on without NATS: nobody can end its slice meanwhile.
pub(crate) const APART_MAX: Duration = Duration::from_secs(20);

/// How long the workers wait for the order to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// Workers are given arrivals of others at least this long before they are due.
const NOTICE: Nanos = 100_000_000;

/// What an agent knows of its slice.
#[derive(Debug)]
pub(crate) struct SliceState {
    index: usize,
    /// How long it goes on without a word of its coordinator.
    alone_max: Duration,
    /// Since when there is no connection.
    apart: Option<Instant>,
    /// The highest number of a control message so far.
    number: Option<u64>,
    is_started: bool,
    outbox: Outbox,
    /// Whether the last frame is in the outbox.
    pub(crate) is_complete: bool,
    /// The handovers that it was asked for.
    asked: BTreeSet<u64>,
    /// When the coordinator was heard last.
    heard: Instant,
    /// When something was sent last.
    pub(crate) sent: Instant,
}

/// Whether an agent keeps its slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SliceOutcome {
    Kept,
    /// It is over, as it should be.
    Done,
    /// It is over before its time; why.
    GivenUp(String),
}

/// What a control message makes an agent do.
#[derive(Debug)]
pub(crate) struct ControlEffect {
    pub(crate) outcome: SliceOutcome,
    pub(crate) stop: StopOrder,
    /// Arrivals of others that it was not asked for before.
    pub(crate) handovers: Vec<Handover>,
    /// Frames to be sent again, with their numbers.
    pub(crate) again: Vec<(u64, Frame)>,
}

impl ControlEffect {
    fn only(outcome: SliceOutcome) -> Self {
        Self { outcome, stop: StopOrder::Go, handovers: Vec::new(), again: Vec::new() }
    }
}

impl SliceState {
    /// A slice that waits for its start. It goes on for `alone_max` without a word of its
    /// coordinator.
    pub(crate) fn new(index: usize, alone_max: Duration, now: Instant) -> Self {
        Self {
            index,
            alone_max,
            apart: None,
            number: None,
            is_started: false,
            outbox: Outbox::new(now),
            is_complete: false,
            asked: BTreeSet::new(),
            heard: now,
            sent: now,
        }
    }

    /// It was told to start.
    pub(crate) fn start(&mut self, now: Instant) {
        (self.is_started, self.heard) = (true, now);
    }

    /// Applies what the coordinator says.
    pub(crate) fn apply(&mut self, control: &Control, now: Instant) -> ControlEffect {
        if self.number.is_some_and(|number| control.number <= number) {
            return ControlEffect::only(SliceOutcome::Kept);
        }
        (self.number, self.heard) = (Some(control.number), now);
        if control.lost.contains(&self.index) {
            let why = "its coordinator has given it up".to_owned();
            return ControlEffect::only(SliceOutcome::GivenUp(why));
        }
        self.outbox.taken(control.taken.get(self.index).copied().unwrap_or(0), now);
        if control.over || self.is_complete && self.outbox.is_empty() {
            return ControlEffect::only(SliceOutcome::Done);
        }
        let own = control.handovers.iter().filter(|handover| handover.to == self.index);
        // Nothing follows the last frame, and the coordinator asks others then.
        let mut handovers: Vec<_> = own.filter(|_| !self.is_complete).cloned().collect();
        handovers.retain(|handover| self.asked.insert(handover.id));
        let again = self.outbox.again(now);
        let again = again.map(|(number, frame)| (number, frame.clone())).collect();
        ControlEffect { outcome: SliceOutcome::Kept, stop: control.stop, handovers, again }
    }

    /// Keeps a frame until it is taken; its number.
    pub(crate) fn keep(&mut self, frame: Frame, now: Instant) -> u64 {
        self.is_complete |= frame.is_last();
        self.outbox.push(frame, now)
    }

    /// Looks after the slice, several times a second.
    pub(crate) fn look(&mut self, now: Instant, is_connected: bool) -> SliceOutcome {
        self.apart = if is_connected { None } else { Some(self.apart.unwrap_or(now)) };
        let alone = now.duration_since(self.heard);
        let is_apart = self.apart.is_some_and(|since| now.duration_since(since) > APART_MAX);
        let why = if !self.is_started && alone > START_MAX {
            "it was not told to start"
        } else if self.is_started && alone > self.alone_max {
            "its coordinator is silent"
        } else if self.is_started && is_apart {
            "NATS is not there"
        } else if self.outbox.is_full() {
            "its coordinator takes no figures"
        } else {
            return SliceOutcome::Kept;
        };
        SliceOutcome::GivenUp(why.to_owned())
    }

    /// Whether the outbox is so full that only figures may be added.
    pub(crate) fn is_behind(&self) -> bool {
        self.outbox.is_behind()
    }

    /// Whether a sign of life is due.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.is_started && now.duration_since(self.sent) > ALIVE_EVERY
    }
}

/// From when on arrivals are taken over at `now`: the next second.
pub(crate) fn next_second(now: Nanos) -> Nanos {
    now.saturating_add(NOTICE).div_ceil(SECOND).saturating_mul(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_changes_nothing_but_when_the_coordinator_was_heard() {
        let (start, alone_max) = (Instant::now(), Duration::from_secs(4));
        let mut state = SliceState::new(0, alone_max, start);
        state.start(start);
        state.keep(Frame::gave_up("x"), start);
        let (heard, late) = (start + alone_max / 2, start + alone_max * 5 / 4);
        let applied = state.apply(&Control { number: 7, ..Control::default() }, heard);
        assert_eq!((applied.outcome, applied.stop), (SliceOutcome::Kept, StopOrder::Go));
        assert!(applied.handovers.is_empty() && !state.outbox.is_empty());
        assert_eq!(state.look(late, true), SliceOutcome::Kept);
        assert_ne!(state.look(heard + alone_max * 2, true), SliceOutcome::Kept);
    }
}
