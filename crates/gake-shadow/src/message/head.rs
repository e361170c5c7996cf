//! The head of a request as bytes, immutable once written; a header map is built only on demand.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::exchange::RequestIds;

use super::line::{LINE_BYTES, digits, is, is_one_of, list, write_line};

/// Estimated bytes of the lines added to a changed head.
const ADDED_BYTES: usize = 128;

/// Hop-by-hop request headers, whatever `Connection` lists.
pub(crate) const REQUEST_HOP: &[&str] = &[
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "upgrade",
];

/// Essential headers, which `Connection` cannot nominate for removal.
pub(crate) const KEPT_NAMES: &[&str] = &["content-length", "host", "te", "transfer-encoding"];

/// Headers that frame the body.
pub(crate) const FRAMING_NAMES: &[&str] = &["content-length", "transfer-encoding"];

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// A request's head: the request line in HTTP/1.1, `Name: value` lines, and the empty line.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    method: Method,
    /// Path and query, a range of `bytes`.
    target: Range<usize>,
    bytes: Bytes,
    lines: KnownLines,
    /// The request's numbers, which every head derived from it has.
    pub(crate) ids: RequestIds,
}

/// The host and framing of a head, noted as its lines are written. Each backend needs them, and
/// searching a head costs more than parsing it.
#[derive(Debug, Clone, Copy, Default)]
struct KnownLines {
    has_host: bool,
    is_chunked: bool,
    /// The first `Content-Length`.
    length: Option<u64>,
}

impl KnownLines {
    fn note(&mut self, name: &[u8], value: &[u8]) {
        match name.len() {
            4 if is(name, "host") => self.has_host = true,
            14 if is(name, "content-length") && self.length.is_none() => {
                self.length = Some(digits(value).unwrap_or(0));
            }
            17 if is(name, "transfer-encoding") => self.is_chunked = true,
            _ => {}
        }
    }
}

/// The end of a request line.
const VERSION: &[u8] = b" HTTP/1.1\r\n";

/// An iterator over header lines: names and values.
#[derive(Clone)]
pub(crate) struct HeaderLines<'a>(&'a [u8]);

impl<'a> HeaderLines<'a> {
    /// Over lines in the format of [`write_line`].
    pub(super) fn of(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    pub(super) fn headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in self {
            // `write_line` gets valid names and values only.
            if let Ok(name) = HeaderName::from_bytes(name)
                && let Ok(value) = HeaderValue::from_bytes(value)
            {
                headers.append(name, value);
            }
        }
        headers
    }
}

impl<'a> Iterator for HeaderLines<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr::memchr(b'\n', self.0)?;
        let line = self.0[..end].strip_suffix(b"\r")?;
        self.0 = &self.0[end + 1..];
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line.get(colon + 2..)?))
    }
}

/// Builds a [`RequestHead`].
pub(crate) struct HeadWriter {
    method: Method,
    target: Range<usize>,
    pub(crate) bytes: Vec<u8>,
    lines: KnownLines,
}

impl HeadWriter {
    /// Writes the request line; `room` is the estimated size.
    pub(crate) fn new(method: &Method, target: &str, room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(method.as_str().as_bytes());
        bytes.push(b' ');
        let start = bytes.len();
        bytes.extend_from_slice(target.as_bytes());
        let target = start..bytes.len();
        bytes.extend_from_slice(VERSION);
        Self { method: method.clone(), target, bytes, lines: KnownLines::default() }
    }

    pub(crate) fn line(&mut self, name: &[u8], value: &[u8]) {
        self.lines.note(name, value);
        write_line(&mut self.bytes, name, value);
    }

    pub(crate) fn finish(mut self) -> RequestHead {
        self.bytes.extend_from_slice(b"\r\n");
        let Self { method, target, bytes, lines } = self;
        RequestHead { method, target, bytes: bytes.into(), lines, ids: RequestIds::default() }
    }
}

