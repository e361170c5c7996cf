//! Checks of response bodies.

use std::fmt;
use std::str::FromStr;

use regex_automata::meta::Regex;
use serde_json::Value;

use crate::client::grpc::GrpcMethod;
use crate::coding;

/// Maximum bytes of a checked body, both encoded and decoded. A larger one fails the check.
pub(crate) const CHECKED_BYTES_MAX: usize = 16 << 20;

/// A check that the body of a response must pass.
#[derive(Debug, Clone)]
pub struct BodyCheck {
    text: String,
    rule: BodyRule,
    /// The gRPC method that returns the messages to check.
    method: Option<GrpcMethod>,
}

#[derive(Debug, Clone)]
enum BodyRule {
    /// The expression matches anywhere in the body.
    Matches(Regex),
    Sha256([u8; 32]),
    /// The body is JSON with this value at a path.
    Json(Vec<PathStep>, Value),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Member(String),
    Element(usize),
}

/// Why a text is not a body check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyCheckError {
    /// Not a regular expression.
    #[error("{0:?} is not a valid regular expression: {1}")]
    Regex(String, String),
    /// Not a hash.
    #[error("{0:?} is not a SHA-256: write sha256: and 64 hexadecimal digits")]
    Sha256(String),
    /// Not a path and a value.
    #[error(
        "{0:?} is not a path and a value: write json:PATH=VALUE, for example json:items[0].id=7"
    )]
    Json(String),
}

impl FromStr for BodyCheck {
    type Err = BodyCheckError;

    /// `sha256:HEX`, `json:PATH=VALUE`, or a regular expression.
    fn from_str(text: &str) -> Result<Self, BodyCheckError> {
        let rule = if let Some(digits) = text.strip_prefix("sha256:") {
            BodyRule::Sha256(hash(digits).ok_or_else(|| BodyCheckError::Sha256(text.to_owned()))?)
        } else if let Some(rest) = text.strip_prefix("json:") {
            let parsed = rest.split_once('=').and_then(|(at, value)| Some((path(at)?, value)));
            let (path, value) = parsed.ok_or_else(|| BodyCheckError::Json(text.to_owned()))?;
            // A value that is not JSON is a string without its quotes.
            let value =
                serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            BodyRule::Json(path, value)
        } else {
            let regex = Regex::new(text);
            let refused = |error: &dyn fmt::Display| {
                BodyCheckError::Regex(text.to_owned(), error.to_string())
            };
            BodyRule::Matches(regex.map_err(|error| match error.syntax_error() {
                Some(error) => refused(error),
                None => refused(&error),
            })?)
        };
        Ok(Self { text: text.to_owned(), rule, method: None })
    }
}

impl fmt::Display for BodyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for BodyCheck {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for BodyCheck {}

impl BodyCheck {
    /// The same check for each message that a gRPC method returns, as JSON.
    #[must_use]
    pub fn of_messages(self, method: GrpcMethod) -> Self {
        Self { method: Some(method), ..self }
    }

    /// Whether a body, decoded first, passes the check. A body with an unknown coding, or larger than
    /// [`CHECKED_BYTES_MAX`], fails.
    pub(crate) fn is_met(&self, coding: &[u8], body: &[u8]) -> bool {
        if let Some(method) = &self.method {
            return method.returns(body, |message| self.is_met_by(message));
        }
        match decoded(coding, body, CHECKED_BYTES_MAX) {
            Some(decoded) => self.is_met_by(&decoded),
            None => false,
        }
    }

    fn is_met_by(&self, body: &[u8]) -> bool {
        match &self.rule {
            BodyRule::Matches(regex) => regex.is_match(body),
            BodyRule::Sha256(expected) => sha256(body) == expected,
            BodyRule::Json(path, expected) => {
                let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
                let found = path.iter().try_fold(&value, |value, step| match step {
                    PathStep::Member(name) => value.get(name),
                    PathStep::Element(index) => value.get(index),
                });
                found.is_some_and(|found| same(found, expected))
            }
        }
    }
}

/// Whether two values are equal. Numbers compare by value: 7 equals 7.0.
fn same(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => found == expected,
        _ => found == expected,
    }
}

