//! Formats that write a row at a time, and two of them: lines of JSON, and CSV.

use std::borrow::Cow;
use std::io::Write;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Outcome, Run};
use serde_json::{Map, Value, json};

use super::Format;
use crate::carrier::Batch;
use crate::figures::{self, Field, Row};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Writes one row.
pub(crate) trait RowWriter: Send {
    /// What stands before the first row.
    fn head(&self) -> &'static str {
        ""
    }

    /// Writes the row of an instant, in Unix nanoseconds; false when it has no place for it.
    fn write(&mut self, row: &Row<'_>, unix_ns: u64, out: &mut Vec<u8>) -> bool;
}

/// A format of rows.
pub(crate) struct Rows<W> {
    writer: W,
    started: u64,
    raw: bool,
}

impl<W: RowWriter> Rows<W> {
    /// `raw`: a point for each request in place of the rows of its second.
    pub(crate) fn new(writer: W, raw: bool) -> Self {
        Self { writer, started: 0, raw }
    }

    fn batch(&mut self, rows: &[Row<'_>], unix_ns: u64) -> Batch {
        let mut batch = Batch::default();
        for row in rows {
            batch.rows += u64::from(self.writer.write(row, unix_ns, &mut batch.bytes));
        }
        batch
    }
}

impl<W: RowWriter> Format for Rows<W> {
    fn begin(&mut self, start: &ExportStart<'_>) -> Batch {
        self.started = start.started_unix_ns;
        let text = format!("{} {}", start.target, start.command);
        let mut batch = self.batch(&[figures::event("begin", text)], self.started);
        let head = self.writer.head();
        if !head.is_empty() {
            batch.bytes.splice(0..0, head.bytes());
            batch.rows = batch.rows.max(1);
        }
        batch
    }

    fn second(&mut self, second: &ExportSecond<'_>) -> Batch {
        let at = self.started + second.at * 1_000_000_000;
        let rows = figures::of_second(second);
        // What is told of each request is not told again of its second.
        let rows = if self.raw { &rows[..1] } else { &rows[..] };
        self.batch(rows, at)
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> Batch {
        let at = self.started + at;
        self.batch(&figures::of_readings(readings), at)
    }

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> Batch {
        self.batch(&[figures::event(title, text)], self.started + at)
    }

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> Batch {
        let mut rows = figures::of_run(&run.tally, &run.plan.labels);
        rows.push(figures::of_verdict(verdict));
        rows.push(figures::event("end", ending(run)));
        self.batch(&rows, self.started + run.elapsed)
    }

    fn outcomes(&mut self, outcomes: &[Outcome], labels: &[String]) -> Batch {
        let mut batch = Batch::default();
        for outcome in outcomes {
            let unix_ns = self.started + outcome.exchange.done;
            for row in figures::raw_points(outcome, labels) {
                batch.rows += u64::from(self.writer.write(&row, unix_ns, &mut batch.bytes));
            }
        }
        batch
    }

    fn takes_outcomes(&self) -> bool {
        self.raw
    }
}

/// How a run ended, in numbers.
pub(super) fn ending(run: &Run) -> String {
    let counts = &run.tally.counts;
    format!(
        "{} sent = {} ok + {} failed + {} unfinished",
        counts.sent, counts.ok, counts.failed, counts.unfinished
    )
}

/// An object a row.
pub(crate) struct JsonRows {
    tags: Vec<(String, String)>,
}

impl JsonRows {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        Self { tags }
    }
}

impl RowWriter for JsonRows {
    fn write(&mut self, row: &Row<'_>, unix_ns: u64, out: &mut Vec<u8>) -> bool {
        let tags: Map<String, Value> = all_tags(&self.tags, row)
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let value = |field: &Field<'_>| match field {
            Field::Count(count) => json!(count),
            Field::Number(number) => json!(number),
            Field::Text(text) => json!(text),
        };
        let fields: Map<String, Value> =
            row.fields.iter().map(|(name, field)| ((*name).to_owned(), value(field))).collect();
        let time = unix_ns as f64 / 1e9;
        let line = json!({
            "time": time, "measurement": row.measurement, "tags": tags, "fields": fields,
        });
        out.extend_from_slice(line.to_string().as_bytes());
        out.push(b'\n');
        true
    }
}

/// A line a field: time, measurement, tags, field, value.
pub(crate) struct CsvRows {
    tags: Vec<(String, String)>,
}

impl CsvRows {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        Self { tags }
    }
}

impl RowWriter for CsvRows {
    fn head(&self) -> &'static str {
        "time,measurement,tags,field,value\n"
    }

    fn write(&mut self, row: &Row<'_>, unix_ns: u64, out: &mut Vec<u8>) -> bool {
        let tags: Vec<String> =
            all_tags(&self.tags, row).map(|(name, value)| format!("{name}={value}")).collect();
        let tags = cell(&tags.join(";")).into_owned();
        let (seconds, millis) = (unix_ns / 1_000_000_000, unix_ns / 1_000_000 % 1_000);
        for (name, field) in &row.fields {
            let value = match field {
                Field::Count(count) => Cow::Owned(count.to_string()),
                Field::Number(number) => Cow::Owned(number.to_string()),
                Field::Text(text) => cell(text),
            };
            // A vector takes everything.
            let _ =
                writeln!(out, "{seconds}.{millis:03},{},{tags},{name},{value}", row.measurement);
        }
        true
    }
}

/// The tags of every row, then the row's own.
pub(super) fn all_tags<'a>(
    tags: &'a [(String, String)],
    row: &'a Row<'_>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let common = tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    common.chain(row.tags.iter().map(|(name, value)| (*name, value.as_ref())))
}

/// A cell of CSV. What a spreadsheet would take for a formula is marked as text.
fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    if !is_formula && !text.contains(['"', ',', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mark = if is_formula { "'" } else { "" };
    Cow::Owned(format!("\"{mark}{}\"", text.replace('"', "\"\"")))
}
