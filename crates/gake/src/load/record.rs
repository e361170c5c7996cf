//! A run with all that is kept of it: driven, watched and written.

use gake_core::record::{Event, Reading, Run, Watched};

use super::{Job, Moment, Outputs, Watching, drive};
use crate::exit::Failure;
use crate::signals::Signals;

/// A run that is over, its files closed.
#[derive(Debug)]
pub struct Recorded {
    /// What was recorded, and why it ended. What the files lost is among its events.
    pub run: Run,
    /// What the files lost, a sentence each.
    pub losses: Vec<String>,
    /// Outcomes that the job's log could not take in time.
    pub log_lost: u64,
}

/// Runs a job to its end as [`drive`] does, samples the target meanwhile and writes the files.
/// `each` sees every second, what was read of the target in it, and all that was read so far; it
/// may answer with a reason to end the run early.
///
/// # Errors
/// When it cannot be started, or a worker is lost.
pub fn record(
    job: Job<'_>,
    signals: Option<&Signals>,
    watching: &mut Watching,
    mut outputs: Outputs,
    mut each: impl FnMut(Moment<'_>, &[Reading], &Watched) -> Option<String>,
) -> Result<Recorded, Failure> {
    watching.begin(&mut outputs);
    let driven = drive(job, signals, |moment| {
        outputs.second(moment.second, moment.asked);
        let readings = watching.take(&mut outputs);
        each(moment, &readings, watching.so_far())
    })?;
    let mut run = driven.run;
    watching.end(&mut outputs, &mut run);
    let losses = outputs.finish(&run, driven.log_lost);
    let event = |text: &String| Event { at: run.elapsed, text: text.clone() };
    let events: Vec<_> = losses.iter().map(event).collect();
    run.events.extend(events);
    Ok(Recorded { run, losses, log_lost: driven.log_lost })
}
