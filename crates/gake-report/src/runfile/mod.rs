//! The run file: an HdrHistogram interval log (version 1.3, V2 compressed histograms in base64)
//! with the plan, counts and events in `#gake {json}` comment lines.
//!
//! It is appended to once per second. A second is complete with its `#gake {"second":...}` line and
//! owns the histograms before that line. A file is therefore readable to the last complete second
//! whatever happened to its writer, and other tools see a plain interval log.

mod assemble;
mod detect;
mod hdr;
mod join;
mod lines;
mod merge;
mod partial_run;
mod read;
mod tag;
mod totals;
mod write;

pub use join::join_files;
pub use merge::merge_runs;
pub use partial_run::PartialRun;
pub use read::{ReadError, RunSeconds, SecondRecord, Warning, read, read_run};
pub use write::{RunFile, RunFileWriter, Second};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_series;
#[cfg(test)]
mod tests_tenths;
