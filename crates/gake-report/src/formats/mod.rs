//! The formats of a summary.

pub mod csv;
pub mod csv_summary;
pub mod hdrplot;
pub(crate) mod headline;
pub mod json;
pub mod junit;
mod latencies;
pub mod markdown;
mod open_connections;
pub mod openmetrics;
pub mod text;
mod xml;

use open_connections::all_open;
