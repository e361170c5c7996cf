//! How the coordinator leads a run. No network, no clock: what comes and when it came go in, and what
//! is to be said comes out.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::clock::Nanos;
use gake_core::record::RunEvent;
use gake_run::{Message, Stop};

use super::join::Joiner;
use super::journal::{Decision, Entry, Journal, Meaning, StoppedBy};
use super::outage::{Outage, shown};
use super::settings::OnLoss;
use crate::message::{Control, Handover, StopOrder};

/// Between two control messages.
pub(crate) const CONTROL_EVERY: Duration = Duration::from_millis(400);

/// Without an echo for longer, the coordinator cannot hear anybody.
const ECHO_MAX: Duration = Duration::from_millis(1_500);

/// The coordinator waits for NATS this much longer than agents go on without it, before they count
/// as silent.
const APART_MARGIN: Duration = Duration::from_secs(5);

/// How long an agent may take to end after it was told to stop at once.
const NOW_MAX: Duration = Duration::from_secs(10);

/// Control messages of one coordinator: those of the next one have higher numbers.
const NUMBERS: u64 = 1 << 24;

/// How a run is led.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) on_loss: OnLoss,
    /// How long agents go on without their coordinator.
    pub(crate) alone_max: Duration,
    /// Which coordinator of the run it is: a later one has a higher number.
    pub(crate) generation: u32,
}

/// A run as its coordinator leads it.
pub(crate) struct Conduct {
    pub(crate) joiner: Joiner,
    rules: Rules,
    /// Frames count as taken once they are here, if there is one.
    pub(crate) journal: Option<Journal>,
    /// The journal was given up. Once the control message with this number came back, no other
    /// coordinator goes on by it: that one would have been heard before.
    given_up_at: Option<u64>,
    /// Whether the stream of the journal that was given up may be deleted.
    may_delete_journal: bool,
    /// The number of the next control message.
    number: u64,
    controlled: Instant,
    /// What the last one said.
    said: Stop,
    /// The agents that are lost and the handovers that agents may be told of.
    told: (Vec<usize>, Vec<Handover>),
    /// When the last control message came back: agents can be heard then.
    echoed: Instant,
    /// Whether NATS can be reached.
    outage: Outage,
    /// When the run was told to stop.
    stopped: Option<Nanos>,
    /// What was asked of the run at the last decision.
    pub(crate) asked: StopOrder,
    /// When it was told to stop at once.
    cut: Option<Instant>,
    /// Why the run was ended before its time, if it was.
    pub(crate) aborted: Option<String>,
    /// Who told it to stop, other than the run itself.
    pub(crate) stopped_by: Option<StoppedBy>,
    /// The same as of the last decision.
    decided_by: Option<StoppedBy>,
    /// Whether somebody else ended it, or it was told to stop under an earlier coordinator, which
    /// does not say by whom.
    pub(crate) is_stopped: bool,
    /// Whether another coordinator goes on with it.
    is_replaced: bool,
    /// Why this coordinator gave the run up, if it did.
    pub(crate) left: Option<String>,
    /// Whether an earlier coordinator had the whole run, and began what follows it.
    pub(crate) was_over: bool,
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

/// Control messages of a coordinator have higher numbers than this, and than those before it.
pub(crate) fn first_number(generation: u32) -> u64 {
    u64::from(generation) * NUMBERS
}

impl Conduct {
    pub(crate) fn new(joiner: Joiner, rules: Rules, now: Instant) -> Self {
        Self {
            joiner: joiner.redistributing(rules.on_loss == OnLoss::Redistribute),
            rules,
            journal: None,
            given_up_at: None,
            may_delete_journal: false,
            number: first_number(rules.generation) + 1,
            controlled: now,
            said: Stop::Go,
            told: Default::default(),
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

    /// A control message came back, or comes from another coordinator.
    pub(crate) fn echo(&mut self, number: u64, now: Instant) {
        self.echoed = now;
        self.is_replaced |= number >= first_number(self.rules.generation.saturating_add(1));
        if !self.is_replaced && self.given_up_at.is_some_and(|first| number >= first) {
            (self.given_up_at, self.may_delete_journal) = (None, true);
        }
    }

    /// Whether the stream of a journal that was given up is to be deleted now; `true` once.
    pub(crate) fn may_delete_journal(&mut self) -> bool {
        std::mem::take(&mut self.may_delete_journal)
    }

    /// Whether another coordinator goes on with the run.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Somebody asks from elsewhere that the run ends.
    pub(crate) fn request_stop(&mut self) {
        self.is_stopped = true;
        self.stopped_by = Some(StoppedBy::Request);
    }

    /// This coordinator was interrupted.
    pub(crate) fn interrupt(&mut self) {
        self.stopped_by.get_or_insert(StoppedBy::Interrupt);
    }

    /// Takes a part of a frame of an agent, which came at `at` since the epoch.
    pub(crate) fn take(
        &mut self,
        index: usize,
        part: &[u8],
        (now, at): (Instant, Nanos),
    ) -> Vec<Message> {
        let before = self.joiner.progress(index);
        let messages = self.joiner.take(index, part, at);
        let after = self.joiner.progress(index);
        if let (Some(journal), Some(before), Some(after)) = (&mut self.journal, before, after)
            && before != after
        {
            let entry = Entry::Part(index, at, Bytes::copy_from_slice(part));
            let meaning =
                Meaning { frames: Some((index, after.0)), is_decision: before.2 != after.2 };
            journal.push(&entry, meaning, now);
        }
        messages
    }

    /// Does again what an earlier coordinator did.
    pub(crate) fn repeat(&mut self, entry: &Entry) -> Vec<Message> {
        match entry {
            Entry::Part(index, at, part) => self.joiner.take(*index, part, *at),
            Entry::Decision(decision) => {
                self.stopped = decision.stopped;
                self.asked = decision.asked;
                (self.stopped_by, self.decided_by) = (decision.stopped_by, decision.stopped_by);
                let messages = self.joiner.look(decision.at, &decision.lost, self.stopped);
                if self.abort_if_wanted() {
                    self.asked = self.asked.max(StopOrder::Drain);
                }
                messages
            }
            Entry::Over => {
                self.was_over = true;
                Vec::new()
            }
            Entry::Description(..) | Entry::Started(..) | Entry::Attached => Vec::new(),
        }
    }

    /// Everything is here: the journal says so before what follows the run begins.
    pub(crate) fn end_journal(&mut self, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Entry::Over, Meaning::default(), now);
        }
    }

