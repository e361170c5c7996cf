//! The per-request log: one line for each arrival, as CSV or JSON lines.
//!
//! Off by default: it grows with the run. Lines are made by hand into one buffer a batch, so that
//! a fast run is not slowed by its log.

use std::io::{self, Write};

use gake_core::clock::Nanos;
use gake_core::record::{ExchangeEnd, Outcome};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Comma-separated values with a header line; what is unknown is empty.
    Csv,
    /// One JSON object a line; what is unknown is null.
    JsonLines,
}

impl LogFormat {
    /// The format that a file name asks for by its ending: `.csv`, `.json` or `.jsonl`.
    #[must_use]
    pub fn of_path(path: &std::path::Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// Writes the log.
#[derive(Debug)]
pub struct Log<W: Write> {
    out: W,
    format: LogFormat,
    started_unix_ns: u64,
    /// Names of the labels as they are written: quoted and escaped.
    labels: Vec<String>,
    line: Vec<u8>,
}

/// A field of a line.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Unknown,
    /// A text without anything to escape.
    Plain(&'a str),
    /// A text that was escaped before.
    Escaped(&'a str),
}

/// The columns.
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

impl<W: Write> Log<W> {
    /// A log whose instants are relative to `started_unix_ns`; writes the header.
    ///
    /// # Errors
    /// What the writer returns.
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

    /// Appends what came of arrivals.
    ///
    /// # Errors
    /// What the writer returns.
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
    /// What the writer returns.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn fields(&self, outcome: &Outcome) -> [Field<'_>; COLUMNS.len()] {
        let exchange = &outcome.exchange;
        let at = |offset: Nanos| Field::Number(self.started_unix_ns.saturating_add(offset));
        let number = |value: Option<u64>| value.map_or(Field::Unknown, Field::Number);
        let (status, fault) = match exchange.end {
            ExchangeEnd::Response(answer) => (Field::Number(answer.status.into()), Field::Unknown),
            ExchangeEnd::Fault(fault) => (Field::Unknown, Field::Plain(fault.name())),
            ExchangeEnd::Unfinished => (Field::Unknown, Field::Plain("unfinished")),
        };
        let label = self.labels.get(usize::from(exchange.label));
        [
            Field::Number(outcome.arrival.number),
            at(outcome.arrival.due),
            at(outcome.fired),
            at(exchange.write),
            exchange.first_byte.map_or(Field::Unknown, at),
            at(exchange.done),
            Field::Number(outcome.response()),
            Field::Number(exchange.service()),
            Field::Number(outcome.lateness()),
            Field::Number(outcome.blocked),
            number(exchange.connect),
            number(exchange.tls),
            status,
            fault,
            Field::Number(exchange.bytes_in),
            Field::Number(exchange.bytes_out),
            label.map_or(Field::Unknown, |label| Field::Escaped(label)),
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

fn push_line(line: &mut Vec<u8>, format: LogFormat, fields: &[Field<'_>; COLUMNS.len()]) {
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

fn push_field(line: &mut Vec<u8>, field: Field<'_>, unknown: &str, quote: &str) {
    match field {
        Field::Number(number) => push_number(line, number),
        Field::Unknown => line.extend_from_slice(unknown.as_bytes()),
        Field::Escaped(text) => line.extend_from_slice(text.as_bytes()),
        Field::Plain(text) => {
            for part in [quote, text, quote] {
                line.extend_from_slice(part.as_bytes());
            }
        }
    }
}

/// Decimal digits without the machinery of formatting: it is most of a line's cost.
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
    use crate::testing::{MS, answered, faulted};

    fn outcomes() -> Vec<Outcome> {
        let mut all = vec![answered(0, 0, MS, 200), faulted(1, MS, 2 * MS, Fault::Reset)];
        all[0].exchange.connect = Some(90_000);
        all[1].exchange.label = 1;
        all.push(answered(u64::MAX, u64::MAX / 4, MS, 503));
        all[2].exchange.end = ExchangeEnd::Unfinished;
        all
    }

    fn log(format: LogFormat) -> String {
        let labels = ["plain".to_owned(), "a \"b\", c".to_owned()];
        let mut out = Vec::new();
        let mut log = Log::new(&mut out, format, 1_000, &labels).unwrap();
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
    fn the_ending_of_the_name_tells_the_format() {
        let of = |name: &str| LogFormat::of_path(std::path::Path::new(name));
        assert_eq!(of("a/log.csv"), Some(LogFormat::Csv));
        assert_eq!(of("log.jsonl"), Some(LogFormat::JsonLines));
        assert_eq!((of("log.txt"), of("log")), (None, None));
    }
}
