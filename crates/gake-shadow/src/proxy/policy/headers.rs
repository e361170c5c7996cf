//! Headers of answers on their way through: what belongs to one hop stays there.

use gake_wire::http1::Header;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};

use crate::message::head::KEPT_NAMES;
use crate::message::line::{is, is_one_of, list};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// What of an answer belongs to the backend's hop.
const ANSWER_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];
/// What we call ourselves in an answer's `Via`.
pub(crate) const VIA_US: HeaderValue = HeaderValue::from_static("1.1 gake");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// The header lines of an answer, and what one pass over them finds.
pub(crate) struct ResponseLines<'a> {
    lines: &'a [Header<'a>],
    /// There is a `Transfer-Encoding`.
    is_coded: bool,
    /// It is framed in a way that cannot be passed on: a coding that is not ours.
    pub(crate) is_unsupported: bool,
    pub(crate) has_date: bool,
    /// The number of the first line of `Content-Length`, which stands for all.
    length: Option<usize>,
    /// The lines of `Connection`, when they name more than what is always left out.
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

    /// Whether they say how long the body is. A length beside a coding is a lie to someone.
    pub(crate) fn has_length(&self) -> bool {
        self.length.is_some() && !self.is_coded
    }

    /// The lines that are not about the backend's hop: names and values. Several lengths become one.
    pub(crate) fn end_to_end(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.lines.iter().enumerate().filter_map(|(number, line)| {
            let name = line.name.as_bytes();
            if is_one_of(name, ANSWER_HOP) || self.names(name) {
                return None;
            }
            if !is(name, "content-length") {
                return Some((line.name, line.value));
            }
            let is_written = self.has_length() && self.length == Some(number);
            is_written.then(|| (line.name, list(line.value).next().unwrap_or_default()))
        })
    }

    /// The same as a map.
    pub(crate) fn map(&self) -> HeaderMap {
        map(self.end_to_end())
    }

    /// Whether `Connection` names a header that may be left out.
    fn names(&self, name: &[u8]) -> bool {
        let mut named = self.connection.iter().flat_map(|line| list(line));
        !self.connection.is_empty()
            && named.any(|one| one.eq_ignore_ascii_case(name))
            && !is_one_of(name, KEPT_NAMES)
    }
}

/// Removes what HTTP/2 has no headers for: its connections and framing speak for themselves.
pub(crate) fn strip_for_http2(headers: &mut HeaderMap) {
    for name in [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|te| te != TRAILERS) {
        headers.remove(TE);
    }
}

/// Header lines as a map.
pub(crate) fn map_of(lines: &[Header<'_>]) -> HeaderMap {
    map(lines.iter().map(|line| (line.name, line.value)))
}

fn map<'a>(lines: impl Iterator<Item = (&'a str, &'a [u8])>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        // The codec takes no others.
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.append(name, value);
        }
    }
    headers
}

/// Adds ourselves to an answer's `Via`.
pub(crate) fn add_via(headers: &mut HeaderMap) {
    headers.append(VIA, VIA_US);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of lines is passed on.
    fn kept(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let line =
            |(name, value): &(&'static str, &'static str)| Header { name, value: value.as_bytes() };
        let lines: Vec<Header<'_>> = lines.iter().map(line).collect();
        let kept = ResponseLines::of(&lines);
        let text = |(name, value)| format!("{name}: {}", String::from_utf8_lossy(value));
        kept.end_to_end().map(text).collect()
    }

    #[test]
    fn what_belongs_to_the_hop_stays_there() {
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
    fn an_answer_has_one_framing() {
        assert!(kept(&[("transfer-encoding", "chunked"), ("content-length", "5")]).is_empty());
        for several in
            [&[("Content-Length", "5"), ("Content-Length", "5")][..], &[("Content-Length", "5, 5")]]
        {
            assert_eq!(kept(several), ["Content-Length: 5"]);
        }
    }
}
