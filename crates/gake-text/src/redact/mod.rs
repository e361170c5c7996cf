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
//! Truncated or malformed text is redacted as far as possible. A masking redactor hides values
//! behind [`MASK`] in place of a hash: for what several processes must write alike, and for what is
//! shown only.

mod binary;
mod command;
mod edits;
mod fragments;
mod http;
mod json;
mod markup;
mod names;
mod percent;
mod redacted;
mod shapes;
mod text;

use std::borrow::Cow;
#[allow(deprecated, reason = "the keyed SipHash-2-4 of the standard library")]
use std::hash::{Hasher, SipHasher};

pub use command::may_hold_secrets;
use names::Secrecy;
pub use names::SecretNames;
pub use redacted::Redacted;

/// The prefix of the hash.
const MARK: &str = "redacted-";

/// What a masking redactor shows in place of a secret.
pub const MASK: &str = "[redacted]";

/// Hexadecimal digits of the hash.
const DIGITS: usize = 16;

const TAG: usize = MARK.len() + DIGITS;

/// Bytes of the shortest secret that is known by its shape.
const SHAPE_MIN: usize = 13;

/// Maximum length of what [`is_nothing`]: a scheme, a blank and a hash.
const NOTHING_MAX: usize = 64;

/// Maximum nesting of texts within texts (JSON in a string, a URL in a parameter).
const DEPTH: u8 = 4;

/// Replaces secrets by hashes under a key, or by [`MASK`].
#[derive(Clone)]
pub struct Redactor {
    mode: RedactionMode,
    names: SecretNames,
}

#[derive(Clone, Copy, PartialEq)]
enum RedactionMode {
    /// By hashes under this key.
    Hash([u64; 2]),
    Mask,
    Off,
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
        let off = self.is_off();
        f.debug_struct("Redactor").field("names", &self.names).field("off", &off).finish()
    }
}

