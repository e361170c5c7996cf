//! What agents do.

use std::collections::VecDeque;

use gake_core::clock::{Nanos, SECOND, TENTH};
use gake_core::plan::{ExpectedStatus, Plan};
use gake_core::record::{Interval, ScenarioEnd, Tally, WorkerEnd};
use gake_core::schedule::Slice;
use gake_core::work::Arrival;
use gake_run::Message;

use super::chance::{Outage, own_dice};
use super::{ALONE_MAX, Faults, Happening, MS, Sim, arrivals, parts};
use crate::agent::slice_state::{Outcome, SliceState, next_second};
use crate::coordinator::join::tests::{outcome, part};
use crate::frame::{self, Frame};
use crate::message::{Control, Handover, HandoverAnswer, LastWord, StopOrder};

pub(super) struct SimAgent {
    pub(super) state: SliceState,
    /// Its clock is behind by this, and faster or slower by some parts in a million.
    pub(super) behind: Nanos,
    pub(super) drift: i64,
    /// What it sends, with the slice and the instant from which on it does.
    pub(super) holdings: Vec<(Vec<Arrival>, Nanos)>,
    /// Up to when it has fired, on its clock.
    pub(super) fired_until: Nanos,
    pub(super) seconds: u64,
    pub(super) killed: Nanos,
    /// Stopped as by SIGSTOP.
    pub(super) frozen: Outage,
    pub(super) cut_off: Outage,
    pub(super) draining: bool,
    pub(super) outcome: Outcome,
    /// The parts of frames that it sent last.
    pub(super) sent: VecDeque<Vec<u8>>,
    /// When it gave its last sign of life after it was killed.
    pub(super) returned: Nanos,
}

impl SimAgent {
    /// What its clock shows.
    pub(super) fn clock(&self, now: Nanos) -> Nanos {
        let since = now.saturating_sub(self.behind);
        since.saturating_add_signed(since as i64 / 1_000 * self.drift / 1_000)
    }

    /// When its clock has shown `shown`.
    pub(super) fn when(&self, shown: Nanos) -> Nanos {
        let mut at =
            self.behind + shown.saturating_add_signed(-(shown as i64 / 1_000 * self.drift / 1_000));
        while self.clock(at) < shown {
            at += 10_000;
        }
        at
    }
}

/// Parts of frames that an agent sends again when it is back.
pub(super) const SENT_AGAIN: usize = 20;

/// Signs of life of an agent that is back.
pub(super) const SIGNS: u32 = 10;

/// Agents' clocks go faster or slower by this at most, in parts in a million.
const DRIFT_MAX: u64 = 2_000;

impl Sim {
    pub(super) fn agent(&mut self, seed: u64, index: usize, of: usize, faults: Faults) -> SimAgent {
        let (length, dice) = (self.length, &mut self.dice);
        let killed = faults.kills && dice.one_in(3);
        let killed = if killed { dice.below(length) } else { Nanos::MAX };
        let mut outage = || match faults.outages && dice.one_in(4) {
            true => Outage::some(dice, length, 30 * SECOND),
            false => Outage::NEVER,
        };
        let (frozen, cut_off) = (outage(), outage());
        let mut state = SliceState::new(index, ALONE_MAX, self.base);
        state.start(self.base);
        let drift = own_dice(seed, index).below(2 * DRIFT_MAX + 1) as i64 - DRIFT_MAX as i64;
        let own = arrivals(&self.plan, seed, parts(&self.plan, seed, of)[index].slice().unwrap());
        SimAgent {
            state,
            behind: self.dice.below(5 * MS),
            drift: if faults.drifts { drift } else { 0 },
            holdings: vec![(own, 0)],
            fired_until: 0,
            seconds: 0,
            killed,
            frozen,
            cut_off,
            draining: false,
            outcome: Outcome::Kept,
            sent: VecDeque::new(),
            returned: 0,
        }
    }

    /// The agent sends what it sent before it was killed, and signs of life, under its index.
    pub(super) fn returns(&mut self, index: usize, signs: u32) {
        for part in std::mem::take(&mut self.agents[index].sent) {
            self.pass_part(index, &part);
        }
        self.pass_part(index, &frame::alive());
        self.agents[index].returned = self.now;
        if signs > 0 {
            self.at(self.now + 500 * MS, Happening::Returns(index, signs - 1));
        }
    }

