//! Metrics that are not known at compile time: those of scripts and embedding programs.
//!
//! A metric is a named counter, gauge, rate or trend ([`Definition`], known to a [`Registry`]
//! before the run). Its samples carry tags; one metric under one set of tags is a series. A worker
//! interns each series once, in its [`SeriesTable`], and from then on pays an index. Tables of
//! workers, seconds and agents are joined by name and tags, never by index.

mod definition;
mod exact;
mod table;
mod tags;
mod value;

/// The rate of checks: each sample says whether a check passed, and its tag `check` which.
pub const CHECKS: &str = "checks";

pub use definition::{DefineError, Definition, MetricKind, MetricUnit, Registry};
pub use table::{MAX_SERIES, SeriesId, SeriesKey, SeriesTable};
pub use tags::Tags;
pub use value::SeriesValue;

#[cfg(test)]
mod tests;
