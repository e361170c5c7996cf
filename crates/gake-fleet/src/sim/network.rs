//! The simulated network.

use std::rc::Rc;

use bytes::Bytes;
use gake_core::clock::Nanos;

use super::agent::SENT_AGAIN;
use super::{MS, Sim, SimEvent};
use crate::frame::Frame;
use crate::message::Control;

impl Sim {
    /// When a message from or to agent `index` arrives: never, once or twice, in any order.
    pub(super) fn arrivals_of_message(&mut self, index: usize) -> Vec<Nanos> {
        let is_lost = self.nats.holds(self.now)
            || self.agents[index].cut_off.holds(self.now)
            || self.random.one_in(self.loss);
        let copies = if is_lost { 0 } else { 1 + usize::from(self.random.one_in(10)) };
        let late = if self.random.one_in(20) { 900 * MS } else { 20 * MS };
        (0..copies).map(|_| self.now + self.random.below(late)).collect()
    }

    pub(super) fn send_frame(&mut self, index: usize, number: u64, frame: &Frame) {
        for chunk in frame.chunks(number, 4_000).collect::<Vec<_>>() {
            self.send_chunk(index, &chunk);
        }
    }

    pub(super) fn send_chunk(&mut self, index: usize, chunk: &[u8]) {
        self.agents[index].state.sent = self.instant();
        self.pass_chunk(index, chunk);
        let sent = &mut self.agents[index].sent;
        sent.push_back(chunk.to_vec());
        if sent.len() > SENT_AGAIN {
            sent.pop_front();
        }
    }

    pub(super) fn pass_chunk(&mut self, index: usize, chunk: &[u8]) {
        for at in self.arrivals_of_message(index) {
            self.at(at, SimEvent::Chunk(index, chunk.to_vec()));
        }
    }

    pub(super) fn publish(&mut self, control: Control) {
        let control = Rc::new(control);
        for index in 0..self.agents.len() {
            for at in self.arrivals_of_message(index) {
                self.at(at, SimEvent::Control(index, Rc::clone(&control)));
            }
        }
        if !self.nats.holds(self.now) {
            self.at(self.now + MS, SimEvent::Echo(control.number));
        }
    }

    /// Writes new entries of the journal, in order, over one connection.
    pub(super) fn write(&mut self) {
        let generation = self.generation;
        let is_connected = !self.nats.holds(self.now);
        while let Some(entry) =
            self.controller.journal.as_mut().and_then(|journal| journal.unsent())
        {
            if is_connected && !self.random.one_in(self.loss) {
                let entry = SimEvent::Entry(generation, entry.attempt, entry.number, entry.bytes);
                self.at(self.now + MS, entry);
            }
        }
    }

    pub(super) fn entry(&mut self, generation: u32, attempt: u32, number: u64, bytes: Bytes) {
        if self.nats.holds(self.now) {
            return;
        }
        self.journal.push(bytes);
        if !self.random.one_in(self.loss) {
            let at = self.now + self.random.below(30 * MS);
            self.at(at, SimEvent::Stored(generation, attempt, number));
        }
    }

    pub(super) fn is_stored(&self) -> bool {
        self.controller.journal.as_ref().is_none_or(|journal| journal.is_stored())
    }
}
