//! Generated requests: URLs from a pattern, and requests from the rows of a data file.
//!
//! They are generated before the run and sent in turn, so that generation costs no time during it.

use std::path::Path;
use std::sync::Arc;

use gake_core::spec::value::{BodyValue, HeaderValue};
use gake_core::spec::{BodySpec, RequestDraft, ScenarioDraft};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use regex_syntax::hir::{Hir, HirKind};

use crate::Failure;

/// Number of URLs generated from a pattern.
const URLS: usize = 10_000;

/// Maximum number of rows and bytes of a data file.
const ROWS_MAX: usize = 1_000_000;
const DATA_MAX: u64 = 256 << 20;

/// Maximum repetitions of `*` and `+`.
const REPEATS_MAX: u32 = 10;

/// Generates requests whose URLs match `pattern`: a URL whose path and query are a regular
/// expression.
///
/// # Errors
/// When it has no path, or the path is not a regular expression.
pub fn of_pattern(pattern: &str, seed: u64) -> Result<Vec<RequestDraft>, Failure> {
    let urls = urls(pattern, seed, REPEATS_MAX, None)
        .map_err(|why| Failure::usage(format!("--rand-url {pattern:?}: {why}")))?;
    let name = Some(without_password(pattern));
    let request =
        |url| RequestDraft { name: name.clone(), url: Some(url), ..RequestDraft::default() };
    Ok(urls.into_iter().map(request).collect())
}

/// Generates `count` URLs, by default 10,000, that match a pattern; `*` and `+` repeat at most
/// `repeats` times.
///
/// # Errors
/// Why it is not a pattern, in a sentence.
pub fn urls(
    pattern: &str,
    seed: u64,
    repeats: u32,
    count: Option<usize>,
) -> Result<Vec<String>, String> {
    let after_scheme = pattern.find("://").map_or(0, |at| at + 3);
    let Some(path) = pattern[after_scheme..].find('/').map(|at| after_scheme + at) else {
        return Err("it has no path that could vary".to_owned());
    };
    let (origin, expression) = pattern.split_at(path);
    let expression = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(expression)
        .map_err(|error| format!("not a regular expression: {error}"))
        .and_then(|hir| {
            let longest = longest(&hir, u64::from(repeats));
            if longest > URL_MAX {
                return Err(format!(
                    "its texts have up to {longest} bytes, and a URL has {URL_MAX} at most"
                ));
            }
            let made = rand_regex::Regex::with_hir(hir, repeats);
            made.map_err(|error| format!("no text can be generated: {error}"))
        })?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let url = |_| -> String {
        let path: Vec<u8> = random.sample(&expression);
        format!("{origin}{}", encoded(&path))
    };
    Ok((0..count.unwrap_or(URLS)).map(url).collect())
}

/// Maximum bytes of a generated path and query.
const URL_MAX: u64 = 64 << 10;

/// The length of the longest text that is generated, where `*` and `+` repeat at most `repeats`
/// times more than they have to.
fn longest(hir: &Hir, repeats: u64) -> u64 {
    let of = |hir: &Hir| longest(hir, repeats);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 4,
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(of).fold(0, u64::saturating_add),
        HirKind::Alternation(parts) => parts.iter().map(of).max().unwrap_or(0),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(u64::from(repetition.min) + repeats, u64::from);
            of(&repetition.sub).saturating_mul(most)
        }
    }
}

/// Percent-encodes bytes that are not allowed in a URL.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'#' => {
                text.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => text.push(char::from(*byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Percent-encodes a value so that it stays a part of the path or query around it. Slashes stay, as a
/// value may be a path.
fn encoded_value(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'%' | b'&' | b'+' | b'?' => text.push_str(&format!("%{byte:02X}")),
            _ => text.push_str(&encoded(&[byte])),
        }
    }
    text
}

/// Whether a URL that begins with `text` has come to its path.
fn has_authority(text: &str) -> bool {
    text.split_once("://").map_or(text, |(_, rest)| rest).contains(['/', '?'])
}

