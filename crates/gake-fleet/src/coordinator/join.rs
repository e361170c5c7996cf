//! Joins what the agents send into the messages of one run. No clock, no network: what comes and
//! when it came go in.

mod handover;

use std::sync::Arc;

use gake_core::clock::{Nanos, TENTH};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Interval, RunEvent, WorkerEnd};
use gake_run::{Collector, Message};

use super::lost::{Holding, LostShare, Reported};
use super::outage::shown;
use crate::frame::{Assembler, Content};
use crate::message::{Handover, LastWord, Part};
use crate::script::ScriptEvent;

/// An agent that is silent for longer is lost.
pub(crate) const SILENCE_MAX: Nanos = 3_000_000_000;

/// An agent whose figures are older lags: workers hand them over once a second.
const LAG_MAX: Nanos = 3_000_000_000;

/// An interval may end this many tenths of a second ahead of our clock.
const AHEAD_MAX: u64 = 50;

/// An agent of the run.
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: String,
    /// What it is to send.
    holdings: Vec<Holding>,
    /// How many workers it has; they are numbered from `first`.
    workers: usize,
    first: usize,
    ended: Vec<bool>,
    /// The tenth of a second in which the last interval of each worker ends.
    tenths: Vec<u64>,
    assembler: Assembler,
    /// When it was heard last.
    heard: Nanos,
    reported: Vec<Reported>,
    state: State,
    /// When it was lost, if it was.
    pub(crate) lost_at: Option<Nanos>,
    /// Where its figures ended when it began to lag, if it does.
    lags_since: Option<Nanos>,
    /// Its own figures.
    pub(crate) collector: Collector,
    pub(crate) last: Option<LastWord>,
}

enum State {
    Running,
    /// Everything it recorded is here.
    Done,
    /// What it was to send counts as dropped.
    Lost(LostShare),
    /// Likewise, and nothing more is due.
    Gone {
        /// Whether others took over all that was due.
        is_replaced: bool,
    },
}

/// Joins what the agents of a run send.
pub(crate) struct Joiner {
    plan: Arc<Plan>,
    seed: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) events: Vec<RunEvent>,
    /// How the first agent was lost, if one was.
    pub(crate) first_loss: Option<String>,
    /// What scripts did that nobody has heard yet, each with the number of the agent.
    pub(crate) scripted: Vec<(usize, ScriptEvent)>,
    /// Whether others take over what a lost agent was to send.
    redistributes: bool,
    /// When the run was told to stop.
    stopped: Option<Nanos>,
    /// Handovers without an answer, each with the agent that was lost.
    handovers: Vec<(usize, Handover)>,
    /// How many handovers there were.
    handed: u64,
    /// Until when figures may have been on their way without any agent's fault.
    excused: Nanos,
}

