//! A work whose behaviour a test says, and a run of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};
use gake_core::plan::{Expect, Load, Overflow, Plan, Stage, Timeouts};
use gake_core::record::{Answer, End, Ending, Exchange, Fault, Outcome, Run, Tally};
use gake_core::schedule::Process;
use gake_core::work::{Arrival, Factory, Gauges, Work};
use gake_engine::{Collector, Event, LogSender, RunClock, StopHandle, Timer, log_channel, start};

pub const MS: Nanos = 1_000_000;
pub const SEED: u64 = 7;

/// What becomes of an arrival.
#[derive(Clone, Copy)]
pub enum Fate {
    /// It is answered at this instant, or at once when that has passed.
    At(Nanos),
    /// It is never answered.
    Never,
    /// It ends at once with a fault.
    Fault(Fault),
    /// There is nothing left to send.
    Nothing,
}

/// The fate of an arrival that is fired at an instant.
pub type Behaviour = dyn Fn(Arrival, Nanos) -> Fate + Send + Sync;

/// An answer `after` nanoseconds.
pub fn takes(after: Nanos) -> Arc<Behaviour> {
    Arc::new(move |_, now| Fate::At(now + after))
}

pub fn never() -> Arc<Behaviour> {
    Arc::new(|_, _| Fate::Never)
}

/// A work that came to be.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// Its number among those of all workers.
    pub global: usize,
    pub made: Nanos,
}

/// What the works saw of a run.
#[derive(Default)]
pub struct Seen {
    level: AtomicU64,
    peak: AtomicU64,
    pub lanes: Mutex<Vec<Lane>>,
    /// Number and worker of each arrival fired.
    fired: Mutex<Vec<(u64, usize)>>,
}

impl Seen {
    /// Most arrivals in flight at once, over all workers.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// The numbers of the arrivals fired, in order.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.fired.lock().unwrap().iter().map(|fired| fired.0).collect();
        numbers.sort_unstable();
        numbers
    }

    /// How many arrivals each of `workers` fired.
    pub fn shares(&self, workers: usize) -> Vec<usize> {
        let fired = self.fired.lock().unwrap();
        (0..workers).map(|worker| fired.iter().filter(|f| f.1 == worker).count()).collect()
    }
}

struct Actor {
    timer: Timer,
    clock: RunClock,
    worker: usize,
    behaviour: Arc<Behaviour>,
    seen: Arc<Seen>,
}

impl Work for Actor {
    async fn fire(&mut self, arrival: Arrival, now: Nanos) -> Exchange {
        let fate = (self.behaviour)(arrival, now);
        if !matches!(fate, Fate::Nothing) {
            self.seen.fired.lock().unwrap().push((arrival.number, self.worker));
        }
        let level = self.seen.level.fetch_add(1, Relaxed) + 1;
        self.seen.peak.fetch_max(level, Relaxed);
        let end = match fate {
            Fate::At(at) => {
                self.timer.sleep_until(at).await;
                End::Answered(Answer { status: 200, body_bytes: 0 })
            }
            Fate::Never => std::future::pending().await,
            Fate::Fault(fault) => End::Fault(fault),
            Fate::Nothing => End::NothingToSend,
        };
        self.seen.level.fetch_sub(1, Relaxed);
        let done = self.clock.now();
        Exchange {
            write: now,
            written: true,
            first_byte: Some(done),
            end,
            ..Exchange::unfinished(done)
        }
    }

    fn abandon(&mut self) -> Exchange {
        self.seen.level.fetch_sub(1, Relaxed);
        Exchange { written: true, ..Exchange::unfinished(self.clock.now()) }
    }
}

struct Actors {
    timer: Timer,
    clock: RunClock,
    worker: usize,
    workers: usize,
    behaviour: Arc<Behaviour>,
    seen: Arc<Seen>,
}

impl Factory for Actors {
    type Work = Actor;

