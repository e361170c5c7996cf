//! Any text: URLs, `name=value`, `name: value`, `--name value`, XML and HTML. Linear time.

use std::borrow::Cow;
use std::ops::Range;

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine, alphabet};

use super::edits::Edits;
use super::{MASK, NamePosition, Redactor, fragments, is_nothing, json, markup, percent, shapes};

/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 64;

/// Schemes of credentials, which may precede a secret.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token", "negotiate", "apikey"];

/// The edits for the secrets of a text.
pub(super) fn edits(redactor: &Redactor, bytes: &[u8], depth: u8) -> Edits {
    edits_of(redactor, bytes, depth, false)
}

/// The same; `is_label`: in a name of something, words after a colon or a scheme are prose unless
/// they look like a secret.
pub(super) fn edits_of(redactor: &Redactor, bytes: &[u8], depth: u8, is_label: bool) -> Edits {
    let mut edits = Edits::default();
    for place in shapes::find(bytes, false) {
        let tag = redactor.replacement(&bytes[place.clone()]);
        edits.put(place, tag);
    }
    user_info(redactor, bytes, &mut edits);
    credentials(redactor, bytes, is_label, &mut edits);
    markup::edits(redactor, bytes, &mut edits);
    json::embedded(redactor, bytes, depth, &mut edits);
    fragments::parts(redactor, bytes, &mut edits);
    if bytes.contains(&0) {
        for place in fragments::terminated(redactor, bytes) {
            let tag = redactor.replacement(&bytes[place.clone()]);
            edits.put(place, tag);
        }
    }
    let (open, line) = (<[PairValue; 2]>::default(), 0..0);
    let mut pairs = PairScanner { redactor, bytes, depth, is_label, edits, open, line };
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'=' | b':' => pairs.pair(at),
            b'-' => pairs.flag(at),
            _ => None,
        }
        .unwrap_or(at + 1);
    }
    pairs.edits
}

/// Passwords in URLs: `scheme://user:password@host`; a user without a password is a token.
pub(super) fn user_info(redactor: &Redactor, bytes: &[u8], edits: &mut Edits) {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(3).position(|three| three == b"://") {
        let start = from + at + 3;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>\\,".contains(byte);
        let length = bytes[start..].iter().take_while(|byte| !ends(byte)).count();
        let authority = &bytes[start..start + length];
        if let Some(end) = authority.iter().rposition(|byte| *byte == b'@') {
            let colon = authority[..end].iter().position(|byte| *byte == b':');
            let secret = start + colon.map_or(0, |colon| colon + 1)..start + end;
            if !is_nothing(&bytes[secret.clone()]) {
                edits.put(secret.clone(), redactor.replacement(&bytes[secret]));
            }
        }
        from = start;
    }
}

/// Credentials after their scheme, wherever they stand: `Bearer SECRET`. Prose has words there,
/// whose letters are of one case but the first.
fn credentials(redactor: &Redactor, bytes: &[u8], is_label: bool, edits: &mut Edits) {
    for at in 0..bytes.len() {
        let begins = at.checked_sub(1).is_none_or(|before| !is_name(bytes[before]));
        if !begins || !matches!(bytes[at] | 0x20, b'b') {
            continue;
        }
        let length = bytes[at..].iter().take(7).take_while(|byte| byte.is_ascii_alphabetic());
        let space = at + length.count();
        let is_scheme = [&b"bearer"[..], b"basic"]
            .iter()
            .any(|scheme| bytes[at..space].eq_ignore_ascii_case(scheme));
        if !is_scheme || bytes.get(space) != Some(&b' ') {
            continue;
        }
        let end = space + 1 + word_length(&bytes[space + 1..]);
        let secret = &bytes[space + 1..end];
        let is_basic = space - at == b"basic".len();
        let is_secret = match is_label {
            true if is_basic => holds_password(secret),
            true => is_random(secret),
            false => !is_prose(secret.get(1..).unwrap_or_default()),
        };
        if is_secret && !is_nothing(secret) {
            edits.put(space + 1..end, redactor.replacement(secret));
        }
    }
}

/// Whether this is the file and line of a stack frame: `file:///tests/cookies.js:3:10`.
fn is_source_line(file: &[u8], rest: &[u8]) -> bool {
    const DIGITS_MAX: usize = 6;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = rest.get(digits).is_none_or(|byte| !is_name(*byte));
    file.contains(&b'.') && (1..=DIGITS_MAX).contains(&digits) && ends
}

struct PairScanner<'a> {
    redactor: &'a Redactor,
    bytes: &'a [u8],
    depth: u8,
    is_label: bool,
    edits: Edits,
    /// The last unquoted values after `:` and after `=`, at which all pairs in them end.
    open: [PairValue; 2],
    /// The last value that extends to the end of its line.
    line: Range<usize>,
}

