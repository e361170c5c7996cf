//! Known performance cliffs, shown step by step on the lab and compared with theory.
//!
//! Each experiment is a file in `experiments/` in the format of [`definition`]; one runner runs
//! them all.

#![forbid(unsafe_code)]

mod alternate;
mod arithmetic;
mod bench;
mod budget;
mod database;
mod definition;
mod expectations;
mod figures;
mod names;
mod plan;
mod proxy;
mod real_database;
mod runner;
mod server;
mod settings;
mod slow_clients;
mod step_servers;
#[cfg(test)]
mod tests;
mod throughput;

use gake_report::experiment::ExperimentReport;
use gake_session::fleet::FleetMaker;
use gake_session::{Console, Failure};
use gake_users::UserStore;

pub use bench::StepError;
pub use budget::MachineLimits;
pub use definition::Experiment;
pub use settings::ExperimentSettings;

use bench::Bench;
use runner::Runner;

/// The experiments, in the order in which they are listed.
///
/// # Errors
/// An error in a file.
pub fn experiments() -> Result<Vec<Experiment>, Failure> {
    let all = definition::FILES.into_iter().map(Experiment::read);
    all.collect::<Result<_, _>>().map_err(Failure::could_not)
}

impl Experiment {
    /// Rejects settings that the experiment does not support.
    ///
    /// # Errors
    /// The unsupported setting.
    pub fn check(&self, settings: &ExperimentSettings) -> Result<(), Failure> {
        let name = &self.name;
        if settings.target.is_some() && !self.takes_target {
            return Err(Failure::usage(format!(
                "{name} changes settings of its server between steps: it runs on the lab only"
            )));
        }
        match &settings.database {
            Some(_) if !self.takes_database => {
                Err(Failure::usage(format!("--db is for users-db: {name} has no users")))
            }
            Some((_, UserStore::Model(_))) => {
                Err(Failure::usage("--db: the model has the settings of each step; leave --db out"))
            }
            _ => Ok(()),
        }
    }

    /// Runs its steps; `agents` run the load if they are given. The report has the completed steps
    /// even if a later one failed.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn run(
        &self,
        settings: &ExperimentSettings,
        agents: Option<FleetMaker>,
        console: &Console,
    ) -> Result<(ExperimentReport, Option<StepError>), Failure> {
        let budget = settings.budget(agents.as_ref());
        let bench = Bench::new(self, settings, agents, console)?;
        let mut runner = Runner::new(self, settings, &budget, bench)?;
        let ended = runner.run();
        Ok(runner.finish(ended))
    }
}
