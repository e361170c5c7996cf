//! gake as another tool: its flags, defaults and output, on our engine.
//!
//! A personality turns the tool's flags into the spec of a run
//! ([`RunSpec`](gake_core::spec::RunSpec)), runs it, and prints as the tool does. What
//! it cannot honour it refuses by name. The tools are behind the feature `tools`.

pub mod flags;
pub mod go_errors;
mod native_result;

#[cfg(feature = "tools")]
mod ab;
#[cfg(feature = "tools")]
mod h2load;
#[cfg(feature = "tools")]
mod hey;
#[cfg(feature = "tools")]
mod nighthawk;
#[cfg(feature = "tools")]
mod oha;
#[cfg(feature = "tools")]
mod outcome_stats;
#[cfg(feature = "tools")]
mod spectrum;
#[cfg(feature = "tools")]
mod spread;
#[cfg(all(test, feature = "tools"))]
mod testing;
#[cfg(feature = "tools")]
mod tool_run;
#[cfg(feature = "tools")]
mod vegeta;
#[cfg(feature = "tools")]
mod wrk;

pub use native_result::NativeResult;

use gake_session::{Console, Exit, Failure};

/// How a personality runs: the tool's arguments, gake's own result, and the streams.
pub type Personality = fn(&[String], &NativeResult, &Console) -> Result<Exit, Failure>;

/// The tools, by the names under which they are called.
#[cfg(feature = "tools")]
pub const TOOLS: &[(&str, Personality)] = &[
    ("ab", ab::main),
    ("h2load", h2load::main),
    ("hey", hey::main),
    ("nighthawk_client", nighthawk::main),
    ("oha", oha::main),
    ("vegeta", vegeta::main),
    ("wrk", wrk::wrk),
    ("wrk2", wrk::wrk2),
];
