//! End-to-end headers of responses.

use gake_codec::http1::Header;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};

use crate::message::head::KEPT_NAMES;
use crate::message::line::{is, is_one_of, list};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const RESPONSE_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];
/// Our `Via` in responses.
pub(crate) const VIA_US: HeaderValue = HeaderValue::from_static("1.1 gake");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// The header lines of a response, analysed in one pass.
pub(crate) struct ResponseLines<'a> {
    lines: &'a [Header<'a>],
    is_coded: bool,
    /// The transfer coding is not `chunked`, so the response cannot be passed on.
    pub(crate) is_unsupported: bool,
    pub(crate) has_date: bool,
    /// The index of the first `Content-Length`.
    length: Option<usize>,
    /// `Connection` lines that nominate further headers.
    connection: Vec<&'a [u8]>,
}

impl<'a> ResponseLines<'a> {
    pub(crate) fn of(lines: &'a [Header<'a>]) -> Self {
        let (length, connection) = (None, Vec::new());
        let (is_coded, is_unsupported, has_date) = (false, false, false);
        let mut all = Self { lines, is_coded, is_unsupported, has_date, length, connection };
        for (number, line) in lines.iter().enumerate() {
            let (name, value) = (line.name.as_bytes(), line.value);
            match name.len() {
                4 if is(name, "date") => all.has_date = true,
                10 if is(name, "connection") => {
                    let usual = ["keep-alive", "close"].iter().any(|word| is(value, word));
                    if !usual {
                        all.connection.push(value);
                    }
                }
                14 if is(name, "content-length") => {
                    all.length = all.length.or(Some(number));
                }
                17 if is(name, "transfer-encoding") => {
                    all.is_unsupported |= all.is_coded || !is(value, "chunked");
                    all.is_coded = true;
                }
                _ => {}
            }
        }
        all
    }

    /// Whether there is a valid length. One beside a transfer coding is ambiguous, and ignored.
    pub(crate) fn has_length(&self) -> bool {
        self.length.is_some() && !self.is_coded
    }

    /// The end-to-end lines; equal lengths become one.
    pub(crate) fn end_to_end(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.lines.iter().enumerate().filter_map(|(number, line)| {
            let name = line.name.as_bytes();
            if is_one_of(name, RESPONSE_HOP) || self.names(name) {
                return None;
            }
            if !is(name, "content-length") {
                return Some((line.name, line.value));
            }
            let is_written = self.has_length() && self.length == Some(number);
            is_written.then(|| (line.name, list(line.value).next().unwrap_or_default()))
        })
    }

    /// The end-to-end headers as a map.
    pub(crate) fn map(&self) -> HeaderMap {
        map(self.end_to_end())
    }

    /// Whether `Connection` nominates a header for removal.
    fn names(&self, name: &[u8]) -> bool {
        let mut named = self.connection.iter().flat_map(|line| list(line));
        !self.connection.is_empty()
            && named.any(|one| one.eq_ignore_ascii_case(name))
            && !is_one_of(name, KEPT_NAMES)
    }
}

/// Removes headers that are forbidden in HTTP/2 (RFC 9113, section 8.2.2).
pub(crate) fn strip_for_http2(headers: &mut HeaderMap) {
    for name in [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|te| te != TRAILERS) {
        headers.remove(TE);
    }
}

pub(crate) fn map_of(lines: &[Header<'_>]) -> HeaderMap {
    map(lines.iter().map(|line| (line.name, line.value)))
}

fn map<'a>(lines: impl Iterator<Item = (&'a str, &'a [u8])>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        // The codec accepts valid lines only.
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.append(name, value);
        }
    }
    headers
}

pub(crate) fn add_via(headers: &mut HeaderMap) {
    headers.append(VIA, VIA_US);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines passed on.
    fn kept(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let line =
            |(name, value): &(&'static str, &'static str)| Header { name, value: value.as_bytes() };
        let lines: Vec<Header<'_>> = lines.iter().map(line).collect();
        let kept = ResponseLines::of(&lines);
        let text = |(name, value)| format!("{name}: {}", String::from_utf8_lossy(value));
        kept.end_to_end().map(text).collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let lines = [
            ("Connection", "close, X-Private, host"),
            ("connection", "x-other"),
            ("X-Private", "1"),
            ("X-OTHER", "2"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("Upgrade", "h2c"),
            ("X-Kept", "3"),
            ("x-kept", "4"),
        ];
        assert_eq!(kept(&lines), ["X-Kept: 3", "x-kept: 4"]);
    }

    #[test]
    fn a_response_has_one_framing() {
        assert!(kept(&[("transfer-encoding", "chunked"), ("content-length", "5")]).is_empty());
        for several in
            [&[("Content-Length", "5"), ("Content-Length", "5")][..], &[("Content-Length", "5, 5")]]
        {
            assert_eq!(kept(several), ["Content-Length: 5"]);
        }
    }
}
