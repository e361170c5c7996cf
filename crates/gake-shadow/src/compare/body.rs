//! Compares bodies, decoded, as JSON, text or bytes.

use std::borrow::Cow;

use gake_text::redact::{Redacted, Redactor};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::Value;

use super::field::{DifferenceKind, Differences};
use super::marker_names::MarkerNames;
use super::{json, text};
use crate::coding;
use crate::exchange::BackendResponse;

enum BodyContent {
    Json(Value),
    Text(String),
    Bytes,
}

impl BodyContent {
    fn of(headers: &HeaderMap, bytes: &[u8]) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let is_text =
            ["text/", "message/", "html", "xml", "javascript", "csv", "yaml", "urlencoded"]
                .iter()
                .any(|word| kind.contains(word));
        let first = bytes.trim_ascii_start().first();
        let may_be_json = kind.is_empty() || is_text || kind.contains("octet-stream");
        if (kind.contains("json") || (may_be_json && matches!(first, Some(b'{' | b'['))))
            && let Ok(value) = serde_json::from_slice(bytes)
        {
            return Self::Json(value);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if is_text || kind.is_empty() || kind.contains("json") => {
                Self::Text(text.to_owned())
            }
            _ => Self::Bytes,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Json(_) => "JSON",
            Self::Text(_) => "text",
            Self::Bytes => "bytes",
        }
    }
}

/// Compares two complete bodies.
pub(super) fn compare(
    expected: &BackendResponse,
    actual: &BackendResponse,
    markers: &MarkerNames,
    out: &mut Differences<'_>,
) {
    let redactor = out.redactor;
    let (left, right) = (decoded(expected), decoded(actual));
    if left == right {
        return;
    }
    let contents =
        (BodyContent::of(&expected.headers, &left), BodyContent::of(&actual.headers, &right));
    match contents {
        (BodyContent::Json(mut left), BodyContent::Json(mut right)) => {
            markers.remove_from(&mut left);
            markers.remove_from(&mut right);
            json::compare(&left, &right, out);
        }
        (BodyContent::Text(left), BodyContent::Text(right)) => {
            let [left, right] = [&left, &right].map(|text| markers.without_lines(text));
            text::compare(&left, &right, out);
        }
        (BodyContent::Bytes, BodyContent::Bytes) => {
            out.note("bytes", DifferenceKind::Value, || {
                (summary(redactor, &left), summary(redactor, &right))
            });
        }
        (a, b) => {
            let shown = |content: &BodyContent, bytes: &[u8]| {
                redactor.text(&format!("{} of {} bytes", content.name(), bytes.len()))
            };
            // For example an error page in place of a document.
            out.note("$", DifferenceKind::Type, || (shown(&a, &left), shown(&b, &right)));
        }
    }
}

/// Without the key of the redaction, the hash of a short body would reveal it.
fn summary(redactor: &Redactor, bytes: &[u8]) -> Redacted {
    let length = redactor.text(&format!("{} bytes, hash ", bytes.len()));
    Redacted::concat([length, redactor.fingerprint(bytes)])
}

/// The decoded body, or the raw one if its coding is unknown or broken.
fn decoded(response: &BackendResponse) -> Cow<'_, [u8]> {
    let bytes = &response.body.bytes[..];
    let coding = response.headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    let plain = coding.and_then(|coding| coding::decode(coding, bytes));
    plain.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bytes::Bytes;
    use http::{HeaderValue, StatusCode};

    use super::super::rules::Tolerances;
    use super::*;
    use crate::exchange::CapturedBody;

    fn response(
        kind: &'static str,
        coding: Option<&'static str>,
        bytes: Vec<u8>,
    ) -> BackendResponse {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        let len = bytes.len() as u64;
        let body = CapturedBody { bytes: Bytes::from(bytes), truncated: false, len };
        BackendResponse { status: StatusCode::OK, headers, body }
    }

    fn found(expected: &BackendResponse, actual: &BackendResponse) -> Vec<String> {
        let redactor = Redactor::off();
        let mut out = Differences::new(Tolerances::default(), &redactor);
        compare(expected, actual, &MarkerNames::default(), &mut out);
        out.fields.keys().map(ToString::to_string).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn a_content_coding_is_no_difference() {
        let plain = response("application/json", None, br#"{"a":1}"#.to_vec());
        // `{"a":2}` as brotli -q 0 writes it: an uncompressed meta-block.
        let brotli = b"\x0b\x03\x80{\"a\":2}\x03".to_vec();
        for (coding, body) in
            [("gzip", gzip(br#"{"a":2}"#)), ("deflate", deflate(br#"{"a":2}"#)), ("br", brotli)]
        {
            let coded = response("application/json", Some(coding), body);
            assert_eq!(found(&plain, &coded), ["$.a value"], "{coding}");
        }
        let same = response("application/json", Some("gzip"), gzip(br#"{"a":1}"#));
        assert!(found(&plain, &same).is_empty());
        let broken = response("application/json", Some("gzip"), b"\x1f\x8bnonsense".to_vec());
        assert_eq!(found(&plain, &broken), ["$ type"]);
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = response("text/plain", Some("gzip"), gzip(&vec![b'a'; 40 << 20]));
        assert!(decoded(&bomb).len() < 1 << 20);
    }

    #[test]
    fn json_text_and_bytes_are_distinguished() {
        let json = response("application/json", None, b"[1]".to_vec());
        let page = response("text/html", None, b"<b>no</b>".to_vec());
        let image = |last| response("image/png", None, vec![0x89, b'P', 0xff, last]);
        assert_eq!(found(&json, &page), ["$ type"]);
        assert_eq!(found(&image(1), &image(2)), ["bytes value"]);
        assert_eq!(
            found(&page, &response("text/html", None, vec![])),
            ["line \"<b>no</b>\" missing"]
        );
        let order = response("application/json", None, br#"{"b":1, "a":2}"#.to_vec());
        let other = response("application/json", None, br#"{"a":2,"b":1}"#.to_vec());
        assert!(found(&order, &other).is_empty());
    }
}
