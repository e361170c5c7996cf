//! What an experiment is asked for.

use gake_session::descriptors;
use gake_session::fleet::FleetMaker;
use gake_users::UserStore;

use crate::budget::{ConnectionBudget, Ends, MachineLimits};
use crate::definition::StepTarget;

/// What is asked for.
#[derive(Debug, Default)]
pub struct ExperimentSettings {
    /// The URL of the user's own server; the lab without one.
    pub target: Option<String>,
    /// What is sampled beside it.
    pub watch: Vec<String>,
    /// A real database, as the user wrote it and as it is shown.
    pub database: Option<(String, UserStore)>,
    /// Whether times and numbers are scaled down.
    pub quick: bool,
    /// What the names of the steps have in them.
    pub only: Option<String>,
    /// Whether steps are not shown as they end.
    pub quiet: bool,
    /// What this machine has for connections.
    pub limits: MachineLimits,
}

impl ExperimentSettings {
    /// Whether a step of this name is asked for.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|text| name.contains(text))
    }

    /// Whether steps on this subject are part of the experiment.
    pub(crate) fn has(&self, subject: StepTarget) -> bool {
        match subject {
            StepTarget::Lab => self.target.is_none() && self.database.is_none(),
            StepTarget::Target => self.target.is_some(),
            StepTarget::Any => self.database.is_none(),
            StepTarget::Database => self.database.is_some(),
        }
    }

    /// Connections that there can be.
    pub(crate) fn budget(&self, agents: Option<&FleetMaker>) -> ConnectionBudget {
        let ends = match (agents, &self.target) {
            (Some(agents), _) => Ends::Agents(agents.agents() as u64),
            (None, Some(_)) => Ends::One,
            (None, None) => Ends::Both,
        };
        ConnectionBudget::new(ends, descriptors::raise(), self.limits)
    }
}
