//! Joins the messages of agents into one run. Sans-IO: inputs carry their time.

mod handover;

use std::sync::Arc;

use gake_core::clock::{Nanos, TENTH};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Interval, RunEvent, WorkerEnd};
use gake_run::{Collector, Message};

use super::lost_arrivals::{ArrivalCounts, Assignment, LostArrivals};
use super::outage::shown;
use crate::frame::{Assembler, FrameContent};
use crate::message::{AgentEnd, Handover, UnitRange};
use crate::script::ScriptEvent;

/// An agent that is silent for longer is lost.
pub(crate) const SILENCE_MAX: Nanos = 3_000_000_000;

/// An agent with older figures lags: workers send them once a second.
const LAG_MAX: Nanos = 3_000_000_000;

/// How many tenths of a second an interval may end ahead of our clock.
const AHEAD_MAX: u64 = 50;

/// An agent of the run.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Its arrivals.
    assignments: Vec<Assignment>,
    /// The number of its workers, which are numbered from `first`.
    workers: usize,
    first: usize,
    ended: Vec<bool>,
    /// The end of the latest interval by worker, in tenths of a second.
    tenths: Vec<u64>,
    assembler: Assembler,
    /// The latest message.
    heard: Nanos,
    reported: Vec<ArrivalCounts>,
    state: MemberState,
    /// When it was lost, if it was.
    pub(crate) lost_at: Option<Nanos>,
    /// While it lags: the end of its figures when it began to lag.
    lags_since: Option<Nanos>,
    /// Its own figures.
    pub(crate) collector: Collector,
    pub(crate) last: Option<AgentEnd>,
}

enum MemberState {
    Running,
    /// All figures have arrived.
    Done,
    /// Lost: its remaining arrivals count as dropped.
    Lost(LostArrivals),
    /// Lost, and nothing more is due.
    Gone {
        /// Whether others took over all of its arrivals.
        is_replaced: bool,
    },
}

/// Joins the messages of the agents of a run.
pub(crate) struct Joiner {
    plan: Arc<Plan>,
    seed: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) events: Vec<RunEvent>,
    /// The event of the first lost agent.
    pub(crate) first_loss: Option<String>,
    /// Events of scripts that have not been passed on, with the indices of the agent and the
    /// script.
    pub(crate) script_events: Vec<(usize, usize, ScriptEvent)>,
    /// Whether other agents take over arrivals of lost ones.
    redistributes: bool,
    /// When the run was stopped.
    stopped: Option<Nanos>,
    /// Handovers without a reply, with the index of the lost agent.
    handovers: Vec<(usize, Handover)>,
    /// The number of handovers so far.
    handover_count: u64,
    /// Until when late figures are not the fault of an agent.
    excused: Nanos,
}

impl Joiner {
    /// For agents with a name, a number of workers and a range of units.
    pub(crate) fn new(plan: &Arc<Plan>, seed: u64, agents: &[(String, usize, UnitRange)]) -> Self {
        let mut first = 0;
        let members = agents.iter().map(|(name, workers, part)| {
            let member = Member {
                name: name.clone(),
                assignments: Assignment::own(plan, *part),
                workers: *workers,
                first,
                ended: vec![false; *workers],
                tenths: vec![0; *workers],
                assembler: Assembler::default(),
                heard: 0,
                reported: vec![ArrivalCounts::default(); plan.scenarios().len()],
                state: MemberState::Running,
                lost_at: None,
                lags_since: None,
                collector: Collector::new(plan, seed, *workers).of_slice(),
                last: None,
            };
            first += workers;
            member
        });
        Self {
            members: members.collect(),
            plan: Arc::clone(plan),
            seed,
            events: Vec::new(),
            first_loss: None,
            script_events: Vec::new(),
            redistributes: false,
            stopped: None,
            handovers: Vec::new(),
            handover_count: 0,
            excused: 0,
        }
    }

    /// Sets whether other agents take over arrivals of lost ones.
    pub(crate) fn redistributing(self, redistributes: bool) -> Self {
        Self { redistributes, ..self }
    }

    /// The number of workers of all agents.
    pub(crate) fn workers(&self) -> usize {
        self.members.iter().map(|member| member.workers).sum()
    }

