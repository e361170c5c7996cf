//! Headers, targets and bodies of HTTP messages.

use std::borrow::Cow;

use super::edits::Edits;
use super::fragments::{find, part_name};
use super::{NamePosition, Redactor, binary, is_nothing, percent, shapes, text, text_of};

/// Maximum parts of a multipart body; the rest is hidden as a whole.
const PARTS_MAX: usize = 1_000;

/// The value of a header.
pub(super) fn header<'a>(redactor: &Redactor, name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
    let kind = name.to_ascii_lowercase();
    if redactor.names.keeps(&kind) {
        return Cow::Borrowed(value);
    }
    match kind.as_str() {
        "cookie" => cookies(redactor, value, usize::MAX),
        // Attributes follow the first pair.
        "set-cookie" => cookies(redactor, value, 1),
        _ if kind.contains("authorization") => credentials(redactor, value),
        _ if redactor.hides(name, value, NamePosition::Member) => {
            Cow::Owned(redactor.replacement(value).into_bytes())
        }
        _ => redactor.any(value, super::DEPTH),
    }
}

/// Hides the first cookies of a line, whatever their names: session cookies have arbitrary names.
fn cookies<'a>(redactor: &Redactor, value: &'a [u8], count: usize) -> Cow<'a, [u8]> {
    let mut edits = Edits::default();
    let mut start = 0;
    for pair in value.split(|byte| *byte == b';').take(count) {
        let end = start + pair.len();
        let equals = pair.iter().position(|byte| *byte == b'=');
        let name = String::from_utf8_lossy(&pair[..equals.unwrap_or(0)]);
        let from = start + equals.map_or(0, |equals| equals + 1);
        let content = value[from..end].trim_ascii();
        if !is_nothing(content) && !redactor.names.keeps(name.trim()) {
            let from = from + value[from..end].len() - value[from..end].trim_ascii_start().len();
            edits.put(from..from + content.len(), redactor.replacement(content));
        }
        start = end + 1;
    }
    edits.apply(value)
}

/// Hides credentials, not the scheme: `Bearer redacted-...`.
fn credentials<'a>(redactor: &Redactor, value: &'a [u8]) -> Cow<'a, [u8]> {
    let scheme = value.iter().position(|byte| *byte == b' ').map_or(0, |at| at + 1);
    let secret = value[scheme..].trim_ascii();
    if is_nothing(secret) {
        return Cow::Borrowed(value);
    }
    Cow::Owned([&value[..scheme], redactor.replacement(secret).as_bytes()].concat())
}

/// A target in any form, or a URL.
pub(super) fn target<'a>(redactor: &Redactor, target: &'a str, depth: u8) -> Cow<'a, str> {
    let bytes = target.as_bytes();
    let path_end = bytes.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(bytes.len());
    let mut edits = Edits::default();
    text::user_info(redactor, &bytes[..path_end], &mut edits);
    let mut start = 0;
    for segment in bytes[..path_end].split(|byte| *byte == b'/') {
        let end = start + segment.len();
        let mut from = start;
        for (number, parameter) in segment.split(|byte| *byte == b';').enumerate() {
            let equals = parameter.iter().position(|byte| *byte == b'=').filter(|_| number > 0);
            let range = from + equals.map_or(0, |equals| equals + 1)..from + parameter.len();
            let value = percent::decoded(&bytes[range.clone()]);
            let name = String::from_utf8_lossy(&parameter[..equals.unwrap_or(0)]);
            if (equals.is_some() && redactor.hides(&name, &value, NamePosition::Parameter))
                || !shapes::find(&value, true).is_empty()
            {
                edits.put(range, redactor.replacement(&value));
            }
            from += parameter.len() + 1;
        }
        start = end + 1;
    }
    let path = edits.apply(&bytes[..path_end]);
    let query = text::edits(redactor, &bytes[path_end..], depth).apply(&bytes[path_end..]);
    match (&path, &query) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(target),
        _ => text_of(target, Cow::Owned([path, query].concat())),
    }
}

/// The body of a message of a content type.
pub(super) fn body<'a>(
    redactor: &Redactor,
    kind: &str,
    body: &'a [u8],
    depth: u8,
) -> Cow<'a, [u8]> {
    let lower = kind.to_ascii_lowercase();
    if let Some(boundary) = boundary(kind).filter(|_| lower.trim_start().starts_with("multipart/"))
    {
        return multipart(redactor, boundary.as_bytes(), body, depth);
    }
    if let Some(deeper) = depth.checked_sub(1)
        && let Some(hidden) = binary::utf16(redactor, body, deeper)
    {
        return if *hidden == *body { Cow::Borrowed(body) } else { hidden };
    }
    if binary::is_binary(redactor, &lower, body) {
        return binary::binary(redactor, &lower, body);
    }
    if lower.contains("urlencoded") {
        return text::edits(redactor, body, depth).apply(body);
    }
    redactor.any(body, depth)
}

/// The boundary parameter of a content type.
fn boundary(kind: &str) -> Option<&str> {
    kind.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then_some(value)
    })
}

/// The parts of a multipart body, each by its name and its own content type.
fn multipart<'a>(redactor: &Redactor, boundary: &[u8], body: &'a [u8], depth: u8) -> Cow<'a, [u8]> {
    let Some(deeper) = depth.checked_sub(1) else { return redactor.closed(body) };
    let delimiter = [b"--", boundary].concat();
    let mut edits = Edits::default();
    let mut rest = find(body, &delimiter).map(|at| at + delimiter.len());
    let mut parts = 0;
    while let Some(start) = rest {
        let next = find(&body[start..], &delimiter).map(|at| start + at);
        let part = start..next.unwrap_or(body.len());
        parts += 1;
        if parts > PARTS_MAX {
            edits.put(start..body.len(), redactor.replacement(&body[start..]));
            break;
        }
        one_part(redactor, body, part, deeper, &mut edits);
        rest = next.map(|next| next + delimiter.len());
    }
    edits.apply(body)
}

fn one_part(
    redactor: &Redactor,
    body: &[u8],
    part: std::ops::Range<usize>,
    depth: u8,
    edits: &mut Edits,
) {
    let bytes = &body[part.clone()];
    let Some(head) = find(bytes, b"\r\n\r\n") else { return };
    let from = part.start + head + 4;
    // The last line break belongs to the delimiter.
    let content = &body[from..part.end];
    let content = content.strip_suffix(b"\r\n").unwrap_or(content);
    let (mut name, mut kind) = (String::new(), String::new());
    for line in String::from_utf8_lossy(&bytes[..head]).split("\r\n") {
        let Some((header, value)) = line.split_once(':') else { continue };
        if header.eq_ignore_ascii_case("content-type") {
            value.trim().clone_into(&mut kind);
        } else if header.eq_ignore_ascii_case("content-disposition") {
            name = value.split(';').find_map(part_name).unwrap_or_default();
        }
    }
    let range = from..from + content.len();
    if redactor.hides(&name, content.trim_ascii(), NamePosition::Parameter) {
        edits.put(range, redactor.replacement(content));
    } else if let Cow::Owned(other) = self::body(redactor, &kind, content, depth) {
        edits.put(range, other);
    }
}
