//! Targets files: what to send, in Vegeta's `http` and `json` formats.
//!
//! ```text
//! # gake: weight=3 label=checkout
//! POST http://localhost:8080/orders
//! Content-Type: application/json
//! @order.json
//!
//! GET http://localhost:8080/
//! ```
//!
//! ```text
//! {"method":"POST","url":"http://localhost:8080/orders","body":"e30=","header":{"A":["b"]}}
//! ```
//!
//! Weights and labels are gake's own: a `# gake:` comment before a target, or the keys `weight` and
//! `label`. Vegeta reads such files too, if an empty line precedes the comment.
//!
//! This parser is stricter or more lenient where Vegeta silently sends something unintended: a
//! request line may follow a header without an empty line between, a last JSON line needs no line
//! feed, and header names must be tokens. It opens no files: bodies are read when the run is
//! prepared, from paths relative to the working directory.

mod error;
mod http;
mod json;
mod line_reader;
#[cfg(test)]
mod tests;

use std::io::BufRead;
use std::path::PathBuf;

pub use error::{QuotedText, TargetError, TargetErrorKind};

use line_reader::LineReader;

/// Bytes of the longest line, its line feed included: room for a large body in the json format.
pub const MAX_LINE: usize = 64 << 20;

/// One request of a targets file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The method, as written.
    pub method: String,
    /// The URL, as written; it is not resolved here.
    pub url: String,
    /// Header lines in the order and the case they are written.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: TargetBody,
    /// The label of its figures.
    pub label: Option<String>,
    /// How often it is sent in each round, at least 1.
    pub weight: u32,
    /// The first line, from 1, for errors that are found later.
    pub line: usize,
}

impl Target {
    fn new(method: &str, url: &str) -> Self {
        Self {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: TargetBody::None,
            label: None,
            weight: 1,
            line: 0,
        }
    }
}

/// The body of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetBody {
    /// No body of its own; a default for all targets may apply.
    None,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The contents of this file, relative to the working directory.
    File(PathBuf),
}

/// The format of a targets file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFormat {
    /// Request lines, headers and body files.
    Http,
    /// One JSON object per line.
    Json,
}

impl TargetFormat {
    /// The format of a file whose first byte that is not blank is `byte`.
    pub const fn detect(byte: u8) -> Self {
        if byte == b'{' { Self::Json } else { Self::Http }
    }
}

/// The targets of a file, one by one, read only as far as needed.
///
/// An error ends the iteration.
#[derive(Debug)]
pub struct Targets<R> {
    lines: LineReader<R>,
    format: TargetFormat,
    /// Whether a URL by itself is a target.
    takes_urls: bool,
    ended: bool,
}

impl<R: BufRead> Targets<R> {
    /// The targets in `reader`, which is in this format and, as in Vegeta, names each method.
    pub const fn new(reader: R, format: TargetFormat) -> Self {
        Self { lines: LineReader::new(reader), format, takes_urls: false, ended: false }
    }

    /// The targets in `reader`, in the format detected from its first line.
    ///
    /// # Errors
    /// The first line cannot be read or is not text.
    pub fn detect(reader: R) -> Result<Self, TargetError> {
        let mut lines = LineReader::new(reader);
        let format = loop {
            match lines.next()? {
                Some((_, "")) => {}
                Some((_, text)) => break TargetFormat::detect(text.as_bytes()[0]),
                None => break TargetFormat::Http,
            }
        };
        lines.hold();
        Ok(Self { lines, format, takes_urls: true, ended: false })
    }

    /// The format of the file.
    pub const fn format(&self) -> TargetFormat {
        self.format
    }

    /// All targets.
    ///
    /// # Errors
    /// The first error, or [`TargetErrorKind::Empty`] without any target.
    pub fn read_all(self) -> Result<Vec<Target>, TargetError> {
        let targets = self.collect::<Result<Vec<_>, _>>()?;
        if targets.is_empty() {
            return Err(TargetError { line: 0, kind: TargetErrorKind::Empty });
        }
        Ok(targets)
    }
}

impl<R: BufRead> Iterator for Targets<R> {
    type Item = Result<Target, TargetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match self.format {
            TargetFormat::Http => http::next(&mut self.lines, self.takes_urls),
            TargetFormat::Json => json::next(&mut self.lines),
        };
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// Whether `text` is a token (RFC 9110, section 5.6.2), as methods and header names are.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether `value` would end its header line, or hide in it.
fn breaks_line(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_control() && b != b'\t')
}
