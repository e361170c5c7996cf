//! InfluxDB's line protocol.

use std::fmt::Write as _;

use gake_text::foreign;
use gake_wire::HttpRequest;
use url::{Url, form_urlencoded};

use super::rows::{RowWriter, all_tags};
use crate::address::SinkAddress;
use crate::carrier::Post;
use crate::figures::{FigureField, FigureRow};

/// Writes `measurement,tag=value field=1i 1700000000000000000`.
pub(crate) struct Influx {
    tags: Vec<(String, String)>,
    line: String,
}

impl Influx {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        Self { tags, line: String::new() }
    }
}

impl RowWriter for Influx {
    fn write(&mut self, row: &FigureRow<'_>, unix_ns: u64, out: &mut Vec<u8>) -> bool {
        let line = &mut self.line;
        line.clear();
        line.push_str(row.measurement);
        write_tags(all_tags(&self.tags, row), line);
        let mut separator = ' ';
        for (name, field) in &row.fields {
            if matches!(field, FigureField::Number(number) if !number.is_finite()) {
                continue;
            }
            line.push(separator);
            separator = ',';
            line.push_str(name);
            line.push('=');
            let _ = match field {
                FigureField::Count(count) => write!(line, "{count}i"),
                FigureField::Number(number) => write!(line, "{number}"),
                FigureField::Text(text) => {
                    write!(line, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
                }
            };
        }
        if separator == ' ' {
            return false;
        }
        let _ = writeln!(line, " {unix_ns}");
        out.extend_from_slice(line.as_bytes());
        true
    }
}

/// Writes `,name=value` for each tag with a value; InfluxDB accepts no empty values.
pub(crate) fn write_tags<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>, out: &mut String) {
    for (name, value) in tags.filter(|(_, value)| !value.is_empty()) {
        out.push(',');
        escape(name, out);
        out.push('=');
        escape(value, out);
    }
}

/// Writes a tag's name or value. Control characters are replaced; so is a backslash at the end,
/// which would escape the next character.
pub(crate) fn escape(text: &str, out: &mut String) {
    let text = foreign::line(text);
    let body = text.trim_end_matches('\\');
    for c in body.chars() {
        match c {
            ',' | '=' | ' ' => out.extend(['\\', c]),
            '\n' | '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    (body.len()..text.len()).for_each(|_| out.push_str("\\u005c"));
}

/// The target of lines. In version 1 the database is created, as k6 does.
pub(super) fn post(address: &SinkAddress) -> Post {
    let token = address.option("token");
    let version = match address.option("version") {
        Some("2") => 2,
        Some("3") => 3,
        None if address.option("org").is_some() || token.is_some() => 2,
        _ => 1,
    };
    let (base, database) = split(address.address());
    let mut headers = vec![("Content-Type".to_owned(), "text/plain; charset=utf-8".to_owned())];
    let scheme = if version == 3 { "Bearer" } else { "Token" };
    headers.extend(token.map(|token| ("Authorization".to_owned(), format!("{scheme} {token}"))));
    let query = |pairs: &[(&str, &str)]| {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    };
    match version {
        1 => {
            let create = format!("CREATE DATABASE \"{}\"", database.replace('"', "\\\""));
            let first = format!("{base}/query?{}", query(&[("q", &create)]));
            let write = query(&[("db", &database), ("precision", "ns")]);
            let first = Some(HttpRequest::new("POST", first));
            Post::new(format!("{base}/write?{write}"), headers, first)
        }
        2 => {
            let org = address.option("org").unwrap_or_default();
            let write = query(&[("org", org), ("bucket", &database), ("precision", "ns")]);
            let first = ping(&base, &headers);
            Post::new(format!("{base}/api/v2/write?{write}"), headers, first)
        }
        _ => {
            let write = query(&[("db", &database), ("precision", "nanosecond")]);
            let first = ping(&base, &headers);
            Post::new(format!("{base}/api/v3/write_lp?{write}"), headers, first)
        }
    }
}

fn ping(base: &str, headers: &[(String, String)]) -> Option<HttpRequest> {
    let headers = headers.iter().filter(|(name, _)| name == "Authorization").cloned().collect();
    Some(HttpRequest { headers, ..HttpRequest::new("GET", format!("{base}/ping")) })
}

/// Splits off the last segment of the path, the database.
fn split(address: &str) -> (String, String) {
    let Ok(mut url) = Url::parse(address) else { return (address.to_owned(), String::new()) };
    let path = url.path().trim_end_matches('/').to_owned();
    let (before, database) = path.rsplit_once('/').unwrap_or(("", &path));
    let database = form_urlencoded::parse(format!("d={database}").as_bytes())
        .next()
        .map_or_else(String::new, |(_, database)| database.into_owned());
    url.set_path(before);
    (url.as_str().trim_end_matches('/').to_owned(), database)
}
