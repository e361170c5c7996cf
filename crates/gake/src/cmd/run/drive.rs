//! The loop that takes in what the workers hand over, second by second.

use std::sync::Arc;

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::record::{Ending, Event as RunEvent, Run};
use gake_engine::{Collector, Event, LogSender, Second, Stop, StopHandle, WorkerContext, start};
use gake_judge::{Objective, View};
use gake_wire::{HttpFactory, Wire};

use super::live::Live;
use super::outputs::Outputs;
use crate::cli::RunArgs;
use crate::console::Console;
use crate::exit::Failure;
use crate::signals::stop_on_signal;

/// Objectives are looked at once this much was measured: the first second of a run is no rate.
const ABORT_AFTER: Nanos = 2 * SECOND;

/// A run that is over.
#[derive(Debug)]
pub struct Driven {
    /// What was recorded.
    pub run: Run,
    /// Whether a signal ended it.
    pub interrupted: bool,
}

/// Starts the run and follows it to its end.
///
/// # Errors
/// When it cannot be started, or a worker is lost.
pub fn drive(
    args: &RunArgs,
    console: &Console,
    plan: &Arc<Plan>,
    wire: Arc<Wire>,
    (mut outputs, log): (Outputs, Option<LogSender>),
) -> Result<Driven, Failure> {
    let seed = args.load.seed;
    let started_unix_ns = outputs.started_unix_ns;
    let make = move |context: WorkerContext| {
        HttpFactory::new(Arc::clone(&wire), context.worker, context.workers, context.clock)
    };
    let running = start(plan, seed, log, make).map_err(Failure::could_not)?;
    let interrupted = stop_on_signal(running.stop.clone())
        .map_err(|error| Failure::could_not(format!("signals cannot be watched: {error}")))?;
    let mut collector = Collector::new(plan, seed, running.spares.len());
    let mut live = Live::new(args, console, plan);
    let mut abort = Abort::new(args, plan, running.stop.clone());
    while !collector.is_over() {
        let Ok(event) = running.events.recv() else {
            return Err(Failure::could_not("a worker thread ended unexpectedly; this is a bug"));
        };
        if let Event::Failed(reason) = event {
            return Err(Failure::could_not(reason));
        }
        collector.take(event, |worker, tally| {
            // A worker that has ended needs no more.
            let _ = running.spares[worker].send(tally);
        });
        while let Some(second) = collector.next_second() {
            let asked = collector.asked_in(second.second);
            outputs.second(&second, asked);
            live.show(console, &second, asked);
            abort.check(&collector, &second);
            collector.retire(second);
        }
    }
    live.clear();
    running.join();
    let ending = match abort.missed {
        Some(objective) => Ending::Aborted(objective),
        None if interrupted.get() => Ending::Interrupted,
        None => Ending::Done,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let log_lost = collector.log_lost();
    let mut run = collector.finish(started_unix_ns, ending, cores);
    for loss in outputs.finish(&run, log_lost) {
        console.warn(&loss);
        run.events.push(RunEvent { at: run.elapsed, text: loss });
    }
    Ok(Driven { run, interrupted: interrupted.get() })
}

/// Stops the run at the first objective that is missed, when the user asked for that.
struct Abort<'a> {
    objectives: &'a [Objective],
    labels: &'a [String],
    warmup: Nanos,
    stop: StopHandle,
    missed: Option<String>,
}

impl<'a> Abort<'a> {
    fn new(args: &'a RunArgs, plan: &'a Plan, stop: StopHandle) -> Self {
        Self {
            objectives: if args.judge.abort { &args.judge.slo } else { &[] },
            labels: &plan.labels,
            warmup: plan.warmup.as_nanos() as Nanos,
            stop,
            missed: None,
        }
    }

    fn check(&mut self, collector: &Collector, second: &Second) {
        let measured = (second.second * SECOND).saturating_sub(self.warmup);
        let over = self.stop.asked() > Stop::Go;
        if self.objectives.is_empty() || over || measured < ABORT_AFTER {
            return;
        }
        let view = View {
            tally: collector.tally(),
            sending: measured,
            span: measured,
            labels: self.labels,
        };
        let missed = self.objectives.iter().map(|o| o.evaluate(&view)).find(|seen| !seen.met);
        if let Some(missed) = missed {
            self.missed = Some(missed.text);
            self.stop.stop(Stop::Drain);
        }
    }
}
