//! `--out csv`: a line a sample; system tags have their own columns.

use std::io::{self, Write};

use super::json::time;
use crate::test::RawSample;
use crate::values::scaled;

/// The format of timestamps in `--out csv`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Unix seconds.
    #[default]
    Unix,
    /// Unix milliseconds.
    UnixMilli,
    /// Unix microseconds.
    UnixMicro,
    /// Unix nanoseconds.
    UnixNano,
    /// RFC 3339, to the second.
    Rfc3339,
    /// RFC 3339, to the nanosecond.
    Rfc3339Nano,
}

/// Writes samples as k6's `--out csv` does.
#[derive(Debug)]
pub struct CsvLines {
    columns: Vec<String>,
    times: TimeFormat,
    line: String,
}

/// System tags that are metadata of samples.
const METADATA: [&str; 2] = ["iter", "vu"];

impl TimeFormat {
    /// Parses the value of `K6_CSV_TIME_FORMAT`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" | "unix" => Self::Unix,
            "unix_milli" => Self::UnixMilli,
            "unix_micro" => Self::UnixMicro,
            "unix_nano" => Self::UnixNano,
            "rfc3339" => Self::Rfc3339,
            "rfc3339_nano" => Self::Rfc3339Nano,
            _ => return None,
        })
    }

    fn write(self, line: &mut String, unix_ns: i128) {
        let second = 1_000_000_000;
        line.push_str(&match self {
            Self::Unix => unix_ns.div_euclid(second).to_string(),
            Self::UnixMilli => unix_ns.div_euclid(1_000_000).to_string(),
            Self::UnixMicro => unix_ns.div_euclid(1_000).to_string(),
            Self::UnixNano => unix_ns.to_string(),
            Self::Rfc3339 => time(unix_ns.div_euclid(second) * second),
            Self::Rfc3339Nano => time(unix_ns),
        });
    }
}

impl CsvLines {
    /// Lines with columns for these system tags.
    #[must_use]
    pub fn new(system_tags: &[String], times: TimeFormat) -> Self {
        let mut columns: Vec<String> =
            system_tags.iter().filter(|tag| !METADATA.contains(&tag.as_str())).cloned().collect();
        columns.sort();
        columns.dedup();
        Self { columns, times, line: String::new() }
    }

    /// Writes the names of the columns.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let columns = self.columns.join(",");
        let separator = if columns.is_empty() { "" } else { "," };
        writeln!(out, "metric_name,timestamp,metric_value,{columns}{separator}extra_tags,metadata")
    }

    /// Writes a sample. Tags without a column follow in the order of their keys.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write(&mut self, out: &mut impl Write, sample: &RawSample) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        line.push_str(&sample.metric.name);
        line.push(',');
        self.times.write(&mut line, sample.unix_ns);
        line.push_str(&format!(",{:.6}", scaled(sample.metric.unit, sample.value)));
        for column in &self.columns {
            line.push(',');
            field(&mut line, sample.tags.get(column).unwrap_or_default());
        }
        let tags = sample.tags.pairs().iter();
        let extra = tags.filter(|tag| !self.columns.contains(&tag.0));
        line.push(',');
        field(&mut line, &joined(extra));
        line.push(',');
        field(&mut line, &joined(sample.metadata.pairs().iter()));
        line.push('\n');
        out.write_all(line.as_bytes())?;
        self.line = line;
        Ok(())
    }
}

fn joined<'a>(pairs: impl Iterator<Item = &'a (String, String)>) -> String {
    pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
}

/// A field, quoted as by Go's `encoding/csv`.
fn field(line: &mut String, text: &str) {
    let is_plain = !text.contains([',', '"', '\r', '\n'])
        && !text.starts_with(char::is_whitespace)
        && text != "\\.";
    if is_plain {
        line.push_str(text);
    } else {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    }
}
