//! How the coordinator leads a run. No network, no clock: what comes and when it came go in, and what
//! is to be said comes out.

use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_run::{Message, Stop};

use super::join::Joiner;
use super::settings::OnLoss;
use crate::message::{Control, StopOrder};

/// Between two control messages.
const CONTROL_EVERY: Duration = Duration::from_millis(400);

/// Without an echo for longer, the coordinator cannot hear anybody.
const ECHO_MAX: Duration = Duration::from_millis(1_500);

/// How long the coordinator waits for NATS before agents count as silent: they stop by themselves
/// after 20 s.
const APART_MAX: Duration = Duration::from_secs(25);

/// How long an agent may take to end after it was told to stop at once.
const NOW_MAX: Duration = Duration::from_secs(10);

/// A run as its coordinator leads it.
pub(crate) struct Conduct {
    pub(crate) joiner: Joiner,
    on_loss: OnLoss,
    /// The number of the next control message.
    number: u64,
    controlled: Instant,
    /// What the last one said.
    said: Stop,
    /// When the last control message came back: agents can be heard then.
    echoed: Instant,
    /// Since when there is no connection.
    apart: Option<Instant>,
    /// When the run was told to stop.
    stopped: Option<Nanos>,
    /// When it was told to stop at once.
    cut: Option<Instant>,
    /// Why the run was ended before its time, if it was.
    pub(crate) aborted: Option<String>,
    /// Whether somebody else ended it.
    pub(crate) is_stopped: bool,
}

/// What a look at the agents leads to.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// What of the run is known now.
    pub(crate) messages: Vec<Message>,
    /// Whether the run is to end now.
    pub(crate) drain: bool,
    /// What the agents are to be told.
    pub(crate) control: Option<Control>,
}

impl Conduct {
    pub(crate) fn new(joiner: Joiner, on_loss: OnLoss, now: Instant) -> Self {
        Self {
            joiner: joiner.redistributing(on_loss == OnLoss::Redistribute),
            on_loss,
            number: 0,
            controlled: now,
            said: Stop::Go,
            echoed: now,
            apart: None,
            stopped: None,
            cut: None,
            aborted: None,
            is_stopped: false,
        }
    }

    /// A control message came back.
    pub(crate) fn echo(&mut self, now: Instant) {
        self.echoed = now;
    }

    /// Looks after the agents, several times a second. `at` is `now` since the epoch, `asked` what
    /// is asked of the run.
    pub(crate) fn look(
        &mut self,
        (now, at): (Instant, Nanos),
        is_connected: bool,
        asked: Stop,
    ) -> Looked {
        let is_connected = is_connected && now.duration_since(self.echoed) < ECHO_MAX;
        self.apart = if is_connected { None } else { Some(self.apart.unwrap_or(now)) };
        let can_hear = self.apart.is_none_or(|since| now.duration_since(since) > APART_MAX);
        if asked > Stop::Go && self.stopped.is_none() {
            self.stopped = Some(at);
        }
        let mut looked = Looked::default();
        if asked == Stop::Now {
            let since = *self.cut.get_or_insert(now);
            if now.duration_since(since) > NOW_MAX {
                looked.messages = self.lose_all(at);
            }
        }
        looked.messages.extend(self.joiner.look(at, can_hear, self.stopped));
        // Without any agent nobody sends the rest of the schedule.
        let lost = self.joiner.lost().len();
        let is_wanted = lost == self.joiner.members.len() || self.on_loss == OnLoss::Abort;
        if is_wanted && lost > 0 && self.stopped.is_none() && self.aborted.is_none() {
            self.aborted = self.joiner.events.first().map(|event| event.text.clone());
            looked.drain = self.aborted.is_some();
        }
        if asked != self.said || now.duration_since(self.controlled) >= CONTROL_EVERY {
            looked.control = Some(self.control(asked, now, false));
        }
        looked
    }

    fn lose_all(&mut self, at: Nanos) -> Vec<Message> {
        let running: Vec<_> =
            (0..self.joiner.members.len()).filter(|index| self.joiner.is_running(*index)).collect();
        let lose = |index| self.joiner.lose(index, at, "it does not stop");
        running.into_iter().flat_map(lose).collect()
    }

    /// Tells the agents how the run is to go on.
    pub(crate) fn control(&mut self, asked: Stop, now: Instant, over: bool) -> Control {
        (self.said, self.controlled) = (asked, now);
        self.number += 1;
        Control {
            number: self.number - 1,
            stop: match asked {
                Stop::Go => StopOrder::Go,
                Stop::Drain => StopOrder::Drain,
                Stop::Now => StopOrder::Now,
            },
            taken: self.joiner.taken(),
            lost: self.joiner.lost(),
            over,
            handovers: self.joiner.handovers(),
        }
    }
}
