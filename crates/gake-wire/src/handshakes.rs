//! Handshakes of TLS as metrics: what they agreed on, and the share that resumed a session.

use std::sync::{Arc, LazyLock};

use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::record::Tally;

use crate::facts::TlsFacts;

static HANDSHAKES: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_handshakes", MetricKind::Counter));

static RESUMED: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("tls_resumed", MetricKind::Rate));

fn metric(name: &str, kind: MetricKind) -> Arc<Definition> {
    Arc::new(Definition { name: name.to_owned(), kind, unit: MetricUnit::Number })
}

/// The metrics of handshakes: `tls_handshakes`, a counter with the tags `version`, `cipher` and
/// `group` (of the key exchange), and `tls_resumed`, the rate of those that resumed a session.
#[must_use]
pub fn handshake_metrics() -> [Arc<Definition>; 2] {
    [&HANDSHAKES, &RESUMED].map(|metric| Arc::clone(metric))
}

/// Adds `count` handshakes that agreed on `facts`.
pub(crate) fn add(tally: &mut Tally, facts: &TlsFacts, count: u64) {
    let tags = [
        ("version", facts.version.name().to_owned()),
        ("cipher", facts.cipher_suite()),
        ("group", facts.group().to_owned()),
    ];
    let tags = Tags::new(tags.into_iter().filter(|(_, value)| !value.is_empty()));
    let handshakes = tally.series.intern(&HANDSHAKES, &tags);
    let resumed = tally.series.intern(&RESUMED, &Tags::default());
    for _ in 0..count {
        tally.series.add(handshakes, 1.0, 0);
        tally.series.add(resumed, f64::from(facts.is_resumed), 0);
    }
}