/// Replaces the scenario's URL by one request for each row of the data file, with `${column}`
/// replaced in URL, headers and body.
///
/// # Errors
/// When the file cannot be read, a name is not one of its columns, or no column is used.
pub fn of_data(path: &Path, scenario: &mut ScenarioDraft) -> Result<(), Failure> {
    let Some(url) = scenario.url.take() else {
        let problem = "--data-file fills in ${name} in a URL; this target is not one";
        return Err(Failure::usage(problem));
    };
    let name = path.display().to_string();
    let data = gake_files::read(path, "a data file", DATA_MAX)
        .map_err(|error| Failure::could_not(error.to_string()))?;
    let table = CsvTable::read(&data).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    let body = match scenario.body.take() {
        Some(BodyValue(BodySpec::File(path))) if path.as_os_str() != "-" => {
            let text = gake_files::read_to_string(&path, "a body", gake_run::BODY_BYTES_MAX);
            Some(text.map_err(|error| Failure::could_not(error.to_string()))?)
        }
        Some(BodyValue(BodySpec::Bytes(bytes))) => {
            let text = String::from_utf8(bytes.to_vec());
            Some(text.map_err(|_| Failure::usage("a body with ${name} must be UTF-8"))?)
        }
        Some(BodyValue(BodySpec::File(_))) => {
            let problem = "--data-file needs a body from a file or the command line";
            return Err(Failure::usage(problem));
        }
        None => None,
    };
    let headers = std::mem::take(&mut scenario.headers);
    let template = GeneratedRequest { url: &url, headers: &headers, body: body.as_deref() };
    scenario.request = template
        .requests(&table)
        .map_err(|why| Failure::usage(format!("--data-file {name}: {why}")))?;
    Ok(())
}

/// The rows of a CSV file whose first line names the columns.
struct CsvTable {
    columns: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl CsvTable {
    fn read(data: &[u8]) -> Result<Self, String> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(data);
        let text = |error: csv::Error| error.to_string();
        let columns = reader.headers().map_err(text)?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for row in reader.records() {
            if rows.len() == ROWS_MAX {
                return Err(format!("more than {ROWS_MAX} rows"));
            }
            rows.push(row.map_err(text)?);
        }
        if rows.is_empty() {
            return Err("there is no row below the header line".to_owned());
        }
        Ok(Self { columns, rows })
    }
}

struct GeneratedRequest<'a> {
    url: &'a str,
    headers: &'a [HeaderValue],
    body: Option<&'a str>,
}

impl GeneratedRequest<'_> {
    fn requests(&self, table: &CsvTable) -> Result<Vec<RequestDraft>, String> {
        let url = TextTemplate::of(self.url, table)?;
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|HeaderValue(name, value)| Ok((name, TextTemplate::of(value, table)?)))
            .collect::<Result<_, String>>()?;
        let body = self.body.map(|body| TextTemplate::of(body, table)).transpose()?;
        let varies = url.varies
            || headers.iter().any(|(_, value)| value.varies)
            || body.as_ref().is_some_and(|body| body.varies);
        if !varies {
            return Err(format!(
                "no ${{name}} is used in URL, headers or body; the columns are {}",
                table.columns.join(", ")
            ));
        }
        let name = Some(without_password(self.url));
        let of_row = |row: &csv::StringRecord| -> Result<RequestDraft, String> {
            let headers = headers.iter().map(|(name, value)| {
                let value = value.filled(row);
                if value.contains(['\r', '\n']) {
                    return Err(format!("a value for the header {name} contains a line break"));
                }
                Ok(HeaderValue((*name).clone(), value))
            });
            let body = body.as_ref().map(|body| {
                let text = body.filled(row);
                BodyValue(BodySpec::Bytes(Arc::from(text.as_bytes())))
            });
            Ok(RequestDraft {
                name: name.clone(),
                url: Some(url.encoded(row)),
                headers: headers.collect::<Result<_, _>>()?,
                body,
                ..RequestDraft::default()
            })
        };
        table.rows.iter().map(of_row).collect()
    }
}

/// A text with placeholders for columns.
struct TextTemplate<'a> {
    /// Literal texts, each with the column that follows it.
    segments: Vec<(&'a str, Option<usize>)>,
    varies: bool,
}

