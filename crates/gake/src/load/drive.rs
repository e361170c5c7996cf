//! The loop that takes in what the workers hand over, second by second.

use std::sync::Arc;

use gake_core::plan::Plan;
use gake_core::record::{Ending, Run};
use gake_engine::{Collector, Event, LogSender, Second, Stop, WorkerContext, start};
use gake_wire::{HttpFactory, Wire};

use crate::exit::Failure;
use crate::signals::Signals;

/// What is to be run.
#[derive(Debug)]
pub struct Job<'a> {
    /// What is asked.
    pub plan: &'a Arc<Plan>,
    /// What is sent, and where.
    pub wire: &'a Arc<Wire>,
    /// Makes Poisson arrivals repeatable.
    pub seed: u64,
    /// When the run starts, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// Where every outcome goes, when somebody wants each.
    pub log: Option<LogSender>,
}

/// One second of a run that goes on.
#[derive(Debug)]
pub struct Moment<'a> {
    /// What was recorded in it.
    pub second: &'a Second,
    /// Arrivals that the plan asked for in it.
    pub asked: Option<f64>,
    /// The run so far.
    pub so_far: &'a Collector,
}

/// A run that is over.
#[derive(Debug)]
pub struct Driven {
    /// What was recorded, and why it ended.
    pub run: Run,
    /// Outcomes that the log could not take in time.
    pub log_lost: u64,
}

/// Runs a job to its end, and shows each second to `each`, which may answer with a reason to end
/// the run early: no new arrivals, then the drain.
///
/// # Errors
/// When it cannot be started, or a worker is lost.
pub fn drive(
    job: Job<'_>,
    signals: Option<&Signals>,
    mut each: impl FnMut(Moment<'_>) -> Option<String>,
) -> Result<Driven, Failure> {
    let wire = Arc::clone(job.wire);
    let make = move |context: WorkerContext| {
        HttpFactory::new(Arc::clone(&wire), context.worker, context.workers, context.clock)
    };
    let running = start(job.plan, job.seed, job.log, make).map_err(Failure::could_not)?;
    if let Some(signals) = signals {
        signals.stop_with(running.stop.clone());
    }
    let mut collector = Collector::new(job.plan, job.seed, running.spares.len());
    let mut reason = None;
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
            let wish = each(Moment { second: &second, asked, so_far: &collector });
            collector.retire(second);
            if wish.is_some() && running.stop.asked() == Stop::Go {
                running.stop.stop(Stop::Drain);
                reason = wish;
            }
        }
    }
    running.join();
    let ending = match reason {
        Some(reason) => Ending::Aborted(reason),
        None if signals.is_some_and(Signals::came) => Ending::Interrupted,
        None if ran_out(job.wire) => Ending::OutOfTargets,
        None => Ending::Done,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let log_lost = collector.log_lost();
    Ok(Driven { run: collector.finish(job.started_unix_ns, ending, cores), log_lost })
}

fn ran_out(wire: &Wire) -> bool {
    wire.settings.feed.as_ref().is_some_and(|feed| feed.is_over())
}
