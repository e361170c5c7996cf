//! Headers on their way through: what belongs to one hop stays there, and backends' own edits.

use gake_wire::http1::{Header, ResponseHead};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};

use http::Method;

use super::answer_bytes::write_line;
use super::target::Target;
use crate::config::Edits;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
/// Bytes of a request's head, more or less.
const HEAD_BYTES: usize = 512;
/// What of an answer belongs to the backend's hop, its framing aside.
pub(super) const ANSWER_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];
/// What we call ourselves in an answer's `Via`.
pub(super) const VIA_US: HeaderValue = HeaderValue::from_static("1.1 gake");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// Removes what belongs to the hop it came by (RFC 9110, section 7.6.1): the known ones, and those
/// that `Connection` names. A name without which the message would be another one stays.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        strip_named(headers);
        headers.remove(CONNECTION);
    }
    headers.remove(KEEP_ALIVE);
    headers.remove(PROXY_CONNECTION);
    headers.remove(UPGRADE);
    headers.remove(HTTP2_SETTINGS);
    headers.remove(PROXY_AUTHORIZATION);
    if let Some(te) = headers.remove(TE) {
        // Trailers pass through us; other transfer codings do not.
        let wants = te.to_str().is_ok_and(|te| {
            te.split(',').any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
        });
        if wants {
            headers.insert(TE, TRAILERS);
        }
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
pub(crate) fn strip_answer(headers: &mut HeaderMap) {
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

/// An answer's headers for those who listen to exchanges.
pub(crate) fn of_answer(head: &ResponseHead<'_>) -> HeaderMap {
    let mut headers = as_map(head);
    strip_answer(&mut headers);
    headers
}

/// An answer's headers as they came.
pub(crate) fn as_map(head: &ResponseHead<'_>) -> HeaderMap {
    map_of(head.headers)
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

/// Whether an answer is framed in a way that cannot be passed on: a coding that is not ours.
pub(crate) fn is_strangely_framed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match codings.next() {
        None => false,
        Some(coding) => {
            codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
    }
}

/// Several equal lengths become one.
pub(crate) fn single_length(headers: &mut HeaderMap) {
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

/// Makes the framing of a changed head that of the head as it came, whose body it has.
pub(crate) fn same_framing(came: &HeaderMap, changed: &mut HeaderMap) {
    strip_hop_by_hop(changed);
    for name in [CONTENT_LENGTH, TRANSFER_ENCODING] {
        changed.remove(&name);
        if let Some(value) = came.get(&name) {
            changed.insert(name, value.clone());
        }
    }
}

/// Adds ourselves to an answer's `Via`.
pub(crate) fn add_via(headers: &mut HeaderMap) {
    headers.append(VIA, VIA_US);
}

/// A request's head as bytes, with its empty line.
pub(crate) fn request_head(method: &Method, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    for (name, value) in headers {
        write_line(&mut head, name.as_str().as_bytes(), value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// What one backend's requests say differently.
pub(crate) fn for_backend(headers: &mut HeaderMap, target: &Target) {
    match &target.host {
        Some(host) => drop(headers.insert(HOST, host.clone())),
        // A client that speaks HTTP/1.0 need not have said one; a request in 1.1 must.
        None => drop(headers.entry(HOST).or_insert_with(|| target.own_host.clone())),
    }
    if !target.backend.edits.is_empty() {
        // The body is what it was: a head that says another length would be another message.
        let framing = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let framing = framing.map(|name| (headers.get(&name).cloned(), name));
        edit(headers, &target.backend.edits);
        for (value, name) in framing {
            match value {
                Some(value) => drop(headers.insert(name, value)),
                None => drop(headers.remove(name)),
            }
        }
    }
}

fn edit(headers: &mut HeaderMap, edits: &Edits) {
    for name in &edits.remove {
        headers.remove(name);
    }
    for (name, old, new) in &edits.remap {
        if let http::header::Entry::Occupied(mut entry) = headers.entry(name) {
            for value in entry.iter_mut().filter(|value| **value == *old) {
                *value = new.clone();
            }
        }
    }
    for (name, suffix) in &edits.suffix {
        if let Some(value) = headers.get_mut(name) {
            let longer = [value.as_bytes(), suffix.as_bytes()].concat();
            if let Ok(longer) = HeaderValue::from_bytes(&longer) {
                *value = longer;
            }
        }
    }
    for (name, value) in &edits.set {
        headers.insert(name.clone(), value.clone());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    pub fn lines(headers: &HeaderMap) -> Vec<String> {
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
            ("host", "h"),
            ("connection", "close, X-Private, host"),
            ("connection", "x-other"),
            ("x-private", "1"),
            ("x-other", "2"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers, deflate"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("x-kept", "3"),
            ("x-kept", "4"),
        ]);
        strip_hop_by_hop(&mut headers);
        assert_eq!(lines(&headers), ["host: h", "te: trailers", "x-kept: 3", "x-kept: 4"]);
    }

    #[test]
    fn an_answer_has_one_framing() {
        let mut headers = map(&[("transfer-encoding", "chunked"), ("content-length", "5")]);
        assert!(!is_strangely_framed(&headers));
        strip_answer(&mut headers);
        assert!(headers.is_empty());
        assert!(is_strangely_framed(&map(&[("transfer-encoding", "gzip, chunked")])));
        for several in
            [&[("content-length", "5"), ("content-length", "5")][..], &[("content-length", "5, 5")]]
        {
            let mut headers = map(several);
            single_length(&mut headers);
            assert_eq!(lines(&headers), ["content-length: 5"]);
        }
    }

    #[test]
    fn a_backends_own_edits_come_in_order() {
        let name = |text: &str| text.parse::<HeaderName>().unwrap();
        let value = HeaderValue::from_static;
        let edits = Edits {
            remove: vec![name("cookie")],
            remap: vec![(name("authorization"), value("Bearer live"), value("Bearer test"))],
            suffix: vec![(name("idempotency-key"), "-shadow".to_owned())],
            set: vec![(name("x-env"), value("test"))],
        };
        let mut headers = map(&[
            ("cookie", "a"),
            ("authorization", "Bearer live"),
            ("idempotency-key", "k1"),
            ("x-env", "live"),
        ]);
        edit(&mut headers, &edits);
        assert_eq!(
            lines(&headers),
            ["authorization: Bearer test", "idempotency-key: k1-shadow", "x-env: test"]
        );
    }
}
