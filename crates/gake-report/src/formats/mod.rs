//! The formats of a summary.

pub mod csv;
pub mod csv_summary;
pub mod hdrplot;
pub(crate) mod headline;
pub mod json;
pub mod junit;
mod latencies;
pub mod markdown;
mod opening;
pub mod openmetrics;
pub mod text;
mod xml;

use opening::all_open;
