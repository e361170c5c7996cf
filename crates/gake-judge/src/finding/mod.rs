//! What limited a run: named statements with evidence, each with one sentence of advice and the
//! tool that shows the same number.
//!
//! A rule looks at the facts and says nothing unless they speak: a healthy run has no finding, and
//! where evidence is missing the answer is `unexplained`. To add one, write a function in the file
//! of its group and name it in `RULES`.

mod connections;
mod cores;
mod database;
mod facts;
mod generator;
mod http2;
mod leak;
mod limiter;
mod listener;
mod pattern;
mod server;
mod symptoms;
mod syns;
mod target;
mod unexplained;

use gake_core::record::Run;

use crate::objective::Evaluation;
use facts::Facts;
pub(crate) use generator::{THROTTLED, THROTTLED_MIN};
pub use server::served_at_once;

/// One named, evidenced statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its stable name.
    pub id: &'static str,
    /// What was seen, in a sentence with numbers.
    pub evidence: String,
    /// What to try, in a sentence.
    pub advice: String,
    /// Where the same number can be read with another tool.
    pub check: String,
    /// Its role in the run.
    pub rank: Rank,
}

/// The role of a finding in the run. Findings are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It limited the run.
    Cause,
    /// It is an effect of the limit.
    Symptom,
    /// It was observed, but explains nothing.
    Context,
}

impl Rank {
    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Symptom => "symptom",
            Self::Context => "context",
        }
    }
}

impl Finding {
    fn new(id: &'static str, evidence: String, advice: &str, check: &str) -> Self {
        let (advice, check) = (advice.to_owned(), check.to_owned());
        Self { id, evidence, advice, check, rank: Rank::Cause }
    }

    /// Whether it is what the target or its database said; a full accept queue is seen from
    /// without, and says nothing of why the target accepts no more.
    fn is_seen_inside(&self) -> bool {
        (self.id.starts_with("target_") && self.id != "target_overflows")
            || self.id.starts_with("db_")
    }

    fn symptom(self) -> Self {
        Self { rank: Rank::Symptom, ..self }
    }

    fn context(self) -> Self {
        Self { rank: Rank::Context, ..self }
    }
}

/// The finding that nothing explains a run.
pub(crate) const UNEXPLAINED: &str = "unexplained";

/// The rules in the order in which findings are listed. What makes the figures not the target's
/// comes first; then the target from the inside out, since what is full inside fills what is
/// around it; then what can be seen from outside alone.
const RULES: [fn(&Facts<'_>) -> Option<Finding>; 40] = [
    connections::unreachable,
    generator::ports,
    generator::descriptors,
    generator::quota,
    target::ended,
    pattern::hang,
    database::refused,
    database::churn,
    target::memory,
    target::collector,
    target::disk,
    cores::find,
    cores::starved,
    database::locks,
    target::lock,
    leak::leak,
    database::pool,
    target::pool,
    target::descriptors,
    target::connections,
    connections::limit,
    limiter::rate_limit,
    http2::streams,
    http2::window,
    listener::overflows,
    target::silent,
    listener::accept_queue,
    connections::retransmits,
    server::bandwidth,
    server::pool_queueing,
    pattern::delayed_ack,
    pattern::stalls,
    pattern::step,
    symptoms::blocked,
    symptoms::syn_drops,
    symptoms::errors,
    symptoms::bodies,
    symptoms::closes,
    symptoms::timeouts,
    generator::run_delay,
];

/// What limited `run`; `objectives` are its objectives with their values.
#[must_use]
pub fn find(run: &Run, objectives: &[Evaluation]) -> Vec<Finding> {
    let facts = Facts { run, objectives };
    let mut findings: Vec<Finding> = Vec::new();
    for finding in RULES.iter().filter_map(|rule| rule(&facts)) {
        if findings.iter().all(|known| known.id != finding.id) {
            findings.push(finding);
        }
    }
    // What requests wait for inside the target is not guessed where it is known.
    if findings.iter().any(Finding::is_seen_inside) {
        let guessed = [server::POOL_QUEUEING, server::ONE_AT_A_TIME];
        findings.retain(|finding| !guessed.contains(&finding.id));
    }
    findings.sort_by_key(|finding| finding.rank);
    if let Some(finding) = unexplained::find(&facts, &findings) {
        findings.insert(0, finding);
    } else if let Some(symptom) = findings.first_mut().filter(|f| f.rank == Rank::Symptom) {
        symptom.advice.push_str(&format!("; to know more, {}", unexplained::watch(&facts)));
    }
    findings
}

/// Whether the target had CPU to spare in `run`, so that requests waited for something else; `None`
/// when that is not known.
#[must_use]
pub fn target_is_idle(run: &Run) -> Option<bool> {
    cores::idle(&Facts { run, objectives: &[] })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
