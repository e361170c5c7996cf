//! The options of a search, and how many connections its trials can have.

use std::time::Duration;

use gake_core::plan::{OTHER_DESCRIPTORS, tables_hold};
use gake_core::schedule::Process;
use gake_judge::search::SearchOptions;
use gake_text::redact::Redactor;

use crate::Interrupt;

/// Options of a capacity search.
#[derive(Debug, Clone)]
pub struct CapacityOptions {
    /// The quantity to search, the time budget, and the precision.
    pub search: SearchOptions,
    /// Load of one user before the search, whose figures do not count.
    pub warmup: Duration,
    /// The arrival process of an open loop.
    pub arrivals: Process,
    /// Connections of an open loop, or users of a script; as many as the objectives require if
    /// `None`. For [`Dimension::Streams`](gake_judge::search::Dimension::Streams), the connections
    /// that the streams share.
    pub connections: Option<usize>,
    /// Maximum number of connections of a trial.
    pub connections_max: usize,
    /// Whether to map the overload: go beyond the capacity and back once it is known.
    pub maps: bool,
    /// Ends the search early.
    pub interrupt: Interrupt,
    /// Hides secrets in shown and stored text.
    pub redactor: Redactor,
}

impl Default for CapacityOptions {
    fn default() -> Self {
        Self {
            search: SearchOptions::default(),
            warmup: Duration::ZERO,
            arrivals: Process::Poisson,
            connections: None,
            connections_max: connections_max(gake_files::table_size(), true, None),
            maps: false,
            interrupt: Interrupt::default(),
            redactor: Redactor::off(),
        }
    }
}

/// Maximum connections of a trial with descriptor tables of `size`: in this process, which may have
/// only one table, or on a number of agents.
#[must_use]
pub fn connections_max(size: usize, has_one_table: bool, agents: Option<usize>) -> usize {
    let one = size.saturating_sub(OTHER_DESCRIPTORS);
    let most = match agents {
        // Each agent is assumed to have the limit of this process.
        Some(agents) => one.saturating_mul(agents),
        None if has_one_table => one,
        None => tables_hold(size),
    };
    most.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_process_may_use_many_descriptor_tables() {
        let most = |has_one_table, agents| connections_max(256, has_one_table, agents);
        assert_eq!([most(true, None), most(false, None)], [192, 2_304]);
        // Agents have one table each.
        assert_eq!([most(false, Some(4)), most(true, Some(4))], [768, 768]);
        assert_eq!(connections_max(10, true, None), 1);
    }
}
