//! The controller of a run. Sans-IO: inputs carry their time, and outputs are messages.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::clock::Nanos;
use gake_core::record::RunEvent;
use gake_run::{Message, Stop};

use super::join::Joiner;
use super::journal::{Decision, EntryEffect, Journal, JournalEntry, StoppedBy};
use super::outage::{Outage, shown};
use super::settings::OnLoss;
use crate::message::{Control, Handover, StopOrder};

/// Interval of control messages.
pub(crate) const CONTROL_EVERY: Duration = Duration::from_millis(400);

/// Without an echo for longer than this, the coordinator does not receive messages.
const ECHO_MAX: Duration = Duration::from_millis(1_500);

/// How much longer the coordinator waits for NATS than agents do, before they count as silent.
const APART_MARGIN: Duration = Duration::from_secs(5);

/// Time limit for agents to end after an abort.
const NOW_MAX: Duration = Duration::from_secs(10);

/// Numbers of control messages for each coordinator; the next one uses higher numbers.
const NUMBERS: u64 = 1 << 24;

/// Settings of the control of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlRules {
    pub(crate) on_loss: OnLoss,
    /// How long agents continue without a coordinator.
    pub(crate) alone_max: Duration,
    /// The generation of the coordinator: a later one has a higher number.
    pub(crate) generation: u32,
}

/// The state of a run in its coordinator.
pub(crate) struct Controller {
    pub(crate) joiner: Joiner,
    rules: ControlRules,
    /// If there is a journal, frames are acknowledged once they are stored in it.
    pub(crate) journal: Option<Journal>,
    /// Set when the journal is abandoned: the number of the next control message. Once its echo
    /// arrives, no other coordinator can have taken over with the journal, since its messages would
    /// have been received before.
    abandoned_at: Option<u64>,
    /// Whether the stream of the abandoned journal may be deleted.
    may_delete_journal: bool,
    /// The number of the next control message.
    number: u64,
    controlled: Instant,
    /// The stop state in the latest control message.
    announced: Stop,
    /// Lost agents and handovers that agents may know of.
    published: (Vec<usize>, Vec<Handover>),
    /// The latest echo of a control message, which shows that agents can be received.
    echoed: Instant,
    /// Whether NATS can be reached.
    outage: Outage,
    /// When the run was stopped.
    stopped: Option<Nanos>,
    /// The stop state at the latest decision.
    pub(crate) asked: StopOrder,
    /// When the run was aborted.
    cut: Option<Instant>,
    /// Why the run was ended early.
    pub(crate) aborted: Option<String>,
    /// Who stopped the run, other than the run itself.
    pub(crate) stopped_by: Option<StoppedBy>,
    /// The same at the latest decision.
    decided_by: Option<StoppedBy>,
    /// Whether a request stopped the run, or an earlier coordinator, for an unknown reason.
    pub(crate) is_stopped: bool,
    /// Whether another coordinator has taken over.
    is_replaced: bool,
    /// Why this coordinator abandoned the run.
    pub(crate) left: Option<String>,
    /// Whether an earlier coordinator had completed the run and started `teardown`.
    pub(crate) was_over: bool,
}

/// The outcome of a periodic check.
#[derive(Debug, Default)]
pub(crate) struct LookOutcome {
    /// New messages of the run.
    pub(crate) messages: Vec<Message>,
    /// Whether the run must drain now.
    pub(crate) drain: bool,
    /// A control message for the agents.
    pub(crate) control: Option<Control>,
}

/// The lower bound (exclusive) of a coordinator's control messages.
pub(crate) fn first_number(generation: u32) -> u64 {
    u64::from(generation) * NUMBERS
}

impl Controller {
    pub(crate) fn new(joiner: Joiner, rules: ControlRules, now: Instant) -> Self {
        Self {
            joiner: joiner.redistributing(rules.on_loss == OnLoss::Redistribute),
            rules,
            journal: None,
            abandoned_at: None,
            may_delete_journal: false,
            number: first_number(rules.generation) + 1,
            controlled: now,
            announced: Stop::Go,
            published: Default::default(),
            echoed: now,
            outage: Outage::default(),
            stopped: None,
            asked: StopOrder::Go,
            cut: None,
            aborted: None,
            stopped_by: None,
            decided_by: None,
            is_stopped: false,
            is_replaced: false,
            left: None,
            was_over: false,
        }
    }

    /// Handles a control message: an echo, or one of another coordinator.
    pub(crate) fn echo(&mut self, number: u64, now: Instant) {
        self.echoed = now;
        self.is_replaced |= number >= first_number(self.rules.generation.saturating_add(1));
        if !self.is_replaced && self.abandoned_at.is_some_and(|first| number >= first) {
            (self.abandoned_at, self.may_delete_journal) = (None, true);
        }
    }

