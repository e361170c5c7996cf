//! The target watched while runs go on.

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{Event, Reading, Run, Setting, Watched};
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
    /// When the run that goes on began, on the sampler's clock.
    began: Nanos,
    watched: Watched,
    settings: Vec<Setting>,
    failures: Vec<Event>,
}

impl Watching {
    /// Starts to read the sources.
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
        Ok(Self {
            sampler,
            began: 0,
            watched: Watched::default(),
            settings: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// To be called right before a run, whose clock counts from now on. What was read before it is
    /// of no run.
    pub fn begin(&mut self, outputs: &mut Outputs) {
        let Some(sampler) = &self.sampler else { return };
        self.began = sampler.now();
        for batch in sampler.batches.try_iter() {
            if let Batch::Settings(settings) = batch {
                self.settings.extend(settings);
            }
        }
        outputs.settings(&self.settings);
        self.watched = Watched::default();
        self.watched.settings.clone_from(&self.settings);
        self.failures.clear();
    }

    /// Takes in what was read since the last time, writes it to the run file, and gives it.
    pub fn take(&mut self, outputs: &mut Outputs) -> Vec<Reading> {
        let mut all = Vec::new();
        let Some(sampler) = &self.sampler else { return all };
        for batch in sampler.batches.try_iter() {
            match batch {
                Batch::Readings { at, readings } => {
                    let at = at.saturating_sub(self.began);
                    outputs.watched(at, &readings);
                    self.watched.add(at, &readings);
                    all.extend(readings);
                }
                Batch::Settings(settings) => self.settings.extend(settings),
                Batch::Failed { at, reason } => {
                    let at = at.saturating_sub(self.began);
                    self.failures.push(Event { at, text: reason });
                }
            }
        }
        all
    }

    /// What was read in this run so far.
    pub fn so_far(&self) -> &Watched {
        &self.watched
    }

    /// Gives a run that is over what was read in it.
    pub fn end(&mut self, outputs: &mut Outputs, run: &mut Run) {
        self.take(outputs);
        run.watched = std::mem::take(&mut self.watched);
        run.events.append(&mut self.failures);
    }
}
