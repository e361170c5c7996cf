//! Simulation of coordinator and agents with a virtual network and clock, deterministic for each
//! seed.
//!
//! `cargo xtask test` runs 4,000 seeds; GAKE_SIM_SEEDS sets another number. To repeat a failed seed:
//! `GAKE_SIM_FIRST=5957 GAKE_SIM_SEEDS=1 cargo test -p gake-fleet --lib sim`.

mod agent;
mod coordinator;
mod network;
mod random;
mod seeds;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::{Plan, Stage};
use gake_core::record::{Run, RunEnd};
use gake_core::schedule::{Process, Slice};
use gake_core::work::Arrival;
use gake_run::{Collector, Stop};

use crate::OnLoss;
use crate::agent::slice_state::SliceOutcome;
use crate::coordinator::controller::Controller;
use crate::coordinator::weights::of_weights;
use crate::message::{Control, UnitRange};
use agent::{HEARTBEATS, SimAgent};
use coordinator::controller;
use random::{FaultWindow, SimRandom, own_random};

const MS: Nanos = 1_000_000;

/// Time limit for the end of a run after its schedule: silence, then an outage of NATS or the
/// coordinator.
const END_MAX: Nanos = 120 * SECOND;

/// How long agents continue without a coordinator.
const ALONE_MAX: Duration = Duration::from_secs(40);

/// How long the end of a run waits for its journal.
const STORED_MAX: Nanos = 5 * SECOND;

/// An event of the simulation.
enum SimEvent {
    AgentLooks(usize),
    HandsOver(usize),
    CoordinatorLooks,
    /// A chunk of a frame reaches the coordinator.
    Chunk(usize, Vec<u8>),
    /// A control message reaches an agent.
    Control(usize, Rc<Control>),
    Echo(u64),
    /// An entry of the journal reaches NATS: generation, attempt, number.
    Entry(u32, u32, u64, Bytes),
    /// Its acknowledgement reaches the coordinator of this generation.
    Stored(u32, u32, u64),
    /// An agent that was killed returns for some heartbeats: another process with its index and
    /// latest chunks.
    Returns(usize, u32),
    /// Another coordinator takes over.
    Attach,
}

struct Sim {
    random: SimRandom,
    seed: u64,
    plan: Arc<Plan>,
    on_loss: OnLoss,
    length: Nanos,
    base: Instant,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: BTreeMap<u64, SimEvent>,
    next: u64,
    agents: Vec<SimAgent>,
    controller: Controller,
    whole: Collector,
    stop: Stop,
    /// The outage of the NATS server.
    nats: FaultWindow,
    /// The time without a coordinator.
    orphaned: FaultWindow,
    generation: u32,
    /// The entries in the journal.
    journal: Vec<Bytes>,
    /// The arrivals by agent and frame.
    contents: HashMap<(usize, u64), Vec<u64>>,
    /// The arrivals in frames that the coordinator received.
    counted: HashSet<u64>,
    loss: u64,
    /// Arrivals that reached the target.
    fired: HashSet<u64>,
    /// Number of arrivals that were taken over.
    taken_over: u64,
    now: Nanos,
}

/// The kinds of faults in a simulation.
#[derive(Debug, Clone, Copy)]
struct SimFaults {
    kills: bool,
    outages: bool,
    /// The coordinator dies, and another one takes over.
    orphans: bool,
    /// Clocks drift, as far as a coordinator accepts.
    drifts: bool,
    /// Agents that were killed return.
    returns: bool,
}

impl Sim {
    fn new(seed: u64, agents: usize, seconds: u64, faults: SimFaults) -> Self {
        let mut random = SimRandom::new(seed);
        let process = if random.one_in(2) { Process::Poisson } else { Process::Uniform };
        let rate = agents as f64 * (1.0 + random.below(30) as f64);
        let stages = vec![Stage::step(rate, Duration::from_secs(seconds))];
        let plan = Arc::new(Plan {
            max_in_flight: agents * 4,
            ..Plan::new("a test", Load::Open { stages, process })
        });
        let on_loss = match random.below(5) {
            0 => OnLoss::Continue,
            1 => OnLoss::Abort,
            _ => OnLoss::Redistribute,
        };
        let (length, base) = (seconds * SECOND, Instant::now());
        let mut controller = controller(&plan, seed, agents, (on_loss, 1), base);
        // One in four servers has no JetStream.
        let has_journal = faults.orphans || !seed.is_multiple_of(4);
        if has_journal {
            controller.begin_journal(0, base);
        }
        let mut sim = Self {
            controller,
            whole: Collector::new(&plan, seed, agents),
            seed,
            plan,
            on_loss,
            length,
            base,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next: 0,
            agents: Vec::new(),
            stop: Stop::Go,
            nats: FaultWindow::NEVER,
            orphaned: FaultWindow::NEVER,
            generation: 1,
            journal: Vec::new(),
            contents: HashMap::new(),
            counted: HashSet::new(),
            loss: 4 + random.below(60),
            fired: HashSet::new(),
            taken_over: 0,
            now: 0,
            random,
        };
        if faults.outages && sim.random.one_in(3) {
            sim.nats = FaultWindow::some(&mut sim.random, length, 30 * SECOND);
        }
        if faults.orphans {
            sim.orphaned = FaultWindow::some(&mut sim.random, length, 20 * SECOND);
            let to = sim.orphaned.to;
            sim.at(to, SimEvent::Attach);
        }
        for index in 0..agents {
            let agent = sim.agent(seed, index, agents, faults);
            sim.agents.push(agent);
            let at = sim.random.below(100 * MS);
            sim.at(at, SimEvent::AgentLooks(index));
            let at = sim.agents[index].when(SECOND);
            sim.at(at, SimEvent::HandsOver(index));
            let killed = sim.agents[index].killed;
            if faults.returns && killed < Nanos::MAX {
                let away = own_random(seed, index).below(6 * SECOND);
                sim.at(killed + away, SimEvent::Returns(index, HEARTBEATS));
            }
        }
        sim.at(0, SimEvent::CoordinatorLooks);
        sim
    }