    fn work(&self, lane: usize) -> Actor {
        let global = lane * self.workers + self.worker;
        self.seen.lanes.lock().unwrap().push(Lane { global, made: self.clock.now() });
        Actor {
            timer: self.timer.clone(),
            clock: self.clock,
            worker: self.worker,
            behaviour: Arc::clone(&self.behaviour),
            seen: Arc::clone(&self.seen),
        }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

/// A plan of an open loop in stages of (from, to, milliseconds).
pub fn staged(stages: &[(f64, f64, u64)]) -> Plan {
    let stage = |&(from, to, ms)| Stage { from, to, duration: Duration::from_millis(ms) };
    let stages = stages.iter().map(stage).collect();
    Plan { load: Load::Open { stages, process: Process::Uniform }, ..closed(1_000) }
}

/// A plan of an open loop at one rate.
pub fn open(rate: f64, ms: u64) -> Plan {
    staged(&[(rate, rate, ms)])
}

/// A plan of a closed loop that nothing ends.
pub fn closed(users: usize) -> Plan {
    Plan {
        target: "a test".to_owned(),
        load: Load::Closed { think: Duration::ZERO },
        duration: None,
        requests: None,
        warmup: Duration::ZERO,
        connections: users,
        max_in_flight: usize::MAX,
        overflow: Overflow::Wait,
        connect_rate: None,
        idle_connections: 0,
        keepalive: true,
        timeouts: Timeouts {
            connect: Duration::from_secs(10),
            first_byte: None,
            total: Duration::from_secs(30),
        },
        drain: Duration::from_secs(20),
        threads: 1,
        spin: false,
        expect: Expect::default(),
        labels: Vec::new(),
    }
}

/// A run that is over.
pub struct Done {
    pub run: Run,
    pub seen: Arc<Seen>,
    pub log_lost: u64,
}

impl Done {
    /// The quantile of the response time in milliseconds.
    pub fn response_ms(&self, quantile: f64) -> f64 {
        self.run.tally.latency.response().quantile(quantile) as f64 / MS as f64
    }
}

pub fn run(plan: Plan, behaviour: Arc<Behaviour>) -> Done {
    run_with(plan, behaviour, None, |_| {})
}

/// A run with a log; every outcome that reached it.
pub fn logged(plan: Plan, behaviour: Arc<Behaviour>) -> (Done, Vec<Outcome>) {
    let (sender, receiver) = log_channel(1_000, usize::MAX);
    let done = run_with(plan, behaviour, Some(sender), |_| {});
    let outcomes = receiver.iter().flat_map(|batch| batch.to_vec()).collect();
    (done, outcomes)
}

/// Runs a plan; `meanwhile` has the stop handle on a thread of its own. The identities of the
/// counts are checked after every run.
pub fn run_with(
    plan: Plan,
    behaviour: Arc<Behaviour>,
    log: Option<LogSender>,
    meanwhile: impl FnOnce(StopHandle) + Send + 'static,
) -> Done {
    let plan = Arc::new(plan);
    let seen = Arc::new(Seen::default());
    let make = {
        let seen = Arc::clone(&seen);
        move |context: gake_engine::WorkerContext| Actors {
            timer: Timer::new(context.clock).unwrap(),
            clock: context.clock,
            worker: context.worker,
            workers: context.workers,
            behaviour: Arc::clone(&behaviour),
            seen: Arc::clone(&seen),
        }
    };
    let running = start(&plan, SEED, log, make).unwrap();
    let stop = running.stop.clone();
    let meanwhile = thread::spawn(move || meanwhile(stop));
    let mut collector = Collector::new(&plan, SEED, running.spares.len());
    while !collector.is_over() {
        let event = running.events.recv().unwrap();
        assert!(!matches!(event, Event::Failed(_)), "{event:?}");
        collector.take(event, |worker, tally| {
            let _ = running.spares[worker].send(tally);
        });
        while collector.next_second().is_some() {}
    }
    running.join();
    meanwhile.join().unwrap();
    let log_lost = collector.log_lost();
    let done = Done { run: collector.finish(0, Ending::Done, 1), seen, log_lost };
    check_identities(&done);
    done
}

fn check_identities(done: &Done) {
    for counts in [&done.run.tally.counts, &done.run.warmup] {
        assert_eq!(counts.sent, counts.ok + counts.failed + counts.unfinished, "{counts:?}");
        assert_eq!(counts.due(), counts.sent + counts.dropped, "{counts:?}");
        assert_eq!(counts.sent, counts.written, "{counts:?}");
    }
    let sent = done.run.tally.counts.sent + done.run.warmup.sent;
    let numbers = done.seen.numbers();
    assert_eq!(sent, numbers.len() as u64, "what was sent is what the works fired");
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "no arrival is fired twice");
    assert_eq!(done.seen.level.load(Relaxed), 0, "no work is left");
    let series: u64 = done.run.series.points().iter().map(|point| point.counts.sent).sum();
    assert_eq!(series, done.run.tally.counts.sent, "the seconds add up to the whole");
}
