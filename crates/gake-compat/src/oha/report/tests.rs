//! Compares the outputs with the real oha's.
//!
//! The files `oha-1.16*` are what the real oha 1.16.0 printed: it takes minutes to build, so it is
//! not run here.

use serde_json::Value;

use super::*;

const MS: Nanos = 1_000_000;

/// The figures of a run.
struct Recorded {
    latency: Histogram,
    first_byte: Histogram,
    breakdown: [Histogram; 2],
    dial: Spread,
    rates: OhaRates,
}

impl Recorded {
    fn none() -> Self {
        Self {
            latency: Histogram::new(),
            first_byte: Histogram::new(),
            breakdown: [Histogram::new(), Histogram::new()],
            dial: Spread::default(),
            rates: OhaRates::default(),
        }
    }

    /// Four responses, the last one a 404, on two connections.
    fn some() -> Self {
        let mut some = Self::none();
        for (number, ms) in [10, 20, 20, 1_060].into_iter().enumerate() {
            some.latency.record(ms * MS);
            some.first_byte.record((ms - 1) * MS);
            some.breakdown[number / 3].record(ms * MS);
            some.rates.record(ms * MS);
        }
        some.dial.record(MS / 4);
        some.dial.record(MS / 2);
        some
    }

    fn oha<'a>(&'a self, statuses: &'a [(u16, u64)], errors: &[(&str, u64)]) -> Oha<'a> {
        Oha {
            total: 1_250 * MS,
            latency: &self.latency,
            first_byte: &self.first_byte,
            breakdown: None,
            dial: self.dial,
            rates: &self.rates,
            body_bytes: 4_099 * self.latency.count(),
            statuses,
            errors: errors.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect(),
        }
    }
}

#[test]
fn the_summary_is_ohas() {
    let some = Recorded::some();
    let errors = [(DEADLINE, 2), ("timeout", 4)];
    let mut oha = some.oha(&[(200, 1), (404, 3)], &errors);
    assert_eq!(text(&oha, None), include_str!("../../../tests/expected/oha.txt"));
    oha.breakdown = Some(&some.breakdown);
    let ours = text(&oha, TimeUnit::read("ms"));
    assert!(ours.contains("Slowest:\t1060.0000 ms"), "{ours}");
    assert!(ours.contains("  1060.000 ms [1] |■■■■■■■■■■■■■■■■\n"), "{ours}");
    assert!(ours.contains("\n\nResponse time histogram (4xx + 5xx only):\n"), "{ours}");
}

#[test]
fn a_run_without_responses_matches_the_real_oha() {
    let none = Recorded::none();
    let oha = none.oha(&[], &[("Connection refused (os error 111)", 3)]);
    // The real oha had the figures of its own run.
    let real = include_str!("../../../tests/expected/oha-1.16-failed.txt");
    let own = |line: &&str| !line.contains("Total:") && !line.contains("Requests/sec:");
    let ours = text(&oha, None);
    let lines = |text: &'static str| text.lines().filter(own).collect::<Vec<_>>();
    assert_eq!(ours.lines().filter(own).collect::<Vec<_>>(), lines(real));
    let json: Value = serde_json::from_str(&json(&oha)).unwrap();
    assert_eq!(json["summary"]["slowest"], Value::Null);
    assert_eq!(json["summary"]["sizePerRequest"], Value::Null);
    assert_eq!(json["responseTimeHistogram"], serde_json::json!({ "NaN": 0 }));
    assert_eq!(json["rps"]["percentiles"]["p99.9"], Value::Null);
}

/// The keys of pretty JSON in order, without keys that are numbers.
fn keys(json: &str) -> Vec<&str> {
    let keys = json.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\":"));
    keys.map(|(key, _)| key).filter(|key| key.parse::<f64>().is_err()).collect()
}

#[test]
fn the_json_has_the_real_ohas_keys_and_types() {
    let some = Recorded::some();
    let mut oha = some.oha(&[(200, 3), (404, 1)], &[]);
    oha.breakdown = Some(&some.breakdown);
    let (ours, real) = (json(&oha), include_str!("../../../tests/expected/oha-1.16.json"));
    assert_eq!(keys(&ours), keys(real));
    let ours: Value = serde_json::from_str(&ours).unwrap();
    assert_eq!(ours["summary"]["successRate"], 1.0);
    assert_eq!(ours["summary"]["requestsPerSec"], 3.2);
    assert_eq!(ours["summary"]["sizePerRequest"], 4_099);
    assert_eq!(ours["metrics"]["latency_ms"]["max"], 1_060.0);
    assert_eq!(ours["details"]["DNSDialup"]["average"], 0.000_375);
    assert_eq!(ours["details"]["DNSLookup"]["slowest"], 0.0);
    assert_eq!(ours["statusCodeDistribution"], serde_json::json!({ "200": 3, "404": 1 }));
    assert_eq!(ours["responseTimeHistogram"]["1.06"], 1);
    let rows = ours["responseTimeHistogramSuccessful"].as_object().unwrap();
    assert_eq!(rows.values().filter_map(Value::as_u64).sum::<u64>(), 3);
}

#[test]
fn the_deadline_is_no_failure() {
    let some = Recorded::some();
    assert!((some.oha(&[], &[(DEADLINE, 9)]).success_rate() - 1.0).abs() < 1e-12);
    assert!((some.oha(&[], &[(DEADLINE, 9), ("timeout", 4)]).success_rate() - 0.5).abs() < 1e-12);
}

#[test]
fn percentiles_have_ohas_positions() {
    let mut latency = Histogram::new();
    (1..=10).for_each(|ms| latency.record(ms * MS));
    // The value at this share: the sixth of ten is the median.
    for (percent, ms) in [(10.0, 2), (50.0, 6), (90.0, 10), (99.99, 10)] {
        let at = percentile(&latency, percent);
        assert!((at * 1e3 / f64::from(ms) - 1.0).abs() < 2e-3, "{percent}: {at}");
    }
}

#[test]
fn a_csv_row_is_in_seconds() {
    let mut out = String::new();
    csv_row(
        &mut out,
        &OhaRow {
            start: 61_808_696,
            dial: 0,
            first_byte: 2_000,
            duration: 1_500 * MS,
            bytes: 20,
            status: 200,
        },
    );
    assert_eq!(out, "0.061808696,0,0,0.000002,1.5,20,200\n");
    assert_eq!(CSV_HEADER.matches(',').count(), out.matches(',').count());
}
