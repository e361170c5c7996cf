//! The flags that surround any run, whatever the command: where results and figures go, the live
//! page, the history, the fleet, traces, redaction.

mod destinations;
pub mod fleet;
pub mod history;
mod manifest;
pub mod output;
mod redaction;
mod trace;
pub mod values;
mod web;
pub mod words;

pub use destinations::{OutputArgs, SinkArgs};
pub use fleet::{FleetArgs, NatsArgs, OnLossArg};
pub use history::SaveArgs;
pub use manifest::ManifestArgs;
pub use output::{Form, OutputSpec};
pub use redaction::RedactionArgs;
pub use trace::TraceArgs;
pub use web::WebArgs;
pub use words::words;
