//! Why a fleet cannot do something.

/// Why a fleet cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The NATS server cannot be used.
    #[error("NATS at {server}: {why}")]
    Nats {
        /// The server, without credentials.
        server: String,
        /// What is wrong.
        why: String,
    },
    /// There are too few agents that can do the run.
    #[error("{found} of {wanted} agents are there{}", listed(.refusals))]
    TooFew {
        /// Agents that would do it.
        found: usize,
        /// Agents that were asked for.
        wanted: usize,
        /// Why others do not, in sentences.
        refusals: Vec<String>,
    },
    /// Whoever wanted the run does not wait for agents any more.
    #[error("interrupted while agents were waited for")]
    Interrupted,
    /// An agent refuses the run.
    #[error("agent {agent} refuses the run: {why}")]
    Refused {
        /// The agent.
        agent: String,
        /// Why, in a sentence.
        why: String,
    },
    /// The clock of an agent does not fit.
    #[error("agent {agent} {why}")]
    Clock {
        /// The agent.
        agent: String,
        /// What its clock does, in a sentence without its subject.
        why: String,
    },
    /// Nobody has the run.
    #[error("nobody has the run {run:?}; `gake fleet ls` shows those of the agents")]
    NoRun {
        /// Its id.
        run: String,
    },
    /// The run left nothing from which another process could go on.
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
    #[error("agent {name:?} is not there; `gake fleet ls` shows who is")]
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
    /// The system is in the way.
    #[error("{0}")]
    System(String),
}

/// Why others do not; where nobody refused, how to see who is there.
fn listed(refusals: &[String]) -> String {
    if refusals.is_empty() {
        return "; `gake fleet ls` shows those that this server, account and token see".to_owned();
    }
    refusals.iter().map(|refusal| format!("; {refusal}")).collect()
}
