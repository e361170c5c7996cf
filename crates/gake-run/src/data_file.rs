//! Requests from the rows of a data file: comma-separated values whose first line names the columns.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord, Trim};
use gake_wire::{HttpRequest, RequestList, WeightedRequest};

/// Maximum number of rows and bytes of a data file.
const ROWS_MAX: usize = 1_000_000;
const DATA_MAX: u64 = 256 << 20;

/// Opens a data file.
///
/// # Errors
/// When it cannot be read, with its name.
pub(crate) fn open(path: &Path) -> Result<impl Read + use<>, String> {
    let failed = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok(BufReader::with_capacity(1 << 18, file))
}

/// A request with `${column}` in URL, header values and body.
pub(crate) struct RowRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: Option<&'a str>,
}

impl RowRequest<'_> {
    /// The request for each row of `data`. `check` refuses a URL.
    ///
    /// # Errors
    /// When `data` cannot be read, a name is not one of its columns, or no column is used.
    pub(crate) fn requests(
        &self,
        data: impl Read,
        mut check: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<RequestList, String> {
        let text = |error: csv::Error| error.to_string();
        let data = data.take(DATA_MAX + 1);
        let mut reader = ReaderBuilder::new().trim(Trim::Headers).from_reader(data);
        let columns = reader.headers().map_err(text)?.clone();
        let url = TextTemplate::of(self.url, &columns)?;
        let headers = self.headers.iter().map(|(_, value)| TextTemplate::of(value, &columns));
        let headers: Vec<_> = headers.collect::<Result<_, _>>()?;
        let body = self.body.map(|body| TextTemplate::of(body, &columns)).transpose()?;
        if ![&url].into_iter().chain(&headers).chain(&body).any(TextTemplate::varies) {
            return Err(format!(
                "no ${{name}} is used in URL, headers or body; the columns are {}",
                names(&columns)
            ));
        }
        let request =
            HttpRequest { headers: self.headers.to_vec(), ..HttpRequest::new(self.method, "") };
        let mut one = WeightedRequest {
            label: Some(without_password(self.url)),
            ..WeightedRequest::from(request)
        };
        let (mut list, mut row) = (RequestList::default(), StringRecord::new());
        while reader.read_record(&mut row).map_err(text)? {
            if list.len() == ROWS_MAX {
                return Err(format!("more than {ROWS_MAX} rows"));
            }
            url.fill(&row, &mut one.request.url, |value, url| match has_authority(url) {
                true => encode_value(value, url),
                false => percent_encoded(value.as_bytes(), url),
            });
            let line = row.position().map_or(0, csv::Position::line);
            check(&one.request.url).map_err(|error| format!("line {line}: {error}"))?;
            for ((name, value), template) in one.request.headers.iter_mut().zip(&headers) {
                template.fill(&row, value, |value, text| text.push_str(value));
                if template.varies() && value.contains(['\r', '\n']) {
                    return Err(format!("a value for the header {name} contains a line break"));
                }
            }
            one.request.body = body.as_ref().map(|body| {
                let mut text = String::new();
                body.fill(&row, &mut text, |value, text| text.push_str(value));
                Arc::from(text.into_bytes())
            });
            list.push(&one);
        }
        if reader.get_ref().limit() == 0 {
            return Err(format!("it is larger than {} MiB", DATA_MAX >> 20));
        }
        match list.is_empty() {
            true => Err("there is no row below the header line".to_owned()),
            false => Ok(list),
        }
    }
}

/// A text with placeholders for columns.
struct TextTemplate<'a> {
    /// Literal texts, each with the column that follows it.
    segments: Vec<(&'a str, Option<usize>)>,
}

