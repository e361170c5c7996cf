//! Redaction of secrets in recordings, comparisons, reports, logs and run files: found by name and
//! by shape, and replaced by a keyed hash.
//!
//! A value becomes `redacted-` and 16 hexadecimal digits, a hash under a random key that is not
//! stored: equal values stay equal within a file, so it can be replayed and compared, and values
//! cannot be guessed. A number in JSON becomes another number with the same number of digits.
//!
//! - **By name**, matched by word, in headers, cookies, parameters, form fields, members of JSON at
//!   any depth, elements and attributes of XML, and `name=value` in other text.
//! - **By shape**: JSON web tokens, keys of AWS, GitHub and other services, private keys, card
//!   numbers whose check digit is right, passwords in URLs.
//!
//! Truncated or malformed text is redacted as far as possible.

mod edits;
mod http;
mod json;
mod markup;
mod names;
mod shapes;
mod text;

use std::borrow::Cow;
#[allow(deprecated, reason = "the keyed SipHash-2-4 of the standard library")]
use std::hash::{Hasher, SipHasher};

use names::Secrecy;
pub use names::SecretNames;

/// The prefix of the hash.
const MARK: &str = "redacted-";

/// Hexadecimal digits of the hash.
const DIGITS: usize = 16;

const TAG: usize = MARK.len() + DIGITS;

/// Maximum nesting of texts within texts (JSON in a string, a URL in a parameter).
const DEPTH: u8 = 4;

/// Replaces secrets by hashes under a key.
#[derive(Clone)]
pub struct Redactor {
    key: [u64; 2],
    names: SecretNames,
    off: bool,
}

/// The position of a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePosition {
    /// In a query, a fragment or a form.
    Parameter,
    /// Anywhere else.
    Member,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the key.
        f.debug_struct("Redactor").field("names", &self.names).field("off", &self.off).finish()
    }
}

impl Redactor {
    /// Redacts values whose names are in `names`, hashed under `key`, which must stay secret.
    #[must_use]
    pub fn new(key: [u8; 16], names: SecretNames) -> Self {
        let half = |at: usize| {
            key[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Self { key: [half(0), half(8)], names, off: false }
    }

    /// A redactor that keeps everything.
    #[must_use]
    pub fn off() -> Self {
        Self { key: [0; 2], names: SecretNames::default(), off: true }
    }

    /// Whether it keeps everything.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// Whether values of this name are secrets, whatever they look like.
    #[must_use]
    pub fn is_secret_name(&self, name: &str) -> bool {
        !self.off && self.names.of(name) == Secrecy::Secret
    }

    /// Redacts the value of a header.
    #[must_use]
    pub fn header<'a>(&self, name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.off { Cow::Borrowed(value) } else { http::header(self, name, value) }
    }

    /// Redacts the target of a request, or any URL.
    #[must_use]
    pub fn target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        if self.off { Cow::Borrowed(target) } else { http::target(self, target, DEPTH) }
    }

