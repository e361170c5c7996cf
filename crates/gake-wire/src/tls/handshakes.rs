//! Metrics of TLS handshakes.

use std::sync::{Arc, LazyLock};

use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::record::Tally;

use crate::tls::facts::TlsFacts;

static HANDSHAKES: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_handshakes", MetricKind::Counter));

static RESUMED: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_resumed", MetricKind::Rate));

static STAPLED: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_stapled", MetricKind::Rate));

static EARLY_DATA: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_early_data", MetricKind::Rate));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) facts: TlsFacts,
    /// Whether the server stapled an OCSP status; `None` without a certificate, or if unknown.
    pub(crate) is_stapled: Option<bool>,
    /// Whether the server accepted the early data; `None` if none was sent.
    pub(crate) is_early_accepted: Option<bool>,
}

fn metric(name: &str, kind: MetricKind) -> Arc<Definition> {
    Arc::new(Definition { name: name.to_owned(), kind, unit: MetricUnit::Number })
}

/// The metrics of handshakes: `tls_handshakes`, a counter with the tags `version`, `cipher`, `group`
/// (of the key exchange) and `ech`; `tls_resumed`, the rate of resumed sessions; `tls_early_data`, the
/// rate of accepted among sent early data; `tls_stapled`, the rate of stapled OCSP statuses among
/// handshakes with a certificate.
#[must_use]
pub fn handshake_metrics() -> [Arc<Definition>; 4] {
    [&HANDSHAKES, &RESUMED, &EARLY_DATA, &STAPLED].map(|metric| Arc::clone(metric))
}

/// Adds `count` equal handshakes.
pub(crate) fn add(tally: &mut Tally, handshake: &Handshake, count: u64) {
    let Handshake { facts, is_stapled, is_early_accepted } = handshake;
    let tags = [
        ("version", facts.version.name().to_owned()),
        ("cipher", facts.cipher_suite()),
        ("group", facts.group().to_owned()),
        ("ech", facts.ech().to_owned()),
    ];
    let tags = Tags::new(tags.into_iter().filter(|(_, value)| !value.is_empty()));
    let handshakes = tally.series.intern(&HANDSHAKES, &tags);
    let resumed = tally.series.intern(&RESUMED, &Tags::default());
    for _ in 0..count {
        tally.series.add(handshakes, 1.0, 0);
        tally.series.add(resumed, f64::from(facts.is_resumed), 0);
    }
    for (metric, value) in [(&STAPLED, is_stapled), (&EARLY_DATA, is_early_accepted)] {
        let Some(value) = value else { continue };
        let series = tally.series.intern(metric, &Tags::default());
        for _ in 0..count {
            tally.series.add(series, f64::from(*value), 0);
        }
    }
}
