//! Exports figures during a run to databases, monitoring systems and files.
//!
//! An [`Exporter`] is a format (`format/`), which turns figures into bytes, and a carrier
//! (`carrier/`), which delivers them. A carrier keeps undelivered data in a bounded queue (`spill.rs`:
//! in memory, then in a file), retries, and counts losses. The volume does not grow with the request rate, except for raw points. A
//! [`LiveServer`] shows the run in browsers instead. [`dashboard`] makes dashboards for the
//! exported data.

#![forbid(unsafe_code)]

mod address;
mod carrier;
pub mod dashboard;
mod exporter;
mod figures;
mod format;
mod live;
mod points;
mod script;
mod script_otel;
mod script_seconds;
mod spans;
mod spill;

pub use address::{SinkAddress, SinkAddressError, SinkKind};
pub use carrier::ZstdFrames;
pub use exporter::Exporter;
pub use figures::{ExportSecond, ExportStart, ExportVerdict};
pub use live::{LiveControls, LiveServer, PageFrame, RateSetter};
pub use points::{InfluxPoint, InfluxPoints};
pub use script::ScriptSeries;
pub use script_otel::{OtelSeries, OtelTarget};
pub use script_seconds::ScriptSeconds;
pub use spans::SpanExporter;
pub use spill::{DrainWatch, Spill};