impl<'a> TextTemplate<'a> {
    fn of(text: &'a str, columns: &StringRecord) -> Result<Self, String> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            let Some(column) = columns.iter().position(|column| column == name.trim()) else {
                let columns = names(columns);
                return Err(format!("there is no column {name:?}; the columns are {columns}"));
            };
            segments.push((before, Some(column)));
            rest = after;
        }
        segments.push((rest, None));
        Ok(Self { segments })
    }

    fn varies(&self) -> bool {
        self.segments.len() > 1
    }

    /// Replaces `text` by this text with the values of a row, each appended by `write`.
    fn fill(&self, row: &StringRecord, text: &mut String, write: impl Fn(&str, &mut String)) {
        text.clear();
        for (before, column) in &self.segments {
            text.push_str(before);
            if let Some(value) = column.and_then(|column| row.get(column)) {
                write(value, text);
            }
        }
    }
}

fn names(columns: &StringRecord) -> String {
    columns.iter().collect::<Vec<_>>().join(", ")
}

/// Whether a URL that begins with `text` has come to its path.
fn has_authority(text: &str) -> bool {
    text.split_once("://").map_or(text, |(_, rest)| rest).contains(['/', '?'])
}

/// Percent-encodes a value so that it stays a part of the path or query around it. Slashes stay, as a
/// value may be a path.
fn encode_value(value: &str, url: &mut String) {
    for byte in value.bytes() {
        match byte {
            // Writing to a string cannot fail.
            b'%' | b'&' | b'+' | b'?' => drop(write!(url, "%{byte:02X}")),
            _ => percent_encoded(&[byte], url),
        }
    }
}

/// Appends bytes to a URL, those percent-encoded that it cannot contain.
pub fn percent_encoded(bytes: &[u8], url: &mut String) {
    for &byte in bytes {
        if matches!(byte, 0x21..=0x7e) && !br#""<>\^`{|}#"#.contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// Removes user and password from a URL.
#[must_use]
pub fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(template: &RowRequest<'_>, data: &str) -> Result<Vec<WeightedRequest>, String> {
        template.requests(data.as_bytes(), |_| Ok(())).map(|list| list.iter().collect())
    }

    #[test]
    fn rows_fill_in_url_headers_and_body() {
        let data = "id, name\n1,Ann\n2,\"B, c\"\n";
        let headers = [("X-Name".to_owned(), "<${name}>".to_owned())];
        let url = "http://h/${id}?n=${name}";
        let template = RowRequest { method: "PUT", url, headers: &headers, body: Some("{${id}}") };
        let made = requests(&template, data).unwrap();
        assert_eq!(made.len(), 2);
        let request = &made[1].request;
        assert_eq!((&*request.method, &*request.url), ("PUT", "http://h/2?n=B,%20c"));
        assert_eq!(request.headers, [("X-Name".to_owned(), "<B, c>".to_owned())]);
        assert_eq!(request.body.as_deref(), Some(&b"{2}"[..]));
        assert_eq!(made[0].label.as_deref(), Some(url));
        let of_url = |url| RowRequest { method: "GET", url, headers: &[], body: None };
        let odd = "at,v\nh:1/a?b=c&d,50% &#+?/\n";
        let odd = requests(&of_url("http://${at}/${v}?x=${v}"), odd).unwrap();
        let value = "50%25%20%26%23%2B%3F/";
        assert_eq!(odd[0].request.url, format!("http://h:1/a?b=c&d/{value}?x={value}"));
        let problem = |url, data| requests(&of_url(url), data).unwrap_err();
        assert!(problem("http://h/${no}", data).contains("the columns are id, name"));
        assert!(problem("http://h/", data).contains("no ${name} is used"));
        assert!(problem("http://h/${id}", "id\n").contains("no row"));
        assert!(problem("http://h/${id}", "id\n1,2\n").contains("fields"));
        let lines = of_url("http://h/${id}");
        let refused = lines.requests("id\n1\n2\n".as_bytes(), |url| match url {
            "http://h/2" => Err("no".to_owned()),
            _ => Ok(()),
        });
        assert_eq!(refused.unwrap_err(), "line 3: no");
    }
}
