//! Errors of fleets.

/// An error of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The NATS server cannot be used.
    #[error("NATS at {server}: {why}")]
    Nats {
        /// The server, without credentials.
        server: String,
        /// The reason.
        why: String,
    },
    /// Too few agents are suitable for the run.
    #[error("{found} of {wanted} agents are available{}", listed(.refusals))]
    TooFew {
        /// Number of suitable agents.
        found: usize,
        /// Number of requested agents.
        wanted: usize,
        /// Reasons against others, in sentences.
        refusals: Vec<String>,
    },
    /// The wait for agents was interrupted.
    #[error("interrupted while waiting for agents")]
    Interrupted,
    /// An agent refuses the run.
    #[error("agent {agent} refuses the run: {why}")]
    Refused {
        /// The agent.
        agent: String,
        /// The reason, in a sentence.
        why: String,
    },
    /// The clock of an agent is not usable.
    #[error("agent {agent} {why}")]
    Clock {
        /// The agent.
        agent: String,
        /// The reason, as a sentence without its subject.
        why: String,
    },
    /// No coordinator or agent has the run.
    #[error("there is no run {run:?}; `gake fleet ls` shows the runs of agents")]
    NoRun {
        /// Its id.
        run: String,
    },
    /// The run has no journal with which another process could take over.
    #[error(
        "there is no journal of run {run:?}: it is over, it is at another server, or that server has \
         no JetStream"
    )]
    NoJournal {
        /// Its id.
        run: String,
    },
    /// The run has a coordinator.
    #[error("run {run} has a coordinator; `gake fleet stop {run}` ends it")]
    HasCoordinator {
        /// Its id.
        run: String,
    },
    /// There is no such agent.
    #[error("there is no agent {name:?}; `gake fleet ls` lists agents")]
    NoAgent {
        /// Its name.
        name: String,
    },
    /// The spec cannot be run by a fleet.
    #[error("a fleet cannot run this: {0}")]
    Spec(String),
    /// The token cannot be used.
    #[error("the fleet's token {0}")]
    Token(&'static str),
    /// An error of the system.
    #[error("{0}")]
    System(String),
}

/// The refusals, or a hint if there were none.
fn listed(refusals: &[String]) -> String {
    if refusals.is_empty() {
        return "; `gake fleet ls` lists the agents of this server, account and token".to_owned();
    }
    refusals.iter().map(|refusal| format!("; {refusal}")).collect()
}
