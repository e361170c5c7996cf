//! Runs of a work with a given behaviour.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Clock, Nanos};
use gake_core::plan::{Plan, Stage};
use gake_core::record::{
    Exchange, ExchangeEnd, Fault, Outcome, ResponseSummary, Run, RunEnd, SeriesPoint, Tally,
};
use gake_core::schedule::{Process, Slice};
use gake_core::work::{
    Arrival, Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work,
};
use gake_engine::{
    Collector, LogSender, RunClock, StopHandle, Timer, WorkerBody, WorkerContext, log_channel,
    start,
};

pub const MS: Nanos = 1_000_000;
pub const SEED: u64 = 7;

/// The outcome of an arrival.
#[derive(Clone, Copy)]
pub enum Fate {
    /// A response at this instant, or immediately if it has passed.
    At(Nanos),
    /// No response.
    Never,
    /// An immediate fault.
    Fault(Fault),
    /// The source of requests is exhausted.
    Nothing,
}

/// The fate of an arrival that is fired at an instant.
pub type Behaviour = dyn Fn(Arrival, Nanos) -> Fate + Send + Sync;

/// A response after `after` nanoseconds.
pub fn takes(after: Nanos) -> Arc<Behaviour> {
    Arc::new(move |_, now| Fate::At(now + after))
}

pub fn never() -> Arc<Behaviour> {
    Arc::new(|_, _| Fate::Never)
}

/// A lane that was used.
#[derive(Clone, Copy, Debug)]
pub struct UsedLane {
    /// Its number among the lanes of all workers.
    pub global: usize,
    /// When it fired first.
    pub first: Nanos,
}

/// What the lanes recorded of a run.
#[derive(Default)]
pub struct WorkRecord {
    level: AtomicU64,
    peak: AtomicU64,
    pub lanes: Mutex<Vec<UsedLane>>,
    /// Number and worker of each arrival fired.
    fired: Mutex<Vec<(u64, usize)>>,
    /// Scenario and instant of each.
    pub instants: Mutex<Vec<(usize, Nanos)>>,
}

impl WorkRecord {
    /// Peak number of arrivals in flight, over all workers.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// Peak number of arrivals in flight since the last call.
    pub fn take_peak(&self) -> u64 {
        self.peak.swap(0, Relaxed)
    }

    /// The numbers of the arrivals fired, in order.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.fired.lock().unwrap().iter().map(|fired| fired.0).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Number of arrivals fired by each of `workers`.
    pub fn shares(&self, workers: usize) -> Vec<usize> {
        let fired = self.fired.lock().unwrap();
        (0..workers).map(|worker| fired.iter().filter(|f| f.1 == worker).count()).collect()
    }
}

pub struct TestWork {
    timer: Timer,
    clock: RunClock,
    worker: usize,
    scenario: usize,
    /// Its number among the lanes of all workers, until it fires.
    unused: Option<usize>,
    behaviour: Arc<Behaviour>,
    seen: Arc<WorkRecord>,
}

impl Work for TestWork {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let (arrival, now) = (iteration.arrival, iteration.fired);
        let fate = (self.behaviour)(arrival, now);
        if matches!(fate, Fate::Nothing) {
            return Err(Exhausted);
        }
        if let Some(global) = self.unused.take() {
            self.seen.lanes.lock().unwrap().push(UsedLane { global, first: now });
        }
        self.seen.fired.lock().unwrap().push((arrival.number, self.worker));
        self.seen.instants.lock().unwrap().push((self.scenario, now));
        let level = self.seen.level.fetch_add(1, Relaxed) + 1;
        self.seen.peak.fetch_max(level, Relaxed);
        let end = match fate {
            Fate::At(at) => {
                self.timer.sleep_until(at).await;
                ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 })
            }
            Fate::Never => std::future::pending().await,
            Fate::Fault(fault) => ExchangeEnd::Fault(fault),
            Fate::Nothing => ExchangeEnd::Unfinished,
        };
        self.seen.level.fetch_sub(1, Relaxed);
        let done = self.clock.now();
        iteration.exchange(Exchange {
            write: now,
            written: true,
            first_byte: Some(done),
            end,
            ..Exchange::unfinished(done)
        });
        Ok(match end {
            ExchangeEnd::Fault(fault) => IterationEnd::failed(done, fault),
            _ => IterationEnd::finished(done),
        })
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        self.seen.level.fetch_sub(1, Relaxed);
        let now = self.clock.now();
        iteration.exchange(Exchange { written: true, ..Exchange::unfinished(now) });
        IterationEnd::interrupted(now)
    }
}

pub struct TestFactory {
    timer: Timer,
    clock: RunClock,
    slice: Slice,
    scenario: usize,
    behaviour: Arc<Behaviour>,
    seen: Arc<WorkRecord>,
}

impl Factory for TestFactory {
    type Work = TestWork;

