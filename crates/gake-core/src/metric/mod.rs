//! Metrics that are not known at compile time, of scripts and embedding programs.
//!
//! A metric is a named counter, gauge, rate or trend ([`Definition`]). Its samples carry tags; one
//! metric under one set of tags is a series. A worker interns each series once in its
//! [`SeriesTable`] and records by index. Tables are merged by name and tags, never by index.

mod definition;
mod exact;
mod table;
mod tags;
mod value;

/// The rate of passed checks; the tag `check` names the check.
pub const CHECKS: &str = "checks";

pub use definition::{DefineError, Definition, MetricKind, MetricUnit, Registry};
pub use table::{MAX_SERIES, SeriesId, SeriesKey, SeriesTable};
pub use tags::Tags;
pub use value::SeriesValue;

#[cfg(test)]
mod tests;
