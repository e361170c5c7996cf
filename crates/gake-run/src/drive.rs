//! The loop that takes in what the workers hand over, second by second.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::metric::SeriesTable;
use gake_core::record::{Provenance, Run, RunEnd, RunEvent};
use gake_core::schedule::RateChange;
use gake_core::work::Factory;
use gake_engine::{Collector, JoinedSecond, LogSender, RunHandle, Stop, WorkerContext, start};
use gake_wire::HttpFactory;

use crate::abort::missed;
use crate::moment::Moment;
use crate::rate_control::{self, RateControl};
use crate::script::ScriptEnd;
use crate::sink::{Fanout, Loss, Sink, SinkStart};
use crate::{Interrupt, Prepared, RunError, UserControl, Watching};

/// What accompanies a run; nothing by default.
#[derive(Default)]
pub struct Beside<'a> {
    /// Where figures go during the run.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Ends the run early.
    pub interrupt: Option<&'a Interrupt>,
    /// Whether a reason to end the run early ends requests in flight too, in place of the drain.
    pub aborts_at_once: bool,
    /// Sets the number of users of externally controlled scenarios.
    pub users: Option<&'a UserControl>,
    /// Changes the rates.
    pub rate: Option<&'a RateControl>,
    /// Samples the target across several runs; without it, the sources that the spec names are
    /// sampled during this run.
    pub watching: Option<&'a mut Watching>,
    /// The origin of the run, which the result carries.
    pub origin: Provenance,
}

impl std::fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.name()).collect();
        f.debug_struct("Beside").field("sinks", &sinks).finish_non_exhaustive()
    }
}

/// A run that is over, its sinks closed.
#[derive(Debug)]
pub struct Recorded {
    /// The run; its events include what the sinks lost.
    pub run: Run,
    /// What the sinks lost.
    pub losses: Vec<Loss>,
    /// How the parts of its scripts ended.
    pub scripts: Vec<ScriptEnd>,
}

/// The workers of a run, in this process or in others.
pub(crate) trait Workers {
    /// When the run starts, or has started: in ns since 1970.
    fn started_unix_ns(&self) -> u64 {
        unix_now()
    }

    /// Starts them; every exchange also goes to `log`, if there is one.
    fn start(&mut self, log: Option<LogSender>) -> Result<RunHandle, RunError>;

    /// Completes the run, before the sinks see its end.
    fn complete(&mut self, run: &mut Run) {
        let _ = run;
    }
}

/// Workers that a function starts in this process.
struct Here<S>(S);

impl<S: FnMut(Option<LogSender>) -> Result<RunHandle, RunError>> Workers for Here<S> {
    fn start(&mut self, log: Option<LogSender>) -> Result<RunHandle, RunError> {
        self.0(log)
    }
}

impl Prepared {
    /// Runs it to its end, without sinks.
    ///
    /// # Errors
    /// When it cannot be started, or a worker is lost.
    pub fn run(&self) -> Result<Run, RunError> {
        Ok(self.run_beside(Beside::default(), |_| None)?.run)
    }

    /// Runs it to its end, and passes each second to `each`, which may return a reason to end
    /// the run early: no new arrivals, then the drain, unless it is to end at once.
    ///
    /// # Errors
    /// When a sink cannot take the run, it cannot be started, or a worker is lost.
    pub fn run_beside(
        &self,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        if !self.scripts.is_empty() {
            return self.run_scripts(None, beside, each);
        }
        let (wires, tracer) = (self.wires.clone(), self.tracer.clone());
        let make = move |context: WorkerContext| {
            let wire = Arc::clone(&wires[context.scenario]);
            HttpFactory::new(wire, context.slice, context.clock).traced(tracer.clone())
        };
        self.run_works(make, beside, each)
    }