    /// The number of frames received by agent.
    pub(crate) fn taken(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.assembler.taken()).collect()
    }

    /// The indices of lost agents.
    pub(crate) fn lost(&self) -> Vec<usize> {
        let is_lost = |member: &Member| {
            matches!(member.state, MemberState::Lost(_) | MemberState::Gone { .. })
        };
        (0..self.members.len()).filter(|index| is_lost(&self.members[*index])).collect()
    }

    /// Whether an agent still sends figures.
    pub(crate) fn is_running(&self, index: usize) -> bool {
        self.members.get(index).is_some_and(|member| matches!(member.state, MemberState::Running))
    }

    /// Whether all agents have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.members
            .iter()
            .all(|member| matches!(member.state, MemberState::Done | MemberState::Gone { .. }))
    }

    /// Handles a chunk of a frame of an agent, received at `now`.
    pub(crate) fn take(&mut self, index: usize, chunk: &[u8], now: Nanos) -> Vec<Message> {
        let Some(member) = self.members.get_mut(index) else { return Vec::new() };
        if !matches!(member.state, MemberState::Running) {
            return Vec::new();
        }
        member.heard = now;
        let content = match member.assembler.take(chunk) {
            Ok(None) => return Vec::new(),
            Ok(Some(FrameContent::Handover(reply))) => {
                self.handle_reply(index, reply, now).map(|()| Vec::new())
            }
            Ok(Some(FrameContent::Script(number, event))) => {
                self.script_events.push((index, number, event));
                Ok(Vec::new())
            }
            Ok(Some(content)) => member.accept(&self.plan, content, now),
            Err(error) => Err(format!("its figures are not valid: {error}")),
        };
        match content {
            Ok(messages) => messages,
            Err(why) => self.lose(index, now, &why),
        }
    }

    /// The progress of an agent: frames received, chunks of the next one, and whether more are
    /// expected.
    pub(crate) fn progress(&self, index: usize) -> Option<(u64, u32, bool)> {
        let member = self.members.get(index)?;
        let (frames, chunks) = member.assembler.progress();
        Some((frames, chunks, matches!(member.state, MemberState::Running)))
    }

    /// Counts every agent as heard at `now`.
    pub(crate) fn hear_all(&mut self, now: Nanos) {
        self.members.iter_mut().for_each(|member| member.heard = now);
        self.excused = now;
    }

    /// The agents that are silent at `now`; `connected` is whether they could be received.
    pub(crate) fn silent(&mut self, now: Nanos, connected: bool) -> Vec<usize> {
        if !connected {
            self.hear_all(now);
        }
        let is_silent = |index: &usize| {
            let silence = now.saturating_sub(self.members[*index].heard);
            self.is_running(*index) && silence > SILENCE_MAX
        };
        (0..self.members.len()).filter(is_silent).collect()
    }

    /// Reports agents that are alive but whose figures are late, and when they have caught up.
    pub(crate) fn report_lags(&mut self, now: Nanos) {
        for member in &mut self.members {
            let is_running = matches!(member.state, MemberState::Running);
            let running = member.tenths.iter().zip(&member.ended).filter(|(_, ended)| !**ended);
            let oldest = running.map(|(tenth, _)| tenth * TENTH).min().filter(|_| is_running);
            let since = oldest.map_or(now, |oldest| oldest.max(self.excused));
            let lag = now.saturating_sub(since);
            // A silent agent will be lost instead.
            let is_alive = now.saturating_sub(member.heard) < SILENCE_MAX / 2;
            let name = &member.name;
            let text = match member.lags_since {
                None if lag > LAG_MAX && is_alive => {
                    member.lags_since = Some(since);
                    format!("agent {name} lags: its figures are {} behind", shown(lag))
                }
                Some(begun) if lag < LAG_MAX / 2 => {
                    member.lags_since = None;
                    // The loss of the agent is reported instead.
                    if !is_running && !matches!(member.state, MemberState::Done) {
                        continue;
                    }
                    let lasted = shown(now.saturating_sub(begun));
                    format!("agent {name} has caught up, {lasted} after its figures stopped")
                }
                _ => continue,
            };
            self.events.push(RunEvent::new(now, &text));
        }
    }

    /// Marks agents as lost at `now`, each with a reason, and returns messages for the arrivals of
    /// lost agents. After `stopped` they have no more arrivals.
    pub(crate) fn look(
        &mut self,
        now: Nanos,
        lost: &[(usize, String)],
        stopped: Option<Nanos>,
    ) -> Vec<Message> {
        self.stopped = self.stopped.or(stopped);
        let mut messages = Vec::new();
        for (index, why) in lost {
            if self.is_running(*index) {
                messages.extend(self.lose(*index, now, why));
            }
        }
        self.redirect_handovers(now);
        for member in &mut self.members {
            let MemberState::Lost(lost) = &mut member.state else { continue };
            let until = lost.known_until(stopped.unwrap_or(now).min(now));
            let intervals = lost.seconds(until).into_iter();
            messages.extend(intervals.map(|interval| Message::Interval(Box::new(interval))));
            if lost.is_over(now) || stopped.is_some() && !lost.is_pending() {
                let (interval, end) = lost.finish(until);
                messages.push(Message::Interval(Box::new(interval)));
                messages.push(Message::Ended(end));
                let is_replaced = lost.is_replaced();
                member.state = MemberState::Gone { is_replaced };
            }
        }
        messages
    }

    /// Marks an agent as lost: its arrivals without an outcome count as dropped.
    pub(crate) fn lose(&mut self, index: usize, now: Nanos, why: &str) -> Vec<Message> {
        let Some(member) = self.members.get_mut(index) else { return Vec::new() };
        let mut messages = Vec::new();
        // If all of its workers have ended, nothing is missing.
        let Some(carrier) = member.ended.iter().position(|ended| !ended) else {
            member.state = MemberState::Done;
            return messages;
        };
        let assignments = self.hand_over(index, now);
        let member = &mut self.members[index];
        for worker in 0..member.workers {
            if std::mem::replace(&mut member.ended[worker], true) {
                continue;
            }
            let none = |worker| WorkerEnd { worker, scenarios: Vec::new(), log_lost: 0 };
            member.collect(Message::Ended(none(worker)));
            if worker != carrier {
                messages.push(Message::Ended(none(member.first + worker)));
            }
        }
        let whole = (self.plan.as_ref(), self.seed, assignments.as_slice());
        let carrier = (member.first + carrier, member.tenths[carrier]);
        let lost = LostArrivals::new(whole, &member.reported, carrier, now);
        let has_handovers = lost.is_pending();
        member.state = MemberState::Lost(lost);
        member.lost_at = Some(now);
        let at = shown(now);
        let rest = match self.plan.scenarios().iter().any(|plan| plan.load.is_open()) {
            true if has_handovers => {
                "until others take over, its arrivals without an outcome count as dropped, \
                 though it may have sent some"
            }
            true => {
                "its arrivals without an outcome count as dropped, though it may have sent some"
            }
            false => "its users send no more requests",
        };
        let text = format!("agent {} was lost after {at}: {why}; {rest}", member.name);
        self.first_loss.get_or_insert_with(|| text.clone());
        self.events.push(RunEvent::new(now, &text));
        messages
    }
}

