//! Vegeta's own reports against ours, from the results that Vegeta 12.13 wrote.

use gake_report::vegeta::{ResultReader, VegetaRecord};

use super::metrics::Metrics;
use super::render::{ReportKind, render};

const GOB: &[u8] = include_bytes!("../../../../gake-report/tests/data/vegeta/results.gob");
const JSON: &[u8] = include_bytes!("../../../../gake-report/tests/data/vegeta/results.json");
const CSV: &[u8] = include_bytes!("../../../../gake-report/tests/data/vegeta/results.csv");

fn read(bytes: &[u8]) -> Vec<VegetaRecord> {
    let mut reader = ResultReader::detect(bytes).unwrap();
    std::iter::from_fn(|| reader.next_record().unwrap()).collect()
}

#[test]
fn every_report_is_that_of_vegeta() {
    let cases: [(&str, &str, &str); 5] = [
        ("text", "", include_str!("../../../tests/expected/vegeta/report.text.txt")),
        ("json", "", include_str!("../../../tests/expected/vegeta/report.json.txt")),
        ("json", "[0,1ms,5ms]", include_str!("../../../tests/expected/vegeta/report.buckets.txt")),
        (
            "hist[0,1ms,5ms,10ms,1s]",
            "",
            include_str!("../../../tests/expected/vegeta/report.hist.txt"),
        ),
        ("hdrplot", "", include_str!("../../../tests/expected/vegeta/report.hdrplot.txt")),
    ];
    for source in [GOB, JSON, CSV] {
        for (kind, buckets, expected) in cases {
            let (kind, buckets) = ReportKind::parse(kind, buckets).unwrap();
            let mut metrics = Metrics::new(buckets);
            for record in read(source) {
                metrics.add(&record);
            }
            assert_eq!(render(kind, &mut metrics), expected);
        }
    }
}

#[test]
fn errors_are_listed_up_to_a_bound() {
    let mut metrics = Metrics::new(None);
    for i in 0..5_000 {
        metrics.add(&VegetaRecord { error: format!("error {i}"), ..VegetaRecord::default() });
    }
    let text = render(ReportKind::Text, &mut metrics);
    assert_eq!(text.lines().filter(|line| line.starts_with("error ")).count(), 1_000);
    assert_eq!(metrics.errors_left_out, 4_000);
}
