//! Where figures go while a run goes on: databases, monitoring systems, files.
//!
//! An [`Exporter`] is a format and a carrier. The format (`format/`) turns what a second recorded
//! into bytes; the carrier (`carrier/`) brings them to their destination. A carrier keeps what its
//! destination cannot take now in a bounded queue, tries again, and counts what it loses. How much
//! is sent does not grow with the request rate, unless raw points are asked for.

mod address;
mod carrier;
mod exporter;
mod figures;
mod format;
mod points;

pub use address::{SinkAddress, SinkAddressError, SinkKind};
pub use exporter::{ExportSecond, ExportStart, Exporter};
pub use points::{InfluxPoint, InfluxPoints};
