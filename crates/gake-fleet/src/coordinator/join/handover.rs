//! Handover of arrivals from lost agents to others.

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::RunEvent;
use gake_core::schedule::Slice;
use gake_text::duration::format_duration;

use super::{Joiner, Member, MemberState};
use crate::coordinator::lost_arrivals::Assignment;
use crate::message::{Handover, HandoverReply};

/// Maximum handovers in one control message; more wait for replies.
const ASKED_MAX: usize = 1_000;

/// Maximum agents that share the arrivals of one. In a large fleet, each loss would otherwise cost
/// a handover with every agent, for a thousandth of a load each.
const TAKERS_MAX: usize = 32;

impl Joiner {
    /// Handovers for the next control message.
    pub(crate) fn handovers(&self) -> Vec<Handover> {
        let requested = self.handovers.iter().take(ASKED_MAX);
        requested.map(|(_, handover)| handover.clone()).collect()
    }

    /// The ids and recipients of handovers, to detect changes.
    pub(crate) fn requested_handovers(&self) -> Vec<(u64, usize)> {
        self.handovers.iter().map(|(_, handover)| (handover.id, handover.to)).collect()
    }

    /// The number of lost agents whose arrivals were not completely taken over.
    pub(crate) fn unreplaced(&self) -> usize {
        let is_unreplaced = |state: &MemberState| match state {
            MemberState::Gone { is_replaced } => !is_replaced,
            MemberState::Lost(_) => true,
            MemberState::Running | MemberState::Done => false,
        };
        self.members.iter().filter(|member| is_unreplaced(&member.state)).count()
    }

    /// The agents that can take over, from the one after `lost` on, in order of what they have
    /// already taken over.
    fn takers(&self, lost: usize) -> Vec<usize> {
        let count = self.members.len();
        let taken = |member: &Member| member.assignments.iter().filter(|own| own.from > 0).count();
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

    /// The arrivals of agent `lost`, with handovers: other agents share its own arrivals, and each
    /// of those that it had taken over goes to one agent.
    pub(super) fn hand_over(&mut self, lost: usize, now: Nanos) -> Vec<Assignment> {
        let Some(member) = self.members.get(lost) else { return Vec::new() };
        let assignments = member.assignments.clone();
        let takers = self.takers(lost);
        if !self.redistributes || self.stopped.is_some() || takers.is_empty() {
            return assignments;
        }
        let mut requested = Vec::new();
        for (number, assignment) in assignments.into_iter().enumerate() {
            if !is_timed(&self.plan.scenarios()[assignment.scenario]) {
                requested.push(assignment);
                continue;
            }
            let count = if assignment.from == 0 { takers.len() } else { 1 };
            for (at, slice) in assignment.slice.split(count).enumerate() {
                let (id, to) = (self.handover_count, takers[(at + number) % takers.len()]);
                let Slice { index, of, .. } = slice;
                let (scenario, not_before) = (assignment.scenario, now.max(assignment.from));
                let handover = Handover { id, to, scenario, index, of, not_before };
                self.handover_count += 1;
                self.handovers.push((lost, handover));
                requested.push(Assignment { slice, handover: Some(id), ..assignment });
            }
        }
        requested
    }

    /// Handles the reply to a handover. The error says why it is not valid.
    pub(super) fn handle_reply(
        &mut self,
        index: usize,
        reply: HandoverReply,
        now: Nanos,
    ) -> Result<(), String> {
        let is_it =
            |(_, handover): &(usize, Handover)| (handover.id, handover.to) == (reply.id, index);
        let at = self.handovers.iter().position(is_it);
        let at = at.ok_or("it takes over arrivals that were not offered to it")?;
        let (lost, handover) = self.handovers.remove(at);
        if let Some(from) = reply.from {
            if from < handover.not_before {
                self.handovers.push((lost, handover));
                return Err("it takes over arrivals that were due before the handover".to_owned());
            }
            let Handover { scenario, index: number, of, .. } = handover;
            let slice = Slice::new(number, of);
            self.members[index].assignments.push(Assignment {
                scenario,
                slice,
                from,
                handover: None,
            });
        }
        self.resolve(lost, reply, now);
        Ok(())
    }

    /// Redirects handovers from agents that are lost or done.
    pub(super) fn redirect_handovers(&mut self, now: Nanos) {
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
                self.resolve(lost, HandoverReply { id: handover.id, from: None }, now);
            }
        }
    }

    fn resolve(&mut self, lost: usize, reply: HandoverReply, now: Nanos) {
        let member = &mut self.members[lost];
        let MemberState::Lost(share) = &mut member.state else { return };
        share.resolve(reply.id, reply.from);
        if share.is_pending() {
            return;
        }
        let Some(from) = share.taken.iter().max() else { return };
        let from = format_duration(Duration::from_millis(from / 1_000_000));
        let rest = if share.refused > 0 { " in part" } else { "" };
        let name = &member.name;
        let text = format!("from {from} on, others send the arrivals of agent {name}{rest}");
        self.events.push(RunEvent::new(now, &text));
    }
}

/// Whether arrivals end at a time, so that workers stay until then.
fn is_timed(plan: &Plan) -> bool {
    plan.schedule(0).is_some_and(|schedule| schedule.timed_end().is_some())
}
