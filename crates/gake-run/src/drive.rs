//! The loop that collects the workers' figures, second by second.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::metric::SeriesTable;
use gake_core::record::{Provenance, Run, RunEnd, RunEvent};
use gake_core::schedule::{RateChange, Slice};
use gake_core::work::Factory;
use gake_engine::{
    Collector, JoinedSecond, LogSender, RunHandle, Stop, WorkerBody, WorkerContext, start,
};
use gake_wire::HttpFactory;

use crate::abort::missed;
use crate::plan::check_memory;
use crate::probe;
use crate::rate_control::{self, RateControl};
use crate::script::ScriptEnd;
use crate::second_update::{EachSecond, SecondUpdate};
use crate::sink::{Fanout, Loss, Sink, SinkStart};
use crate::{Interrupt, ResolvedRun, RunError, TargetWatcher, UserControl};

/// Options of a run; by default it has no sinks and no controls.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Destinations of figures during the run.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Ends the run early.
    pub interrupt: Option<&'a Interrupt>,
    /// Whether ending the run early aborts requests in flight instead of draining them.
    pub aborts_at_once: bool,
    /// Sets the number of users of externally controlled scenarios.
    pub users: Option<&'a UserControl>,
    /// Changes the rates.
    pub rate: Option<&'a RateControl>,
    /// Samples the target across several runs. Without it, the sources of the spec are sampled
    /// during this run.
    pub watching: Option<&'a mut TargetWatcher>,
    /// Whether a few requests may follow the load, one at a time, to learn their time without a
    /// queue. Only plain GET and HEAD requests of this process, and only if it would tell more.
    pub probe: bool,
    /// The provenance of the run, which becomes part of the result.
    pub origin: Provenance,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.name()).collect();
        f.debug_struct("RunOptions").field("sinks", &sinks).finish_non_exhaustive()
    }
}

/// A completed run, with its sinks closed.
#[derive(Debug)]
pub struct RecordedRun {
    /// The run; its events include the losses of sinks.
    pub run: Run,
    /// Losses of the sinks.
    pub losses: Vec<Loss>,
    /// How its scripts ended.
    pub scripts: Vec<ScriptEnd>,
}

/// The workers of a run, in this process or in others.
pub(crate) trait Workers {
    /// The start of the run, in Unix nanoseconds.
    fn started_unix_ns(&self) -> u64 {
        unix_now()
    }

    /// Starts the workers; every outcome also goes to `log`, if given.
    fn start(&mut self, log: Option<LogSender>) -> Result<RunHandle, RunError>;

    /// Completes the run, before the sinks see its end.
    fn complete(&mut self, run: &mut Run) {
        let _ = run;
    }
}

/// Workers in this process.
struct LocalWorkers<'a> {
    run: &'a ResolvedRun,
    body: WorkerBody,
}

impl Workers for LocalWorkers<'_> {
    fn start(&mut self, log: Option<LogSender>) -> Result<RunHandle, RunError> {
        start(&self.run.plan, self.run.seed, log, self.body.clone()).map_err(RunError::cannot)
    }
}

impl ResolvedRun {
    /// Runs to the end, without sinks.
    ///
    /// # Errors
    /// When it cannot be started, or a worker is lost.
    pub fn run(&self) -> Result<Run, RunError> {
        Ok(self.run_with(RunOptions::default(), &mut |_| None)?.run)
    }

    /// Runs to the end and passes each second to `each`.
    ///
    /// # Errors
    /// When a sink cannot take the run, it cannot be started, or a worker is lost.
    pub fn run_with(
        &self,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        check_memory(&self.plan, Slice::WHOLE, !self.scripts.is_empty())
            .map_err(RunError::cannot)?;
        if !self.scripts.is_empty() {
            return self.run_scripts(None, options, each);
        }
        let (wires, tracer) = (self.wires.clone(), self.tracer.clone());
        let make = move |context: WorkerContext| {
            let wire = Arc::clone(&wires[context.scenario]);
            HttpFactory::new(wire, context.slice, context.clock).traced(tracer.clone())
        };
        self.run_works(make, options, each)
    }

