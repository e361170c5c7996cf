//! Coordinator and agents on a simulated network and clock: what one seed does, it does again.
//!
//! `cargo xtask test` plays 10,000 seeds. A seed that failed, once more:
//! `GAKE_SIM_FIRST=5957 GAKE_SIM_SEEDS=1 cargo test -p gake-fleet --lib sim`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::clock::{Nanos, SECOND, TENTH};
use gake_core::plan::{Expect, Load, Plan, Stage};
use gake_core::record::{
    Counts, Ending, FailedBodies, Interval, IntervalPart, Run, ScenarioEnd, Tally, WorkerEnd,
};
use gake_core::schedule::{Process, Slice};
use gake_core::work::{Arrival, Gauges};
use gake_run::{Collector, Message, Stop};

use crate::OnLoss;
use crate::agent::slice_state::{Outcome, SliceState, next_second};
use crate::coordinator::conduct::{Conduct, Rules};
use crate::coordinator::join::Joiner;
use crate::coordinator::join::tests::outcome;
use crate::coordinator::journal::{Entry, JournalReader, attached};
use crate::coordinator::weights::of_weights;
use crate::frame::{self, Frame};
use crate::message::{Control, Handover, HandoverAnswer, LastWord, Part, StopOrder};

const MS: Nanos = 1_000_000;

/// How long a run may take to end after its schedule: silence, then NATS or the coordinator away.
const END_MAX: Nanos = 120 * SECOND;

/// How long agents go on without their coordinator.
const ALONE_MAX: Duration = Duration::from_secs(40);

/// How long the end of a run waits for its journal.
const STORED_MAX: Nanos = 5 * SECOND;

/// Random numbers of a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

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

/// A time in which something does not work.
#[derive(Debug, Clone, Copy)]
struct Outage {
    from: Nanos,
    to: Nanos,
}

impl Outage {
    const NEVER: Self = Self { from: Nanos::MAX, to: Nanos::MAX };

    fn some(dice: &mut Dice, length: Nanos, longest: Nanos) -> Self {
        let from = dice.below(length);
        Self { from, to: from + dice.below(longest) }
    }

    fn holds(&self, at: Nanos) -> bool {
        (self.from..self.to).contains(&at)
    }
}

struct SimAgent {
    state: SliceState,
    /// Its clock is behind by this, and faster or slower by some parts in a million.
    behind: Nanos,
    drift: i64,
    /// What it sends, with the slice and the instant from which on it does.
    holdings: Vec<(Vec<Arrival>, Nanos)>,
    /// Up to when it has fired, on its clock.
    fired_until: Nanos,
    seconds: u64,
    killed: Nanos,
    /// Stopped as by SIGSTOP.
    frozen: Outage,
    cut_off: Outage,
    draining: bool,
    outcome: Outcome,
    /// The parts of frames that it sent last.
    sent: VecDeque<Vec<u8>>,
    /// When it gave its last sign of life after it was killed.
    returned: Nanos,
}

impl SimAgent {
    /// What its clock shows.
    fn clock(&self, now: Nanos) -> Nanos {
        let since = now.saturating_sub(self.behind);
        since.saturating_add_signed(since as i64 / 1_000 * self.drift / 1_000)
    }