impl Redactor {
    /// Redacts values whose names are in `names`, hashed under `key`, which must stay secret.
    #[must_use]
    pub fn new(key: [u8; 16], names: SecretNames) -> Self {
        let half = |at: usize| {
            key[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Self { mode: RedactionMode::Hash([half(0), half(8)]), names }
    }

    /// A redactor that masks values whose names are in `names`.
    #[must_use]
    pub fn masking(names: SecretNames) -> Self {
        Self { mode: RedactionMode::Mask, names }
    }

    /// A redactor that keeps everything.
    #[must_use]
    pub fn off() -> Self {
        Self { mode: RedactionMode::Off, names: SecretNames::default() }
    }

    /// Whether it keeps everything.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.mode == RedactionMode::Off
    }

    /// Whether values of this name are secrets, whatever they look like.
    #[must_use]
    pub fn is_secret_name(&self, name: &str) -> bool {
        !self.is_off() && self.names.of(name) == Secrecy::Secret
    }

    /// Redacts the value of a header, or of anything else that has a name.
    #[must_use]
    pub fn header<'a>(&self, name: &str, value: &'a [u8]) -> Redacted<Cow<'a, [u8]>> {
        Redacted(match self.is_off() {
            true => Cow::Borrowed(value),
            false => http::header(self, name, value),
        })
    }

    /// Redacts the target of a request, or any URL.
    #[must_use]
    pub fn target(&self, target: &str) -> Redacted {
        Redacted(match self.is_off() {
            true => target.to_owned(),
            false => http::target(self, target, DEPTH).into_owned(),
        })
    }

    /// Redacts the body of a message. `kind` is its content type, or empty; content codings must be
    /// decoded first.
    #[must_use]
    pub fn body<'a>(&self, kind: &str, body: &'a [u8]) -> Redacted<Cow<'a, [u8]>> {
        Redacted(match self.is_off() {
            true => Cow::Borrowed(body),
            false => http::body(self, kind, body, DEPTH),
        })
    }

    /// Redacts any text: a line of a log, an argument, a fragment of a document.
    #[must_use]
    pub fn text(&self, text: &str) -> Redacted {
        Redacted(match self.is_off() {
            true => text.to_owned(),
            false => text_of(text, self.any(text.as_bytes(), DEPTH)).into_owned(),
        })
    }

    /// Redacts a name that a user chose, such as the value of a tag: a URL, or a few words of prose.
    #[must_use]
    pub fn label(&self, label: &str) -> Redacted {
        if label.len() < SHAPE_MIN && !label.contains([':', '=', '@']) {
            // Most tags are a method, a status or a protocol.
            return Redacted(label.to_owned());
        }
        match label.starts_with('/') || label.contains("://") {
            true => self.target(label),
            false => self.sentence(label),
        }
    }

    /// Redacts the value of a tag. Under the name of a secret, words and short numbers stay: tags
    /// group samples, and `session: new` is no secret.
    #[must_use]
    pub fn tag_value(&self, name: &str, value: &str) -> Redacted {
        let bytes = value.as_bytes();
        let hides = self.is_secret_name(name) && !is_word(bytes) && !is_nothing(bytes);
        if hides { self.tag(bytes) } else { self.label(value) }
    }

    /// Redacts a sentence for people, in which a word after a colon is prose.
    #[must_use]
    pub fn sentence(&self, text: &str) -> Redacted {
        if self.is_off() {
            return Redacted(text.to_owned());
        }
        let edits = text::edits_of(self, text.as_bytes(), DEPTH, true);
        Redacted(text_of(text, edits.apply(text.as_bytes())).into_owned())
    }

    /// Redacts the URLs of a message of gake's own, which quotes what it is about.
    #[must_use]
    pub fn urls(&self, text: &str) -> Redacted {
        // `USER:PASSWORD@HOST` stands in our own hints.
        let is_hint = |word: &str| [":PASSWORD@", ":password@"].iter().any(|p| word.contains(p));
        let word = |word: &str| match word.contains("://") && !is_hint(word) {
            true => self.text(word).0,
            false => word.to_owned(),
        };
        Redacted(text.split_inclusive(char::is_whitespace).map(word).collect())
    }

    /// A command line, quoted for a shell.
    #[must_use]
    pub fn command_line(&self, words: &[String]) -> Redacted {
        Redacted(command::line(words, self))
    }

    /// Redacts a JSON value for display; `secret`: hides all of it.
    #[must_use]
    pub fn json(&self, written: &str, secret: bool) -> Redacted {
        if self.is_off() {
            return Redacted(written.to_owned());
        }
        match json::shown(self, written.as_bytes(), DEPTH, secret) {
            Some(edits) => Redacted(text_of(written, edits.apply(written.as_bytes())).into_owned()),
            None => self.text(written),
        }
    }

    /// The replacement of a value.
    #[must_use]
    pub fn tag(&self, value: &[u8]) -> Redacted {
        Redacted(self.replacement(value))
    }

    /// A hash that differs between values, in hexadecimal.
    #[must_use]
    pub fn fingerprint(&self, value: &[u8]) -> Redacted {
        Redacted(format!("{:016x}", self.hash(value)))
    }

    fn replacement(&self, value: &[u8]) -> String {
        match self.mode {
            RedactionMode::Hash(_) => format!("{MARK}{:016x}", self.hash(value)),
            RedactionMode::Mask | RedactionMode::Off => MASK.to_owned(),
        }
    }

    fn hash(&self, value: &[u8]) -> u64 {
        let key = match self.mode {
            RedactionMode::Hash(key) => key,
            // A mask reveals nothing: every value has the same.
            RedactionMode::Mask => return 0,
            RedactionMode::Off => [0; 2],
        };
        #[allow(deprecated, reason = "the keyed SipHash-2-4 of the standard library")]
        let mut hasher = SipHasher::new_with_keys(key[0], key[1]);
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
        if holds { Cow::Owned(self.replacement(bytes).into_bytes()) } else { Cow::Borrowed(bytes) }
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
    let literals: [&[u8]; 9] = [
        b"",
        b"true",
        b"false",
        b"null",
        b"none",
        b"undefined",
        MASK.as_bytes(),
        // k6's.
        b"***",
        b"****",
    ];
    if value.len() > NOTHING_MAX {
        return false;
    }
    let last = value.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let scheme = &value[..value.len() - last.len()];
    let is_scheme = scheme.iter().filter(|byte| **byte == b' ').count() <= 1 && scheme.len() <= 20;
    literals.iter().any(|literal| value.eq_ignore_ascii_case(literal))
        || ((is_tag(last) || last == MASK.as_bytes()) && is_scheme)
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
