//! Coordinator and agents on a simulated network and clock: what one seed does, it does again.
//!
//! `cargo xtask test` plays 10,000 seeds. A seed that failed, once more:
//! `GAKE_SIM_FIRST=5957 GAKE_SIM_SEEDS=1 cargo test -p gake-fleet --lib sim`.

mod agent;
mod chance;
mod coordinator;
mod network;
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
use crate::agent::slice_state::Outcome;
use crate::coordinator::conduct::Conduct;
use crate::coordinator::weights::of_weights;
use crate::message::{Control, Part};
use agent::{SIGNS, SimAgent};
use chance::{Dice, Outage, own_dice};
use coordinator::conduct;

const MS: Nanos = 1_000_000;

/// How long a run may take to end after its schedule: silence, then NATS or the coordinator away.
const END_MAX: Nanos = 120 * SECOND;

/// How long agents go on without their coordinator.
const ALONE_MAX: Duration = Duration::from_secs(40);

/// How long the end of a run waits for its journal.
const STORED_MAX: Nanos = 5 * SECOND;

/// What happens, and when.
enum Happening {
    AgentLooks(usize),
    HandsOver(usize),
    CoordinatorLooks,
    /// A part of a frame reaches the coordinator.
    Part(usize, Vec<u8>),
    /// A control message reaches an agent.
    Control(usize, Rc<Control>),
    Echo(u64),
    /// An entry of the journal reaches NATS, written in this attempt with this number.
    Entry(u32, u32, u64, Bytes),
    /// The coordinator of a generation hears that it is stored.
    Stored(u32, u32, u64),
    /// An agent that was killed is there again, for some signs of life: another process with its
    /// index and what it sent last.
    Returns(usize, u32),
    /// Another coordinator goes on.
    Attach,
}

struct Sim {
    dice: Dice,
    seed: u64,
    plan: Arc<Plan>,
    on_loss: OnLoss,
    length: Nanos,
    base: Instant,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    next: u64,
    agents: Vec<SimAgent>,
    conduct: Conduct,
    whole: Collector,
    stop: Stop,
    /// Without the NATS server.
    nats: Outage,
    /// Without a coordinator.
    orphaned: Outage,
    generation: u32,
    /// What the journal holds.
    journal: Vec<Bytes>,
    /// The arrivals in each frame of each agent.
    contents: HashMap<(usize, u64), Vec<u64>>,
    /// The arrivals in the frames that the coordinator took.
    counted: HashSet<u64>,
    loss: u64,
    /// Numbers of the arrivals that reached the target.
    fired: HashSet<u64>,
    /// Arrivals that an agent sent in place of a lost one.
    taken_over: u64,
    now: Nanos,
}

/// What the agents of a seed do.
#[derive(Debug, Clone, Copy)]
struct Faults {
    kills: bool,
    outages: bool,
    /// The coordinator dies, and another one goes on.
    orphans: bool,
    /// Clocks go faster or slower, as much as a coordinator takes.
    drifts: bool,
    /// Agents that were killed are there again.
    returns: bool,
}

impl Sim {
    fn new(seed: u64, agents: usize, seconds: u64, faults: Faults) -> Self {
        let mut dice = Dice::new(seed);
        let process = if dice.one_in(2) { Process::Poisson } else { Process::Uniform };
        let rate = agents as f64 * (1.0 + dice.below(30) as f64);
        let stages = vec![Stage::step(rate, Duration::from_secs(seconds))];
        let plan = Arc::new(Plan {
            max_in_flight: agents * 4,
            ..Plan::new("a test", Load::Open { stages, process })
        });
        let on_loss = match dice.below(5) {
            0 => OnLoss::Continue,
            1 => OnLoss::Abort,
            _ => OnLoss::Redistribute,
        };
        let (length, base) = (seconds * SECOND, Instant::now());
        let mut conduct = conduct(&plan, seed, agents, (on_loss, 1), base);
        // One in four servers has no JetStream.
        let has_journal = faults.orphans || !seed.is_multiple_of(4);
        if has_journal {
            conduct.begin_journal(0, base);
        }
        let mut sim = Self {
            conduct,
            whole: Collector::new(&plan, seed, agents),
            seed,
            plan,
            on_loss,
            length,
            base,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            agents: Vec::new(),
            stop: Stop::Go,
            nats: Outage::NEVER,
            orphaned: Outage::NEVER,
            generation: 1,
            journal: Vec::new(),
            contents: HashMap::new(),
            counted: HashSet::new(),
            loss: 4 + dice.below(60),
            fired: HashSet::new(),
            taken_over: 0,
            now: 0,
            dice,
        };
        if faults.outages && sim.dice.one_in(3) {
            sim.nats = Outage::some(&mut sim.dice, length, 30 * SECOND);
        }
        if faults.orphans {
            sim.orphaned = Outage::some(&mut sim.dice, length, 20 * SECOND);
            let to = sim.orphaned.to;
            sim.at(to, Happening::Attach);
        }
        for index in 0..agents {
            let agent = sim.agent(seed, index, agents, faults);
            sim.agents.push(agent);
            let at = sim.dice.below(100 * MS);
            sim.at(at, Happening::AgentLooks(index));
            let at = sim.agents[index].when(SECOND);
            sim.at(at, Happening::HandsOver(index));
            let killed = sim.agents[index].killed;
            if faults.returns && killed < Nanos::MAX {
                let away = own_dice(seed, index).below(6 * SECOND);
                sim.at(killed + away, Happening::Returns(index, SIGNS));
            }
        }
        sim.at(0, Happening::CoordinatorLooks);
        sim
    }

