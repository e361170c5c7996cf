//! The settings of an experiment.

use gake_session::descriptors;
use gake_session::fleet::FleetMaker;
use gake_users::UserStore;

use crate::budget::{ConnectionBudget, LoadTopology, MachineLimits};
use crate::definition::StepTarget;

/// The options of an experiment from the command line.
#[derive(Debug, Default)]
pub struct ExperimentSettings {
    /// The URL of the user's own server; `None` is the lab.
    pub target: Option<String>,
    /// Sources to sample during the run.
    pub watch: Vec<String>,
    /// A real database, as the user wrote it, and opened.
    pub database: Option<(String, UserStore)>,
    /// Whether times and numbers are scaled down.
    pub quick: bool,
    /// Runs only steps whose names contain this.
    pub only: Option<String>,
    /// Whether steps are not shown as they end.
    pub quiet: bool,
    /// This machine's limits on connections.
    pub limits: MachineLimits,
}

impl ExperimentSettings {
    /// Whether a step of this name is requested.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|text| name.contains(text))
    }

    /// Whether the experiment includes steps on this target.
    pub(crate) fn has(&self, subject: StepTarget) -> bool {
        match subject {
            StepTarget::Lab => self.target.is_none() && self.database.is_none(),
            StepTarget::Target => self.target.is_some(),
            StepTarget::Any => self.database.is_none(),
            StepTarget::Database => self.database.is_some(),
        }
    }

    /// The connections that are possible.
    pub(crate) fn budget(&self, agents: Option<&FleetMaker>) -> ConnectionBudget {
        let ends = match (agents, &self.target) {
            (Some(agents), _) => LoadTopology::Agents(agents.agents() as u64),
            (None, Some(_)) => LoadTopology::One,
            (None, None) => LoadTopology::Both,
        };
        ConnectionBudget::new(ends, descriptors::raise(), self.limits)
    }
}