    /// When its clock has shown `shown`.
    fn when(&self, shown: Nanos) -> Nanos {
        let mut at =
            self.behind + shown.saturating_add_signed(-(shown as i64 / 1_000 * self.drift / 1_000));
        while self.clock(at) < shown {
            at += 10_000;
        }
        at
    }
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
    /// Arrivals that another agent sent than the one whose they were.
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

/// Agents' clocks go faster or slower by this at most, in parts in a million.
const DRIFT_MAX: u64 = 2_000;

/// Parts of frames that an agent sends again when it is back.
const SENT_AGAIN: usize = 20;

/// Signs of life of an agent that is back.
const SIGNS: u32 = 10;

impl Sim {
    fn new(seed: u64, agents: usize, seconds: u64, faults: Faults) -> Self {
        let mut dice = Dice(seed);
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

    fn agent(&mut self, seed: u64, index: usize, of: usize, faults: Faults) -> SimAgent {
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

    fn at(&mut self, at: Nanos, happening: Happening) {
        self.happenings.insert(self.next, happening);
        self.queue.push(Reverse((at, self.next)));
        self.next += 1;
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now)
    }

    /// When a message of agent `index`, or to it, arrives: never, once or twice, in any order.
    fn arrivals_of_message(&mut self, index: usize) -> Vec<Nanos> {
        let is_lost = self.nats.holds(self.now)
            || self.agents[index].cut_off.holds(self.now)
            || self.dice.one_in(self.loss);
        let copies = if is_lost { 0 } else { 1 + usize::from(self.dice.one_in(10)) };
        let late = if self.dice.one_in(20) { 900 * MS } else { 20 * MS };
        (0..copies).map(|_| self.now + self.dice.below(late)).collect()
    }

    fn send_frame(&mut self, index: usize, number: u64, frame: &Frame) {
        for part in frame.parts(number, 4_000).collect::<Vec<_>>() {
            self.send_part(index, &part);
        }
    }

    fn send_part(&mut self, index: usize, part: &[u8]) {
        self.agents[index].state.sent = self.instant();
        self.pass_part(index, part);
        let sent = &mut self.agents[index].sent;
        sent.push_back(part.to_vec());
        if sent.len() > SENT_AGAIN {
            sent.pop_front();
        }
    }

    /// The agent sends what it sent before it was killed, and signs of life, under its index.
    fn returns(&mut self, index: usize, signs: u32) {
        for part in std::mem::take(&mut self.agents[index].sent) {
            self.pass_part(index, &part);
        }
        self.pass_part(index, &frame::alive());
        self.agents[index].returned = self.now;
        if signs > 0 {
            self.at(self.now + 500 * MS, Happening::Returns(index, signs - 1));
        }
    }

    fn pass_part(&mut self, index: usize, part: &[u8]) {
        for at in self.arrivals_of_message(index) {
            self.at(at, Happening::Part(index, part.to_vec()));
        }
    }

    fn keep_and_send(&mut self, index: usize, frame: Frame) -> u64 {
        let now = self.instant();
        let number = self.agents[index].state.keep(frame.clone(), now);
        self.send_frame(index, number, &frame);
        number
    }

    fn say(&mut self, control: Control) {
        let control = Rc::new(control);
        for index in 0..self.agents.len() {
            for at in self.arrivals_of_message(index) {
                self.at(at, Happening::Control(index, Rc::clone(&control)));
            }
        }
        if !self.nats.holds(self.now) {
            self.at(self.now + MS, Happening::Echo(control.number));
        }
    }

    /// Writes what the journal does not have yet: in order, over one connection.
    fn write(&mut self) {
        let generation = self.generation;
        let is_connected = !self.nats.holds(self.now);
        while let Some(entry) = self.conduct.journal.as_mut().and_then(|journal| journal.unsent()) {
            if is_connected && !self.dice.one_in(self.loss) {
                let entry = Happening::Entry(generation, entry.attempt, entry.number, entry.bytes);
                self.at(self.now + MS, entry);
            }
        }
    }

    fn entry(&mut self, generation: u32, attempt: u32, number: u64, bytes: Bytes) {
        if self.nats.holds(self.now) {
            return;
        }
        self.journal.push(bytes);
        if !self.dice.one_in(self.loss) {
            let at = self.now + self.dice.below(30 * MS);
            self.at(at, Happening::Stored(generation, attempt, number));
        }
    }

    fn is_stored(&self) -> bool {
        self.conduct.journal.as_ref().is_none_or(|journal| journal.is_stored())
    }

    /// Another coordinator goes on: it has nothing but the journal.
    fn attach(&mut self) {
        if self.nats.holds(self.now) {
            let to = self.nats.to;
            self.orphaned.to = to;
            return self.at(to, Happening::Attach);
        }
        self.generation += 1;
        self.journal.push(attached(self.generation));
        let (agents, base) = (self.agents.len(), self.instant());
        let rules = (self.on_loss, self.generation);
        self.conduct = conduct(&self.plan, self.seed, agents, rules, base);
        self.whole = Collector::new(&self.plan, self.seed, agents);
        self.counted.clear();
        let mut reader = JournalReader::default();
        for bytes in std::mem::take(&mut self.journal) {
            if let Some(entry) = reader.take(&bytes) {
                let from = match &entry {
                    Entry::Part(index, ..) => Some((*index, self.taken(*index))),
                    _ => None,
                };
                let messages = self.conduct.repeat(&entry);
                self.collect(messages);
                if let Some((index, before)) = from {
                    self.count(index, before);
                }
            }
            self.journal.push(bytes);
        }
        self.conduct.go_on((base, self.now));
        self.stop = self.conduct.asked.into();
    }

    /// How many frames of an agent are taken.
    fn taken(&self, index: usize) -> u64 {
        self.conduct.joiner.progress(index).map_or(0, |(frames, ..)| frames)
    }

    /// Counts the arrivals of an agent's frames that were taken since there were `before`.
    fn count(&mut self, index: usize, before: u64) {
        for frame in before..self.taken(index) {
            for number in self.contents.get(&(index, frame)).into_iter().flatten() {
                let is_new = self.counted.insert(*number);
                assert!(is_new, "seed {}: arrival {number} counts twice", self.seed);
            }
        }
    }

    fn collect(&mut self, messages: Vec<Message>) {
        for message in messages {
            self.whole.take(message, |_, _| {});
            while let Some(second) = self.whole.next_second() {
                self.whole.retire(second);
            }
        }
    }

    /// When the agent can do something, if it ever can.
    fn awake_at(&self, index: usize) -> Option<Nanos> {
        let agent = &self.agents[index];
        let at = if agent.frozen.holds(self.now) { agent.frozen.to } else { self.now };
        (agent.outcome == Outcome::Kept && at < agent.killed).then_some(at)
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

    fn agent_looks(&mut self, index: usize) {
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

    fn coordinator_looks(&mut self) {
        self.at(self.now + 100 * MS, Happening::CoordinatorLooks);
        if self.orphaned.holds(self.now) {
            return;
        }
        let is_connected = !self.nats.holds(self.now);
        let looked = self.conduct.look((self.instant(), self.now), is_connected, self.stop);
        self.collect(looked.messages);
        if looked.drain {
            self.stop = Stop::Drain;
        }
        if let Some(control) = looked.control.filter(|_| is_connected) {
            self.say(control);
        }
    }

    fn apply(&mut self, index: usize, control: &Control) {
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

    fn take_over(&mut self, index: usize, handover: &Handover) {
        let Handover { id, index: number, of, not_before, .. } = *handover;
        let agent = &self.agents[index];
        // One in ten is at its limit.
        let fits = !(id + self.seed).is_multiple_of(10);
        let from = fits.then(|| next_second(agent.clock(self.now).max(not_before)));
        self.keep_and_send(index, Frame::handover(&HandoverAnswer { id, from }));
        if let Some(from) = from {
            let schedule = self.plan.schedule(Plan::scenario_seed(self.seed, 0)).unwrap();
            let taken = schedule.share(Slice::new(number, of)).collect();
            self.agents[index].holdings.push((taken, from));
        }
    }

    /// A worker hands over what it fired, and ends when the schedule or the run does.
    fn hand_over(&mut self, index: usize) {
        if self.agents[index].state.is_complete {
            return;
        }
        let (length, expect) = (self.length, Expect::default());
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
        let part = IntervalPart {
            scenario: 0,
            tally,
            warmup: Counts::default(),
            gauges: Gauges { open: 1, peak: 1 },
            bodies: FailedBodies::default(),
        };
        let is_over = clock >= length || agent.draining;
        let tenth = (agent.seconds * 10).max(clock / TENTH);
        agent.seconds = agent.seconds.max(clock / SECOND);
        let next = agent.when((agent.seconds + 1) * SECOND);
        let interval = Interval { worker: 0, tenth, parts: vec![part], cpu: 1, run_delay: 0 };
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
            run: self.whole.finish(0, Ending::Done, 1),
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
    /// Those that another agent sent than the one whose they were.
    taken_over: u64,
    lost: usize,
    unreplaced: usize,
    aborted: bool,
    on_loss: OnLoss,
    faults_end: Nanos,
    /// Distinct arrivals in the frames that were taken.
    counted: u64,
}

/// Random numbers of an agent beside those of the seed, so that faults may be added without making
/// other runs of the seeds that once failed.
fn own_dice(seed: u64, index: usize) -> Dice {
    Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index as u64)
}

/// What each agent does: in one of four runs they have weights.
fn parts(plan: &Plan, seed: u64, agents: usize) -> Vec<Part> {
    let weight = |index: u64| if seed % 4 == 3 { 1 + (seed / 4 + index * index) % 3 } else { 1 };
    let weights: Vec<_> = (0..agents as u64).map(weight).collect();
    of_weights(&weights, plan.lanes())
}

/// A coordinator of a generation.
fn conduct(
    plan: &Arc<Plan>,
    seed: u64,
    agents: usize,
    (on_loss, generation): (OnLoss, u32),
    now: Instant,
) -> Conduct {
    let parts = parts(plan, seed, agents).into_iter().enumerate();
    let named: Vec<_> = parts.map(|(index, part)| (format!("a{index}"), 1, part)).collect();
    let rules = Rules { on_loss, alone_max: ALONE_MAX, generation };
    Conduct::new(Joiner::new(plan, seed, &named), rules, now)
}

fn frame_of(message: &Message) -> Frame {
    Frame::of(message).unwrap()
}

/// The arrivals of a slice of a run.
fn arrivals(plan: &Plan, seed: u64, slice: Slice) -> Vec<Arrival> {
    let part = plan.part(slice, Slice::WHOLE).unwrap();
    plan.schedule(Plan::scenario_seed(seed, 0)).unwrap().share(part).collect()
}

/// Plays a seed, and holds its end against what one machine does.
fn play(seed: u64, agents: usize, seconds: u64, faults: Faults) -> End {
    let sim = Sim::new(seed, agents, seconds, faults);
    let whole = arrivals(&sim.plan, seed, Slice::WHOLE);
    let end = sim.run();
    let counts = end.run.tally.counts;
    assert_eq!(counts.sent, end.counted, "seed {seed}: each arrival counts once");
    assert!(counts.sent <= end.fired, "seed {seed}: {} sent, {} fired", counts.sent, end.fired);
    if !end.aborted {
        assert_eq!(counts.due(), whole.len() as u64, "seed {seed}: due = sent + dropped");
    }
    assert_eq!(counts.dropped, counts.lost, "seed {seed}");
    if end.lost == 0 {
        let mut tally = Tally::default();
        for arrival in &whole {
            let took = 1 + arrival.number % 1_000 * MS;
            tally.record(&outcome(arrival.due, took), &Expect::default());
        }
        assert_eq!(end.run.tally, tally, "seed {seed}: the figures of one machine");
    }
    end
}

/// The seeds to play.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let first = number("GAKE_SIM_FIRST").unwrap_or(0);
    first..first + number("GAKE_SIM_SEEDS").unwrap_or(usual)
}

/// What became of the agents of some seeds.
#[derive(Default)]
struct Ends {
    /// Seeds that lost agents, all of whose arrivals others took over.
    replaced: u64,
    /// Seeds that lost none.
    whole: u64,
    played: u64,
}

impl Ends {
    fn of(seeds: impl Iterator<Item = u64>) -> Self {
        let mut ends = Self::default();
        seeds.for_each(|seed| ends.add(seed));
        ends
    }

    fn add(&mut self, seed: u64) {
        let faults = Faults {
            kills: !seed.is_multiple_of(3),
            outages: seed % 4 > 1,
            orphans: seed % 5 > 2,
            // Seeds 1 and 5 of six are as they were when 217 and 5957 failed.
            drifts: seed % 6 == 2,
            returns: seed % 6 == 4,
        };
        let agents = 2 + (seed % 7) as usize;
        let end = play(seed, agents, 12, faults);
        self.played += 1;
        self.replaced += u64::from(end.lost > 0 && end.unreplaced == 0);
        self.whole += u64::from(end.lost == 0);
        // Everything is sent again once the faults are over and the last second began.
        // Nothing follows the last entry of a journal that could show that it was lost: it is sent
        // again after 1.5 s, and may be lost once more (seed 5957).
        let has_journal = faults.orphans || !seed.is_multiple_of(4);
        let calm = end.faults_end / SECOND + if has_journal { 8 } else { 6 };
        let is_made_up = end.on_loss == OnLoss::Redistribute && end.unreplaced == 0;
        if is_made_up && !end.aborted {
            let late: u64 = end
                .run
                .series
                .points()
                .iter()
                .filter(|point| point.second >= calm)
                .map(|point| point.counts.dropped)
                .sum();
            assert_eq!(late, 0, "seed {seed}: dropped after others took over");
        }
    }
}

#[test]
fn whatever_the_network_does_each_arrival_counts_once() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let ends: Vec<_> = std::thread::scope(|scope| {
        let part = |first| move || Ends::of(seeds(1_000).skip(first).step_by(threads));
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(part(first))).collect();
        parts
            .into_iter()
            .map(|part| part.join().expect("a seed failed; it is named above"))
            .collect()
    });
    let reached = |what: fn(&Ends) -> u64| ends.iter().map(what).sum::<u64>() > 0;
    let has_both = reached(|ends| ends.replaced) && reached(|ends| ends.whole);
    assert!(has_both || std::env::var_os("GAKE_SIM_FIRST").is_some(), "the seeds reach both");
}

#[test]
fn found_seeds() {
    let ends = Ends::of([217, 5957].into_iter());
    assert_eq!(ends.played, 2);
}

#[test]
fn a_thousand_agents_are_one_run() {
    let (drifts, returns) = (false, false);
    for (seed, kills) in [(1, false), (2, true)] {
        play(seed, 1_000, 3, Faults { kills, outages: false, orphans: kills, drifts, returns });
    }
    // NATS is away in the second of each.
    let (kills, outages, orphans, drifts, returns) = (true, true, false, true, true);
    let faults = Faults { kills, outages, orphans, drifts, returns };
    for seed in [8, 56] {
        let end = play(seed, 1_000, 3, faults);
        assert!(end.on_loss == OnLoss::Continue && end.lost > 0, "{} lost", end.lost);
        assert_eq!(end.taken_over, 0);
    }
    for seed in [4, 32] {
        let end = play(seed, 1_000, 10, faults);
        assert!(end.on_loss == OnLoss::Redistribute && end.lost > 0, "{} lost", end.lost);
        assert!(end.taken_over > 0);
    }
}
