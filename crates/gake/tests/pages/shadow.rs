//! A comparison of every kind of difference, as a file that `gake shadow --diff-out` leaves.

use std::path::Path;

use gake_shadow::compare::{Endpoint, ShadowComparison, file};
use serde_json::{Value, json};

use super::hour::HOSTILE;

const MS: u64 = 1_000_000;

/// A field that differed so often: in the shadow alone, in the second instance alone, in both.
fn field(path: &str, kind: &str, [shadow, secondary, both]: [u64; 3]) -> Value {
    json!({
        "path": path, "kind": kind, "shadow": shadow + both,
        "only_shadow": shadow, "only_secondary": secondary, "both": both,
        "example": {"request": format!("GET /{HOSTILE}"), "expected": HOSTILE, "actual": ""},
    })
}

/// An endpoint whose shadow takes `ratio` percent of the second instance's time.
fn endpoint(fields: &[Value], statuses: &Value, ratio: u64) -> Endpoint {
    let counts = json!({"exchanges": 500, "paired": 500, "fields": fields, "statuses": statuses});
    let mut endpoint: Endpoint = serde_json::from_value(counts).unwrap();
    for n in 0..500 {
        let other = 2 * MS + n % 50 * MS / 100;
        let shadow = other * ratio / 100 + n % 7 * MS / 100;
        let latency = &mut endpoint.latency;
        latency.master.add(other);
        latency.secondary.add(other);
        latency.shadow.add(shadow);
        latency.against_master.add(shadow, other);
        latency.against_secondary.add(shadow, other);
    }
    endpoint
}

/// Writes the file.
pub fn write(path: &Path) {
    let mut comparison = ShadowComparison::new(&format!("sandbox {HOSTILE}"));
    comparison.master = "production".to_owned();
    comparison.secondary = Some("second".to_owned());
    comparison.skipped = 3;
    let orders = [
        field("$.price", "value", [60, 0, 0]),
        field(HOSTILE, "missing", [40, 1, 0]),
        field("$.rare", "type", [1, 0, 0]),
        field("$.served_at", "value", [0, 0, 500]),
    ];
    let all = [
        ("GET /orders/{id}", endpoint(&orders, &json!({"200 200": 470, "200 503": 30}), 100)),
        ("GET /basket", endpoint(&[], &json!({"200 200": 500}), 150)),
        (HOSTILE, endpoint(&[], &json!({"404 404": 500}), 100)),
    ];
    comparison.endpoints = all.map(|(name, endpoint)| (name.to_owned(), endpoint)).into();
    file::write(path, &[comparison]).unwrap();
}