    /// As [`Prepared::run_beside`], fired by works of the program's own: `make` makes the factory
    /// of each scenario of each worker.
    ///
    /// # Errors
    /// When a sink cannot take the run, a factory cannot prepare its works, or a worker is lost.
    pub fn run_works<F: Factory + 'static>(
        &self,
        make: impl Fn(WorkerContext) -> F + Send + Sync + 'static,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let mut make = Some(make);
        let workers = Here(|log| match make.take() {
            Some(make) => start(&self.plan, self.seed, log, make).map_err(RunError::cannot),
            None => Err(RunError::cannot("the workers have been started already")),
        });
        self.drive(workers, beside, each)
    }

    /// Runs it to its end with `workers`.
    pub(crate) fn drive(
        &self,
        mut workers: impl Workers,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let mut own = None;
        let watching = match beside.watching {
            Some(watching) => watching,
            None => own.insert(Watching::of(self)?),
        };
        let (origin, started_unix_ns) = (beside.origin, workers.started_unix_ns());
        let (settings, first) = watching.begin();
        let about = SinkStart { plan: &self.plan, started_unix_ns, origin: &origin, settings };
        // The threads of sinks are of the class of the one that starts them.
        let started = gake_engine::beside(&self.plan, || Fanout::start(beside.sinks, &about));
        let (mut fanout, log) = started?;
        for (at, readings) in &first.samples {
            fanout.readings(*at, readings);
        }
        let running = workers.start(log)?;
        if let Some(interrupt) = beside.interrupt {
            interrupt.attach(running.stop.clone());
        }
        if let Some(users) = beside.users {
            users.attach(running.users.clone());
        }
        if let Some(rate) = beside.rate {
            rate.attach(running.rate.clone());
        }
        let mut collecting = Collecting {
            prepared: self,
            collector: Collector::new(&self.plan, self.seed, running.workers),
            running,
            watching,
            fanout: &mut fanout,
            each,
            abort: if beside.aborts_at_once { Stop::Now } else { Stop::Drain },
            reason: None,
            changes: Vec::new(),
        };
        gake_engine::beside(&self.plan, || collecting.collect(Until::NoWorker))?;
        // On a machine whose cores others have, what is left would take the lowest class minutes.
        collecting.collect(Until::Over)?;
        let memory = collecting.running.memory.clone();
        let (collector, reason, changes) = collecting.finish();
        let ending = match reason {
            Some(reason) => RunEnd::Aborted(reason),
            None if beside.interrupt.is_some_and(Interrupt::came) => RunEnd::Interrupted,
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
        run.bodies.redact(&self.redactor);
        run.events.extend(changes.iter().map(|change| rate_control::event(change, &self.plan)));
        let losses = fanout.finish(&run, log_lost);
        let event = |loss: &Loss| RunEvent { at: run.elapsed, text: loss.text.clone() };
        let events: Vec<_> = losses.iter().map(event).collect();
        run.events.extend(events);
        Ok(Recorded { run, losses, scripts: Vec::new() })
    }
}

/// What takes in what the workers hand over.
struct Collecting<'a, E> {
    prepared: &'a Prepared,
    running: RunHandle,
    collector: Collector,
    watching: &'a mut Watching,
    fanout: &'a mut Fanout,
    each: E,
    /// What ends the run early.
    abort: Stop,
    /// Why the run was ended early, if an objective or `each` wanted that.
    reason: Option<String>,
    /// Changes of the rates that the collector knows.
    changes: Vec<RateChange>,
}

/// How long to take messages in.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    /// Until the last worker has ended, whatever is left to take in.
    NoWorker,
    /// Until everything is taken in.
    Over,
}

impl<E: FnMut(&Moment<'_>) -> Option<String>> Collecting<'_, E> {
    fn collect(&mut self, until: Until) -> Result<(), RunError> {
        while !self.collector.is_over() {
            if until == Until::NoWorker && self.running.has_ended() {
                break;
            }
            let Ok(message) = self.running.messages.recv() else {
                let bug = "a worker thread ended unexpectedly; this is a bug";
                return Err(RunError::cannot(bug));
            };
            let spares = &self.running.spares;
            self.collector.take(message, |worker, tally| {
                if let Some(spares) = spares.get(worker) {
                    // A worker that has ended needs no more.
                    let _ = spares.send(tally);
                }
            });
            self.follow_rates();
            while let Some(second) = self.collector.next_second() {
                let wish = self.second(second);
                if wish.is_some() && self.running.stop.asked() == Stop::Go {
                    self.running.stop.stop(self.abort);
                    self.reason = wish;
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
        self.running.join();
        (self.collector, self.reason, self.changes)
    }

    /// What was asked for is known before the seconds in which it was.
    fn follow_rates(&mut self) {
        let Some(rate) = &self.running.rate else { return };
        let changes = rate.changes();
        if changes.len() > self.changes.len() {
            self.collector.follow(self.prepared.plan.with_rates_changed(&changes));
            self.changes = changes;
        }
    }

    /// Shows one second to everybody; a reason to end the run is somebody's wish.
    fn second(&mut self, second: JoinedSecond) -> Option<String> {
        let asked = second.point.asked;
        let fresh = self.watching.take();
        for (at, readings) in &fresh.samples {
            self.fanout.readings(*at, readings);
        }
        let moment = Moment {
            second: &second,
            asked,
            so_far: &self.collector,
            levels: &SeriesTable::default(),
            readings: &fresh.readings,
            watched: self.watching.so_far(),
        };
        let wish = (self.each)(&moment).or_else(|| missed(self.prepared, &moment));
        let collector = &mut self.collector;
        self.fanout.second(second, asked, |free| collector.retire(free));
        wish
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}