    /// Whether to delete the stream of an abandoned journal now; true once.
    pub(crate) fn may_delete_journal(&mut self) -> bool {
        std::mem::take(&mut self.may_delete_journal)
    }

    /// Whether another coordinator has taken over the run.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Handles a request to stop the run.
    pub(crate) fn request_stop(&mut self) {
        self.is_stopped = true;
        self.stopped_by = Some(StoppedBy::Request);
    }

    /// Records that this coordinator was interrupted.
    pub(crate) fn interrupt(&mut self) {
        self.stopped_by.get_or_insert(StoppedBy::Interrupt);
    }

    /// Handles a chunk of a frame of an agent, received at `at` since the epoch.
    pub(crate) fn take(
        &mut self,
        index: usize,
        chunk: &[u8],
        (now, at): (Instant, Nanos),
    ) -> Vec<Message> {
        let before = self.joiner.progress(index);
        let messages = self.joiner.take(index, chunk, at);
        let after = self.joiner.progress(index);
        if let (Some(journal), Some(before), Some(after)) = (&mut self.journal, before, after)
            && before != after
        {
            let entry = JournalEntry::Chunk(index, at, Bytes::copy_from_slice(chunk));
            let meaning =
                EntryEffect { frames: Some((index, after.0)), is_decision: before.2 != after.2 };
            journal.push(&entry, meaning, now);
        }
        messages
    }

    /// Replays an entry of an earlier coordinator.
    pub(crate) fn repeat(&mut self, entry: &JournalEntry) -> Vec<Message> {
        match entry {
            JournalEntry::Chunk(index, at, chunk) => self.joiner.take(*index, chunk, *at),
            JournalEntry::Decision(decision) => {
                self.stopped = decision.stopped;
                self.asked = decision.asked;
                (self.stopped_by, self.decided_by) = (decision.stopped_by, decision.stopped_by);
                let messages = self.joiner.look(decision.at, &decision.lost, self.stopped);
                if self.abort_if_required() {
                    self.asked = self.asked.max(StopOrder::Drain);
                }
                messages
            }
            JournalEntry::Over => {
                self.was_over = true;
                Vec::new()
            }
            JournalEntry::Description(..) | JournalEntry::Started(..) | JournalEntry::Attached => {
                Vec::new()
            }
        }
    }