impl Member {
    /// The messages in a frame. The error says why it cannot belong to this run.
    fn accept(
        &mut self,
        plan: &Plan,
        content: FrameContent,
        now: Nanos,
    ) -> Result<Vec<Message>, String> {
        Ok(match content {
            FrameContent::Interval(interval) => {
                self.check(plan, &interval, now)?;
                self.tenths[interval.worker] = interval.tenth;
                self.count(&interval);
                self.collect(Message::Interval(interval.clone()));
                let worker = interval.worker + self.first;
                vec![Message::Interval(Box::new(Interval { worker, ..*interval }))]
            }
            FrameContent::Ended(end) => {
                let scenarios = plan.scenarios().len();
                let ended = self.ended.get_mut(end.worker).filter(|ended| !**ended);
                let ended = ended.ok_or("it reports the end of a worker that it does not have")?;
                if end.scenarios.iter().any(|(number, _)| *number >= scenarios) {
                    return Err(
                        "it reports the end of a scenario that the run does not have".to_owned()
                    );
                }
                *ended = true;
                self.collect(Message::Ended(end.clone()));
                vec![Message::Ended(WorkerEnd { worker: end.worker + self.first, ..end })]
            }
            FrameContent::Last(word) => {
                if self.ended.iter().any(|ended| !ended) {
                    return Err("it ends before its workers".to_owned());
                }
                self.last = Some(word);
                self.state = MemberState::Done;
                Vec::new()
            }
            // Handled by the joiner.
            FrameContent::Handover(_) | FrameContent::Script(..) => {
                return Err("it sends an unexpected frame".to_owned());
            }
            FrameContent::Aborted(why) => return Err(why),
        })
    }

    fn check(&self, plan: &Plan, interval: &Interval, now: Nanos) -> Result<(), String> {
        let has_worker = self.ended.get(interval.worker).is_some_and(|ended| !ended);
        let scenarios = plan.scenarios().len();
        let are_known = interval.scenarios.iter().all(|part| {
            part.scenario < scenarios && part.tally.labels().len() <= plan.labels.len().max(1)
        });
        if !has_worker || !are_known || interval.tenth > now / TENTH + AHEAD_MAX {
            return Err("its figures belong to another run".to_owned());
        }
        Ok(())
    }

    /// Counts arrivals with an outcome.
    fn count(&mut self, interval: &Interval) {
        let arrivals = |counts: &Counts| counts.started.saturating_add(counts.dropped);
        for part in &interval.scenarios {
            let reported = &mut self.reported[part.scenario];
            reported.warmup = reported.warmup.saturating_add(arrivals(&part.warmup));
            reported.figures = reported.figures.saturating_add(arrivals(&part.tally.counts));
        }
    }

    fn collect(&mut self, message: Message) {
        self.collector.take(message, |_, _| {});
        while let Some(second) = self.collector.next_second() {
            self.collector.retire(second);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