impl<'a> TextTemplate<'a> {
    fn of(text: &'a str, table: &CsvTable) -> Result<Self, String> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            let column = table.columns.iter().position(|column| column == name.trim());
            let Some(column) = column else {
                return Err(format!(
                    "there is no column {name:?}; the columns are {}",
                    table.columns.join(", ")
                ));
            };
            segments.push((before, Some(column)));
            rest = after;
        }
        let varies = !segments.is_empty();
        segments.push((rest, None));
        Ok(Self { segments, varies })
    }

    fn with(&self, row: &csv::StringRecord, write: impl Fn(&str, &mut String)) -> String {
        let mut text = String::new();
        for (before, column) in &self.segments {
            text.push_str(before);
            if let Some(given) = column.and_then(|column| row.get(column)) {
                write(given, &mut text);
            }
        }
        text
    }

    fn filled(&self, row: &csv::StringRecord) -> String {
        self.with(row, |value, text| text.push_str(value))
    }

    /// For a URL: values are percent-encoded, so that each stays a part of its path or query. One
    /// before the path may be a host or a whole URL.
    fn encoded(&self, row: &csv::StringRecord) -> String {
        self.with(row, |value, text| {
            let value = match has_authority(text) {
                true => encoded_value(value),
                false => encoded(value.as_bytes()),
            };
            text.push_str(&value);
        })
    }
}

/// Removes user and password from a URL.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_match_their_pattern_and_repeat_with_the_seed() {
        let pattern = "http://u:p@127.0.0.1:80/users/[0-9]{3}/(a|b)\\?x=\\w+";
        let first = of_pattern(pattern, 7).unwrap();
        assert_eq!(first, of_pattern(pattern, 7).unwrap());
        assert_ne!(first, of_pattern(pattern, 8).unwrap());
        assert_eq!(first.len(), URLS);
        let mut different = std::collections::BTreeSet::new();
        for request in first.iter().filter_map(|request| request.url.as_ref()) {
            let path = request.strip_prefix("http://u:p@127.0.0.1:80/users/").unwrap();
            let (number, rest) = path.split_at(3);
            assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{path}");
            assert!(rest.starts_with("/a?x=") || rest.starts_with("/b?x="), "{path}");
            different.insert(request.clone());
        }
        assert!(different.len() > 1_000);
        assert!(!first[0].name.as_deref().unwrap().contains("u:p"), "{:?}", first[0].name);
        for wrong in ["http://h", "http://h/[", "h"] {
            assert!(of_pattern(wrong, 1).is_err(), "{wrong}");
        }
        let odd = of_pattern("http://h/[ \"#]", 1).unwrap();
        assert!(odd.iter().all(|one| {
            ["%20", "%22", "%23"].iter().any(|e| one.url.as_ref().unwrap().ends_with(e))
        }));
    }

    #[test]
    fn rows_fill_in_url_headers_and_body() {
        let table = CsvTable::read(b"id, name\n1,Ann\n2,\"B, c\"\n").unwrap();
        let headers = [HeaderValue("X-Name".to_owned(), "<${name}>".to_owned())];
        let template = GeneratedRequest {
            url: "http://h/${id}?n=${name}",
            headers: &headers,
            body: Some("{${id}}"),
        };
        let requests = template.requests(&table).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].url.as_deref(), Some("http://h/2?n=B,%20c"));
        assert_eq!(requests[1].headers, [HeaderValue("X-Name".to_owned(), "<B, c>".to_owned())]);
        assert_eq!(requests[1].body, Some(BodyValue(BodySpec::text("{2}"))));
        let odd = CsvTable::read(b"at,v\nh:1/a?b=c&d,50% &#+?/\n").unwrap();
        let url = "http://${at}/${v}?x=${v}";
        let odd = GeneratedRequest { url, headers: &[], body: None }.requests(&odd).unwrap();
        let value = "50%25%20%26%23%2B%3F/";
        let expected = format!("http://h:1/a?b=c&d/{value}?x={value}");
        assert_eq!(odd[0].url.as_deref(), Some(expected.as_str()));
        let url = |url| GeneratedRequest { url, headers: &[], body: None }.requests(&table);
        assert!(url("http://h/${no}").unwrap_err().contains("the columns are id, name"));
        assert!(url("http://h/").unwrap_err().contains("no ${name} is used"));
        assert!(CsvTable::read(b"id\n").is_err() && CsvTable::read(b"id\n1,2\n").is_err());
    }
}