    /// Keeps a journal from its entry `first` on.
    pub(crate) fn begin_journal(&mut self, first: u64, now: Instant) {
        let (place, frames) = ((self.rules.generation, first), self.joiner.taken());
        self.journal = Some(Journal::new(place, frames, now));
    }

    /// Goes on at `at` since the epoch where the journal of earlier coordinators ends.
    pub(crate) fn go_on(&mut self, (now, at): (Instant, Nanos)) {
        (self.echoed, self.said) = (now, self.asked.into());
        self.is_stopped |= match self.stopped_by {
            Some(by) => by == StoppedBy::Request,
            None => self.asked != StopOrder::Go && self.aborted.is_none(),
        };
        self.joiner.hear_all(at);
        let text = format!("another coordinator goes on with the run from {} on", shown(at));
        self.joiner.events.push(RunEvent { at, text });
        self.begin_journal(0, now);
    }

    /// Looks after the agents, several times a second. `at` is `now` since the epoch, `asked` what
    /// is asked of the run.
    pub(crate) fn look(
        &mut self,
        (now, at): (Instant, Nanos),
        is_connected: bool,
        asked: Stop,
    ) -> Looked {
        let is_heard = is_connected && now.duration_since(self.echoed) < ECHO_MAX;
        self.joiner.events.extend(self.outage.look((now, at), is_heard));
        self.joiner.look_for_lags(at);
        let apart_max = self.rules.alone_max + APART_MARGIN;
        let can_hear = self.outage.length(now).is_none_or(|apart| apart > apart_max);
        let (stopped, before) = (self.stopped, self.joiner.asked());
        if asked > Stop::Go && self.stopped.is_none() {
            self.stopped = Some(at);
        }
        let lost = self.given_up((now, at), can_hear, asked);
        let messages = self.joiner.look(at, &lost, self.stopped);
        let drain = self.abort_if_wanted();
        if let (true, Some(apart)) = (drain, self.outage.length(now).filter(|_| can_hear)) {
            self.aborted = Some(format!("NATS was away for {} s", apart.as_secs()));
        }
        let is_decision = !lost.is_empty()
            || drain
            || self.stopped != stopped
            || self.asked != asked.into()
            || self.stopped_by != self.decided_by
            || self.joiner.asked() != before;
        (self.asked, self.decided_by) = (asked.into(), self.stopped_by);
        if let (Some(journal), true) = (&mut self.journal, is_decision) {
            let (stopped, asked, stopped_by) = (self.stopped, self.asked, self.stopped_by);
            let decision = Decision { at, lost, stopped, asked, stopped_by };
            let meaning = Meaning { is_decision: true, ..Meaning::default() };
            journal.push(&Entry::Decision(decision), meaning, now);
        }
        let mut looked = Looked { messages, drain, control: None };
        if asked != self.said || now.duration_since(self.controlled) >= CONTROL_EVERY {
            looked.control = Some(self.control(asked, now, false));
        }
        self.keep_journal((now, at), is_connected);
        looked
    }

