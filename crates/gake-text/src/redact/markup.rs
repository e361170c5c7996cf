//! Secret elements and attributes of XML and HTML, by name.

use std::ops::Range;

use super::edits::Edits;
use super::{NamePosition, Redactor};

/// Maximum length of a tag, in bytes.
const TAG_MAX: usize = 4_096;

/// Maximum length of an end tag that is compared, in bytes.
const END_TAG_MAX: usize = 256;

/// End tags that are looked at for that of a secret element; beyond, the rest of the text is hidden.
const CHILDREN_MAX: usize = 1_000;

/// Attributes that name the content of the element.
const NAMING: &[&str] = &["name", "key", "id", "property", "itemprop"];

/// Attributes whose value is named by another.
const HOLDING: &[&str] = &["value", "content"];

/// Adds the edits for secrets. Attributes with a secret name are found as `name="value"` elsewhere.
pub(super) fn edits(redactor: &Redactor, bytes: &[u8], edits: &mut Edits) {
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'<') {
        at += offset + 1;
        let Some(tag) = StartTag::read(bytes, at) else { continue };
        let named = tag.attributes.iter().any(|(name, value)| {
            let is = |list: &[&str]| list.iter().any(|one| name.eq_ignore_ascii_case(one));
            is(NAMING) && redactor.is_secret_name(&String::from_utf8_lossy(&bytes[value.clone()]))
        });
        if named {
            for (name, place) in &tag.attributes {
                if HOLDING.iter().any(|one| name.eq_ignore_ascii_case(one)) {
                    hide(redactor, bytes, place.clone(), edits);
                }
            }
        }
        let is_secret = redactor.is_secret_name(&tag.name);
        if let Some(content) = is_secret.then(|| tag.children(bytes)).flatten() {
            at = content.end;
            hide(redactor, bytes, content, edits);
            continue;
        }
        if let Some(content) = tag.content(bytes) {
            let value = bytes[content.clone()].trim_ascii();
            if named || redactor.hides(&tag.name, value, NamePosition::Member) {
                hide(redactor, bytes, content, edits);
            }
        }
        at = tag.end;
    }
}

fn hide(redactor: &Redactor, bytes: &[u8], place: Range<usize>, edits: &mut Edits) {
    let value = &bytes[place.clone()];
    let from = place.start + value.len() - value.trim_ascii_start().len();
    let value = value.trim_ascii();
    if !super::is_nothing(value) {
        edits.put(from..from + value.len(), redactor.replacement(value));
    }
}

struct StartTag {
    /// Without prefix.
    name: String,
    attributes: Vec<(String, Range<usize>)>,
    /// The offset after `>`.
    end: usize,
    is_empty: bool,
}

impl StartTag {
    /// The tag whose name begins at `at`.
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
        let name_at = |at: usize| {
            let length = bytes[at..].iter().take(64).take_while(|byte| part(**byte)).count();
            (length > 0).then(|| (String::from_utf8_lossy(&bytes[at..at + length]), at + length))
        };
        let (name, mut at) = name_at(at)?;
        let name = name.rsplit(':').next().unwrap_or_default().to_owned();
        let last = bytes.len().min(at + TAG_MAX);
        let mut tag = Self { name, attributes: Vec::new(), end: at, is_empty: false };
        while at < last {
            match bytes[at] {
                b'>' => {
                    tag.is_empty = bytes[at - 1] == b'/';
                    tag.end = at + 1;
                    return Some(tag);
                }
                b'<' => return None,
                b'=' | b'/' | b'"' | b'\'' => at += 1,
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => {
                    let Some((name, end)) = name_at(at) else {
                        at += 1;
                        continue;
                    };
                    let name = name.into_owned();
                    let (value, next) = attribute(bytes, end);
                    tag.attributes.extend(value.map(|value| (name, value)));
                    at = next;
                }
            }
        }
        None
    }

    /// The content up to the end tag, if it begins with another element.
    fn children(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let rest = &bytes[self.end..];
        let first = rest.trim_ascii_start();
        let opens = matches!(first, [b'<', next, ..] if next.is_ascii_alphabetic());
        if self.is_empty || !opens {
            return None;
        }
        let closes = |at: &usize| {
            let name = rest[*at..].strip_prefix(b"</").unwrap_or_default();
            let name = &name[..name.len().min(END_TAG_MAX)];
            let name = name.split(|byte| *byte == b'>').next().unwrap_or_default();
            let name = name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(self.name.as_bytes())
        };
        let ends = rest.windows(2).enumerate().filter(|(_, two)| two == b"</").map(|(at, _)| at);
        // Without an end tag, it lasts to the end of the text.
        let length = ends.take(CHILDREN_MAX).find(closes).unwrap_or(rest.len());
        Some(self.end..self.end + length)
    }

    /// The text after the tag, up to the next one.
    fn content(&self, bytes: &[u8]) -> Option<Range<usize>> {
        const CDATA: &[u8] = b"<![CDATA[";
        if self.is_empty {
            return None;
        }
        let rest = &bytes[self.end..];
        if let Some(data) = rest.strip_prefix(CDATA) {
            let length = data.windows(3).position(|three| three == b"]]>").unwrap_or(data.len());
            let start = self.end + CDATA.len();
            return Some(start..start + length);
        }
        let length = rest.iter().take_while(|byte| **byte != b'<').count();
        (length > 0).then(|| self.end..self.end + length)
    }
}

/// The range of an attribute's value, whose name ends at `at`, and the offset to continue.
fn attribute(bytes: &[u8], at: usize) -> (Option<Range<usize>>, usize) {
    let blanks = |at: usize| {
        at + bytes[at..].iter().take(8).take_while(|byte| byte.is_ascii_whitespace()).count()
    };
    let equals = blanks(at);
    if bytes.get(equals) != Some(&b'=') {
        return (None, at);
    }
    let from = blanks(equals + 1);
    match bytes.get(from) {
        Some(quote @ (b'"' | b'\'')) => {
            let length = bytes[from + 1..].iter().take(TAG_MAX).take_while(|b| *b != quote).count();
            (Some(from + 1..from + 1 + length), from + length + 2)
        }
        _ => {
            let ends = |byte: &&u8| !byte.is_ascii_whitespace() && !b"\"'<>".contains(byte);
            let length = bytes[from..].iter().take(TAG_MAX).take_while(ends).count();
            (Some(from..from + length), from + length)
        }
    }
}