impl Joiner {
    /// Agents by name, number of workers and part.
    pub(crate) fn new(plan: &Arc<Plan>, seed: u64, agents: &[(String, usize, Part)]) -> Self {
        let mut first = 0;
        let members = agents.iter().map(|(name, workers, part)| {
            let member = Member {
                name: name.clone(),
                holdings: Holding::own(plan, *part),
                workers: *workers,
                first,
                ended: vec![false; *workers],
                tenths: vec![0; *workers],
                assembler: Assembler::default(),
                heard: 0,
                reported: vec![Reported::default(); plan.scenarios().len()],
                state: State::Running,
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
            scripted: Vec::new(),
            redistributes: false,
            stopped: None,
            handovers: Vec::new(),
            handed: 0,
            excused: 0,
        }
    }

    /// The others take over what a lost agent was to send.
    pub(crate) fn redistributing(self, redistributes: bool) -> Self {
        Self { redistributes, ..self }
    }

    /// How many workers all agents have.
    pub(crate) fn workers(&self) -> usize {
        self.members.iter().map(|member| member.workers).sum()
    }

    /// How many frames of each agent are taken.
    pub(crate) fn taken(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.assembler.taken()).collect()
    }

    /// The agents that are lost.
    pub(crate) fn lost(&self) -> Vec<usize> {
        let is_lost = |member: &Member| matches!(member.state, State::Lost(_) | State::Gone { .. });
        (0..self.members.len()).filter(|index| is_lost(&self.members[*index])).collect()
    }

    /// Whether figures of an agent still come.
    pub(crate) fn is_running(&self, index: usize) -> bool {
        self.members.get(index).is_some_and(|member| matches!(member.state, State::Running))
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.members.iter().all(|member| matches!(member.state, State::Done | State::Gone { .. }))
    }

    /// Takes a part of a frame of an agent, which came at `now`.
    pub(crate) fn take(&mut self, index: usize, part: &[u8], now: Nanos) -> Vec<Message> {
        let Some(member) = self.members.get_mut(index) else { return Vec::new() };
        if !matches!(member.state, State::Running) {
            return Vec::new();
        }
        member.heard = now;
        let content = match member.assembler.take(part) {
            Ok(None) => return Vec::new(),
            Ok(Some(Content::Handover(answer))) => {
                self.answered(index, answer, now).map(|()| Vec::new())
            }
            Ok(Some(Content::Script(event))) => {
                self.scripted.push((index, event));
                Ok(Vec::new())
            }
            Ok(Some(content)) => member.accept(&self.plan, content, now),
            Err(error) => Err(format!("its figures cannot be read: {error}")),
        };
        match content {
            Ok(messages) => messages,
            Err(why) => self.lose(index, now, &why),
        }
    }

    /// How far the frames of an agent are taken: frames, parts of the next one, and whether more
    /// come.
    pub(crate) fn progress(&self, index: usize) -> Option<(u64, u32, bool)> {
        let member = self.members.get(index)?;
        let (frames, parts) = member.assembler.progress();
        Some((frames, parts, matches!(member.state, State::Running)))
    }

    /// Every agent counts as heard at `now`.
    pub(crate) fn hear_all(&mut self, now: Nanos) {
        self.members.iter_mut().for_each(|member| member.heard = now);
        self.excused = now;
    }

    /// The agents that are silent at `now`; `connected` is whether they could be heard.
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

    /// Looks at `now` for agents that are alive and whose figures are late. An event names each, and
    /// tells when it has caught up.
    pub(crate) fn look_for_lags(&mut self, now: Nanos) {
        for member in &mut self.members {
            let is_running = matches!(member.state, State::Running);
            let running = member.tenths.iter().zip(&member.ended).filter(|(_, ended)| !**ended);
            let oldest = running.map(|(tenth, _)| tenth * TENTH).min().filter(|_| is_running);
            let since = oldest.map_or(now, |oldest| oldest.max(self.excused));
            let lag = now.saturating_sub(since);
            // One that is silent does not lag: it will be lost.
            let is_alive = now.saturating_sub(member.heard) < SILENCE_MAX / 2;
            let name = &member.name;
            let text = match member.lags_since {
                None if lag > LAG_MAX && is_alive => {
                    member.lags_since = Some(since);
                    format!("agent {name} lags: its figures are {} behind", shown(lag))
                }
                Some(begun) if lag < LAG_MAX / 2 => {
                    member.lags_since = None;
                    // Of one that is lost, its loss tells.
                    if !is_running && !matches!(member.state, State::Done) {
                        continue;
                    }
                    let lasted = shown(now.saturating_sub(begun));
                    format!("agent {name} has caught up, {lasted} after its figures stopped")
                }
                _ => continue,
            };
            self.events.push(RunEvent { at: now, text });
        }
    }

    /// Gives the agents `lost` up at `now`, each for a reason, and says what is known of those that
    /// were. After `stopped`, nothing of a lost agent is due any more.
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
        self.ask_others(now);
        for member in &mut self.members {
            let State::Lost(lost) = &mut member.state else { continue };
            let until = lost.known_until(stopped.unwrap_or(now).min(now));
            let pieces = lost.seconds(until).into_iter();
            messages.extend(pieces.map(|piece| Message::Interval(Box::new(piece))));
            if lost.is_over(now) || stopped.is_some() && !lost.is_pending() {
                let (piece, end) = lost.finish(until);
                messages.push(Message::Interval(Box::new(piece)));
                messages.push(Message::Ended(end));
                let is_replaced = lost.is_replaced();
                member.state = State::Gone { is_replaced };
            }
        }
        messages
    }

