//! The JSON Schema in docs/, kept equal to the types by a test.

use std::path::Path;

use gake_judge::Summary;

use crate::formats::json::summary::SummaryForm;
use crate::testing::{bless, healthy, troubled};

#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    let schema = schemars::schema_for!(SummaryForm);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.run.1.schema.json");
    bless(&path, &text);
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
