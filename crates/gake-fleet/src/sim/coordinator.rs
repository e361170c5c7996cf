//! Simulated coordinators, one after the other.

use std::sync::Arc;
use std::time::Instant;

use gake_core::plan::Plan;
use gake_run::{Collector, Message, Stop};

use super::{ALONE_MAX, MS, Sim, SimEvent, unit_ranges};
use crate::OnLoss;
use crate::coordinator::controller::{ControlRules, Controller};
use crate::coordinator::join::Joiner;
use crate::coordinator::journal::{JournalEntry, JournalReader, attached};

impl Sim {
    /// Another coordinator takes over, with only the journal.
    pub(super) fn attach(&mut self) {
        if self.nats.holds(self.now) {
            let to = self.nats.to;
            self.orphaned.to = to;
            return self.at(to, SimEvent::Attach);
        }
        self.generation += 1;
        self.journal.push(attached(self.generation));
        let (agents, base) = (self.agents.len(), self.instant());
        let rules = (self.on_loss, self.generation);
        self.controller = controller(&self.plan, self.seed, agents, rules, base);
        self.whole = Collector::new(&self.plan, self.seed, agents);
        self.counted.clear();
        let mut reader = JournalReader::default();
        for bytes in std::mem::take(&mut self.journal) {
            if let Some(entry) = reader.take(&bytes) {
                let from = match &entry {
                    JournalEntry::Chunk(index, ..) => Some((*index, self.taken(*index))),
                    _ => None,
                };
                let messages = self.controller.repeat(&entry);
                self.collect(messages);
                if let Some((index, before)) = from {
                    self.count(index, before);
                }
            }
            self.journal.push(bytes);
        }
        self.controller.resume((base, self.now));
        self.stop = self.controller.asked.into();
    }

    /// The number of frames received from an agent.
    pub(super) fn taken(&self, index: usize) -> u64 {
        self.controller.joiner.progress(index).map_or(0, |(frames, ..)| frames)
    }

    /// Counts the arrivals in frames of an agent after the first `before`.
    pub(super) fn count(&mut self, index: usize, before: u64) {
        for frame in before..self.taken(index) {
            for number in self.contents.get(&(index, frame)).into_iter().flatten() {
                let is_new = self.counted.insert(*number);
                assert!(is_new, "seed {}: arrival {number} counts twice", self.seed);
            }
        }
    }

    pub(super) fn collect(&mut self, messages: Vec<Message>) {
        for message in messages {
            self.whole.take(message, |_, _| {});
            while let Some(second) = self.whole.next_second() {
                self.whole.retire(second);
            }
        }
    }

    pub(super) fn coordinator_looks(&mut self) {
        self.at(self.now + 100 * MS, SimEvent::CoordinatorLooks);
        if self.orphaned.holds(self.now) {
            return;
        }
        let is_connected = !self.nats.holds(self.now);
        let looked = self.controller.look((self.instant(), self.now), is_connected, self.stop);
        self.collect(looked.messages);
        if looked.drain {
            self.stop = Stop::Drain;
        }
        if let Some(control) = looked.control.filter(|_| is_connected) {
            self.publish(control);
        }
    }
}

pub(super) fn controller(
    plan: &Arc<Plan>,
    seed: u64,
    agents: usize,
    (on_loss, generation): (OnLoss, u32),
    now: Instant,
) -> Controller {
    let ranges = unit_ranges(plan, seed, agents).into_iter().enumerate();
    let named: Vec<_> = ranges.map(|(index, range)| (format!("a{index}"), 1, range)).collect();
    let rules = ControlRules { on_loss, alone_max: ALONE_MAX, generation };
    Controller::new(Joiner::new(plan, seed, &named), rules, now)
}