    fn at(&mut self, at: Nanos, event: SimEvent) {
        self.events.insert(self.next, event);
        self.queue.push(Reverse((at, self.next)));
        self.next += 1;
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now)
    }

    fn step(&mut self, event: SimEvent) {
        if let SimEvent::AgentLooks(index)
        | SimEvent::HandsOver(index)
        | SimEvent::Control(index, _) = &event
        {
            match self.awake_at(*index) {
                Some(at) if at == self.now => {}
                Some(at) => return self.at(at, event),
                None => return,
            }
        }
        match event {
            SimEvent::AgentLooks(index) => self.agent_looks(index),
            SimEvent::HandsOver(index) => self.hand_over(index),
            SimEvent::Control(index, control) => self.apply(index, &control),
            SimEvent::Entry(generation, attempt, number, bytes) => {
                self.entry(generation, attempt, number, bytes);
            }
            SimEvent::Attach => self.attach(),
            SimEvent::Returns(index, heartbeats) => self.returns(index, heartbeats),
            SimEvent::CoordinatorLooks => self.coordinator_looks(),
            // The other events are for a coordinator.
            _ if self.orphaned.holds(self.now) => {}
            SimEvent::Chunk(index, chunk) => {
                let before = self.taken(index);
                let messages = self.controller.take(index, &chunk, (self.instant(), self.now));
                self.collect(messages);
                self.count(index, before);
            }
            SimEvent::Echo(number) => self.controller.echo(number, self.instant()),
            SimEvent::Stored(generation, attempt, number) => {
                let now = self.instant();
                if let Some(journal) =
                    self.controller.journal.as_mut().filter(|_| generation == self.generation)
                {
                    journal.stored(attempt, number, now);
                }
            }
        }
        if !self.orphaned.holds(self.now) {
            self.write();
        }
    }

    /// Runs until the coordinator ends, then until the agents end.
    fn run(mut self) -> SimResult {
        let (mut over, mut ending, mut orphaned) = (None, None, Nanos::MAX);
        while let Some(Reverse((at, number))) = self.queue.pop() {
            self.now = at;
            let Some(event) = self.events.remove(&number) else { continue };
            let is_agents = matches!(
                event,
                SimEvent::AgentLooks(_) | SimEvent::HandsOver(_) | SimEvent::Control(..)
            );
            if over.is_some() && !is_agents {
                continue;
            }
            self.step(event);
            let is_there = over.is_none() && !self.orphaned.holds(self.now);
            if !is_there || !self.controller.joiner.is_over() {
                ending = None;
            } else if self.is_stored() || self.now > *ending.get_or_insert(self.now) + STORED_MAX {
                (over, orphaned) = (Some(self.now), self.orphaned.to);
                self.orphaned = FaultWindow::NEVER;
                let control = self.controller.control(self.stop, self.instant(), true);
                if !self.nats.holds(self.now) {
                    self.publish(control);
                }
            }
            let seed = self.seed;
            assert!(over.is_some() || self.now < self.length + END_MAX, "{seed}: no end");
            assert!(self.now < self.length + 3 * END_MAX, "{seed}: agents do not end");
        }
        let is_left = |agent: &&SimAgent| {
            agent.outcome == SliceOutcome::InProgress && agent.killed == Nanos::MAX
        };
        assert_eq!(self.agents.iter().filter(is_left).count(), 0, "agents do not end");
        assert!(self.whole.is_over());
        let faults_end = self.agents.iter().flat_map(|agent| {
            let outages = [agent.frozen.to, agent.cut_off.to, agent.killed, agent.returned];
            outages.into_iter().filter(|at| *at < Nanos::MAX)
        });
        let nats = Some(self.nats.to).filter(|at| *at < Nanos::MAX);
        let orphaned = Some(orphaned).filter(|at| *at < Nanos::MAX);
        SimResult {
            run: self.whole.finish(0, RunEnd::Done, 1),
            fired: self.fired.len() as u64,
            taken_over: self.taken_over,
            lost: self.controller.joiner.lost().len(),
            unreplaced: self.controller.joiner.unreplaced(),
            aborted: self.controller.aborted.is_some(),
            on_loss: self.on_loss,
            faults_end: faults_end.chain(nats).chain(orphaned).max().unwrap_or(0),
            counted: self.counted.len() as u64,
        }
    }
}

struct SimResult {
    run: Run,
    /// Distinct arrivals that reached the target.
    fired: u64,
    /// Number of arrivals that were taken over.
    taken_over: u64,
    lost: usize,
    unreplaced: usize,
    aborted: bool,
    on_loss: OnLoss,
    faults_end: Nanos,
    /// Distinct arrivals in received frames.
    counted: u64,
}

/// The units of each agent; in one of four runs agents have weights.
fn unit_ranges(plan: &Plan, seed: u64, agents: usize) -> Vec<UnitRange> {
    let weight = |index: u64| if seed % 4 == 3 { 1 + (seed / 4 + index * index) % 3 } else { 1 };
    let weights: Vec<_> = (0..agents as u64).map(weight).collect();
    of_weights(&weights, plan.lanes())
}

fn arrivals(plan: &Plan, seed: u64, slice: Slice) -> Vec<Arrival> {
    let part = plan.slice(slice, Slice::WHOLE).unwrap();
    plan.schedule(Plan::scenario_seed(seed, 0)).unwrap().arrivals(part).collect()
}
