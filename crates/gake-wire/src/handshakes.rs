//! Handshakes of TLS as a metric: a series for each combination that was agreed on.

use std::sync::{Arc, LazyLock};

use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::record::Tally;

use crate::facts::TlsFacts;

static HANDSHAKES: LazyLock<Arc<Definition>> = LazyLock::new(|| {
    let name = "tls_handshakes".to_owned();
    Arc::new(Definition { name, kind: MetricKind::Counter, unit: MetricUnit::Number })
});

/// The metric of handshakes: a counter with the tags `version`, `cipher`, `group` (of the key
/// exchange) and `resumed`.
#[must_use]
pub fn handshake_metric() -> Arc<Definition> {
    Arc::clone(&HANDSHAKES)
}

/// Adds `count` handshakes that agreed on `facts`.
pub(crate) fn add(tally: &mut Tally, facts: &TlsFacts, count: u64) {
    let tags = [
        ("version", facts.version.name().to_owned()),
        ("cipher", facts.cipher_suite()),
        ("group", facts.group.to_owned()),
        ("resumed", facts.is_resumed.to_string()),
    ];
    let tags = Tags::new(tags.into_iter().filter(|(_, value)| !value.is_empty()));
    let series = tally.series.intern(&HANDSHAKES, &tags);
    for _ in 0..count {
        tally.series.add(series, 1.0, 0);
    }
}
