//! The summary and the CSV of hey (0.1.5).

use std::fmt::Write as _;

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

use crate::spread::{Spread, rows};

/// The header line of `-o csv`. Every row begins with a line break, as hey writes them.
pub const CSV_HEADER: &str = "response-time,DNS+dialup,DNS,Request-write,Response-delay,\
                              Response-read,status-code,offset";

/// Percentiles of the latency distribution.
const PERCENTILES: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];

/// Cells of the longest bar.
const BAR: u64 = 40;

/// The figures of the summary.
#[derive(Debug)]
pub struct Hey<'a> {
    /// The time from the start to the last response.
    pub total: Nanos,
    /// Requests that ended in any way.
    pub requests: u64,
    /// The duration of every request with a response.
    pub latency: &'a Histogram,
    /// Phases of these requests by name, in the order of the details.
    pub parts: [(&'static str, Spread); 5],
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// Responses by status code, in order.
    pub statuses: &'a [(u16, u64)],
    /// Requests without a response, by cause.
    pub errors: Vec<(String, u64)>,
}

/// One response in `-o csv`, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct HeyRow {
    /// The duration of the request.
    pub response: Nanos,
    /// The time to open the connection; 0 if it was open.
    pub dial: Nanos,
    /// The time to write the request.
    pub write: Nanos,
    /// The time from there to the first byte of the response.
    pub delay: Nanos,
    /// The time from there to the last byte.
    pub read: Nanos,
    /// The status code.
    pub status: u16,
    /// The start of the request, from the start of the run.
    pub offset: Nanos,
}

/// The summary.
pub fn text(hey: &Hey<'_>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = summary(&mut out, hey);
    let _ = distribution(&mut out, hey);
    out
}

fn summary(out: &mut String, hey: &Hey<'_>) -> std::fmt::Result {
    let latency = hey.latency;
    let answers = latency.count();
    let total = seconds(hey.total);
    writeln!(out, "\nSummary:\n  Total:\t{total:.4} secs")?;
    writeln!(out, "  Slowest:\t{:.4} secs", seconds(latency.max()))?;
    writeln!(out, "  Fastest:\t{:.4} secs", seconds(latency.min()))?;
    let average = if answers == 0 { f64::NAN } else { latency.mean() / 1e9 };
    writeln!(out, "  Average:\t{} secs", number(average))?;
    writeln!(out, "  Requests/sec:\t{}", number(hey.requests as f64 / total))?;
    write!(out, "  ")?;
    if hey.body_bytes > 0 && answers > 0 {
        write!(out, "\n  Total data:\t{} bytes", hey.body_bytes)?;
        write!(out, "\n  Size/request:\t{} bytes", hey.body_bytes / answers)?;
    }
    writeln!(out, "\n\nResponse time histogram:")?;
    if answers > 0 {
        histogram(out, latency)?;
    }
    writeln!(out)
}

fn histogram(out: &mut String, latency: &Histogram) -> std::fmt::Result {
    let rows = rows(latency);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (mark, count) in rows {
        let bar = "■".repeat(((count * BAR + most / 2) / most) as usize);
        writeln!(out, "  {:.3} [{count}]\t|{bar}", seconds(mark))?;
    }
    Ok(())
}

fn distribution(out: &mut String, hey: &Hey<'_>) -> std::fmt::Result {
    write!(out, "\nLatency distribution:")?;
    if !hey.latency.is_empty() {
        for percent in PERCENTILES {
            let at = hey.latency.quantile(f64::from(percent) / 100.0);
            // hey prints two percent signs.
            write!(out, "\n  {percent}%% in {:.4} secs", seconds(at))?;
        }
    }
    write!(out, "\n\nDetails (average, fastest, slowest):")?;
    for (name, part) in &hey.parts {
        let (min, max) = (seconds(part.min()), seconds(part.max()));
        write!(out, "\n  {name}:\t{} secs, {min:.4} secs, {max:.4} secs", number(part.mean_s()))?;
    }
    write!(out, "\n\nStatus code distribution:")?;
    for (status, count) in hey.statuses {
        write!(out, "\n  [{status}]\t{count} responses")?;
    }
    write!(out, "\n\n")?;
    if !hey.errors.is_empty() {
        write!(out, "Error distribution:")?;
        for (error, count) in &hey.errors {
            write!(out, "\n  [{count}]\t{error}")?;
        }
    }
    write!(out, "\n\n")
}

/// A row of `-o csv`, with the line break before it.
pub fn csv_row(out: &mut String, row: &HeyRow) {
    let [response, dial, write, delay, read, offset] =
        [row.response, row.dial, row.write, row.delay, row.read, row.offset].map(seconds);
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n{response:.4},{dial:.4},0.0000,{write:.4},{delay:.4},{read:.4},{},{offset:.4}",
        row.status
    );
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

/// Four decimals, and NaN in four characters, as in Go.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.4}") } else { " NaN".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[Nanos]) -> Spread {
        let mut spread = Spread::default();
        values.iter().for_each(|value| spread.record(*value));
        spread
    }

    #[test]
    fn the_summary_is_heys() {
        let mut latency = Histogram::new();
        for ms in [10, 20, 20, 60] {
            latency.record(ms * 1_000_000);
        }
        let hey = Hey {
            total: 55_000_000,
            requests: 5,
            latency: &latency,
            parts: [
                ("DNS+dialup", spread(&[0, 0, 2_000_000, 2_000_000])),
                ("DNS-lookup", spread(&[0; 4])),
                ("req write", spread(&[0; 4])),
                ("resp wait", spread(&[9_000_000, 19_000_000, 17_000_000, 58_000_000])),
                ("resp read", spread(&[1_000_000; 4])),
            ],
            body_bytes: 81,
            statuses: &[(200, 3), (404, 1)],
            errors: vec![("Get \"http://h/\": EOF".to_owned(), 1)],
        };
        assert_eq!(text(&hey), include_str!("../../tests/expected/hey.txt"));
    }

    #[test]
    fn a_run_without_responses_has_every_heading() {
        let latency = Histogram::new();
        let parts = ["DNS+dialup", "DNS-lookup", "req write", "resp wait", "resp read"]
            .map(|name| (name, Spread::default()));
        let hey = Hey {
            total: 1_000_000_000,
            requests: 0,
            latency: &latency,
            parts,
            body_bytes: 0,
            statuses: &[],
            errors: Vec::new(),
        };
        let text = text(&hey);
        assert!(text.contains("Average:\t NaN secs"), "{text}");
        assert!(text.contains("DNS+dialup:\t NaN secs, 0.0000 secs, 0.0000 secs"), "{text}");
        assert!(text.contains("\n  \n\nResponse time histogram:\n\n\nLatency"), "{text}");
        assert!(text.ends_with("Status code distribution:\n\n\n\n"), "{text:?}");
    }
}
