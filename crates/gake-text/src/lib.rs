//! Text at the edges of gake: durations, counts, rates and sizes as people write them (`duration`,
//! `count`, `rate`, `size`), numbers as people read them (`units`), untrusted text (`foreign`,
//! `host`), and redaction of secrets (`redact`). Pure, and without other crates of the workspace.

#![forbid(unsafe_code)]

pub mod count;
pub mod duration;
pub mod foreign;
pub mod host;
pub mod rate;
pub mod redact;
pub mod size;
pub mod units;
