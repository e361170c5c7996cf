//! The target watched while runs go on.

use std::time::Duration;

use gake_core::record::{Event, Run, Watched};
use gake_judge::Objective;
use gake_watch::{Batch, Sampler, Source};

use super::Outputs;
use crate::exit::Failure;

/// Between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// What is watched, if anything is.
#[derive(Debug)]
pub struct Watching {
    sampler: Option<Sampler>,
    watched: Watched,
    failures: Vec<Event>,
}

impl Watching {
    /// Starts to read the sources; to be called right before the run, whose clock this is.
    ///
    /// # Errors
    /// When one cannot be read, or an objective is about the target and there is none.
    pub fn start(sources: &[Source], objectives: &[Objective]) -> Result<Self, Failure> {
        let about_target = objectives.iter().find(|objective| objective.is_about_target());
        if let (Some(objective), []) = (about_target, sources) {
            return Err(Failure::usage(format!(
                "{objective} is about the target itself: add --watch port:8080, pid:1234, \
                 prometheus:URL or actuator:URL"
            )));
        }
        let sampler = match sources {
            [] => None,
            some => Some(Sampler::start(some.to_vec(), EVERY).map_err(Failure::could_not)?),
        };
        Ok(Self { sampler, watched: Watched::default(), failures: Vec::new() })
    }

    /// Takes in what was read since the last time, and writes it to the run file.
    pub fn take(&mut self, outputs: &mut Outputs) {
        let Some(sampler) = &self.sampler else { return };
        for batch in sampler.batches.try_iter() {
            outputs.watched(&batch);
            match batch {
                Batch::Readings { at, readings } => self.watched.add(at, &readings),
                Batch::Settings(settings) => self.watched.settings.extend(settings),
                Batch::Failed { at, reason } => self.failures.push(Event { at, text: reason }),
            }
        }
    }

    /// What was read so far.
    pub fn so_far(&self) -> &Watched {
        &self.watched
    }

    /// Gives the run what was read.
    pub fn finish(mut self, outputs: &mut Outputs, run: &mut Run) {
        self.take(outputs);
        run.watched = self.watched;
        run.events.append(&mut self.failures);
    }
}