    /// As [`ResolvedRun::run_with`], with the program's own works: `make` makes the factory of each
    /// scenario of each worker.
    ///
    /// # Errors
    /// When a sink cannot take the run, a factory cannot prepare its works, or a worker is lost.
    pub fn run_works<F: Factory + 'static>(
        &self,
        make: impl Fn(WorkerContext) -> F + Send + Sync + 'static,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        self.drive(&mut LocalWorkers { run: self, body: WorkerBody::new(make) }, options, each)
    }

    /// Runs to the end with `workers`.
    pub(crate) fn drive(
        &self,
        workers: &mut dyn Workers,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let mut own = None;
        let watching = match options.watching {
            Some(watching) => watching,
            None => own.insert(TargetWatcher::of(self)?),
        };
        let (origin, started_unix_ns) = (options.origin, workers.started_unix_ns());
        let (settings, first) = watching.begin();
        let about = SinkStart { plan: &self.plan, started_unix_ns, origin: &origin, settings };
        let has_sinks = !options.sinks.is_empty();
        let start = || Fanout::start(options.sinks, &about);
        // Threads of sinks inherit the scheduling class. On a machine without a core to spare that
        // class waits long for its turn, which a run without sinks need not.
        let started = if has_sinks { gake_engine::beside(&self.plan, start) } else { start() };
        let (mut fanout, log) = started?;
        for (at, readings) in &first.samples {
            fanout.readings(*at, readings);
        }
        let running = workers.start(log)?;
        if let Some(interrupt) = options.interrupt {
            interrupt.attach(running.stop.clone());
        }
        if let Some(users) = options.users {
            users.attach(running.users.clone());
        }
        if let Some(rate) = options.rate {
            rate.attach(running.rate.clone());
        }
        let mut collect = CollectLoop {
            prepared: self,
            collector: Collector::new(&self.plan, self.seed, running.workers),
            running,
            watching,
            fanout: &mut fanout,
            each,
            abort: if options.aborts_at_once { Stop::Now } else { Stop::Drain },
            reason: None,
            changes: Vec::new(),
        };
        gake_engine::beside(&self.plan, || collect.collect(CollectUntil::NoWorker))?;
        // On a busy machine, draining the queue in the lowest class could take minutes.
        collect.collect(CollectUntil::Over)?;
        let memory = collect.running.memory.clone();
        let (collector, reason, changes) = collect.finish();
        let ending = match reason {
            Some(reason) => RunEnd::Aborted(reason),
            None if options.interrupt.is_some_and(Interrupt::came) => RunEnd::Interrupted,
            None if collector.is_exhausted() => RunEnd::OutOfTargets,
            None => RunEnd::Done,
        };
        for (at, readings) in &watching.take_last().samples {
            fanout.readings(*at, readings);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let log_lost = collector.log_lost();
        let mut run = Run { origin, ..collector.finish(started_unix_ns, ending, cores) };
        run.generator.rss_bytes = memory.highest();
        watching.end(&mut run);
        workers.complete(&mut run);
        if options.probe {
            let probed = self.probe(&run);
            fanout.readings(run.elapsed, &probed);
            probe::add(&mut run, &probed);
        }
        run.bodies.redact(&self.redactor);
        run.events.extend(changes.iter().map(|change| rate_control::event(change, &self.plan)));
        let losses = fanout.finish(&run, log_lost);
        let event = |loss: &Loss| RunEvent::new(run.elapsed, &loss.text);
        let events: Vec<_> = losses.iter().map(event).collect();
        run.events.extend(events);
        Ok(RecordedRun { run, losses, scripts: Vec::new() })
    }
}

/// The state of the collection loop.
struct CollectLoop<'a> {
    prepared: &'a ResolvedRun,
    running: RunHandle,
    collector: Collector,
    watching: &'a mut TargetWatcher,
    fanout: &'a mut Fanout,
    each: &'a mut EachSecond<'a>,
    /// How the run is ended early.
    abort: Stop,
    /// Why an objective or `each` ended the run early.
    reason: Option<String>,
    /// Rate changes that the collector has been given.
    changes: Vec<RateChange>,
}

/// How long to collect.
#[derive(Clone, Copy, PartialEq)]
enum CollectUntil {
    /// Until the last worker has ended, with messages left in the queue.
    NoWorker,
    /// Until the queue is empty.
    Over,
}

impl CollectLoop<'_> {
    fn collect(&mut self, until: CollectUntil) -> Result<(), RunError> {
        while !self.collector.is_over() {
            if until == CollectUntil::NoWorker && self.running.has_ended() {
                break;
            }
            let Some(message) = self.running.receive() else {
                let bug = "a worker thread ended unexpectedly; this is a bug";
                return Err(RunError::cannot(bug));
            };
            let spares = &self.running.spares;
            self.collector.take(message, |worker, tally| {
                if let Some(spares) = spares.get(worker) {
                    // The worker may have ended.
                    let _ = spares.send(tally);
                }
            });
            self.follow_rates();
            while let Some(second) = self.collector.next_second() {
                let reason = self.second(second);
                // A run that is over needs no reason to end.
                let is_running = !self.collector.is_over() && self.running.stop.asked() == Stop::Go;
                if reason.is_some() && is_running {
                    self.running.stop.stop(self.abort);
                    self.reason = reason;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> (Collector, Option<String>, Vec<RateChange>) {
        if let Some(rate) = &self.running.rate {
            rate.close();
        }
        self.follow_rates();
        if !self.running.abandoned().is_empty() {
            let calls = self.running.blocked_calls();
            self.collector.abandon(self.running.abandoned().len(), calls);
        }
        self.running.join();
        (self.collector, self.reason, self.changes)
    }

    /// The collector must know rate changes before the seconds to which they apply.
    fn follow_rates(&mut self) {
        let Some(rate) = &self.running.rate else { return };
        let changes = rate.changes();
        if changes.len() > self.changes.len() {
            self.collector.follow(self.prepared.plan.with_rates_changed(&changes));
            self.changes = changes;
        }
    }

    /// Passes one second to `each` and the sinks. Returns a reason to end the run.
    fn second(&mut self, second: JoinedSecond) -> Option<String> {
        let asked = second.point.asked;
        let fresh = self.watching.take();
        for (at, readings) in &fresh.samples {
            self.fanout.readings(*at, readings);
        }
        let update = SecondUpdate {
            second: &second,
            asked,
            so_far: &self.collector,
            levels: &SeriesTable::default(),
            readings: &fresh.readings,
            watched: self.watching.so_far(),
        };
        let reason = (self.each)(&update).or_else(|| missed(self.prepared, &update));
        let collector = &mut self.collector;
        self.fanout.second(second, asked, |free| collector.retire(free));
        reason
    }
}

/// The current time in Unix nanoseconds.
#[must_use]
pub fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}
