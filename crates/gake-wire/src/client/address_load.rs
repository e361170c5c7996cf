//! The load by address of the target.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, MetricKind, MetricUnit, SeriesId, SeriesTable, Tags};

static TIME: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("address_time", MetricKind::Trend, MetricUnit::Time));

static FAILED: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("address_failed", MetricKind::Rate, MetricUnit::Number));

fn metric(name: &str, kind: MetricKind, unit: MetricUnit) -> Arc<Definition> {
    Arc::new(Definition { name: name.to_owned(), kind, unit })
}

/// The metrics of a load on several addresses, with the tag `address`: `address_time`, a trend of
/// service times, and `address_failed`, the rate of requests and connections without a response, or
/// with a status from 400 on.
#[must_use]
pub fn address_metrics() -> [Arc<Definition>; 2] {
    [&TIME, &FAILED].map(|metric| Arc::clone(metric))
}

/// The load of one worker by address since the last collection.
#[derive(Debug, Default)]
pub(crate) struct AddressLoad {
    series: SeriesTable,
    addresses: Vec<(SocketAddr, SeriesId, SeriesId)>,
}

impl AddressLoad {
    /// Adds a request, or a connection that failed. `service` is the time of its response.
    pub(crate) fn add(&mut self, to: SocketAddr, service: Option<Nanos>, is_failed: bool) {
        let known = self.addresses.iter().find(|(address, ..)| *address == to);
        let (_, time, failed) = known.copied().unwrap_or_else(|| {
            let tags = Tags::new([("address", to.to_string())]);
            let time = self.series.intern(&TIME, &tags);
            let entry = (to, time, self.series.intern(&FAILED, &tags));
            self.addresses.push(entry);
            entry
        });
        if let Some(service) = service {
            self.series.add(time, service as f64, 0);
        }
        self.series.add(failed, f64::from(is_failed), 0);
    }

    /// Moves all samples to `series`.
    pub(crate) fn move_to(&mut self, series: &mut SeriesTable) {
        if !self.addresses.is_empty() {
            series.merge(&self.series);
            self.series.clear();
        }
    }
}
