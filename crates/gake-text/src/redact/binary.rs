//! Bodies that are not text: UTF-16, gRPC and Protocol Buffers, MessagePack, CBOR and the like.

use std::borrow::Cow;
use std::ops::Range;

use super::edits::Edits;
use super::fragments::{self, is_text};
use super::{NamePosition, Redactor, shapes, text};

/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 64;

/// Bytes of a text in Protocol Buffers that is hidden: shorter ones are mostly other data.
const TEXT_MIN: usize = 4;

/// UTF-16, in either order of bytes, by its mark or by its zeros: every second byte of most texts.
/// Redacted as the text that it encodes.
pub(super) fn utf16(redactor: &Redactor, body: &[u8], depth: u8) -> Option<Cow<'static, [u8]>> {
    let (is_little, start) = match body {
        [0xff, 0xfe, ..] => (true, 2),
        [0xfe, 0xff, ..] => (false, 2),
        _ => {
            let zeros = |first: usize| {
                let bytes = body.iter().take(256).skip(first).step_by(2);
                (bytes.clone().filter(|byte| **byte == 0).count(), bytes.count())
            };
            let is_most = |(zeros, all): (usize, usize)| all > 1 && zeros * 10 >= all * 9;
            match (is_most(zeros(0)), is_most(zeros(1))) {
                (true, false) => (false, 0),
                (false, true) => (true, 0),
                _ => return None,
            }
        }
    };
    let unit = |two: &[u8]| match is_little {
        true => u16::from_le_bytes([two[0], two[1]]),
        false => u16::from_be_bytes([two[0], two[1]]),
    };
    // An odd last byte is half a character.
    let units: Vec<u16> = body[start..].chunks_exact(2).map(unit).collect();
    let text = String::from_utf16_lossy(&units);
    let Cow::Owned(hidden) = redactor.any(text.as_bytes(), depth) else {
        return Some(Cow::Owned(body.to_vec()));
    };
    let mut out = body[..start].to_vec();
    for unit in String::from_utf8_lossy(&hidden).encode_utf16() {
        out.extend(if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() });
    }
    Some(Cow::Owned(out))
}

/// Whether a body is not text: by its type, by NUL and control characters, or by names and values
/// with headers.
pub(super) fn is_binary(redactor: &Redactor, kind: &str, body: &[u8]) -> bool {
    let control = |byte: &&u8| **byte < b' ' && !b"\t\r\n\x0c\x1e".contains(byte);
    let controls = body.iter().filter(control).count();
    has_no_names(kind)
        || body.contains(&0)
        || controls * 20 > body.len()
        || (std::str::from_utf8(body).is_err() && !named(redactor, body).is_empty())
}

/// Whether the fields of this format have no names.
fn has_no_names(kind: &str) -> bool {
    ["grpc", "protobuf"].iter().any(|word| kind.contains(word))
}

/// Keeps the length of binary data: replacements are as long as secrets. Hidden are values after a
/// name, and in Protocol Buffers, whose fields have no names, every text.
pub(super) fn binary<'a>(redactor: &Redactor, kind: &str, body: &'a [u8]) -> Cow<'a, [u8]> {
    let mut places = shapes::find(body, false);
    if has_no_names(kind) {
        places.extend(texts(body));
    } else {
        places.extend(named(redactor, body));
        places.extend(pairs(redactor, body));
    }
    places.sort_by_key(|place| place.start);
    let mut edits = Edits::default();
    let mut done = 0;
    for place in places {
        // Places may overlap.
        let place = place.start.max(done)..place.end;
        if place.is_empty() {
            continue;
        }
        done = place.end;
        let tag = redactor.replacement(&body[place.clone()]);
        let filled: Vec<u8> = tag.bytes().cycle().take(place.len()).collect();
        edits.put(place, filled);
    }
    edits.apply(body)
}

/// Secrets in the printable texts between other data.
fn pairs(redactor: &Redactor, body: &[u8]) -> Vec<Range<usize>> {
    let mut found = fragments::terminated(redactor, body);
    let mut start = 0;
    for text in body.split(|byte| !is_text(*byte)) {
        if text.len() >= TEXT_MIN {
            let places = text::edits(redactor, text, 0).places();
            found.extend(places.map(|part| start + part.start..start + part.end));
        }
        start += text.len() + 1;
    }
    found
}

/// Printable texts.
fn texts(body: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for at in 0..=body.len() {
        if at < body.len() && is_text(body[at]) {
            continue;
        }
        // Keys and lengths before a text may be printable: they stay, or it could not be decoded.
        let mut from = start;
        while let Some(length) = body.get(from + 1) {
            let end = from + 2 + usize::from(*length);
            if body[from] & 7 == 2 && end <= at && usize::from(*length) >= TEXT_MIN {
                found.push(from + 2..end);
                from = end;
            } else {
                from += 1;
            }
            if from + 1 >= at {
                break;
            }
        }
        if found.last().is_none_or(|last: &Range<usize>| last.end <= start)
            && at >= start + TEXT_MIN
        {
            // The length stands before it, as a control character.
            let length = start.checked_sub(1).map_or(0, |before| usize::from(body[before]));
            let end = if length >= TEXT_MIN { at.min(start + length) } else { at };
            found.push(start..end);
        }
        start = at + 1;
    }
    found
}

/// The texts and bytes that follow the name of a secret, as MessagePack and CBOR write them: a
/// header with the length before each.
fn named(redactor: &Redactor, body: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let value = headers(body, at).into_iter().flatten().find_map(|name| {
            // A header that is none may state any length.
            let written = &body[name.clone()];
            let text =
                (2..=NAME_MAX).contains(&written.len()).then(|| std::str::from_utf8(written));
            let text = text?.ok()?;
            let is_name = !text.contains(char::is_control);
            let value = headers(body, name.end).into_iter().flatten().next()?;
            let hides = is_name && redactor.hides(text, &body[value.clone()], NamePosition::Member);
            hides.then_some(value)
        });
        at = value.as_ref().map_or(at + 1, |value| value.end);
        found.extend(value);
    }
    found
}

/// The contents of a text or of bytes whose header is at `at`, by MessagePack and by CBOR.
fn headers(body: &[u8], at: usize) -> [Option<Range<usize>>; 2] {
    let number = |width: usize| {
        let bytes = body.get(at + 1..at + 1 + width)?;
        let length = bytes.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        Some((1 + width, length))
    };
    let Some(&first) = body.get(at) else { return [None, None] };
    let pack = match first {
        0xa0..=0xbf => Some((1, usize::from(first & 0x1f))),
        0xd9 | 0xc4 => number(1),
        0xda | 0xc5 => number(2),
        0xdb | 0xc6 => number(4),
        _ => None,
    };
    let cbor = match first {
        0x40..=0x57 | 0x60..=0x77 => Some((1, usize::from(first & 0x1f))),
        0x58 | 0x78 => number(1),
        0x59 | 0x79 => number(2),
        0x5a | 0x7a => number(4),
        _ => None,
    };
    [pack, cbor].map(|header| {
        let (width, length) = header?;
        let start = at + width;
        let end = start.checked_add(length).filter(|end| *end <= body.len())?;
        (length > 0).then_some(start..end)
    })
}