/// The range of a value.
#[derive(Clone, Default)]
struct PairValue {
    place: Range<usize>,
    /// Whether it may have percent escapes.
    is_encoded: bool,
}

impl PairValue {
    /// A value as written: in quotes, or of a header.
    fn plain(place: Range<usize>) -> Self {
        Self { place, is_encoded: false }
    }
}

impl PairScanner<'_> {
    /// Handles the pair whose `=` or `:` is at `at`; returns the offset to continue if its value is
    /// done.
    fn pair(&mut self, at: usize) -> Option<usize> {
        let is_equals = self.bytes[at] == b'=';
        if self.bytes[at..].starts_with(b"://") {
            return None;
        }
        let name_place = self.name_before(at)?;
        let before = name_place.start.checked_sub(1).map(|before| self.bytes[before]);
        let is_in_path = !is_equals && before == Some(b'/');
        if is_in_path && is_source_line(&self.bytes[name_place.clone()], &self.bytes[at + 1..]) {
            return None;
        }
        let parameter = is_equals && before.is_none_or(|byte| b"?&#;".contains(&byte));
        let place = if parameter { NamePosition::Parameter } else { NamePosition::Member };
        let name = percent::decoded(&self.bytes[name_place]);
        let name = String::from_utf8_lossy(&name).into_owned();
        let value = self.value_after(at + 1, &name, is_equals)?;
        let written = &self.bytes[value.place.clone()];
        if self.is_label && !is_equals && !written.split(|byte| *byte == b' ').any(is_random) {
            return None;
        }
        let decoded = match value.is_encoded {
            true => percent::decoded(written),
            false => Cow::Borrowed(written),
        };
        if self.redactor.hides(&name, &decoded, place) {
            let end = value.place.end;
            self.edits.put(value.place, self.redactor.replacement(&decoded));
            return Some(end);
        }
        let Cow::Owned(decoded) = decoded else { return None };
        // A parameter may hold a URL or a document.
        let end = value.place.end;
        if let Cow::Owned(other) = self.redactor.any(&decoded, self.depth) {
            self.edits.put(value.place, percent::encoded(&other));
        }
        Some(end)
    }

    /// `--name value`.
    fn flag(&mut self, at: usize) -> Option<usize> {
        let begins = at.checked_sub(1).is_none_or(|b| self.bytes[b].is_ascii_whitespace());
        let rest = self.bytes[at..].strip_prefix(b"--").filter(|_| begins)?;
        let length = rest.iter().take(NAME_MAX).take_while(|byte| is_name(**byte)).count();
        let name = String::from_utf8_lossy(&rest[..length]).into_owned();
        let from = at + 2 + length;
        if !matches!(self.bytes.get(from), Some(b' ' | b'\t')) {
            return None;
        }
        let value = self.value_after(from, &name, true)?.place;
        let written = &self.bytes[value.clone()];
        let is_value = !written.starts_with(b"-");
        if !is_value || !self.redactor.hides(&name, written, NamePosition::Member) {
            return None;
        }
        let end = value.end;
        self.edits.put(value, self.redactor.replacement(written));
        Some(end)
    }

    /// The name that ends before `at`, blanks and a quote between them.
    fn name_before(&self, at: usize) -> Option<Range<usize>> {
        let mut end = at;
        let back = |end: usize, of: &[u8]| end > 0 && of.contains(&self.bytes[end - 1]);
        for _ in 0..2 {
            end -= usize::from(back(end, b" \t"));
        }
        if back(end, b"\"'`") {
            end -= 1;
            end -= usize::from(back(end, b"\\"));
        }
        let chars = self.bytes[..end].iter().rev().take(NAME_MAX);
        let length = chars.take_while(|byte| is_name(**byte) || b"[]%$".contains(byte)).count();
        (length > 0).then(|| end - length..end)
    }

    /// The value that begins at `from`.
    fn value_after(&mut self, from: usize, name: &str, is_equals: bool) -> Option<PairValue> {
        let blanks = self.bytes[from..].iter().take(8).take_while(|b| matches!(b, b' ' | b'\t'));
        let from = from + blanks.count();
        let from = self.next_line(from, name).unwrap_or(from);
        let rest = &self.bytes[from..];
        if rest.starts_with(MASK.as_bytes()) {
            return Some(PairValue::plain(from..from + MASK.len()));
        }
        let quote = match rest {
            [b'\\', quote @ (b'"' | b'\''), ..] => Some((2, *quote)),
            [quote @ (b'"' | b'\'' | b'`'), ..] => Some((1, *quote)),
            _ => None,
        };
        if let Some((width, quote)) = quote {
            let start = from + width;
            return Some(PairValue::plain(start..self.closing(start, quote, width)));
        }
        let lower = name.to_ascii_lowercase();
        if lower.contains("authorization") || lower.contains("cookie") {
            // A name that only contains the word is looked for again in its value.
            if !self.line.contains(&from) {
                let of_line = |byte: &&u8| !matches!(**byte, b'\r' | b'\n' | b'"' | b'\'' | b'<');
                self.line = from..from + rest.iter().take_while(of_line).count();
            }
            return Some(PairValue::plain(from..self.line.end));
        }
        if rest.is_empty() || (!is_equals && matches!(rest[0], b'{' | b'[')) {
            return None;
        }
        let open = self.open_value(from, is_equals);
        let end = open.place.end;
        let word = &self.bytes[from..end];
        let is_scheme = SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme.as_bytes()));
        if is_scheme && self.bytes.get(end) == Some(&b' ') {
            let length = word_length(&self.bytes[end + 1..]);
            return Some(PairValue::plain(end + 1..end + 1 + length));
        }
        Some(open)
    }

    /// Where the value of a secret begins that stands on the next line; `|` and `>` are YAML's.
    fn next_line(&self, from: usize, name: &str) -> Option<usize> {
        let rest = &self.bytes[from..];
        let block = rest.iter().take(3).take_while(|byte| b"|>-+".contains(byte)).count();
        let after = rest[block..].strip_prefix(b"\r").unwrap_or(&rest[block..]);
        let line = after.strip_prefix(b"\n")?;
        let line = &line[line.iter().take(64).take_while(|b| matches!(b, b' ' | b'\t')).count()..];
        let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        // Another pair: the secret is empty.
        let equals = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        // Base64 ends with equals signs.
        let is_pair = word.ends_with(b":") || word[equals..].iter().any(|byte| *byte != b'=');
        let is_value = !matches!(word, b"" | b"-") && !is_pair;
        let is_value = is_value && self.redactor.is_secret_name(name);
        is_value.then(|| self.bytes.len() - line.len())
    }

    /// A value without quotes.
    fn open_value(&mut self, from: usize, is_equals: bool) -> PairValue {
        let open = &mut self.open[usize::from(is_equals)];
        if !open.place.contains(&from) {
            let rest = self.bytes[from..].iter();
            let end = from + rest.take_while(|byte| !ends(**byte, is_equals)).count();
            let is_encoded = self.bytes[from..end].iter().any(|b| matches!(b, b'%' | b'+'));
            *open = PairValue { place: from..end, is_encoded };
        }
        PairValue { place: from..open.place.end, ..open.clone() }
    }

    /// The closing quote of a value, or the end of the text.
    fn closing(&self, start: usize, quote: u8, width: usize) -> usize {
        let mut at = start;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\\' if width == 2 && self.bytes.get(at + 1) == Some(&quote) => return at,
                b'\\' if width == 1 => at += 1,
                byte if byte == quote => return at,
                _ => {}
            }
            at += 1;
        }
        self.bytes.len()
    }
}

