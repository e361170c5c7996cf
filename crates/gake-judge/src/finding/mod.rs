//! The limits of a run: named statements with evidence, each with one sentence of advice and the
//! tool that shows the same number.
//!
//! A rule returns nothing without sufficient evidence: a healthy run has no finding, and a problem
//! without a cause is `unexplained`. To add one, write a function in the file of its group and list
//! it in `RULES`.

mod bandwidth;
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
mod places;
mod server;
mod server_queue;
mod symptoms;
mod syns;
mod target;
mod trend;
mod unexplained;
mod waits;

use gake_core::record::Run;

use crate::nothing_ok::NothingOk;
use crate::objective::Evaluation;
use facts::RunFacts;
pub(crate) use generator::{THROTTLED, THROTTLED_MIN};
pub use server::served_at_once;

/// One named, evidenced statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Its stable name.
    pub id: &'static str,
    /// The observation, in a sentence with numbers.
    pub evidence: String,
    /// One sentence of advice.
    pub advice: String,
    /// Another tool that shows the same number.
    pub check: String,
    /// Its role in the run.
    pub rank: Rank,
    /// How many requests the target serves at once, if that is the limit and known.
    pub served: Option<f64>,
}

/// The role of a finding in the run. Findings are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It limited the run.
    Cause,
    /// It is an effect of the limit.
    Symptom,
    /// It was observed, but does not explain the limit.
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

/// Advice, and the check, are a line each of a terminal of 80 columns, where the evidence takes
/// about two.
const ADVICE_CHARS: usize = 74;
const CHECK_CHARS: usize = 67;

impl Finding {
    fn new(id: &'static str, evidence: String, advice: &str, check: &str) -> Self {
        debug_assert!(advice.chars().count() <= ADVICE_CHARS, "{id}: shorten {advice:?}");
        debug_assert!(check.chars().count() <= CHECK_CHARS, "{id}: shorten {check:?}");
        let (advice, check) = (advice.to_owned(), check.to_owned());
        Self { id, evidence, advice, check, rank: Rank::Cause, served: None }
    }

    /// Whether it comes from inside the target or its database. A full accept queue is seen from
    /// outside and does not show why the target accepts no more.
    fn is_from_inside(&self) -> bool {
        (self.id.starts_with("target_") && self.id != "target_overflows")
            || self.id.starts_with("db_")
    }

    /// Whether it is about how many requests the target serves at once.
    pub(crate) fn is_number_served(&self) -> bool {
        [server::POOL_QUEUEING, server::ONE_AT_A_TIME].contains(&self.id)
    }

    fn symptom(self) -> Self {
        Self { rank: Rank::Symptom, ..self }
    }

    fn context(self) -> Self {
        Self { rank: Rank::Context, ..self }
    }
}

/// The id of the finding that no rule explains the run.
pub(crate) const UNEXPLAINED: &str = "unexplained";

/// Findings that explain slow responses, and never why all requests fail.
const GENERATORS_OWN: [&str; 2] = ["run_delay", "generator_cpu"];

