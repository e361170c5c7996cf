//! Renders what was recorded and judged: text and Markdown for people, JSON, CSV, JUnit and
//! OpenMetrics for programs, the run file from which every format can be rendered again, and the
//! per-request log.
//!
//! Nothing here prints: writers take an [`std::io::Write`] or return a `String`.

#![forbid(unsafe_code)]

pub mod compare;
pub mod experiment;
pub mod find;
mod format;
pub mod formats;
pub mod html;
mod json_types;
pub mod log;
mod metric_sections;
pub mod runfile;
pub mod vegeta;

#[cfg(test)]
mod testing;

pub use format::{Format, FormatError, write};
pub use formats::text::{Style, failed_bodies, level};
pub use log::{LogFormat, RequestLog};
pub use runfile::{
    PartialRun, ReadError, RunFile, RunSeconds, Second, Warning, join_files, merge_runs, read_run,
};