    /// Gives an agent up: what it was to send and has no outcome counts as dropped.
    pub(crate) fn lose(&mut self, index: usize, now: Nanos, why: &str) -> Vec<Message> {
        let Some(member) = self.members.get_mut(index) else { return Vec::new() };
        let mut messages = Vec::new();
        // All of its workers have ended, so that nothing of it is missing.
        let Some(carrier) = member.ended.iter().position(|ended| !ended) else {
            member.state = State::Done;
            return messages;
        };
        let holdings = self.hand_over(index, now);
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
        let whole = (self.plan.as_ref(), self.seed, holdings.as_slice());
        let carrier = (member.first + carrier, member.tenths[carrier]);
        let lost = LostShare::new(whole, &member.reported, carrier, now);
        let is_handed_over = lost.is_pending();
        member.state = State::Lost(lost);
        member.lost_at = Some(now);
        let at = shown(now);
        let rest = match self.plan.scenarios().iter().any(|plan| plan.load.is_open()) {
            true if is_handed_over => {
                "until others take its arrivals over, those without an outcome count as dropped, \
                 though it may have sent some"
            }
            true => {
                "its arrivals without an outcome count as dropped, though it may have sent some"
            }
            false => "its users ask no more",
        };
        let text = format!("agent {} was lost after {at}: {why}; {rest}", member.name);
        self.first_loss.get_or_insert_with(|| text.clone());
        self.events.push(RunEvent { at: now, text });
        messages
    }
}

impl Member {
    /// The messages in a frame; why it cannot be one of this run.
    fn accept(
        &mut self,
        plan: &Plan,
        content: Content,
        now: Nanos,
    ) -> Result<Vec<Message>, String> {
        Ok(match content {
            Content::Interval(interval) => {
                self.check(plan, &interval, now)?;
                self.tenths[interval.worker] = interval.tenth;
                self.count(&interval);
                self.collect(Message::Interval(interval.clone()));
                let worker = interval.worker + self.first;
                vec![Message::Interval(Box::new(Interval { worker, ..*interval }))]
            }
            Content::Ended(end) => {
                let scenarios = plan.scenarios().len();
                let ended = self.ended.get_mut(end.worker).filter(|ended| !**ended);
                let ended = ended.ok_or("it ends a worker that it does not have")?;
                if end.scenarios.iter().any(|(number, _)| *number >= scenarios) {
                    return Err("it ends a scenario that the run does not have".to_owned());
                }
                *ended = true;
                self.collect(Message::Ended(end.clone()));
                vec![Message::Ended(WorkerEnd { worker: end.worker + self.first, ..end })]
            }
            Content::Last(word) => {
                if self.ended.iter().any(|ended| !ended) {
                    return Err("it ends before its workers".to_owned());
                }
                self.last = Some(word);
                self.state = State::Done;
                Vec::new()
            }
            // The joiner takes them.
            Content::Handover(_) | Content::Script(_) => {
                return Err("it says something at the wrong place".to_owned());
            }
            Content::GaveUp(why) => return Err(why),
        })
    }

    fn check(&self, plan: &Plan, interval: &Interval, now: Nanos) -> Result<(), String> {
        let has_worker = self.ended.get(interval.worker).is_some_and(|ended| !ended);
        let scenarios = plan.scenarios().len();
        let are_known = interval.scenarios.iter().all(|part| {
            part.scenario < scenarios && part.tally.labels().len() <= plan.labels.len().max(1)
        });
        if !has_worker || !are_known || interval.tenth > now / TENTH + AHEAD_MAX {
            return Err("its figures are not those of this run".to_owned());
        }
        Ok(())
    }

    /// Counts the arrivals that have an outcome.
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
