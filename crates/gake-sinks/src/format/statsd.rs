//! StatsD with Datadog's tags, and Graphite with its own. Both get only seconds: the figures of the
//! whole run would count them twice.

use std::fmt::Write as _;

use super::rows::{RowWriter, all_tags};
use crate::figures::{FigureField, FigureRow};

/// A row's name after the prefix; `None` for rows that these systems cannot represent.
fn name_of(row: &FigureRow<'_>) -> Option<&'static str> {
    let name = row.measurement.strip_prefix("gake_")?;
    (name != "events" && !name.starts_with("run_")).then_some(name)
}

/// A text without the special characters of names and tags.
fn plain(text: &str) -> String {
    let keep = |c: char| match c {
        ';' | ',' | '|' | '#' | ':' | '~' | '=' | '!' => '_',
        c if c.is_whitespace() || c.is_control() => '_',
        c => c,
    };
    text.chars().map(keep).collect()
}

/// Writes `gake.requests.ok:12|c|#name:/fast`.
pub(crate) struct StatsD {
    prefix: String,
    tags: Vec<(String, String)>,
}

impl StatsD {
    pub(crate) fn new(prefix: String, tags: Vec<(String, String)>) -> Self {
        Self { prefix, tags }
    }
}

impl RowWriter for StatsD {
    fn write(&mut self, row: &FigureRow<'_>, _unix_ns: u64, out: &mut Vec<u8>) -> bool {
        let Some(name) = name_of(row) else { return false };
        let mut tags = String::new();
        for (tag, value) in all_tags(&self.tags, row) {
            tags.push_str(if tags.is_empty() { "|#" } else { "," });
            let _ = write!(tags, "{}:{}", plain(tag), plain(value));
        }
        let mut lines = String::new();
        for (field, value) in &row.fields {
            let prefix = &self.prefix;
            let is_counter = name != "latency" && *field != "connections";
            let _ = match value {
                FigureField::Count(count) if is_counter => {
                    writeln!(lines, "{prefix}.{name}.{field}:{count}|c{tags}")
                }
                FigureField::Count(count) => {
                    writeln!(lines, "{prefix}.{name}.{field}:{count}|g{tags}")
                }
                FigureField::Number(number) => {
                    writeln!(lines, "{prefix}.{name}.{field}:{number}|g{tags}")
                }
                FigureField::Text(_) => Ok(()),
            };
        }
        out.extend_from_slice(lines.as_bytes());
        true
    }
}

/// Writes `gake.requests.ok;name=/fast 12 1700000000`.
pub(crate) struct Graphite {
    prefix: String,
    tags: Vec<(String, String)>,
}

impl Graphite {
    pub(crate) fn new(prefix: String, tags: Vec<(String, String)>) -> Self {
        Self { prefix, tags }
    }
}

impl RowWriter for Graphite {
    fn write(&mut self, row: &FigureRow<'_>, unix_ns: u64, out: &mut Vec<u8>) -> bool {
        let Some(name) = name_of(row) else { return false };
        let mut tags = String::new();
        for (tag, value) in all_tags(&self.tags, row).filter(|(_, value)| !value.is_empty()) {
            let _ = write!(tags, ";{}={}", plain(tag), plain(value));
        }
        let mut lines = String::new();
        let seconds = unix_ns / 1_000_000_000;
        for (field, value) in &row.fields {
            let prefix = &self.prefix;
            let _ = match value {
                FigureField::Count(count) => {
                    writeln!(lines, "{prefix}.{name}.{field}{tags} {count} {seconds}")
                }
                FigureField::Number(number) => {
                    writeln!(lines, "{prefix}.{name}.{field}{tags} {number} {seconds}")
                }
                FigureField::Text(_) => Ok(()),
            };
        }
        out.extend_from_slice(lines.as_bytes());
        true
    }
}
