//! Where figures go during a run: databases, monitoring systems, files.
//!
//! An [`Exporter`] is a format and a carrier. The format (`format/`) turns what a second recorded
//! into bytes; the carrier (`carrier/`) delivers them to a destination. A carrier keeps what its
//! destination cannot take now in a bounded queue, tries again, and counts what it loses. How much
//! is sent does not grow with the request rate, except for raw points. A [`LiveServer`] shows the
//! run in browsers instead. [`dashboard`] makes dashboards that show what a database was sent.

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
mod script_seconds;
mod spans;
pub mod visitor;

pub use address::{SinkAddress, SinkAddressError, SinkKind};
pub use carrier::ZstdFrames;
pub use exporter::Exporter;
pub use figures::{ExportSecond, ExportStart, ExportVerdict};
pub use live::{LiveControls, LiveServer, PageFrame, RateSetter};
pub use points::{InfluxPoint, InfluxPoints};
pub use script::ScriptSeries;
pub use script_seconds::ScriptSeconds;
pub use spans::SpanExporter;
