//! The per-request log: one line per arrival, as CSV or JSON lines.
//!
//! Off by default: it grows with the run. Lines are formatted by hand into one buffer per batch, so
//! that the log does not slow down a fast run.

use std::io::{self, Write};

use gake_core::clock::Nanos;
use gake_core::record::{ExchangeEnd, Outcome};

/// The format of a request log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Comma-separated values with a header line; unknown values are empty.
    Csv,
    /// One JSON object per line; unknown values are null.
    JsonLines,
}

impl LogFormat {
    /// The format of a file name's extension: `.csv`, `.json` or `.jsonl`.
    #[must_use]
    pub fn of_path(path: &std::path::Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// Writes a request log.
#[derive(Debug)]
pub struct RequestLog<W: Write> {
    out: W,
    format: LogFormat,
    started_unix_ns: u64,
    /// The names of the labels, quoted and escaped.
    labels: Vec<String>,
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum LogField<'a> {
    Number(u64),
    Unknown,
    /// A text without anything to escape.
    Plain(&'a str),
    /// A text that is already escaped.
    Escaped(&'a str),
}

const COLUMNS: [&str; 17] = [
    "number",
    "due_unix_ns",
    "fired_unix_ns",
    "write_unix_ns",
    "first_byte_unix_ns",
    "done_unix_ns",
    "response_ns",
    "service_ns",
    "lateness_ns",
    "blocked_ns",
    "connect_ns",
    "tls_ns",
    "status",
    "fault",
    "bytes_in",
    "bytes_out",
    "label",
];

impl<W: Write> RequestLog<W> {
    /// A log whose instants are relative to `started_unix_ns`; writes the header.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(
        mut out: W,
        format: LogFormat,
        started_unix_ns: u64,
        labels: &[String],
    ) -> io::Result<Self> {
        let labels = labels.iter().map(|label| escaped(format, label)).collect();
        if format == LogFormat::Csv {
            out.write_all(COLUMNS.join(",").as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(Self { out, format, started_unix_ns, labels, line: Vec::new() })
    }

    /// Appends outcomes.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        for outcome in outcomes {
            push_line(&mut line, self.format, &self.fields(outcome));
        }
        let result = self.out.write_all(&line);
        self.line = line;
        result
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// The writer's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn fields(&self, outcome: &Outcome) -> [LogField<'_>; COLUMNS.len()] {
        let exchange = &outcome.exchange;
        let at = |offset: Nanos| LogField::Number(self.started_unix_ns.saturating_add(offset));
        let number = |value: Option<u64>| value.map_or(LogField::Unknown, LogField::Number);
        let (status, fault) = match exchange.end {
            ExchangeEnd::Response(response) => {
                (LogField::Number(response.status.into()), LogField::Unknown)
            }
            ExchangeEnd::Fault(fault) => (LogField::Unknown, LogField::Plain(fault.name())),
            ExchangeEnd::Unfinished => (LogField::Unknown, LogField::Plain("unfinished")),
        };
        let label = self.labels.get(usize::from(exchange.label));
        [
            LogField::Number(outcome.arrival.number),
            at(outcome.arrival.due),
            at(outcome.fired),
            at(exchange.write),
            exchange.first_byte.map_or(LogField::Unknown, at),
            at(exchange.done),
            LogField::Number(outcome.response()),
            LogField::Number(exchange.service()),
            LogField::Number(outcome.lateness()),
            LogField::Number(outcome.blocked),
            number(exchange.connect),
            number(exchange.tls),
            status,
            fault,
            LogField::Number(exchange.bytes_in),
            LogField::Number(exchange.bytes_out),
            label.map_or(LogField::Unknown, |label| LogField::Escaped(label)),
        ]
    }
}

fn escaped(format: LogFormat, text: &str) -> String {
    match format {
        LogFormat::JsonLines => serde_json::Value::from(text).to_string(),
        LogFormat::Csv if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        LogFormat::Csv => text.to_owned(),
    }
}

fn push_line(line: &mut Vec<u8>, format: LogFormat, fields: &[LogField<'_>; COLUMNS.len()]) {
    for (i, (name, field)) in COLUMNS.iter().zip(fields).enumerate() {
        match format {
            LogFormat::Csv => {
                if i > 0 {
                    line.push(b',');
                }
                push_field(line, *field, "", "");
            }
            LogFormat::JsonLines => {
                line.push(if i == 0 { b'{' } else { b',' });
                line.push(b'"');
                line.extend_from_slice(name.as_bytes());
                line.extend_from_slice(b"\":");
                push_field(line, *field, "null", "\"");
            }
        }
    }
    if format == LogFormat::JsonLines {
        line.push(b'}');
    }
    line.push(b'\n');
}

fn push_field(line: &mut Vec<u8>, field: LogField<'_>, unknown: &str, quote: &str) {
    match field {
        LogField::Number(number) => push_number(line, number),
        LogField::Unknown => line.extend_from_slice(unknown.as_bytes()),
        LogField::Escaped(text) => line.extend_from_slice(text.as_bytes()),
        LogField::Plain(text) => {
            for part in [quote, text, quote] {
                line.extend_from_slice(part.as_bytes());
            }
        }
    }
}

/// Decimal digits without the formatting machinery, which would dominate a line's cost.
fn push_number(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use gake_core::record::Fault;

    use super::*;
    use crate::testing::{MS, faulted, responded};

    fn outcomes() -> Vec<Outcome> {
        let mut all = vec![responded(0, 0, MS, 200), faulted(1, MS, 2 * MS, Fault::Reset)];
        all[0].exchange.connect = Some(90_000);
        all[1].exchange.label = 1;
        all.push(responded(u64::MAX, u64::MAX / 4, MS, 503));
        all[2].exchange.end = ExchangeEnd::Unfinished;
        all
    }

    fn log(format: LogFormat) -> String {
        let labels = ["plain".to_owned(), "a \"b\", c".to_owned()];
        let mut out = Vec::new();
        let mut log = RequestLog::new(&mut out, format, 1_000, &labels).unwrap();
        log.write(&outcomes()[..1]).unwrap();
        log.write(&outcomes()[1..]).unwrap();
        log.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_is_read_back() {
        let text = log(LogFormat::Csv);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), COLUMNS);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let instants: Vec<_> = rows[0].iter().skip(1).take(5).collect();
        assert_eq!(instants, ["1000", "21000", "21000", "951000", "1001000"]);
        assert_eq!((&rows[0][10], &rows[0][12], &rows[0][13]), ("90000", "200", ""));
        assert_eq!((&rows[1][4], &rows[1][12], &rows[1][13]), ("", "", "reset"));
        assert_eq!(&rows[1][16], "a \"b\", c");
        assert_eq!((&rows[2][0], &rows[2][13]), (u64::MAX.to_string().as_str(), "unfinished"));
    }

    #[test]
    fn json_lines_are_read_back() {
        let text = log(LogFormat::JsonLines);
        let rows: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&rows[0]["status"], &rows[0]["fault"]), (&200.into(), &().into()));
        assert_eq!(rows[0]["response_ns"], 1_000_000);
        assert_eq!((&rows[1]["fault"], &rows[1]["label"]), (&"reset".into(), &"a \"b\", c".into()));
        assert!(rows[1]["first_byte_unix_ns"].is_null());
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn the_extension_selects_the_format() {
        let of = |name: &str| LogFormat::of_path(std::path::Path::new(name));
        assert_eq!(of("a/log.csv"), Some(LogFormat::Csv));
        assert_eq!(of("log.jsonl"), Some(LogFormat::JsonLines));
        assert_eq!((of("log.txt"), of("log")), (None, None));
    }
}
