//! Decoding hostile bytes takes bounded memory. One test: memory is counted for the whole process.

#![allow(clippy::unwrap_used, missing_docs)]

use gake_core::exact::decode;
use gake_core::record::{Histogram, Interval, Run, Tally};
use gake_testkit::{Counting, live_bytes, peak_bytes, reset_peak};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A tally of `json`, repeated until it is a megabyte, between `before` and `after`.
fn flood(before: &str, json: &str, after: &str) -> Vec<u8> {
    let times = (1 << 20) / json.len();
    let all = vec![json; times].join(",");
    format!("gake.tally/1\n{before}{all}{after}").into_bytes()
}

/// A histogram whose every bucket lies in another octave.
fn octaves() -> String {
    let mut histogram = Histogram::new();
    for octave in -64..64 {
        histogram.record_number(f64::from(octave).exp2());
        histogram.record_number(-f64::from(octave).exp2());
    }
    serde_json::to_string(&histogram).unwrap()
}

#[test]
fn hostile_bytes_take_bounded_memory() {
    let trend = |number: usize, trend: &str| {
        format!(r#"{{"metric":"m{number}","value":{{"trend":{trend}}}}}"#)
    };
    let many: Vec<_> = (0..2_000).map(|number| trend(number, &octaves())).collect();
    let tiny: Vec<_> = (0..30_000).map(|number| trend(number, "\"\"")).collect();
    let label = r#"{"counts":{},"response":"","service":""}"#;
    let fault = r#"{"name":"tls","reason":"x","count":1}"#;
    let series = |limit: u32, all: &[String]| {
        let all = all.join(",");
        format!("gake.tally/1\n{{\"series\":{{\"limit\":{limit},\"series\":[{all}]}}}}")
    };
    let tagged = |tag| {
        format!(
            r#"{{"metric":"m{}","tags":{{"a":"{tag}"}},"value":{{"trend":{}}}}}"#,
            tag / 2,
            octaves()
        )
    };
    let over: Vec<_> = (0..2_000).map(tagged).collect();
    for bytes in [
        flood(r#"{"labels":["#, label, "]}"),
        flood(r#"{"statuses":["#, "[1,1]", "]}"),
        flood(r#"{"faults":["#, fault, "]}"),
        flood(r#"{"latency":{"#, r#""service":"""#, "}}"),
        flood(r#"{"series":{"series":["#, &trend(1, &octaves()), "]}}"),
        flood(r#"{"unknown":["#, "[[]]", "]}"),
        flood("[[", "[", ""),
        series(99_999_999, &many).into_bytes(),
        series(99_999_999, &tiny).into_bytes(),
        series(0, &over).into_bytes(),
        format!("gake.tally/1\n{}", "[".repeat(1 << 20)).into_bytes(),
    ] {
        reset_peak();
        let before = live_bytes();
        let read = decode::<Tally>(&bytes);
        let peak = peak_bytes() - before;
        let start = String::from_utf8_lossy(&bytes[..60.min(bytes.len())]).into_owned();
        assert!(peak <= 64 * bytes.len(), "{peak} for {} bytes: {start}", bytes.len());
        drop(read);
        assert!(decode::<Interval>(&bytes).is_err());
    }
    let label = r#"{"sent":1,"failed":1,"p50":1,"p99":1}"#;
    let sample = r#"{"at":1,"readings":1,"mean":1,"max":1}"#;
    for (before, json) in [
        (r#"{"series":{"points":[{"heat":["#, "[1,1]"),
        (r#"{"series":{"points":[{"labels":["#, label),
        (r#"{"watched":{"gauges":[{"samples":["#, sample),
        (r#"{"plan":{"tags":["#, r#"["",""]"#),
        (r#"{"plan":{"load":{"loop":"scenarios","scenarios":["#, "{}"),
        (r#"{"plan":{"load":{"loop":"open","stages":["#, "1"),
    ] {
        let mut bytes = b"gake.run/2\n".to_vec();
        bytes.extend(flood(before, json, "").split_off("gake.tally/1\n".len()));
        reset_peak();
        let before = live_bytes();
        assert!(decode::<Run>(&bytes).is_err());
        let peak = peak_bytes() - before;
        assert!(peak <= 64 * bytes.len(), "{peak} for {} bytes of {json}", bytes.len());
    }
}
