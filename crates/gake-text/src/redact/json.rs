//! JSON, token by token: keeps everything but secrets as written, and reads truncated documents as
//! far as possible. No recursion.

use std::ops::Range;

use super::edits::Edits;
use super::names::Secrecy;
use super::{NamePosition, Redactor, shapes};

/// Maximum nesting; deeper values are hidden.
const NESTED_MAX: usize = 256;

/// Members that name the value of another member.
const NAMING: &[&str] = &["name", "key", "field", "header", "param", "parameter", "property"];

/// Members whose value is named by another.
const HOLDING: &[&str] = &["value", "val", "content", "data", "text"];

/// The edits for one or several JSON documents, the last perhaps truncated. `None` if it is not
/// JSON.
pub(super) fn edits(redactor: &Redactor, bytes: &[u8], depth: u8) -> Option<Edits> {
    read(redactor, bytes, depth, None)
}

/// As [`edits`], for display: numbers are replaced by strings. `secret`: hide everything.
pub(super) fn shown(redactor: &Redactor, bytes: &[u8], depth: u8, secret: bool) -> Option<Edits> {
    read(redactor, bytes, depth, Some(secret))
}

/// Adds the edits for the objects within a text, as far as each is JSON.
pub(super) fn embedded(redactor: &Redactor, bytes: &[u8], depth: u8, edits: &mut Edits) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'{') {
        at += offset;
        let mut scan = JsonScanner::new(redactor, bytes, depth, None);
        scan.at = at;
        while scan.step() == Some(true) && !scan.frames.is_empty() {}
        at = scan.at.max(at + 1);
        edits.add(scan.finish());
    }
}

fn read(redactor: &Redactor, bytes: &[u8], depth: u8, shown: Option<bool>) -> Option<Edits> {
    let mut scan = JsonScanner::new(redactor, bytes, depth, shown);
    scan.at = bytes.strip_prefix(b"\xef\xbb\xbf").map_or(0, |rest| bytes.len() - rest.len());
    while scan.step()? {}
    Some(scan.finish())
}

struct JsonScanner<'a> {
    redactor: &'a Redactor,
    bytes: &'a [u8],
    depth: u8,
    at: usize,
    whole: Secrecy,
    is_shown: bool,
    frames: Vec<OpenContainer>,
    edits: Edits,
    /// Top-level numbers and literals.
    bare: usize,
}

/// An open object or array.
struct OpenContainer {
    is_object: bool,
    /// The secrecy of all values in it, from the names of its ancestors.
    secrecy: Secrecy,
    next: ExpectedToken,
    /// The last key of an object.
    key: String,
    /// Whether a member is the name of a secret.
    names_secret: bool,
    /// A member `key`: a name if there is a value for it, else a value.
    key_member: Option<Scalar>,
    /// Values of members in [`HOLDING`].
    held: Vec<Scalar>,
}

#[derive(Clone, Copy, PartialEq)]
enum ExpectedToken {
    Key,
    Colon,
    Value,
    Comma,
}

/// A string without its quotes, or a number.
#[derive(Clone)]
struct Scalar {
    place: Range<usize>,
    is_string: bool,
}

impl<'a> JsonScanner<'a> {
    fn new(redactor: &'a Redactor, bytes: &'a [u8], depth: u8, shown: Option<bool>) -> Self {
        let is_secret = shown == Some(true);
        Self {
            redactor,
            bytes,
            depth,
            at: 0,
            whole: if is_secret { Secrecy::Secret } else { Secrecy::Plain },
            is_shown: shown.is_some(),
            frames: Vec::new(),
            edits: Edits::default(),
            bare: 0,
        }
    }

    /// The edits, also of containers that do not end.
    fn finish(mut self) -> Edits {
        while let Some(frame) = self.frames.pop() {
            self.close(frame);
        }
        self.edits
    }