/// Whether a value is a word of a sentence: `token: present`.
fn is_prose(value: &[u8]) -> bool {
    let end = value.iter().rposition(|byte| !b",.;:)".contains(byte)).map_or(0, |last| last + 1);
    end <= 16 && value[..end].iter().all(u8::is_ascii_lowercase)
}

/// base64 as it is found: without its padding, and with any bits after its last byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// Whether a word is a user and a password, in base64 or as they are.
fn holds_password(word: &[u8]) -> bool {
    let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let digits = word.iter().take_while(is_digit).map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    });
    let mut digits: Vec<u8> = digits.collect();
    // A single digit of the last four has no byte.
    digits.truncate(digits.len() - usize::from(digits.len() % 4 == 1));
    let decoded = BASE64.decode(digits).unwrap_or_default();
    let is_text = decoded.iter().all(|byte| !byte.is_ascii_control());
    word.contains(&b':') || (is_text && decoded.contains(&b':'))
}

/// Whether a word looks like a secret, not like a name: a dozen characters with digits among
/// letters, or more of them in both cases, which change more often than in `camelCase`.
fn is_random(word: &[u8]) -> bool {
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = word.windows(2).filter(|two| kind(&two[0]) != kind(&two[1])).count();
    let (length_min, run_max) = if word.iter().any(u8::is_ascii_digit) { (12, 4) } else { (20, 3) };
    word.len() >= length_min && changes * run_max >= word.len()
}

/// The length of a word, or of a mask, at the start.
fn word_length(bytes: &[u8]) -> usize {
    match bytes.starts_with(MASK.as_bytes()) {
        true => MASK.len(),
        false => bytes.iter().take_while(|byte| !ends(**byte, false)).count(),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte) || byte >= 0x80
}

/// Whether a value without quotes ends here.
fn ends(byte: u8, is_equals: bool) -> bool {
    byte.is_ascii_whitespace()
        || b"&;#\"'`<>\\".contains(&byte)
        || (!is_equals && b",)}]|".contains(&byte))
}
