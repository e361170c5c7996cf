//! The JSON Schema in docs/ matches the types.

use std::path::Path;

use gake_judge::Summary;

use crate::formats::json::summary::SummaryJson;
use crate::testing::{bless, counting, healthy, several, troubled};

#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    let schema = schemars::schema_for!(SummaryJson);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.run.1.schema.json");
    bless(&path, &text);
}

#[test]
fn custom_metrics_are_there_when_a_run_has_any() {
    let json = |run| {
        let mut out = Vec::new();
        crate::formats::json::write(&Summary::new(run, &[]), &mut out).unwrap();
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()
    };
    assert!(json(healthy()).get("metrics").is_none());
    let metrics = &json(counting())["metrics"];
    assert_eq!(metrics["not_numbers"], 1);
    let checks = serde_json::json!({
        "metric": "checks", "kind": "rate", "unit": "number", "samples": 100, "passed": 99,
        "share": 0.99, "tags": { "check": "the status is 200, and the body is whole" },
    });
    assert_eq!(metrics["series"][0], checks);
    let kinds: Vec<_> = (0..5).map(|n| metrics["series"][n]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["rate", "trend", "counter", "gauge", "trend"]);
    assert_eq!(metrics["series"][4]["max"], 12_345_000.0);
}

#[test]
fn a_summary_has_the_fields_of_the_design() {
    let objectives = ["p99<1s".parse().unwrap(), "tls.p99<1s".parse().unwrap()];
    for run in [healthy(), troubled()] {
        let mut out = Vec::new();
        crate::formats::json::write(&Summary::new(run, &objectives), &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["schema"], "gake.run/1");
        assert_eq!(json["started"], "2023-11-14T22:13:20.123456789Z");
        for path in [
            "/plan/target",
            "/verdict/validity",
            "/requests/written",
            "/rate/goodput",
            "/latency_ns/response/p99.9",
            "/latency_ns/ok_response/stddev",
            "/latency_ns/fault_response/count",
            "/latency_ns/blocked/max",
            "/status/200",
            "/bytes/in",
            "/connections/stale_reconnects",
            "/objectives/1/met",
            "/generator/cpu_share",
            "/warmup/sent",
            "/series/9/p99_ns",
            "/ended/by",
            "/events",
        ] {
            assert!(json.pointer(path).is_some(), "{path}");
        }
        let of = |path: &str| json.pointer(path).unwrap().as_u64().unwrap();
        let parts = ["ok", "failed", "unfinished"].map(|p| of(&format!("/requests/{p}")));
        assert_eq!(parts.iter().sum::<u64>(), of("/requests/sent"));
    }
}

#[test]
fn scenarios_and_iterations_are_there_when_a_run_has_any() {
    let json = |run| {
        let mut out = Vec::new();
        crate::formats::json::write(&Summary::new(run, &[]), &mut out).unwrap();
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()
    };
    let plain = json(healthy());
    assert!(plain.get("scenarios").is_none() && plain.get("iterations").is_none());
    let several = json(several());
    let of = |path: &str| several.pointer(path).unwrap().as_u64().unwrap();
    assert_eq!(several.pointer("/scenarios/1/name").unwrap(), "buy");
    assert_eq!(
        (of("/scenarios/0/iterations/started"), of("/scenarios/0/requests/sent")),
        (10_000, 10_000)
    );
    assert_eq!(
        (of("/scenarios/1/iterations/started"), of("/scenarios/1/requests/sent")),
        (2_500, 10_000)
    );
    assert_eq!(of("/iterations/started"), 12_500);
    assert_eq!(of("/iterations/due"), of("/iterations/started") + of("/iterations/dropped"));
}
