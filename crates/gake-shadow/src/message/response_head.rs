//! The stored head of a backend's response, for responses that pass as frames.

use bytes::Bytes;
use gake_codec::http1::{Header, ResponseHead, Version};
use http::{HeaderMap, StatusCode};

use super::head::HeaderLines;
use super::line::{digits, is, write_line};

/// The head of a final response.
#[derive(Debug, Clone)]
pub(crate) struct BackendResponseHead {
    status: StatusCode,
    reason: Box<str>,
    /// The header lines, with the case of their names.
    lines: Bytes,
}

impl BackendResponseHead {
    /// `None` if the status is invalid.
    pub(crate) fn of_http1(head: &ResponseHead<'_>) -> Option<Self> {
        let status = StatusCode::from_u16(head.status).ok()?;
        let mut lines = Vec::new();
        for line in head.headers {
            write_line(&mut lines, line.name.as_bytes(), line.value);
        }
        Some(Self { status, reason: head.reason.into(), lines: lines.into() })
    }

    pub(crate) fn of_http2(status: StatusCode, headers: &HeaderMap) -> Self {
        let mut lines = Vec::new();
        for (name, value) in headers {
            write_line(&mut lines, name.as_str().as_bytes(), value.as_bytes());
        }
        let reason = status.canonical_reason().unwrap_or("<none>").into();
        Self { status, reason, lines: lines.into() }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(move |(known, _)| is(known, name)).map(|(_, value)| value)
    }

    /// The value of a single `Content-Length` line.
    pub(crate) fn length(&self) -> Option<u64> {
        let mut lengths = self.values("content-length");
        match (lengths.next(), lengths.next()) {
            (Some(length), None) => digits(length),
            _ => None,
        }
    }

    pub(crate) fn map(&self) -> HeaderMap {
        self.lines().headers()
    }

    /// Calls `look` with the head as the codec presents it.
    pub(crate) fn with_parsed<T>(&self, look: impl FnOnce(&ResponseHead<'_>) -> T) -> T {
        let header = |(name, value)| {
            // A name is a token.
            Header { name: std::str::from_utf8(name).unwrap_or_default(), value }
        };
        let headers: Vec<Header<'_>> = self.lines().map(header).collect();
        look(&ResponseHead {
            status: self.status.as_u16(),
            reason: &self.reason,
            version: Version::Http11,
            headers: &headers,
        })
    }

    fn lines(&self) -> HeaderLines<'_> {
        HeaderLines::of(&self.lines)
    }
}