/// The rules, in the order of their findings: limits of the generator first; then the target from
/// the inside out, since a full resource inside fills those around it; then what only shows
/// outside.
const RULES: [fn(&RunFacts<'_>) -> Option<Finding>; 46] = [
    connections::unreachable,
    generator::ports,
    generator::descriptors,
    generator::quota,
    target::ended,
    target::stopped,
    pattern::hang,
    limiter::rate_limit,
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
    limiter::load_shed,
    limiter::wait_limit,
    target::descriptors,
    target::connections,
    connections::limit,
    server::last_come,
    http2::streams,
    http2::window,
    listener::overflows,
    target::silent,
    listener::accept_queue,
    connections::retransmits,
    bandwidth::bandwidth,
    server::pool_queueing,
    pattern::delayed_ack,
    pattern::stalls,
    pattern::step,
    trend::drift,
    symptoms::blocked,
    symptoms::syn_drops,
    symptoms::errors,
    symptoms::bodies,
    symptoms::redirects,
    symptoms::closes,
    symptoms::timeouts,
    generator::run_delay,
];

/// The findings of `run`; `objectives` are its evaluated objectives.
#[must_use]
pub fn find(run: &Run, objectives: &[Evaluation]) -> Vec<Finding> {
    let facts = RunFacts { run, objectives };
    let mut findings: Vec<Finding> = Vec::new();
    for finding in RULES.iter().filter_map(|rule| rule(&facts)) {
        if findings.iter().all(|known| known.id != finding.id) {
            findings.push(finding);
        }
    }
    // No guess at what requests wait for inside the target where it is known.
    if findings.iter().any(Finding::is_from_inside) {
        findings.retain(|finding| !finding.is_number_served());
    }
    // What a target is given of its cores varies over time by itself.
    if findings.iter().any(|finding| ["target_cpu_quota", "target_starved"].contains(&finding.id)) {
        let steps = findings.iter_mut().filter(|finding| finding.id == "step");
        steps.for_each(|finding| finding.rank = Rank::Context);
    }
    // A restart refuses connections; no limit does.
    if findings.iter().any(|finding| finding.id == "target_ended") {
        findings.retain(|finding| finding.id != "connection_limit");
    }
    findings.sort_by_key(|finding| finding.rank);
    inside_first(&mut findings);
    connections_before_pools(&mut findings, &facts);
    refusals_before_cpu(&mut findings, &facts);
    own_delay_last(&mut findings, &facts);
    // The cause is the headline; the generator's delay has nothing to do with it.
    if NothingOk::of(run).is_some() {
        findings.retain(|finding| !GENERATORS_OWN.contains(&finding.id));
        return findings;
    }
    if let Some(finding) = unexplained::find(&facts, &findings) {
        findings.insert(0, finding);
    } else if let Some(symptom) = findings.first_mut().filter(|f| f.rank == Rank::Symptom) {
        symptom.advice.push_str(&format!("; to know more: {}", unexplained::watch_advice(&facts)));
    }
    findings
}

/// Findings that no delay of the generator or of its machine makes: what the target refuses, closes
/// or does not accept, its patterns over time.
const NO_DELAY: [&str; 10] = [
    "rate_limit",
    "load_shed",
    "wait_limit",
    "connection_limit",
    "target_hang",
    "stalls",
    "delayed_ack",
    "step",
    "warm_up",
    "drift",
];

/// From this share of failures on they are what matters, and from this one they are most responses.
const FAILING: f64 = 0.1;
const MOST: f64 = 0.5;

/// Makes a finding the last, as context.
fn put_behind(findings: &mut Vec<Finding>, at: usize) {
    let finding = findings.remove(at).context();
    findings.push(finding);
}

/// Puts a shortage of cores on the generator's machine behind findings that it does not explain.
fn own_delay_last(findings: &mut Vec<Finding>, facts: &RunFacts<'_>) {
    const OWN: [&str; 4] = ["run_delay", "shared_cores", "generator_cpu", "target_starved"];
    let explains = generator::explains_excess(facts);
    let is_first = |finding: &Finding| {
        let is_failing = ["server_errors", "server_closes"].contains(&finding.id)
            && facts.of_sent(facts.counts().failed) >= FAILING;
        let waits = finding.served.is_some() && !explains;
        NO_DELAY.contains(&finding.id) || is_failing || waits
    };
    let Some(last) = findings.iter().rposition(is_first) else { return };
    let Some(own) = findings.iter().position(|finding| OWN.contains(&finding.id)) else { return };
    if own < last {
        put_behind(findings, own);
    }
}

/// Puts a full CPU behind refusals that are most responses of a closed loop: refused users return at
/// once, and refusing them again and again takes the CPU.
fn refusals_before_cpu(findings: &mut Vec<Finding>, facts: &RunFacts<'_>) {
    const CPU: [&str; 3] = ["target_cpu", "target_thread", "shared_cores"];
    if !facts.is_closed() || facts.of_sent(facts.counts().failed) < MOST {
        return;
    }
    let Some(shed) = findings.iter().position(|finding| finding.id == "load_shed") else { return };
    if let Some(cpu) = findings[..shed].iter().position(|finding| CPU.contains(&finding.id)) {
        put_behind(findings, cpu);
    }
}

/// Puts the bound on connections before full pools when most failures come from connections.
fn connections_before_pools(findings: &mut Vec<Finding>, facts: &RunFacts<'_>) {
    let failed = facts.faults(|fault| fault.is_before_connection() && !fault.is_generators());
    let at = |id: &str| findings.iter().position(|finding| finding.id == id);
    let (Some(pool), Some(connections)) = (at("target_pool"), at("target_connections")) else {
        return;
    };
    if pool < connections && failed > 0 && 2 * failed >= facts.counts().failed {
        let finding = findings.remove(connections);
        findings.insert(pool, finding);
    }
}

/// Puts the places that a server has before the queue of connections that fills since they are
/// taken. Without their number the queue itself may be the limit.
fn inside_first(findings: &mut Vec<Finding>) {
    const IN_FRONT: [&str; 4] =
        ["target_overflows", "accept_queue", "connection_limit", "target_silent"];
    let places = findings.iter().position(|finding| finding.served.is_some());
    let queue = findings.iter().position(|finding| IN_FRONT.contains(&finding.id));
    if let (Some(places), Some(queue)) = (places, queue)
        && queue < places
    {
        let finding = findings.remove(places);
        findings.insert(queue, finding);
    }
}

/// The share of their time in which the workers of `run` waited for a core, if they starved.
pub(crate) fn starving_workers(run: &Run) -> Option<f64> {
    let facts = RunFacts { run, objectives: &[] };
    generator::delayed(&facts).filter(|_| generator::starves(&facts))
}

/// Whether the target had CPU to spare in `run`, so that requests waited for something else; `None`
/// when unknown.
#[must_use]
pub fn target_is_idle(run: &Run) -> Option<bool> {
    cores::idle(&RunFacts { run, objectives: &[] })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
