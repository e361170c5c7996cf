//! A summary as CSV: a row for the whole run and one for each label.

use std::io;

use gake_core::record::{Counts, Histogram, LatencyMetric, Run};
use gake_judge::stats::per_second;

/// Columns before those of the latencies.
const COUNTS: [&str; 12] = [
    "of",
    "label",
    "due",
    "sent",
    "ok",
    "failed",
    "unfinished",
    "dropped",
    "unsent",
    "sent_per_s",
    "completed_per_s",
    "ok_per_s",
];

/// Quantiles with their column's name.
const QUANTILES: [(&str, f64); 6] = [
    ("p50_ns", 0.5),
    ("p90_ns", 0.9),
    ("p95_ns", 0.95),
    ("p99_ns", 0.99),
    ("p99.9_ns", 0.999),
    ("p99.99_ns", 0.9999),
];

/// Writes the summary of `run`. The first column says of what a row is, `run` or `label`, since a
/// label may have any name.
///
/// # Errors
/// What the writer returns.
pub fn write(run: &Run, out: &mut impl io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let mut header = COUNTS.map(str::to_owned).to_vec();
    for name in ["response", "service"] {
        let parts = ["count", "min_ns", "mean_ns"].into_iter();
        let all = parts.chain(QUANTILES.map(|quantile| quantile.0)).chain(["max_ns"]);
        header.extend(all.map(|part| format!("{name}_{part}")));
    }
    csv.write_record(&header)?;

    let tally = &run.tally;
    let response = tally.latency.response();
    let service = tally.latency.of(LatencyMetric::Service);
    csv.write_record(row(["run", ""], run, &tally.counts, [&response, service]))?;
    for (name, label) in run.plan.labels.iter().zip(tally.labels()) {
        let times = [&label.response, &label.service];
        csv.write_record(row(["label", name], run, &label.counts, times))?;
    }
    csv.flush()
}

fn row(of: [&str; 2], run: &Run, counts: &Counts, times: [&Histogram; 2]) -> Vec<String> {
    let mut row = of.map(str::to_owned).to_vec();
    let Counts { sent, ok, failed, unfinished, dropped, unsent, .. } = *counts;
    let counted = [counts.due(), sent, ok, failed, unfinished, dropped, unsent];
    row.extend(counted.map(|count| count.to_string()));
    let rates = [
        per_second(sent as f64, run.sending),
        per_second(counts.completed() as f64, run.completing),
        per_second(ok as f64, run.completing),
    ];
    row.extend(rates.map(|rate| format!("{rate:.3}")));
    for histogram in times {
        row.push(histogram.count().to_string());
        row.push(histogram.min().to_string());
        row.push(format!("{:.0}", histogram.mean()));
        row.extend(QUANTILES.map(|(_, quantile)| histogram.quantile(quantile).to_string()));
        row.push(histogram.max().to_string());
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::troubled;

    #[test]
    fn a_row_for_the_whole_and_one_for_each_label() {
        let mut run = troubled();
        run.plan.labels[1] = "a \"quoted\", label\nof two lines".to_owned();
        let mut out = Vec::new();
        write(&run, &mut out).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let header = reader.headers().unwrap().clone();
        let column = |name: &str| header.iter().position(|column| column == name).unwrap();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 4);
        assert_eq!([&rows[0][0], &rows[0][1]], ["run", ""]);
        assert_eq!([&rows[2][0], &rows[2][1]], ["label", run.plan.labels[1].as_str()]);
        let number = |row: usize, name: &str| rows[row][column(name)].parse::<f64>().unwrap();
        for name in ["sent", "ok", "failed", "sent_per_s", "service_count"] {
            let labels: f64 = (1..4).map(|row| number(row, name)).sum();
            assert!((labels - number(0, name)).abs() < 0.01, "{name}");
        }
        let p99 = run.tally.latency.response().quantile(0.99);
        assert_eq!(number(0, "response_p99_ns"), p99 as f64);
    }
}