impl RequestHead {
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query.
    pub(crate) fn target(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.target.clone()]).unwrap_or("/")
    }

    pub(crate) fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    pub(crate) fn uri(&self) -> Uri {
        Uri::try_from(self.target()).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The header lines in order, with the case of their names.
    pub(crate) fn lines(&self) -> HeaderLines<'_> {
        let start = self.target.end + VERSION.len();
        HeaderLines(self.bytes.get(start..).unwrap_or_default())
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.lines().filter(move |(known, _)| is(known, name)).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    pub(crate) fn has_host(&self) -> bool {
        self.lines.has_host
    }

    /// The framing by its headers.
    pub(crate) fn framing(&self) -> Framing {
        match self.lines.is_chunked {
            true => Framing::Chunked,
            false => Framing::Length(self.lines.length.unwrap_or(0)),
        }
    }

    pub(crate) fn map(&self) -> HeaderMap {
        self.lines().headers()
    }

    pub(crate) fn without(&self, name: &str) -> Self {
        self.filtered(|known| !is(known, name))
    }

    fn filtered(&self, is_kept: impl Fn(&[u8]) -> bool) -> Self {
        let mut writer = HeadWriter::new(&self.method, self.target(), self.bytes.len());
        for (name, value) in self.lines().filter(|(name, _)| is_kept(name)) {
            writer.line(name, value);
        }
        writer.finish().numbered(self.ids)
    }

    pub(crate) fn numbered(self, ids: RequestIds) -> Self {
        Self { ids, ..self }
    }

    /// The same head with lines appended.
    pub(crate) fn with(&self, more: &[(&[u8], &[u8])]) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        let added = more.iter().map(|(name, value)| name.len() + value.len() + LINE_BYTES);
        // To the byte: `Bytes` of a larger buffer would be a second allocation.
        let mut bytes = Vec::with_capacity(self.bytes.len() + added.sum::<usize>());
        bytes.extend_from_slice(self.bytes.strip_suffix(b"\r\n").unwrap_or(&self.bytes));
        let mut lines = self.lines;
        for (name, value) in more {
            lines.note(name, value);
            write_line(&mut bytes, name, value);
        }
        bytes.extend_from_slice(b"\r\n");
        let (method, target) = (self.method.clone(), self.target.clone());
        Self { method, target, bytes: bytes.into(), lines, ids: self.ids }
    }

    /// The same head with the framing of a buffered body.
    pub(crate) fn framed(&self, framing: Framing) -> Self {
        if self.framing() == framing {
            return self.clone();
        }
        self.filtered(|name| !is_one_of(name, FRAMING_NAMES)).with_framing(framing)
    }

    fn with_framing(&self, framing: Framing) -> Self {
        match framing {
            Framing::Chunked => self.with(&[(b"transfer-encoding", b"chunked")]),
            Framing::Length(0) => self.clone(),
            Framing::Length(bytes) => {
                self.with(&[(b"content-length", bytes.to_string().as_bytes())])
            }
        }
    }

    /// The head as changed by a hook: a new request line and headers, without hop-by-hop ones and
    /// with this framing. Names that occur in `self` keep their case.
    pub(crate) fn changed(
        &self,
        method: &Method,
        target: &Uri,
        headers: &HeaderMap,
        framing: Framing,
    ) -> Self {
        let named = |name: &[u8]| {
            let mut lines = headers.get_all(http::header::CONNECTION).iter();
            lines.any(|line| list(line.as_bytes()).any(|one| one.eq_ignore_ascii_case(name)))
        };
        let path = target.path_and_query().map_or("/", |path| path.as_str());
        let mut writer = HeadWriter::new(method, path, self.bytes.len() + ADDED_BYTES);
        for (name, value) in headers {
            let known = name.as_str().as_bytes();
            let is_kept = is_one_of(known, KEPT_NAMES);
            let is_framing = is_one_of(known, FRAMING_NAMES);
            if is_framing || is_one_of(known, REQUEST_HOP) || (!is_kept && named(known)) {
                continue;
            }
            let value = value.as_bytes();
            if is(known, "te") {
                // Trailers pass through; other transfer codings do not.
                if list(value).any(|coding| is(coding, "trailers")) {
                    writer.line(known, b"trailers");
                }
                continue;
            }
            let mut written = self.lines().map(|(name, _)| name);
            let written = written.find(|name| name.eq_ignore_ascii_case(known));
            writer.line(written.unwrap_or(known), value);
        }
        let is_zero = self.lines.length.is_some() && framing == Framing::Length(0);
        if is_zero {
            writer.line(b"content-length", b"0");
        }
        writer.finish().numbered(self.ids).with_framing(framing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_knows_its_host_and_framing_however_it_was_made() {
        let mut writer = HeadWriter::new(&Method::POST, "/", 0);
        writer.line(b"HOST", b"h");
        writer.line(b"Content-Length", b"3");
        writer.line(b"content-length", b"4");
        let head = writer.finish();
        assert!(head.has_host());
        assert_eq!(head.framing(), Framing::Length(3), "the first one counts");
        assert!(!head.without("host").has_host());
        let chunked = head.framed(Framing::Chunked);
        assert_eq!(chunked.framing(), Framing::Chunked);
        assert_eq!(chunked.values("content-length").count(), 0);
        assert_eq!(chunked.framed(Framing::Length(7)).framing(), Framing::Length(7));
        assert_eq!(head.framed(Framing::Length(0)).framing(), Framing::Length(0));
        assert!(head.with(&[(b"X", b"1")]).bytes().ends_with(b"\r\nX: 1\r\n\r\n"));
    }
}
