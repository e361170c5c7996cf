//! Text at the edges of gake: durations and numbers as people read and write them (`duration`,
//! `units`), untrusted text (`foreign`, `host`), and secrets in either (`redact`).
//!
//! This crate is pure, and knows no other crate of the workspace.

pub mod duration;
pub mod foreign;
pub mod host;
pub mod redact;
pub mod units;
