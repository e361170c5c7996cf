//! Where figures go during a run: databases, monitoring systems, files.
//!
//! An [`Exporter`] is a format and a carrier. The format (`format/`) turns what a second recorded
//! into bytes; the carrier (`carrier/`) delivers them to a destination. A carrier keeps what its
//! destination cannot take now in a bounded queue, tries again, and counts what it loses. How much
//! is sent does not grow with the request rate, except for raw points.

mod address;
mod carrier;
mod exporter;
mod figures;
mod format;
mod points;

pub use address::{SinkAddress, SinkAddressError, SinkKind};
pub use exporter::{ExportSecond, ExportStart, Exporter};
pub use points::{InfluxPoint, InfluxPoints};