    /// Reads a token; `false` at the end, `None` if the token is invalid here.
    fn step(&mut self) -> Option<bool> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x1e);
        self.at += self.bytes[self.at..].iter().take_while(|byte| blank(byte)).count();
        let Some(&byte) = self.bytes.get(self.at) else { return Some(false) };
        let next = self.frames.last().map_or(ExpectedToken::Value, |frame| frame.next);
        match (byte, next) {
            (b'"', ExpectedToken::Key) => {
                let place = self.string();
                let key =
                    String::from_utf8_lossy(&unescaped(&self.bytes[place.clone()])).into_owned();
                let frame = self.frames.last_mut()?;
                if frame.secrecy == Secrecy::Secret && !is_word(&key) {
                    self.edits.put(place, self.redactor.replacement(key.as_bytes()));
                }
                (frame.key, frame.next) = (key, ExpectedToken::Colon);
            }
            (b'"', ExpectedToken::Value) => {
                let place = self.string();
                self.scalar(Scalar { place, is_string: true });
            }
            (b':', ExpectedToken::Colon) => self.turn(ExpectedToken::Value, 1),
            (b',', ExpectedToken::Comma) => {
                let is_object = self.frames.last()?.is_object;
                self.turn(if is_object { ExpectedToken::Key } else { ExpectedToken::Value }, 1);
            }
            (b'{' | b'[', ExpectedToken::Value) => self.open(byte == b'{'),
            (b'}' | b']', ExpectedToken::Key | ExpectedToken::Comma | ExpectedToken::Value) => {
                let frame = self.frames.pop()?;
                if frame.is_object != (byte == b'}')
                    || (frame.is_object && next == ExpectedToken::Value)
                {
                    return None;
                }
                self.at += 1;
                self.close(frame);
            }
            (_, ExpectedToken::Value) => return self.literal(),
            _ => return None,
        }
        Some(true)
    }

    fn turn(&mut self, next: ExpectedToken, bytes: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = next;
        }
        self.at += bytes;
    }

    fn open(&mut self, is_object: bool) {
        let secrecy = if self.frames.len() >= NESTED_MAX {
            Secrecy::Secret
        } else {
            match self.frames.last() {
                None => self.whole,
                Some(frame) if frame.secrecy == Secrecy::Secret => Secrecy::Secret,
                Some(frame) if frame.is_object => match self.redactor.names.of(&frame.key) {
                    // A container is neither a code nor a state.
                    Secrecy::Guess | Secrecy::Plain => frame.secrecy,
                    secrecy => secrecy,
                },
                Some(frame) => frame.secrecy,
            }
        };
        self.turn(ExpectedToken::Comma, 1);
        self.frames.push(OpenContainer {
            is_object,
            secrecy,
            next: if is_object { ExpectedToken::Key } else { ExpectedToken::Value },
            key: String::new(),
            names_secret: false,
            key_member: None,
            held: Vec::new(),
        });
    }

    /// Hides values whose name came later in the object.
    fn close(&mut self, mut frame: OpenContainer) {
        if let Some(key) = frame.key_member.take() {
            if frame.held.is_empty() {
                self.hide(&key);
            } else {
                let name = unescaped(&self.bytes[key.place]);
                frame.names_secret |= self.redactor.is_secret_name(&String::from_utf8_lossy(&name));
            }
        }
        if frame.names_secret {
            for held in frame.held {
                self.hide(&held);
            }
        }
    }

    /// The range of a string's content, which may be truncated.
    fn string(&mut self) -> Range<usize> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                None => break,
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let end = end.min(self.bytes.len());
        self.at = (end + 1).min(self.bytes.len());
        start..end
    }

    fn literal(&mut self) -> Option<bool> {
        let of = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = self.bytes[self.at..].iter().take_while(|byte| of(byte)).count();
        let place = self.at..self.at + length;
        let written = &self.bytes[place.clone()];
        let is_number = written.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
            && written.iter().all(|b| b.is_ascii_digit() || b"+-.eE".contains(b));
        let is_word = ["true", "false", "null"].iter().any(|word| {
            let cut = place.end == self.bytes.len() && word.as_bytes().starts_with(written);
            word.as_bytes() == written || (cut && length > 0)
        });
        if self.frames.is_empty() {
            self.bare += 1;
        }
        // Several bare numbers are groups of digits, not documents.
        if !(is_number || is_word) || self.bare > 1 {
            return None;
        }
        self.at = place.end;
        if is_number {
            self.scalar(Scalar { place, is_string: false });
        } else {
            self.turn(ExpectedToken::Comma, 0);
        }
        Some(true)
    }

    /// A value that is a string or a number.
    fn scalar(&mut self, scalar: Scalar) {
        let Some(frame) = self.frames.last_mut() else {
            let secret = self.whole == Secrecy::Secret;
            return if secret { self.hide(&scalar) } else { self.look_into(&scalar) };
        };
        frame.next = ExpectedToken::Comma;
        let lower = frame.key.to_ascii_lowercase();
        if frame.is_object && HOLDING.contains(&lower.as_str()) {
            frame.held.push(scalar.clone());
        }
        let secrecy = frame.secrecy;
        let key = if frame.is_object { frame.key.clone() } else { String::new() };
        let written = &self.bytes[scalar.place.clone()];
        let value = if scalar.is_string { unescaped(written) } else { written.to_vec() };
        if frame.is_object && scalar.is_string && NAMING.contains(&lower.as_str()) {
            if lower == "key" && secrecy == Secrecy::Plain && self.redactor.is_secret_name(&key) {
                frame.key_member = Some(scalar);
                return;
            }
            let name = String::from_utf8_lossy(&value);
            frame.names_secret |= self.redactor.is_secret_name(&name);
        }
        let hidden = match secrecy {
            Secrecy::Secret => true,
            Secrecy::UnlessNumber if scalar.is_string => true,
            _ => self.redactor.hides(&key, &value, NamePosition::Member),
        };
        if hidden { self.hide(&scalar) } else { self.look_into(&scalar) }
    }

    fn hide(&mut self, scalar: &Scalar) {
        let written = &self.bytes[scalar.place.clone()];
        if !scalar.is_string {
            let instead = if self.is_shown {
                format!("\"{}\"", self.redactor.replacement(written)).into_bytes()
            } else {
                self.redactor.number(written)
            };
            self.edits.put(scalar.place.clone(), instead);
            return;
        }
        let value = unescaped(written);
        if !super::is_nothing(&value) {
            self.edits.put(scalar.place.clone(), self.redactor.replacement(&value));
        }
    }

    /// Looks for secrets in a value that is not hidden by its name.
    fn look_into(&mut self, scalar: &Scalar) {
        let written = &self.bytes[scalar.place.clone()];
        if !scalar.is_string {
            if !shapes::find(written, false).is_empty() {
                self.hide(scalar);
            }
            return;
        }
        let value = unescaped(written);
        if let std::borrow::Cow::Owned(other) = self.redactor.any(&value, self.depth) {
            self.edits.put(scalar.place.clone(), escaped(&other));
        }
    }
}

/// Whether a name below a secret is a word that a program uses, not a secret itself.
fn is_word(name: &str) -> bool {
    name.len() <= 16 && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte))
}

/// Decodes a string; keeps unknown escapes.
fn unescaped(written: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some((&escape, more)) = rest.split_first() else { break };
        rest = more;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let (c, used) = unicode(rest);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[used..];
            }
            other => out.push(other),
        }
    }
    out
}

/// The character after `\u`, and the length of its digits in bytes.
fn unicode(rest: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if (0xd800..0xdc00).contains(&first)
        && rest.get(4..6) == Some(b"\\u")
        && let Some(second @ 0xdc00..0xe000) = unit(6)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(byte),
        }
    }
    out
}
