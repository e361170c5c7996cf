//! What limited a run: named, evidenced statements, each with one sentence of what to try.
//!
//! A rule looks at the facts and says nothing unless they speak: a healthy run has no finding. To
//! add one, write a function in the file of its group and name it in `RULES`.

mod connections;
mod generator;
mod server;
mod target;
mod unknown;

use gake_core::record::{Counts, Fault, Histogram, Metric, Run};

use crate::objective::Evaluation;
use crate::stats::{mean_in_flight, share};

/// One named, evidenced statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its stable name.
    pub id: &'static str,
    /// What was seen, in a sentence with numbers.
    pub evidence: String,
    /// What to try, in a sentence.
    pub advice: String,
}

impl Finding {
    fn new(id: &'static str, evidence: String, advice: &str) -> Self {
        Self { id, evidence, advice: advice.to_owned() }
    }
}

/// The finding that nothing explains a run.
pub(crate) const UNKNOWN: &str = "unknown";

/// What rules look at.
struct Facts<'a> {
    run: &'a Run,
}

/// The rules in the order in which findings are told: the generator's own limits first, for they
/// explain the rest.
const RULES: [fn(&Facts<'_>) -> Option<Finding>; 21] = [
    generator::cpu,
    generator::run_delay,
    generator::ports,
    generator::descriptors,
    target::overflows,
    target::descriptors,
    target::connections,
    target::pool,
    target::db_pool,
    target::cpu,
    connections::unreachable,
    connections::syn_drops,
    connections::accept_queue,
    connections::connection_limit,
    connections::retransmits,
    connections::blocked,
    server::pool_queueing,
    server::bandwidth,
    server::errors,
    server::closes,
    server::timeouts,
];

/// What limited `run`; `objectives` are its objectives with their values.
#[must_use]
pub fn find(run: &Run, objectives: &[Evaluation]) -> Vec<Finding> {
    let facts = Facts { run };
    let mut findings: Vec<_> = RULES.iter().filter_map(|rule| rule(&facts)).collect();
    if findings.is_empty() {
        findings.extend(unknown::find(&facts, objectives));
    }
    findings
}

/// Failures below this share of the requests are no finding.
const FAILURES_MIN: f64 = 0.001;

impl Facts<'_> {
    fn counts(&self) -> &Counts {
        &self.run.tally.counts
    }

    fn latency(&self, metric: Metric) -> &Histogram {
        self.run.tally.latency.of(metric)
    }

    fn faults(&self, which: impl Fn(Fault) -> bool) -> u64 {
        self.run.tally.faults_where(which)
    }

    /// Of everything sent.
    fn of_sent(&self, count: u64) -> f64 {
        share(count, self.counts().sent)
    }

    /// Connections opened and attempts that failed.
    fn attempts(&self) -> u64 {
        self.counts().opened + self.faults(Fault::is_before_connection)
    }

    /// Answers of any status.
    fn answers(&self) -> u64 {
        self.run.tally.statuses().iter().map(|status| status.1).sum()
    }

    fn in_flight(&self) -> f64 {
        mean_in_flight(self.run)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
