//! The state of an agent's slice. Sans-IO: inputs carry their time, and outputs are actions.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use gake_core::clock::{Nanos, SECOND};

use super::outbox::Outbox;
use crate::frame::Frame;
use crate::message::{Control, Handover, StopOrder};

/// How long an agent continues without NATS, during which it cannot be stopped.
pub(crate) const APART_MAX: Duration = Duration::from_secs(20);

/// Time limit for the order to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Heartbeat interval.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// Minimum lead time for arrivals that are taken over.
const NOTICE: Nanos = 100_000_000;

/// The state of an agent's slice.
#[derive(Debug)]
pub(crate) struct SliceState {
    index: usize,
    /// How long it continues without a coordinator.
    alone_max: Duration,
    /// Since when the connection is lost.
    apart: Option<Instant>,
    /// The highest number of a control message.
    number: Option<u64>,
    is_started: bool,
    outbox: Outbox,
    /// Whether the last frame is in the outbox.
    pub(crate) is_complete: bool,
    /// Handovers that were requested before.
    asked: BTreeSet<u64>,
    /// The latest control message.
    heard: Instant,
    /// The latest message sent.
    pub(crate) sent: Instant,
}

/// Whether an agent keeps its slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SliceOutcome {
    InProgress,
    /// The slice has completed.
    Done,
    /// The slice is aborted, for this reason.
    Aborted(String),
}

/// The actions that follow a control message.
#[derive(Debug)]
pub(crate) struct ControlEffect {
    pub(crate) outcome: SliceOutcome,
    pub(crate) stop: StopOrder,
    /// New handovers of arrivals of lost agents.
    pub(crate) handovers: Vec<Handover>,
    /// Frames to resend, with their numbers.
    pub(crate) again: Vec<(u64, Frame)>,
}

impl ControlEffect {
    fn only(outcome: SliceOutcome) -> Self {
        Self { outcome, stop: StopOrder::Go, handovers: Vec::new(), again: Vec::new() }
    }
}

impl SliceState {
    /// A slice that waits for its start. It continues for `alone_max` without a coordinator.
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

    /// The order to start has come.
    pub(crate) fn start(&mut self, now: Instant) {
        (self.is_started, self.heard) = (true, now);
    }

    /// Applies a control message.
    pub(crate) fn apply(&mut self, control: &Control, now: Instant) -> ControlEffect {
        if self.number.is_some_and(|number| control.number <= number) {
            return ControlEffect::only(SliceOutcome::InProgress);
        }
        (self.number, self.heard) = (Some(control.number), now);
        if control.lost.contains(&self.index) {
            let why = "its coordinator has declared it lost".to_owned();
            return ControlEffect::only(SliceOutcome::Aborted(why));
        }
        self.outbox.taken(control.taken.get(self.index).copied().unwrap_or(0), now);
        if control.over || self.is_complete && self.outbox.is_empty() {
            return ControlEffect::only(SliceOutcome::Done);
        }
        let own = control.handovers.iter().filter(|handover| handover.to == self.index);
        // After the last frame, the coordinator hands over to other agents.
        let mut handovers: Vec<_> = own.filter(|_| !self.is_complete).cloned().collect();
        handovers.retain(|handover| self.asked.insert(handover.id));
        let again = self.outbox.again(now);
        let again = again.map(|(number, frame)| (number, frame.clone())).collect();
        ControlEffect { outcome: SliceOutcome::InProgress, stop: control.stop, handovers, again }
    }

    /// Stores a frame until it is acknowledged, and returns its number.
    pub(crate) fn keep(&mut self, frame: Frame, now: Instant) -> u64 {
        self.is_complete |= frame.is_last();
        self.outbox.push(frame, now)
    }

    /// Periodic check.
    pub(crate) fn look(&mut self, now: Instant, is_connected: bool) -> SliceOutcome {
        self.apart = if is_connected { None } else { Some(self.apart.unwrap_or(now)) };
        let alone = now.duration_since(self.heard);
        let is_apart = self.apart.is_some_and(|since| now.duration_since(since) > APART_MAX);
        let why = if !self.is_started && alone > START_MAX {
            "the order to start did not come"
        } else if self.is_started && alone > self.alone_max {
            "its coordinator is silent"
        } else if self.is_started && is_apart {
            "the connection to NATS is lost"
        } else if self.outbox.is_full() {
            "its coordinator acknowledges no figures"
        } else {
            return SliceOutcome::InProgress;
        };
        SliceOutcome::Aborted(why.to_owned())
    }

    /// Whether only figures may be added to the outbox.
    pub(crate) fn is_behind(&self) -> bool {
        self.outbox.is_behind()
    }

    /// Whether a heartbeat is due.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.is_started && now.duration_since(self.sent) > ALIVE_EVERY
    }
}

/// The instant from which arrivals can be taken over at `now`: a full second.
pub(crate) fn next_second(now: Nanos) -> Nanos {
    now.saturating_add(NOTICE).div_ceil(SECOND).saturating_mul(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_control_message_counts_as_a_heartbeat() {
        let (start, alone_max) = (Instant::now(), Duration::from_secs(4));
        let mut state = SliceState::new(0, alone_max, start);
        state.start(start);
        state.keep(Frame::aborted("x"), start);
        let (heard, late) = (start + alone_max / 2, start + alone_max * 5 / 4);
        let applied = state.apply(&Control { number: 7, ..Control::default() }, heard);
        assert_eq!((applied.outcome, applied.stop), (SliceOutcome::InProgress, StopOrder::Go));
        assert!(applied.handovers.is_empty() && !state.outbox.is_empty());
        assert_eq!(state.look(late, true), SliceOutcome::InProgress);
        assert_ne!(state.look(heard + alone_max * 2, true), SliceOutcome::InProgress);
    }
}
