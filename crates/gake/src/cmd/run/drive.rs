//! The loop that takes in what the workers hand over, second by second.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::plan::Plan;
use gake_core::record::{Ending, Event as RunEvent, Run};
use gake_engine::{Collector, Event, WorkerContext, start};
use gake_wire::{HttpFactory, Wire};

use super::live::Live;
use crate::cli::RunArgs;
use crate::console::Console;
use crate::exit::Failure;
use crate::signals::stop_on_signal;

/// Files written while the run goes on, created before it so that a bad path costs nothing.
#[derive(Debug)]
pub struct Outputs {}

impl Outputs {
    /// Creates the files asked for.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn create(_args: &RunArgs, _plan: &Plan) -> Result<Self, Failure> {
        Ok(Self {})
    }
}

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
    _outputs: Outputs,
) -> Result<Driven, Failure> {
    let seed = args.load.seed;
    let make = move |context: WorkerContext| {
        HttpFactory::new(Arc::clone(&wire), context.worker, context.workers, context.clock)
    };
    let running = start(plan, seed, None, make).map_err(Failure::could_not)?;
    let started_unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let interrupted = stop_on_signal(running.stop.clone())
        .map_err(|error| Failure::could_not(format!("signals cannot be watched: {error}")))?;
    let mut collector = Collector::new(plan, seed, running.spares.len());
    let mut live = Live::new(args, console, plan);
    let mut events: Vec<RunEvent> = Vec::new();
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
            live.show(console, &second, collector.asked_in(second.second));
        }
    }
    live.clear();
    running.join();
    let ending = if interrupted.get() { Ending::Interrupted } else { Ending::Done };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut run = collector.finish(started_unix_ns, ending, cores);
    run.events.append(&mut events);
    Ok(Driven { run, interrupted: interrupted.get() })
}