    fn work(&self, lane: usize) -> TestWork {
        TestWork {
            unused: Some(self.slice.number(lane)),
            timer: self.timer.clone(),
            clock: self.clock.clone(),
            worker: self.slice.index,
            scenario: self.scenario,
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
    Plan { load: Load::Open { stages, process: Process::Uniform }.into(), ..closed(1_000) }
}

/// A plan of an open loop at one rate.
pub fn open(rate: f64, ms: u64) -> Plan {
    staged(&[(rate, rate, ms)])
}

/// A plan of an endless closed loop.
pub fn closed(users: usize) -> Plan {
    let load = Load::Closed { users, think: Duration::ZERO };
    Plan { drain: Duration::from_secs(20), ..Plan::new("a test", load) }
}

/// A completed run.
pub struct CompletedRun {
    pub run: Run,
    pub seen: Arc<WorkRecord>,
    pub log_lost: u64,
}

impl CompletedRun {
    /// The quantile of the response time in milliseconds.
    pub fn response_ms(&self, quantile: f64) -> f64 {
        self.run.tally.latency.response().quantile(quantile) as f64 / MS as f64
    }
}

pub fn run(plan: Plan, behaviour: Arc<Behaviour>) -> CompletedRun {
    run_with(plan, behaviour, None, |_| {})
}

/// A run with a log; every outcome that reached it.
pub fn logged(plan: Plan, behaviour: Arc<Behaviour>) -> (CompletedRun, Vec<Outcome>) {
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
) -> CompletedRun {
    let done = run_unchecked(plan, behaviour, log, meanwhile);
    check_identities(&done);
    check_numbers(&done);
    done
}

pub fn factories(
    seen: &Arc<WorkRecord>,
    behaviour: Arc<Behaviour>,
) -> impl Fn(WorkerContext) -> TestFactory + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move |context| TestFactory {
        timer: Timer::new(context.clock.clone()).unwrap(),
        clock: context.clock.clone(),
        slice: context.slice,
        scenario: context.scenario,
        behaviour: Arc::clone(&behaviour),
        seen: Arc::clone(&seen),
    }
}

/// A run of several scenarios; also the scenario and instant of each arrival fired.
pub fn several(plan: Plan, behaviour: Arc<Behaviour>) -> (CompletedRun, Vec<(usize, Nanos)>) {
    let done = run_unchecked(plan, behaviour, None, |_| {});
    check_identities(&done);
    let instants = std::mem::take(&mut *done.seen.instants.lock().unwrap());
    (done, instants)
}

fn run_unchecked(
    plan: Plan,
    behaviour: Arc<Behaviour>,
    log: Option<LogSender>,
    meanwhile: impl FnOnce(StopHandle) + Send + 'static,
) -> CompletedRun {
    let plan = Arc::new(plan);
    let seen = Arc::new(WorkRecord::default());
    let running = start(&plan, SEED, log, WorkerBody::new(factories(&seen, behaviour))).unwrap();
    let stop = running.stop.clone();
    let meanwhile = thread::spawn(move || meanwhile(stop));
    let mut collector = Collector::new(&plan, SEED, running.spares.len());
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |worker, tally| {
            let _ = running.spares[worker].send(tally);
        });
        while collector.next_second().is_some() {}
    }
    running.join();
    meanwhile.join().unwrap();
    let log_lost = collector.log_lost();
    CompletedRun { run: collector.finish(0, RunEnd::Done, 1), seen, log_lost }
}

fn check_identities(done: &CompletedRun) {
    for counts in [&done.run.tally.counts, &done.run.warmup] {
        assert_eq!(counts.sent, counts.ok + counts.failed + counts.unfinished, "{counts:?}");
        assert_eq!(counts.arrivals(), counts.started + counts.dropped, "{counts:?}");
        // All are plain requests.
        assert_eq!((counts.started, counts.interrupted), (counts.sent, counts.unfinished));
        assert_eq!(counts.sent, counts.written, "{counts:?}");
    }
    let sent = done.run.tally.counts.sent + done.run.warmup.sent;
    let fired = done.seen.fired.lock().unwrap().len() as u64;
    assert_eq!(sent, fired, "the lanes fired what was sent");
    assert_eq!(done.seen.level.load(Relaxed), 0, "nothing is in flight");
    let series: u64 = done.run.series.points().iter().map(|point| point.counts.sent).sum();
    assert_eq!(series, done.run.tally.counts.sent, "the seconds add up to the whole");
    let tenths = done.run.series.tenths();
    if !tenths.is_empty() {
        let sent: u64 = tenths.iter().map(|point| point.counts.sent).sum();
        assert_eq!(sent, series, "the tenths add up to the seconds");
        let end = |point: &SeriesPoint| point.second + point.seconds;
        let follows = tenths.windows(2).all(|pair| end(&pair[0]) == pair[1].second);
        assert!(follows && tenths[0].second == 0, "no gap");
    }
}

fn check_numbers(done: &CompletedRun) {
    let numbers = done.seen.numbers();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "no arrival is fired twice");
}