    /// Records in the journal that the run is complete, before `teardown` starts.
    pub(crate) fn end_journal(&mut self, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.push(&JournalEntry::Over, EntryEffect::default(), now);
        }
    }

    /// Starts a journal at entry number `first`.
    pub(crate) fn begin_journal(&mut self, first: u64, now: Instant) {
        let (place, frames) = ((self.rules.generation, first), self.joiner.taken());
        self.journal = Some(Journal::new(place, frames, now));
    }

    /// Continues at `at` since the epoch, after the journal of earlier coordinators.
    pub(crate) fn resume(&mut self, (now, at): (Instant, Nanos)) {
        (self.echoed, self.announced) = (now, self.asked.into());
        self.is_stopped |= match self.stopped_by {
            Some(by) => by == StoppedBy::Request,
            None => self.asked != StopOrder::Go && self.aborted.is_none(),
        };
        self.joiner.hear_all(at);
        let text = format!("another coordinator continues the run from {} on", shown(at));
        self.joiner.events.push(RunEvent::new(at, &text));
        self.begin_journal(0, now);
    }

    /// Periodic check of the agents. `at` is `now` since the epoch; `asked` is the stop state of
    /// the run.
    pub(crate) fn look(
        &mut self,
        (now, at): (Instant, Nanos),
        is_connected: bool,
        asked: Stop,
    ) -> LookOutcome {
        let is_heard = is_connected && now.duration_since(self.echoed) < ECHO_MAX;
        self.joiner.events.extend(self.outage.look((now, at), is_heard));
        self.joiner.report_lags(at);
        let apart_max = self.rules.alone_max + APART_MARGIN;
        let can_hear = self.outage.length(now).is_none_or(|apart| apart > apart_max);
        let (stopped, before) = (self.stopped, self.joiner.requested_handovers());
        if asked > Stop::Go && self.stopped.is_none() {
            self.stopped = Some(at);
        }
        let lost = self.lost_agents((now, at), can_hear, asked);
        let messages = self.joiner.look(at, &lost, self.stopped);
        let drain = self.abort_if_required();
        if let (true, Some(apart)) = (drain, self.outage.length(now).filter(|_| can_hear)) {
            self.aborted = Some(format!("NATS was unreachable for {} s", apart.as_secs()));
        }
        let is_decision = !lost.is_empty()
            || drain
            || self.stopped != stopped
            || self.asked != asked.into()
            || self.stopped_by != self.decided_by
            || self.joiner.requested_handovers() != before;
        (self.asked, self.decided_by) = (asked.into(), self.stopped_by);
        if let (Some(journal), true) = (&mut self.journal, is_decision) {
            let (stopped, asked, stopped_by) = (self.stopped, self.asked, self.stopped_by);
            let decision = Decision { at, lost, stopped, asked, stopped_by };
            let meaning = EntryEffect { is_decision: true, ..EntryEffect::default() };
            journal.push(&JournalEntry::Decision(decision), meaning, now);
        }
        let mut looked = LookOutcome { messages, drain, control: None };
        if asked != self.announced || now.duration_since(self.controlled) >= CONTROL_EVERY {
            looked.control = Some(self.control(asked, now, false));
        }
        self.keep_journal((now, at), is_connected);
        looked
    }

    /// Agents that are lost now, and why.
    fn lost_agents(
        &mut self,
        (now, at): (Instant, Nanos),
        can_hear: bool,
        asked: Stop,
    ) -> Vec<(usize, String)> {
        let because = |index, why: &str| (index, why.to_owned());
        if asked == Stop::Now {
            let since = *self.cut.get_or_insert(now);
            if now.duration_since(since) > NOW_MAX {
                let running =
                    (0..self.joiner.members.len()).filter(|at| self.joiner.is_running(*at));
                return running.map(|index| because(index, "it does not stop")).collect();
            }
        }
        let silent = self.joiner.silent(at, can_hear).into_iter();
        let why = match self.outage.length(now) {
            Some(apart) => format!("NATS was unreachable for {} s", apart.as_secs()),
            None => "it is silent".to_owned(),
        };
        silent.map(|index| because(index, &why)).collect()
    }

    /// Aborts the run if agents are lost and the settings require it. Without any agent, the rest
    /// of the schedule cannot be sent. Returns whether to drain now.
    fn abort_if_required(&mut self) -> bool {
        let lost = self.joiner.lost().len();
        let is_required = lost == self.joiner.members.len() || self.rules.on_loss == OnLoss::Abort;
        if !is_required || lost == 0 || self.stopped.is_some() || self.aborted.is_some() {
            return false;
        }
        self.aborted = self.joiner.first_loss.clone();
        self.aborted.is_some()
    }

    /// Abandons the journal when it cannot be written: the run continues without it.
    fn keep_journal(&mut self, (now, at): (Instant, Nanos), is_connected: bool) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(why) = journal.look(now, is_connected) {
            self.drop_journal(at, why);
        }
    }

    /// Continues without a journal.
    pub(crate) fn drop_journal(&mut self, at: Nanos, why: &str) {
        if self.journal.take().is_some() {
            self.abandoned_at = Some(self.number);
            let text = format!("no other coordinator can take over the run from here on: {why}");
            self.joiner.events.push(RunEvent::new(at, &text));
        }
    }

    /// Abandons the run to another coordinator.
    pub(crate) fn leave(&mut self, at: Nanos) -> Vec<Message> {
        self.abandon(at, "another coordinator has taken over the run")
    }

    /// Abandons the run and all agents.
    pub(crate) fn abandon(&mut self, at: Nanos, why: &str) -> Vec<Message> {
        self.journal = None;
        self.aborted = Some(why.to_owned());
        self.left = Some(why.to_owned());
        let all = 0..self.joiner.members.len();
        let lost: Vec<_> = all.map(|index| (index, why.to_owned())).collect();
        let stopped = *self.stopped.get_or_insert(at);
        self.joiner.look(at, &lost, Some(stopped))
    }

    /// A control message that is only a heartbeat, before it is known how the run continues.
    pub(crate) fn heartbeat(&mut self) -> Control {
        self.number += 1;
        Control { number: self.number - 1, ..Control::default() }
    }

    /// A control message with the state of the run.
    pub(crate) fn control(&mut self, asked: Stop, now: Instant, over: bool) -> Control {
        (self.announced, self.controlled) = (asked, now);
        self.number += 1;
        // Agents may only learn decisions that the next coordinator knows.
        if !self.journal.as_ref().is_some_and(Journal::is_deciding) {
            self.published = (self.joiner.lost(), self.joiner.handovers());
        }
        let (lost, handovers) = self.published.clone();
        let stored = self.journal.as_ref().map(|journal| journal.frames().to_vec());
        Control {
            number: self.number - 1,
            stop: asked.into(),
            taken: stored.unwrap_or_else(|| self.joiner.taken()),
            lost,
            over,
            handovers,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gake_core::Load;
    use gake_core::plan::{Plan, Stage};
    use gake_core::schedule::Process;

    use super::*;
    use crate::message::UnitRange;
    use expect_test::expect;

    fn controller(now: Instant) -> Controller {
        let stages = vec![Stage::step(10.0, Duration::from_secs(5))];
        let plan = Plan::new("a test", Load::Open { stages, process: Process::Uniform });
        let part = UnitRange { first: 0, width: 1, of: 1 };
        let joiner = Joiner::new(&Arc::new(plan), 1, &[("a".to_owned(), 1, part)]);
        let alone_max = Duration::from_secs(20);
        Controller::new(
            joiner,
            ControlRules { on_loss: OnLoss::Continue, alone_max, generation: 1 },
            now,
        )
    }

    #[test]
    fn an_abandoned_journal_is_deleted_unless_another_coordinator_has_taken_over() {
        let now = Instant::now();
        for is_replaced in [false, true] {
            let mut controller = controller(now);
            controller.begin_journal(0, now);
            let before = controller.control(Stop::Go, now, false).number;
            controller.drop_journal(0, "NATS does not store it");
            controller.echo(before, now);
            assert!(!controller.may_delete_journal(), "an earlier message");
            if is_replaced {
                controller.echo(first_number(2), now);
            }
            let after = controller.control(Stop::Go, now, false).number;
            controller.echo(after, now);
            assert_eq!(controller.may_delete_journal(), !is_replaced);
            assert!(!controller.may_delete_journal(), "once");
        }
    }

    #[test]
    fn the_next_coordinator_knows_why_a_run_ends() {
        let now = Instant::now();
        let asked = Decision { stopped: Some(1), asked: StopOrder::Drain, ..Decision::default() };
        let lost = Decision { lost: vec![(0, "it is silent".to_owned())], ..Decision::default() };
        let by = |by| Decision { stopped_by: Some(by), ..asked.clone() };
        for (decision, is_stopped, is_aborted) in [
            (by(StoppedBy::Request), true, false),
            (by(StoppedBy::Interrupt), false, false),
            (asked, true, false),
            (lost, false, true),
        ] {
            let mut controller = controller(now);
            let stopped_by = decision.stopped_by;
            controller.repeat(&JournalEntry::Decision(decision));
            controller.resume((now, 2));
            assert_eq!(controller.asked, StopOrder::Drain);
            assert_eq!(
                (controller.is_stopped, controller.aborted.is_some()),
                (is_stopped, is_aborted)
            );
            assert_eq!(controller.stopped_by, stopped_by);
        }
    }

    #[test]
    fn the_journal_records_who_stops_a_run() {
        let now = Instant::now();
        let mut controller = controller(now);
        controller.begin_journal(0, now);
        let decisions = |controller: &mut Controller, asked| {
            controller.look((now, 1), true, asked);
            let journal = controller.journal.as_mut().unwrap();
            std::iter::from_fn(|| journal.unsent()).count()
        };
        assert_eq!(decisions(&mut controller, Stop::Go), 0);
        controller.interrupt();
        assert_eq!(decisions(&mut controller, Stop::Drain), 1);
        controller.interrupt();
        assert_eq!(decisions(&mut controller, Stop::Drain), 0, "it is known");
        controller.request_stop();
        assert_eq!(
            decisions(&mut controller, Stop::Drain),
            1,
            "a request goes before an interrupt"
        );
        assert_eq!(controller.stopped_by, Some(StoppedBy::Request));
    }

    #[test]
    fn a_run_that_ends_without_nats_reports_it() {
        let start = Instant::now();
        let mut controller = controller(start);
        let second = Duration::from_secs(1);
        for number in 0..40 {
            let at = u64::from(number) * 1_000_000_000;
            controller.look((start + second * number, at), number == 0, Stop::Go);
        }
        expect!["NATS was unreachable for 29 s"].assert_eq(controller.aborted.as_deref().unwrap());
        let texts: Vec<_> = controller.joiner.events.iter().map(|event| &*event.text).collect();
        assert!(texts[0].starts_with("NATS cannot be reached since 1s"), "{texts:?}");
        assert!(texts[1].contains("agent a was lost after 30s: NATS was unreachable"), "{texts:?}");
    }

    #[test]
    fn heartbeats_and_control_messages_share_numbers() {
        let now = Instant::now();
        let mut controller = controller(now);
        let numbers = [controller.heartbeat().number, controller.heartbeat().number];
        assert_eq!(numbers, [first_number(1) + 1, first_number(1) + 2]);
        assert_eq!(controller.control(Stop::Go, now, false).number, first_number(1) + 3);
    }
}