    fn at(&mut self, at: Nanos, happening: Happening) {
        self.happenings.insert(self.next, happening);
        self.queue.push(Reverse((at, self.next)));
        self.next += 1;
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now)
    }

    fn step(&mut self, happening: Happening) {
        if let Happening::AgentLooks(index)
        | Happening::HandsOver(index)
        | Happening::Control(index, _) = &happening
        {
            match self.awake_at(*index) {
                Some(at) if at == self.now => {}
                Some(at) => return self.at(at, happening),
                None => return,
            }
        }
        match happening {
            Happening::AgentLooks(index) => self.agent_looks(index),
            Happening::HandsOver(index) => self.hand_over(index),
            Happening::Control(index, control) => self.apply(index, &control),
            Happening::Entry(generation, attempt, number, bytes) => {
                self.entry(generation, attempt, number, bytes);
            }
            Happening::Attach => self.attach(),
            Happening::Returns(index, signs) => self.returns(index, signs),
            Happening::CoordinatorLooks => self.coordinator_looks(),
            // The others are for a coordinator.
            _ if self.orphaned.holds(self.now) => {}
            Happening::Part(index, part) => {
                let before = self.taken(index);
                let messages = self.conduct.take(index, &part, (self.instant(), self.now));
                self.collect(messages);
                self.count(index, before);
            }
            Happening::Echo(number) => self.conduct.echo(number, self.instant()),
            Happening::Stored(generation, attempt, number) => {
                let now = self.instant();
                if let Some(journal) =
                    self.conduct.journal.as_mut().filter(|_| generation == self.generation)
                {
                    journal.stored(attempt, number, now);
                }
            }
        }
        if !self.orphaned.holds(self.now) {
            self.write();
        }
    }

    /// Runs to the end of the coordinator, then to that of the agents.
    fn run(mut self) -> End {
        let (mut over, mut ending, mut orphaned) = (None, None, Nanos::MAX);
        while let Some(Reverse((at, number))) = self.queue.pop() {
            self.now = at;
            let Some(happening) = self.happenings.remove(&number) else { continue };
            let is_agents = matches!(
                happening,
                Happening::AgentLooks(_) | Happening::HandsOver(_) | Happening::Control(..)
            );
            if over.is_some() && !is_agents {
                continue;
            }
            self.step(happening);
            let is_there = over.is_none() && !self.orphaned.holds(self.now);
            if !is_there || !self.conduct.joiner.is_over() {
                ending = None;
            } else if self.is_stored() || self.now > *ending.get_or_insert(self.now) + STORED_MAX {
                (over, orphaned) = (Some(self.now), self.orphaned.to);
                self.orphaned = Outage::NEVER;
                let control = self.conduct.control(self.stop, self.instant(), true);
                if !self.nats.holds(self.now) {
                    self.say(control);
                }
            }
            let seed = self.seed;
            assert!(over.is_some() || self.now < self.length + END_MAX, "{seed}: no end");
            assert!(self.now < self.length + 3 * END_MAX, "{seed}: agents that go on for ever");
        }
        let is_left =
            |agent: &&SimAgent| agent.outcome == Outcome::Kept && agent.killed == Nanos::MAX;
        assert_eq!(self.agents.iter().filter(is_left).count(), 0, "agents that go on for ever");
        assert!(self.whole.is_over());
        let faults_end = self.agents.iter().flat_map(|agent| {
            let outages = [agent.frozen.to, agent.cut_off.to, agent.killed, agent.returned];
            outages.into_iter().filter(|at| *at < Nanos::MAX)
        });
        let nats = Some(self.nats.to).filter(|at| *at < Nanos::MAX);
        let orphaned = Some(orphaned).filter(|at| *at < Nanos::MAX);
        End {
            run: self.whole.finish(0, RunEnd::Done, 1),
            fired: self.fired.len() as u64,
            taken_over: self.taken_over,
            lost: self.conduct.joiner.lost().len(),
            unreplaced: self.conduct.joiner.unreplaced(),
            aborted: self.conduct.aborted.is_some(),
            on_loss: self.on_loss,
            faults_end: faults_end.chain(nats).chain(orphaned).max().unwrap_or(0),
            counted: self.counted.len() as u64,
        }
    }
}

struct End {
    run: Run,
    /// Distinct arrivals that reached the target.
    fired: u64,
    /// Those that an agent sent in place of a lost one.
    taken_over: u64,
    lost: usize,
    unreplaced: usize,
    aborted: bool,
    on_loss: OnLoss,
    faults_end: Nanos,
    /// Distinct arrivals in the frames that were taken.
    counted: u64,
}

/// What each agent does: in one of four runs they have weights.
fn parts(plan: &Plan, seed: u64, agents: usize) -> Vec<Part> {
    let weight = |index: u64| if seed % 4 == 3 { 1 + (seed / 4 + index * index) % 3 } else { 1 };
    let weights: Vec<_> = (0..agents as u64).map(weight).collect();
    of_weights(&weights, plan.lanes())
}

/// The arrivals of a slice of a run.
fn arrivals(plan: &Plan, seed: u64, slice: Slice) -> Vec<Arrival> {
    let part = plan.slice(slice, Slice::WHOLE).unwrap();
    plan.schedule(Plan::scenario_seed(seed, 0)).unwrap().arrivals(part).collect()
}