    /// The agents to be given up, and why.
    fn given_up(
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
            Some(apart) => format!("NATS was away for {} s", apart.as_secs()),
            None => "it is silent".to_owned(),
        };
        silent.map(|index| because(index, &why)).collect()
    }

    /// Aborts the run when that is wanted; whether it is to drain now. Without any agent nobody
    /// sends the rest of the schedule.
    fn abort_if_wanted(&mut self) -> bool {
        let lost = self.joiner.lost().len();
        let is_wanted = lost == self.joiner.members.len() || self.rules.on_loss == OnLoss::Abort;
        if !is_wanted || lost == 0 || self.stopped.is_some() || self.aborted.is_some() {
            return false;
        }
        self.aborted = self.joiner.first_loss.clone();
        self.aborted.is_some()
    }

    /// Gives the journal up when it cannot be kept: the run goes on without.
    fn keep_journal(&mut self, (now, at): (Instant, Nanos), is_connected: bool) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(why) = journal.look(now, is_connected) {
            self.drop_journal(at, why);
        }
    }

    /// Goes on without a journal.
    pub(crate) fn drop_journal(&mut self, at: Nanos, why: &str) {
        if self.journal.take().is_some() {
            self.given_up_at = Some(self.number);
            let text = format!("no other coordinator can go on with the run from here on: {why}");
            self.joiner.events.push(RunEvent { at, text });
        }
    }

    /// Leaves the run to another coordinator.
    pub(crate) fn leave(&mut self, at: Nanos) -> Vec<Message> {
        self.give_up(at, "another coordinator goes on with the run")
    }

    /// Gives every agent, and so the run, up.
    pub(crate) fn give_up(&mut self, at: Nanos, why: &str) -> Vec<Message> {
        self.journal = None;
        self.aborted = Some(why.to_owned());
        self.left = Some(why.to_owned());
        let all = 0..self.joiner.members.len();
        let lost: Vec<_> = all.map(|index| (index, why.to_owned())).collect();
        let stopped = *self.stopped.get_or_insert(at);
        self.joiner.look(at, &lost, Some(stopped))
    }

    /// Tells the agents that there is a coordinator, and nothing else: it does not know yet how the
    /// run is to go on.
    pub(crate) fn sign_of_life(&mut self) -> Control {
        self.number += 1;
        Control { number: self.number - 1, ..Control::default() }
    }

    /// Tells the agents how the run is to go on.
    pub(crate) fn control(&mut self, asked: Stop, now: Instant, over: bool) -> Control {
        (self.said, self.controlled) = (asked, now);
        self.number += 1;
        // What agents were told, the next coordinator must know.
        if !self.journal.as_ref().is_some_and(Journal::is_deciding) {
            self.told = (self.joiner.lost(), self.joiner.handovers());
        }
        let (lost, handovers) = self.told.clone();
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
    use crate::message::Part;

    fn conduct(now: Instant) -> Conduct {
        let stages = vec![Stage::step(10.0, Duration::from_secs(5))];
        let plan = Plan::new("a test", Load::Open { stages, process: Process::Uniform });
        let part = Part { first: 0, width: 1, of: 1 };
        let joiner = Joiner::new(&Arc::new(plan), 1, &[("a".to_owned(), 1, part)]);
        let alone_max = Duration::from_secs(20);
        Conduct::new(joiner, Rules { on_loss: OnLoss::Continue, alone_max, generation: 1 }, now)
    }

    #[test]
    fn a_journal_that_was_given_up_is_deleted_unless_another_coordinator_has_it() {
        let now = Instant::now();
        for is_replaced in [false, true] {
            let mut conduct = conduct(now);
            conduct.begin_journal(0, now);
            let before = conduct.control(Stop::Go, now, false).number;
            conduct.drop_journal(0, "NATS does not store it");
            conduct.echo(before, now);
            assert!(!conduct.may_delete_journal(), "it was said before");
            if is_replaced {
                conduct.echo(first_number(2), now);
            }
            let after = conduct.control(Stop::Go, now, false).number;
            conduct.echo(after, now);
            assert_eq!(conduct.may_delete_journal(), !is_replaced);
            assert!(!conduct.may_delete_journal(), "once");
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
            let mut conduct = conduct(now);
            let stopped_by = decision.stopped_by;
            conduct.repeat(&Entry::Decision(decision));
            conduct.go_on((now, 2));
            assert_eq!(conduct.asked, StopOrder::Drain);
            assert_eq!((conduct.is_stopped, conduct.aborted.is_some()), (is_stopped, is_aborted));
            assert_eq!(conduct.stopped_by, stopped_by);
        }
    }

    #[test]
    fn who_stops_a_run_stands_in_its_journal() {
        let now = Instant::now();
        let mut conduct = conduct(now);
        conduct.begin_journal(0, now);
        let decisions = |conduct: &mut Conduct, asked| {
            conduct.look((now, 1), true, asked);
            let journal = conduct.journal.as_mut().unwrap();
            std::iter::from_fn(|| journal.unsent()).count()
        };
        assert_eq!(decisions(&mut conduct, Stop::Go), 0);
        conduct.interrupt();
        assert_eq!(decisions(&mut conduct, Stop::Drain), 1);
        conduct.interrupt();
        assert_eq!(decisions(&mut conduct, Stop::Drain), 0, "it is known");
        conduct.request_stop();
        assert_eq!(decisions(&mut conduct, Stop::Drain), 1, "a request goes before an interrupt");
        assert_eq!(conduct.stopped_by, Some(StoppedBy::Request));
    }

    #[test]
    fn a_run_that_ends_without_nats_says_so() {
        let start = Instant::now();
        let mut conduct = conduct(start);
        let second = Duration::from_secs(1);
        for number in 0..40 {
            let at = u64::from(number) * 1_000_000_000;
            conduct.look((start + second * number, at), number == 0, Stop::Go);
        }
        assert_eq!(conduct.aborted.as_deref(), Some("NATS was away for 29 s"));
        let texts: Vec<_> = conduct.joiner.events.iter().map(|event| &event.text).collect();
        assert!(texts[0].starts_with("NATS cannot be reached since 1s"), "{texts:?}");
        assert!(texts[1].contains("agent a was lost after 30s: NATS was away"), "{texts:?}");
    }

    #[test]
    fn signs_of_life_are_numbered_with_the_control_messages() {
        let now = Instant::now();
        let mut conduct = conduct(now);
        let numbers = [conduct.sign_of_life().number, conduct.sign_of_life().number];
        assert_eq!(numbers, [first_number(1) + 1, first_number(1) + 2]);
        assert_eq!(conduct.control(Stop::Go, now, false).number, first_number(1) + 3);
    }
}
