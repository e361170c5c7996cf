//! Judges a run: whether it is valid, whether it met its objectives, what limited it.
//!
//! Pure: a [`Run`] in, a [`Verdict`] out. Nothing here fires, prints, reads a clock or opens a
//! socket. Every rule reports the numbers it decided on, and every threshold is a named constant
//! beside its rule.

#![forbid(unsafe_code)]

pub mod advice;
mod agents;
mod causes;
pub mod compare;
pub mod departures;
pub mod finding;
mod lanes;
mod nothing_ok;
pub mod objective;
pub mod overload;
mod probe;
pub mod queueing;
mod random;
mod reconcile;
pub mod saturation;
pub mod search;
pub mod stats;
mod together;
pub mod unloaded;
pub mod usl;
pub mod validity;
mod verdict;

pub use advice::advice;
pub use agents::{agent_lines, agent_record};
pub use causes::{Cause, Causes};
pub use finding::{Finding, Rank};
pub use nothing_ok::NothingOk;
pub use objective::{
    BadCount, Clause, ClauseBound, Evaluation, Objective, ObjectiveError, RunView, ScenarioView,
    ValueUnit,
};
pub use probe::{probe_after, probe_together};
pub use reconcile::{WriteCounts, reconcile};
pub use stats::trusted;
pub use together::{PROBE_GROUP, PROBE_TOGETHER};
pub use validity::{Reason, Validity};
pub use verdict::{Conclusion, Summary, Verdict, judge};

#[cfg(doc)]
use gake_core::record::Run;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod testing;
