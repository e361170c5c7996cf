//! The flags that any run has, whatever the command: destinations of results and figures, the live
//! page, the history, the fleet, traces, redaction.

mod destinations;
mod embedded;
pub mod fleet;
pub mod history;
#[cfg(feature = "fleet")]
mod manifest;
pub mod output;
mod redaction;
mod spec;
mod trace;
pub mod values;
mod web;
pub mod words;

pub use destinations::{OutputArgs, SinkArgs};
pub use embedded::EmbeddedArgs;
pub use fleet::{AttachArgs, FleetArgs, NatsArgs, OnLossArg};
pub use history::{InconclusiveBaseline, SaveArgs};
#[cfg(feature = "fleet")]
pub use manifest::ManifestArgs;
pub use output::{OutputSpec, ResultFormat};
pub use redaction::RedactionArgs;
pub use spec::SpecFormat;
pub use trace::TraceArgs;
pub use web::WebArgs;
pub use words::words;
