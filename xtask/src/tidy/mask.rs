//! Rust source taken apart: its code, its comments, its literals.
//!
//! What is not wanted becomes spaces of the same length, so that braces can be matched and words
//! found by plain search while every byte keeps its offset and every line its number.

/// What is not code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Documentation too.
    Comment,
    /// A string or a character.
    Literal,
}

/// The text with comments and literals as spaces; newlines stay.
pub fn mask(text: &str) -> String {
    let mut masked = text.as_bytes().to_vec();
    for (start, end, _) in not_code(text.as_bytes()) {
        blank(&mut masked[start..end]);
    }
    // Only whole literals and comments were blanked, so the rest is still UTF-8.
    String::from_utf8_lossy(&masked).into_owned()
}

/// The comments, or the literals, with all else as spaces: a sentence that goes over several lines
/// is one. Code between two of them is a full stop.
pub fn prose(text: &str, kind: Kind) -> String {
    let mut prose = text.as_bytes().to_vec();
    let mut code = 0;
    for (start, end, own) in not_code(text.as_bytes()) {
        separate(&mut prose[code..start]);
        code = end;
        if own != kind {
            separate(&mut prose[start..end]);
            continue;
        }
        let marks: &[u8] = if kind == Kind::Comment { b"/!*" } else { b"\"" };
        let own = &mut prose[start..end];
        let skipped = own.iter().take_while(|byte| marks.contains(byte)).count();
        blank(&mut own[..skipped]);
        if kind == Kind::Literal {
            escapes(own);
        }
    }
    separate(&mut prose[code..]);
    String::from_utf8_lossy(&prose).into_owned()
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// Blanks it, with a full stop where something other than blanks was.
fn separate(bytes: &mut [u8]) {
    let at = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
    blank(bytes);
    if let Some(at) = at {
        bytes[at] = b'.';
    }
}

/// Blanks `\n` and what is like it.
fn escapes(literal: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = literal[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let end = literal.len().min(at + 2);
        // Of a character of several bytes, all stay.
        let end = if literal[at..end].is_ascii() { end } else { at + 1 };
        blank(&mut literal[at..end]);
        at = end;
    }
}

/// Where the comments and literals are.
fn not_code(bytes: &[u8]) -> Vec<(usize, usize, Kind)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        if end > at {
            let kind = if bytes[at] == b'/' { Kind::Comment } else { Kind::Literal };
            found.push((at, end, kind));
        }
        at = end.max(at + 1);
    }
    found
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none does.
fn skip(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => at + position(rest, b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + string(rest),
        [b'r', b'"' | b'#', ..] if !continues_a_word(bytes, at) => at + raw_string(rest),
        [b'\'', ..] => at + character(rest),
        _ => at,
    }
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r#"..."#` with any number of hashes; a raw identifier (`r#type`) is no string.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[2 + hashes..];
    let found = body.windows(close.len()).position(|window| window == close);
    found.map_or(rest.len(), |found| 2 + hashes + found + close.len())
}

/// A character literal; a lifetime is left alone.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => 3 + position(&rest[3..], b'\'').map_or(0, |found| found + 1),
        _ => {
            // One character of up to four bytes, then the closing quote.
            let length = rest[1..].iter().take(5).position(|byte| *byte == b'\'');
            let one = |length: usize| {
                std::str::from_utf8(&rest[1..=length]).is_ok_and(|text| text.chars().count() == 1)
            };
            length.filter(|length| one(*length)).map_or(0, |length| length + 2)
        }
    }
}

/// Whether the byte before belongs to the same word (`b` and `c` are prefixes of a raw string).
fn continues_a_word(bytes: &[u8], at: usize) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match at.checked_sub(1).map(|before| bytes[before]) {
        Some(b'b' | b'c') => at >= 2 && word(bytes[at - 2]),
        Some(byte) => word(byte),
        None => false,
    }
}

fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let masked = mask(text);
        assert_eq!(masked.len(), text.len());
        masked.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_go() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
    }

    #[test]
    fn strings_go() {
        assert_eq!(code(r#"a("}\"{", b)"#), "a( , b)");
        assert_eq!(code(r###"a(r#"}"{"#, br"\", r#type)"###), "a( , b , r#type)");
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        assert_eq!(code(r"f('{', '\'', '→', '\u{7d}')"), "f( , , , )");
        assert_eq!(code("fn f<'a>(x: &'a str, y: &'a str)"), "fn f<'a>(x: &'a str, y: &'a str)");
    }

    #[test]
    fn prose_is_what_people_read() {
        let words = |text: &str, kind| {
            let prose = prose(text, kind);
            assert_eq!(prose.len(), text.len());
            prose.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = "//! A\n// b.\nf(\"c\\nd\"); // é\n";
        assert_eq!(words(text, Kind::Comment), "A b. . . . é");
        assert_eq!(words(text, Kind::Literal), ". . . c d\". .");
    }

    #[test]
    fn lines_keep_their_number() {
        assert_eq!(mask("\"a\nb\"\n/*\n*/x").lines().count(), 4);
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_file() {
        assert_eq!(code("a \"b"), "a");
        assert_eq!(code("a /* b"), "a");
        assert_eq!(code("a r#\"b"), "a");
    }
}