    /// Redacts the body of a message. `kind` is its content type, or empty; content codings must be
    /// decoded first.
    #[must_use]
    pub fn body<'a>(&self, kind: &str, body: &'a [u8]) -> Cow<'a, [u8]> {
        if self.off { Cow::Borrowed(body) } else { http::body(self, kind, body, DEPTH) }
    }

    /// Redacts any text: a line of a log, an argument, a fragment of a document.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.off { Cow::Borrowed(text) } else { text_of(text, self.any(text.as_bytes(), DEPTH)) }
    }

    /// Redacts a JSON value for display; `secret`: hides all of it.
    #[must_use]
    pub fn json<'a>(&self, written: &'a str, secret: bool) -> Cow<'a, str> {
        if self.off {
            return Cow::Borrowed(written);
        }
        match json::shown(self, written.as_bytes(), DEPTH, secret) {
            Some(edits) => text_of(written, edits.apply(written.as_bytes())),
            None => self.text(written),
        }
    }

    /// The replacement of a value.
    #[must_use]
    pub fn tag(&self, value: &[u8]) -> String {
        format!("{MARK}{:016x}", self.hash(value))
    }

    fn hash(&self, value: &[u8]) -> u64 {
        #[allow(deprecated, reason = "the keyed SipHash-2-4 of the standard library")]
        let mut hasher = SipHasher::new_with_keys(self.key[0], self.key[1]);
        hasher.write(value);
        hasher.finish()
    }

    /// The replacement of a number: another one with as many digits, which is not a valid card
    /// number.
    fn number(&self, written: &[u8]) -> Vec<u8> {
        let mut left = self.hash(written);
        let mut last = 0;
        let mut out: Vec<u8> = written.to_vec();
        for (at, byte) in out.iter_mut().enumerate() {
            if byte.is_ascii_digit() {
                let digit = (left % 9) as u8 + 1;
                left = (left / 9) ^ self.hash(&[digit, at as u8]);
                *byte = b'0' + digit;
                last = at;
            } else if matches!(byte, b'e' | b'E') {
                break; // The exponent keeps it a number.
            }
        }
        let digits: Vec<u8> = out.iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect();
        if shapes::luhn(&digits) {
            out[last] = if out[last] == b'9' { b'1' } else { out[last] + 1 };
        }
        out
    }

    /// Whether to hide the value with this name.
    fn hides(&self, name: &str, value: &[u8], place: NamePosition) -> bool {
        // First, since most names are plain, and values may be long.
        let secrecy = self.names.of(name);
        if secrecy == Secrecy::Plain || is_nothing(value) {
            return false;
        }
        match secrecy {
            Secrecy::Plain => false,
            Secrecy::Secret => true,
            Secrecy::UnlessNumber => !value.iter().all(u8::is_ascii_digit),
            Secrecy::Guess => place == NamePosition::Parameter || !is_word(value),
        }
    }

    /// Redacts bytes of unknown type.
    fn any<'a>(&self, bytes: &'a [u8], depth: u8) -> Cow<'a, [u8]> {
        let Some(deeper) = depth.checked_sub(1) else { return self.closed(bytes) };
        let structured = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
        let edits = structured.then(|| json::edits(self, bytes, deeper)).flatten();
        edits.unwrap_or_else(|| text::edits(self, bytes, deeper)).apply(bytes)
    }

    /// Redacts bytes that are nested too deeply: hidden if they may contain values.
    fn closed<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let holds = bytes.iter().any(|byte| b"=:{[<".contains(byte));
        if holds { Cow::Owned(self.tag(bytes).into_bytes()) } else { Cow::Borrowed(bytes) }
    }
}

/// Whether a text contains a redacted value.
#[must_use]
pub fn is_redacted(bytes: &[u8]) -> bool {
    bytes.windows(TAG).any(is_tag)
}

fn is_tag(bytes: &[u8]) -> bool {
    bytes.strip_prefix(MARK.as_bytes()).is_some_and(|hash| {
        hash.len() == DIGITS && hash.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether there is nothing to hide: an empty value, a literal, or a redacted value.
fn is_nothing(value: &[u8]) -> bool {
    let literals: [&[u8]; 7] =
        [b"", b"true", b"false", b"null", b"none", b"undefined", b"[redacted]"];
    let last = value.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let scheme = &value[..value.len() - last.len()];
    let is_scheme = scheme.iter().filter(|byte| **byte == b' ').count() <= 1 && scheme.len() <= 20;
    literals.iter().any(|literal| value.eq_ignore_ascii_case(literal))
        || (is_tag(last) && is_scheme)
}

/// Whether a value looks like a plain name: a few letters, or a short number.
fn is_word(value: &[u8]) -> bool {
    let end = value.iter().rposition(|byte| !b",.;:)".contains(byte)).map_or(0, |last| last + 1);
    let value = &value[..end];
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b' ');
    (value.len() <= 24 && value.iter().all(letters))
        || (value.len() <= 3 && value.iter().all(u8::is_ascii_digit))
}

/// Redacted bytes of `text`, as text.
fn text_of<'a>(text: &'a str, bytes: Cow<'a, [u8]>) -> Cow<'a, str> {
    match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        },
    }
}

#[cfg(test)]
mod tests;
