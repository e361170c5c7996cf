//! What lost agents were to send goes to the others.

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::RunEvent;
use gake_core::schedule::Slice;
use gake_text::duration::format_duration;

use super::{Joiner, Member, State};
use crate::coordinator::lost::Holding;
use crate::message::{Handover, HandoverAnswer};

/// Handovers that one control message asks for; more wait for the answers.
const ASKED_MAX: usize = 1_000;

/// Agents that share what one was to send. Among all of a large fleet, each loss would cost a
/// handover with every agent, for a thousandth of a load each.
const TAKERS_MAX: usize = 32;

impl Joiner {
    /// What agents are to be asked now.
    pub(crate) fn handovers(&self) -> Vec<Handover> {
        let asked = self.handovers.iter().take(ASKED_MAX);
        asked.map(|(_, handover)| handover.clone()).collect()
    }

    /// Who is asked for what, to see whether that changed.
    pub(crate) fn asked(&self) -> Vec<(u64, usize)> {
        self.handovers.iter().map(|(_, handover)| (handover.id, handover.to)).collect()
    }

    /// How many agents were lost whose arrivals nobody else sends to the end.
    pub(crate) fn unreplaced(&self) -> usize {
        let is_unreplaced = |state: &State| match state {
            State::Gone { is_replaced } => !is_replaced,
            State::Lost(_) => true,
            State::Running | State::Done => false,
        };
        self.members.iter().filter(|member| is_unreplaced(&member.state)).count()
    }

    /// The agents that can take over: those that took over least first, from the one after `lost`
    /// on.
    fn takers(&self, lost: usize) -> Vec<usize> {
        let count = self.members.len();
        let taken = |member: &Member| member.holdings.iter().filter(|own| own.from > 0).count();
        let mut taken: Vec<_> = self.members.iter().map(taken).collect();
        for (_, handover) in &self.handovers {
            taken[handover.to] += 1;
        }
        let others = (1..count).map(|step| (lost + step) % count);
        let mut takers: Vec<_> = others.filter(|index| self.is_running(*index)).collect();
        takers.sort_by_key(|index| taken[*index]);
        takers.truncate(TAKERS_MAX);
        takers
    }

    /// What agent `lost` is to send, with the handovers by which others are asked for it: they
    /// share its own part, and what it had taken over goes to one of them as it is.
    pub(super) fn hand_over(&mut self, lost: usize, now: Nanos) -> Vec<Holding> {
        let Some(member) = self.members.get(lost) else { return Vec::new() };
        let holdings = member.holdings.clone();
        let takers = self.takers(lost);
        if !self.redistributes || self.stopped.is_some() || takers.is_empty() {
            return holdings;
        }
        let mut asked = Vec::new();
        for (number, holding) in holdings.into_iter().enumerate() {
            if !is_timed(&self.plan.scenarios()[holding.scenario]) {
                asked.push(holding);
                continue;
            }
            let parts = if holding.from == 0 { takers.len() } else { 1 };
            for (at, slice) in holding.slice.split(parts).enumerate() {
                let (id, to) = (self.handed, takers[(at + number) % takers.len()]);
                let Slice { index, of, .. } = slice;
                let (scenario, not_before) = (holding.scenario, now.max(holding.from));
                let handover = Handover { id, to, scenario, index, of, not_before };
                self.handed += 1;
                self.handovers.push((lost, handover));
                asked.push(Holding { slice, handover: Some(id), ..holding });
            }
        }
        asked
    }

    /// An agent answers a handover; why it cannot.
    pub(super) fn answered(
        &mut self,
        index: usize,
        answer: HandoverAnswer,
        now: Nanos,
    ) -> Result<(), String> {
        let is_it =
            |(_, handover): &(usize, Handover)| (handover.id, handover.to) == (answer.id, index);
        let at = self.handovers.iter().position(is_it);
        let at = at.ok_or("it takes over what it was not asked to")?;
        let (lost, handover) = self.handovers.remove(at);
        if let Some(from) = answer.from {
            if from < handover.not_before {
                self.handovers.push((lost, handover));
                return Err("it takes over what was due before it was asked".to_owned());
            }
            let Handover { scenario, index: number, of, .. } = handover;
            let slice = Slice::new(number, of);
            self.members[index].holdings.push(Holding { scenario, slice, from, handover: None });
        }
        self.resolve(lost, answer, now);
        Ok(())
    }

    /// Asks others instead of agents that are lost or done.
    pub(super) fn ask_others(&mut self, now: Nanos) {
        let handovers = std::mem::take(&mut self.handovers);
        for (lost, mut handover) in handovers {
            let next = match self.is_running(handover.to) {
                true => Some(handover.to),
                false => self.takers(handover.to).first().copied(),
            };
            if let Some(to) = next {
                handover.to = to;
                self.handovers.push((lost, handover));
            } else {
                self.resolve(lost, HandoverAnswer { id: handover.id, from: None }, now);
            }
        }
    }

    fn resolve(&mut self, lost: usize, answer: HandoverAnswer, now: Nanos) {
        let member = &mut self.members[lost];
        let State::Lost(share) = &mut member.state else { return };
        share.resolve(answer.id, answer.from);
        if share.is_pending() {
            return;
        }
        let Some(from) = share.taken.iter().max() else { return };
        let from = format_duration(Duration::from_millis(from / 1_000_000));
        let rest = if share.refused > 0 { " in part" } else { "" };
        let name = &member.name;
        let text = format!("from {from} on, others send what agent {name} was to send{rest}");
        self.events.push(RunEvent { at: now, text });
    }
}

/// Whether a time ends the arrivals of a load, so that its workers are there to its end.
fn is_timed(plan: &Plan) -> bool {
    plan.schedule(0).is_some_and(|schedule| schedule.timed_end().is_some())
}
