//! Everything around a run, whatever it fires: the console, signals, sinks, the live page, the
//! history, the status line, watching, the fleet, reconciliation, results and the exit code.
//!
//! [`run::Session`] takes a prepared run to its exit code. The crate writes to the standard streams
//! only through [`Console`], and reads no arguments except for [`origin`].

#![forbid(unsafe_code)]

pub mod announce;
pub mod comparison;
pub mod console;
pub mod debug;
pub mod descriptors;
pub mod exit;
pub mod files;
#[cfg_attr(not(feature = "fleet"), path = "without_fleet.rs")]
pub mod fleet;
pub mod generated_requests;
pub mod history;
pub mod options;
pub mod origin;
pub mod ports;
pub mod proxy;
pub mod random;
#[cfg_attr(not(feature = "shadow"), path = "without_recordings.rs")]
pub mod recording;
pub mod redaction;
pub mod results;
pub mod run;
#[cfg_attr(not(feature = "scripts"), path = "without_scripts.rs")]
pub mod script;
pub mod signals;
pub mod spec_error;
pub mod status_line;
#[cfg_attr(not(feature = "tui"), path = "without_tui.rs")]
pub mod tui;

pub use console::{Color, Console};
pub use exit::{Exit, Failure};
pub use results::{Results, rendered};
pub use signals::Signals;
pub use status_line::StatusLine;
