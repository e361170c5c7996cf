//! Secrets in what another format left in a text: parts of forms, names and values with a NUL after
//! each.

use std::ops::Range;

use super::edits::Edits;
use super::{NamePosition, Redactor, percent};

/// Maximum length of a name before a NUL, in bytes.
const NAME_MAX: usize = 64;

/// Bytes of the headers of a part in a text.
const PART_HEAD_MAX: usize = 1_024;

/// Hides secret parts of multipart bodies within a text, whose boundary is not known.
pub(super) fn parts(redactor: &Redactor, bytes: &[u8], edits: &mut Edits) {
    const MARK: &[u8] = b"form-data;";
    let (mut at, mut end) = (0, 0);
    while let Some(found) = find(&bytes[at..], MARK) {
        let start = at + found + MARK.len();
        at = start;
        let head = &bytes[start..bytes.len().min(start + PART_HEAD_MAX)];
        let line = head.iter().take_while(|byte| !b"\r\n".contains(byte)).count();
        let name = String::from_utf8_lossy(&head[..line]).split(';').find_map(part_name);
        let windows = find(head, b"\r\n\r\n").map(|blank| blank + 4);
        let blank = windows.or_else(|| find(head, b"\n\n").map(|blank| blank + 2));
        let (Some(name), Some(blank)) = (name, blank) else { continue };
        at = start + blank;
        if end < at {
            end = find(&bytes[at..], b"\n--").map_or(bytes.len(), |length| at + length);
        }
        let content = bytes[at..end].trim_ascii_end();
        if redactor.hides(&name, content, NamePosition::Parameter) {
            edits.put(at..at + content.len(), redactor.replacement(content));
        }
    }
}

/// The name of a part in `name="..."` or `name*=UTF-8''...`, in any case.
pub(super) fn part_name(parameter: &str) -> Option<String> {
    let (key, value) = parameter.split_once('=')?;
    match key.trim().to_ascii_lowercase().as_str() {
        "name" => Some(value.trim().trim_matches('"').to_owned()),
        "name*" => {
            let encoded = value.rsplit('\'').next()?.trim();
            Some(String::from_utf8_lossy(&percent::decoded(encoded.as_bytes())).into_owned())
        }
        _ => None,
    }
}

/// The offset of the first occurrence.
pub(super) fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// A printable byte.
pub(super) fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x80..)
}

/// Secrets that follow their name and a NUL, as PostgreSQL and environments have them.
pub(super) fn terminated(redactor: &Redactor, body: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut name) = (0, 0..0);
    for text in body.split(|byte| !is_text(*byte)) {
        let place = start..start + text.len();
        let named = &body[name.clone()];
        let follows = name.end + 1 == start && body[name.end] == 0 && named.len() <= NAME_MAX;
        if follows && redactor.hides(&String::from_utf8_lossy(named), text, NamePosition::Member) {
            found.push(place.clone());
        }
        start = place.end + 1;
        name = place;
    }
    found
}