    pub(super) fn keep_and_send(&mut self, index: usize, frame: Frame) -> u64 {
        let now = self.instant();
        let number = self.agents[index].state.keep(frame.clone(), now);
        self.send_frame(index, number, &frame);
        number
    }

    /// When the agent can do something, if it ever can.
    pub(super) fn awake_at(&self, index: usize) -> Option<Nanos> {
        let agent = &self.agents[index];
        let at = if agent.frozen.holds(self.now) { agent.frozen.to } else { self.now };
        (agent.outcome == Outcome::Kept && at < agent.killed).then_some(at)
    }

    pub(super) fn agent_looks(&mut self, index: usize) {
        let now = self.instant();
        let is_connected =
            !self.nats.holds(self.now) && !self.agents[index].cut_off.holds(self.now);
        let agent = &mut self.agents[index];
        agent.outcome = agent.state.look(now, is_connected);
        if agent.outcome == Outcome::Kept && agent.state.is_quiet(now) {
            self.send_part(index, &frame::alive());
        }
        self.at(self.now + 100 * MS, Happening::AgentLooks(index));
    }

    pub(super) fn apply(&mut self, index: usize, control: &Control) {
        let now = self.instant();
        let applied = self.agents[index].state.apply(control, now);
        self.agents[index].outcome = applied.outcome;
        self.agents[index].draining |= applied.stop > StopOrder::Go;
        for (number, frame) in applied.again {
            self.send_frame(index, number, &frame);
        }
        for handover in applied.handovers {
            self.take_over(index, &handover);
        }
    }

    pub(super) fn take_over(&mut self, index: usize, handover: &Handover) {
        let Handover { id, index: number, of, not_before, .. } = *handover;
        let agent = &self.agents[index];
        // One in ten is at its limit.
        let fits = !(id + self.seed).is_multiple_of(10);
        let from = fits.then(|| next_second(agent.clock(self.now).max(not_before)));
        self.keep_and_send(index, Frame::handover(&HandoverAnswer { id, from }));
        if let Some(from) = from {
            let schedule = self.plan.schedule(Plan::scenario_seed(self.seed, 0)).unwrap();
            let taken = schedule.arrivals(Slice::new(number, of)).collect();
            self.agents[index].holdings.push((taken, from));
        }
    }

    /// A worker hands over what it fired, and ends when the schedule or the run does.
    pub(super) fn hand_over(&mut self, index: usize) {
        if self.agents[index].state.is_complete {
            return;
        }
        let (length, expect) = (self.length, ExpectedStatus::default());
        let agent = &mut self.agents[index];
        let clock = agent.clock(self.now);
        let (since, until) = (agent.fired_until, clock.min(length));
        agent.fired_until = until;
        agent.seconds += 1;
        let (mut tally, mut numbers) = (Tally::default(), Vec::new());
        for (arrivals, from) in &agent.holdings {
            let due = (since.max(*from), until);
            let fresh = arrivals.iter().filter(|arrival| (due.0..due.1).contains(&arrival.due));
            for arrival in fresh {
                tally.record(&outcome(arrival.due, 1 + arrival.number % 1_000 * MS), &expect);
                self.fired.insert(arrival.number);
                self.taken_over += u64::from(*from > 0);
                numbers.push(arrival.number);
            }
        }
        let is_over = clock >= length || agent.draining;
        let tenth = (agent.seconds * 10).max(clock / TENTH);
        agent.seconds = agent.seconds.max(clock / SECOND);
        let next = agent.when((agent.seconds + 1) * SECOND);
        let interval =
            Interval { worker: 0, tenth, scenarios: vec![part(tally)], cpu: 1, run_delay: 0 };
        let frame = self.keep_and_send(index, frame_of(&Message::Interval(Box::new(interval))));
        self.contents.insert((index, frame), numbers);
        if !is_over {
            return self.at(next, Happening::HandsOver(index));
        }
        let end = ScenarioEnd { arrivals_end: until, done: until, ..ScenarioEnd::default() };
        let end = WorkerEnd { worker: 0, scenarios: vec![(0, end)], log_lost: 0 };
        self.keep_and_send(index, frame_of(&Message::Ended(end)));
        self.keep_and_send(index, Frame::last(&LastWord::default()));
    }
}

fn frame_of(message: &Message) -> Frame {
    Frame::of(message).unwrap()
}
