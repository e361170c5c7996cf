//! Headers of answers on their way through: what belongs to one hop stays there.

use gake_wire::http1::Header;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, TE,
    TRANSFER_ENCODING, UPGRADE, VIA,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// What of an answer belongs to the backend's hop, its framing aside.
pub(crate) const ANSWER_HOP: &[&str] = &[
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

/// Removes what HTTP/2 has no headers for: its connections and framing speak for themselves.
pub(crate) fn strip_for_http2(headers: &mut HeaderMap) {
    for name in [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|te| te != TRAILERS) {
        headers.remove(TE);
    }
}

fn strip_named(headers: &mut HeaderMap) {
    let usual = |value: &HeaderValue| {
        [&b"keep-alive"[..], b"close"]
            .iter()
            .any(|word| value.as_bytes().eq_ignore_ascii_case(word))
    };
    if headers.get_all(CONNECTION).iter().all(usual) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING, TE].contains(name))
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Removes the hop-by-hop headers of an answer, and those about its framing that do not hold any
/// more.
fn strip_answer(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        strip_named(headers);
        headers.remove(CONNECTION);
    }
    headers.remove(KEEP_ALIVE);
    headers.remove(PROXY_CONNECTION);
    headers.remove(PROXY_AUTHENTICATE);
    headers.remove(UPGRADE);
    if headers.remove(TRANSFER_ENCODING).is_some() {
        // The transfer coding told the length, and a length beside it is a lie to someone.
        headers.remove(CONTENT_LENGTH);
    }
}

/// What of an answer's headers is not about the backend's hop.
pub(crate) fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    strip_answer(&mut headers);
    single_length(&mut headers);
    headers
}

/// Header lines as a map.
pub(crate) fn map_of(lines: &[Header<'_>]) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        // The codec takes no others.
        if let Ok(name) = HeaderName::from_bytes(line.name.as_bytes())
            && let Ok(value) = HeaderValue::from_bytes(line.value)
        {
            headers.append(name, value);
        }
    }
    headers
}

/// Several equal lengths become one.
fn single_length(headers: &mut HeaderMap) {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return };
    let several = lengths.next().is_some() || first.as_bytes().contains(&b',');
    if several {
        let length = first.as_bytes().split(|byte| *byte == b',').next().unwrap_or_default();
        match HeaderValue::from_bytes(length.trim_ascii()) {
            Ok(length) => drop(headers.insert(CONTENT_LENGTH, length)),
            Err(_) => drop(headers.remove(CONTENT_LENGTH)),
        }
    }
}

/// Adds ourselves to an answer's `Via`.
pub(crate) fn add_via(headers: &mut HeaderMap) {
    headers.append(VIA, VIA_US);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_belongs_to_the_hop_stays_there() {
        let mut headers = map(&[
            ("connection", "close, X-Private, host"),
            ("connection", "x-other"),
            ("x-private", "1"),
            ("x-other", "2"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("x-kept", "3"),
            ("x-kept", "4"),
        ]);
        strip_answer(&mut headers);
        assert_eq!(lines(&headers), ["x-kept: 3", "x-kept: 4"]);
    }

    #[test]
    fn an_answer_has_one_framing() {
        let mut headers = map(&[("transfer-encoding", "chunked"), ("content-length", "5")]);
        strip_answer(&mut headers);
        assert!(headers.is_empty());
        for several in
            [&[("content-length", "5"), ("content-length", "5")][..], &[("content-length", "5, 5")]]
        {
            let mut headers = map(several);
            single_length(&mut headers);
            assert_eq!(lines(&headers), ["content-length: 5"]);
        }
    }
}
