//! Records as CSV: twelve columns, no header line, in the dialect of Go's `encoding/csv`.
//!
//! Not the `csv` crate: it quotes by other rules, and buffers a record with an unclosed quote
//! without a limit.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::decode_error::{DecodeError, read_line};
use super::record::{Headers, Timestamp, VegetaRecord};

/// Columns; versions before 12.9 wrote the first nine.
const COLUMNS: usize = 12;
const COLUMNS_BEFORE: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Decoder {
    line: Vec<u8>,
}

impl Decoder {
    /// The next record; `None` at the end.
    pub(super) fn next(
        &mut self,
        input: &mut impl BufRead,
    ) -> Result<Option<VegetaRecord>, DecodeError> {
        self.line.clear();
        loop {
            let from = self.line.len();
            let more = read_line(input, &mut self.line)?;
            if !more {
                return if from == 0 { Ok(None) } else { Err(DecodeError::CutOff) };
            }
            if self.line.trim_ascii().is_empty() {
                self.line.clear();
            } else if self.line.iter().filter(|byte| **byte == b'"').count() % 2 == 0 {
                // Outside of quotes: they are balanced.
                break;
            }
        }
        let whole = self.line.ends_with(b"\n");
        let text = String::from_utf8_lossy(&self.line);
        match fields(text.trim_end_matches(['\n', '\r'])).and_then(|fields| record(&fields)) {
            Ok(record) => Ok(Some(record)),
            Err(_) if !whole => Err(DecodeError::CutOff),
            Err(why) => Err(DecodeError::Record(why)),
        }
    }
}

/// Splits a record into its columns.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::with_capacity(COLUMNS);
    let mut rest = Some(line);
    while let Some(text) = rest {
        if fields.len() == COLUMNS {
            return Err("it has more than twelve columns".to_owned());
        }
        let text = text.trim_start();
        let (field, after) = match text.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => match text.split_once(',') {
                Some((field, after)) => (field.to_owned(), Some(after)),
                None => (text.to_owned(), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    Ok(fields)
}

/// The column that starts after a quote, and the rest of the record.
fn unquoted(text: &str) -> Result<(String, Option<&str>), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or("it has a quote that does not close")?;
        field.push_str(part);
        match after.as_bytes().first() {
            None => return Ok((field, None)),
            Some(b',') => return Ok((field, Some(&after[1..]))),
            Some(b'"') => {
                field.push('"');
                rest = &after[1..];
            }
            Some(_) => return Err("it has a quote in the middle of a column".to_owned()),
        }
    }
}

fn record(fields: &[String]) -> Result<VegetaRecord, String> {
    let old = [String::new(), String::new(), String::new()];
    let (fields, rest): (&[String; COLUMNS_BEFORE], &[String; 3]) = match fields.len() {
        COLUMNS_BEFORE => (fields.try_into().map_err(|_| "")?, &old),
        COLUMNS => {
            let (fields, rest) = fields.split_at(COLUMNS_BEFORE);
            (fields.try_into().map_err(|_| "")?, rest.try_into().map_err(|_| "")?)
        }
        count => return Err(format!("it has {count} columns instead of twelve")),
    };
    let [unix_ns, code, latency, bytes_out, bytes_in, error, body, attack, seq] = fields;
    let [method, url, headers] = rest;
    Ok(VegetaRecord {
        timestamp: Timestamp::local(number(unix_ns, "timestamp")?),
        code: number(code, "code")?,
        latency: number(latency, "latency")?,
        bytes_out: number(bytes_out, "count of bytes out")?,
        bytes_in: number(bytes_in, "count of bytes in")?,
        error: error.clone(),
        body: decoded(body, "body")?,
        attack: attack.clone(),
        seq: number(seq, "number")?,
        method: method.clone(),
        url: url.clone(),
        headers: if headers.is_empty() {
            None
        } else {
            Some(parsed(&decoded(headers, "headers")?))
        },
    })
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("its {what} is {text:?}"))
}

fn decoded(text: &str, what: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("its {what}: {error}"))
}

/// Header lines; values of one name are joined, as Go's map does.
fn parsed(bytes: &[u8]) -> Headers {
    let mut headers = Headers::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match headers.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value),
            None => headers.push((name.to_owned(), vec![value])),
        }
    }
    headers
}

/// Appends a record as a line.
pub(super) fn push_record(out: &mut Vec<u8>, record: &VegetaRecord) {
    let headers = record.headers.as_ref().map(lines).unwrap_or_default();
    let columns: [&str; COLUMNS] = [
        &record.timestamp.unix_ns.to_string(),
        &record.code.to_string(),
        &record.latency.to_string(),
        &record.bytes_out.to_string(),
        &record.bytes_in.to_string(),
        &record.error,
        &STANDARD.encode(&record.body),
        &record.attack,
        &record.seq.to_string(),
        &record.method,
        &record.url,
        &STANDARD.encode(headers),
    ];
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_column(out, column);
    }
    out.push(b'\n');
}

/// Quotes a column as Go does: when it contains a delimiter, or starts with a space.
fn push_column(out: &mut Vec<u8>, column: &str) {
    let blank = column.chars().next().is_some_and(char::is_whitespace);
    if !(blank || column == "\\." || column.contains([',', '"', '\r', '\n'])) {
        out.extend_from_slice(column.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(column.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

/// Header lines sorted by name, as Go writes them, with the empty line that ends a head.
fn lines(headers: &Headers) -> Vec<u8> {
    let mut sorted: Vec<_> = headers.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = Vec::new();
    for (name, values) in sorted {
        for value in values {
            // Go replaces line breaks, which would end the line.
            let value = value.replace(['\n', '\r'], " ");
            out.extend_from_slice(format!("{name}: {}\r\n", value.trim()).as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}
