//! Is the run valid, were the objectives met, what was the limit?
//!
//! Pure: facts in ([`Run`], from the record), judgement out ([`Verdict`]). Nothing here fires,
//! prints, reads a clock or opens a socket. Every rule reports the numbers it decided on, and
//! every threshold is a named constant beside its rule.

#![forbid(unsafe_code)]

pub mod advice;
mod agents;
mod causes;
pub mod compare;
pub mod finding;
mod lanes;
mod nothing_ok;
pub mod objective;
pub mod overload;
pub mod queueing;
mod random;
mod reconcile;
pub mod saturation;
pub mod search;
pub mod stats;
pub mod usl;
pub mod validity;
mod verdict;

pub use advice::advice;
pub use agents::{agent_lines, agent_record};
pub use causes::{Cause, Causes};
pub use finding::{Finding, Rank};
pub use nothing_ok::NothingOk;
pub use objective::{
    Bad, Bound, Clause, Evaluation, Objective, ObjectiveError, ScenarioView, Unit, View,
};
pub use reconcile::{Writes, reconcile};
pub use stats::trusted;
pub use validity::{Reason, Validity};
pub use verdict::{Conclusion, Summary, Verdict, judge};

#[cfg(doc)]
use gake_core::record::Run;
#[cfg(test)]
mod testing;