fn sha256(body: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref().to_vec()
}

fn hash(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Parses `items[0].id`, with an optional `$` or `$.` in front.
fn path(text: &str) -> Option<Vec<PathStep>> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let mut steps = Vec::new();
    for segment in text.split('.').filter(|segment| !segment.is_empty()) {
        let (name, rest) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
        if !name.is_empty() {
            steps.push(PathStep::Member(name.to_owned()));
        }
        for index in rest.split('[').skip(1) {
            steps.push(PathStep::Element(index.strip_suffix(']')?.parse().ok()?));
        }
    }
    Some(steps)
}

/// The body without its content codings; `None` if that is not possible, or it has more than `most`
/// bytes.
pub(crate) fn decoded(codings: &[u8], body: &[u8], most: usize) -> Option<Vec<u8>> {
    coding::decoded(body, std::str::from_utf8(codings).ok()?, most as u64).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use expect_test::expect;

    use super::*;

    fn meets(check: &str, body: &str) -> bool {
        check.parse::<BodyCheck>().unwrap().is_met(b"", body.as_bytes())
    }

    #[test]
    fn a_body_matches_has_a_hash_or_a_value() {
        assert!(meets("wor+ld$", "hello world") && !meets("^world", "hello world"));
        let of_abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(meets(of_abc, "abc") && !meets(of_abc, "abc\n"));
        let body = r#"{"ok":true,"items":[{"id":7},{"id":"b"}],"n":null}"#;
        for check in ["json:ok=true", "json:items[0].id=7", "json:$.items[1].id=b", "json:n=null"] {
            assert!(meets(check, body), "{check}");
        }
        for check in ["json:ok=false", "json:items[2].id=7", "json:items[0].id=8", "json:x=null"] {
            assert!(!meets(check, body), "{check}");
        }
        assert!(meets("json:[1]=2.0", "[1,2]") && !meets("json:a=1", "{"));
    }

    #[test]
    fn bodies_are_decoded_up_to_a_limit() {
        let gzip = |body: &[u8]| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(body).unwrap();
            out.finish().unwrap()
        };
        let check: BodyCheck = "^hello$".parse().unwrap();
        assert!(check.is_met(b"gzip", &gzip(b"hello")));
        assert!(check.is_met(b" GZIP", &gzip(b"hello")));
        // `hello` as `brotli -q 0` and `zstd` write it.
        assert!(check.is_met(b"br", b"\x0b\x02\x80hello\x03"));
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 5, 0x29, 0, 0, b'h', b'e', b'l', b'l', b'o'];
        assert!(check.is_met(b"zstd", &zstd));
        assert!(!check.is_met(b"gzip", b"hello") && !check.is_met(b"lzma", b"hello"));
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        raw.write_all(b"hello").unwrap();
        let raw = raw.finish().unwrap();
        assert!(check.is_met(b"deflate", &raw) && check.is_met(b"deflate, gzip", &gzip(&raw)));
        assert!(check.is_met(b"gzip,gzip", &gzip(&gzip(b"hello"))));
        assert!(!check.is_met(b"gzip, deflate", &gzip(&raw)));
        let bomb = gzip(&vec![b'a'; CHECKED_BYTES_MAX + 1]);
        assert!(!"a".parse::<BodyCheck>().unwrap().is_met(b"gzip", &bomb));
    }

    #[test]
    fn invalid_checks_are_refused() {
        let bad = ["sha256:12", "sha256:é", "json:a", "json:a[x]=1"];
        let errors = bad.map(|text| text.parse::<BodyCheck>().unwrap_err().to_string());
        expect![[r#"
            "sha256:12" is not a SHA-256: write sha256: and 64 hexadecimal digits
            "sha256:é" is not a SHA-256: write sha256: and 64 hexadecimal digits
            "json:a" is not a path and a value: write json:PATH=VALUE, for example json:items[0].id=7
            "json:a[x]=1" is not a path and a value: write json:PATH=VALUE, for example json:items[0].id=7"#]].assert_eq(&errors.join("\n"));
        assert!(matches!("(".parse::<BodyCheck>(), Err(BodyCheckError::Regex(..))));
    }
}
