//! The structure of JavaScript: statements, and code without strings and comments.

/// Splits code into statements without the comments between them.
pub(super) fn statements(code: &str) -> Vec<String> {
    let masked = mask(code);
    let mut statements = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, c) in masked.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c == ';' || c == '\n' && is_end(&masked[start..at], &masked[at..])) {
            statements.push((start, at + 1));
            start = at + 1;
        }
    }
    statements.push((start, code.len()));
    statements
        .into_iter()
        .filter(|(start, end)| {
            !masked[*start..*end].trim_matches([' ', '\n', '\t', '\r', ';']).is_empty()
        })
        .map(|(start, end)| {
            // Leading comments are masked as spaces.
            let lead = masked[start..end].len() - masked[start..end].trim_start().len();
            code[start + lead..end].trim().to_owned()
        })
        .collect()
}

/// Whether a line break ends a statement.
pub(super) fn is_end(before: &str, after: &str) -> bool {
    let (before, after) = (before.trim_end(), after.trim_start());
    let continues = ["else", "catch", "finally"].iter().any(|word| after.starts_with(word));
    !before.is_empty()
        && !continues
        && !before.ends_with(['=', '+', '&', '|', '?', ':', ',', '.', '<', '>', '-', '*'])
        && !before.ends_with("else")
        && !after.starts_with(['.', '?', ':', '+', '&', '|', ',', '=', '{'])
}

/// Code of the same length with the contents of strings, comments and regular expressions blanked,
/// so that names and brackets can be searched for. Quotes are kept.
pub(super) fn mask(code: &str) -> String {
    let mut masked: Vec<u8> =
        code.bytes().map(|byte| if byte < 128 { byte } else { b'_' }).collect();
    let bytes = code.as_bytes();
    let mut at = 0;
    let mut last = b';';
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match bytes[at] {
            b'/' if rest.starts_with(b"//") => at + position(rest, b"\n").unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => {
                at + position(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)
            }
            b'/' if b"(=:,!&|?{};[\n".contains(&last) => pattern_end(bytes, at),
            quote @ (b'"' | b'\'' | b'`') => {
                let end = string_end(bytes, at, quote);
                let inner = at + 1..end.saturating_sub(1).max(at + 1);
                // Interpolations of a template literal are code.
                if quote != b'`' || position(&bytes[inner.clone()], b"${").is_none() {
                    masked[inner].fill(b' ');
                }
                last = quote;
                at = end;
                continue;
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    last = byte;
                }
                at += 1;
                continue;
            }
        };
        let end = end.min(bytes.len());
        for byte in masked[at..end].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        at = end;
    }
    String::from_utf8(masked).unwrap_or_default()
}

fn position(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn string_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn pattern_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    let mut in_class = false;
    while at < bytes.len() && bytes[at] != b'\n' && (in_class || bytes[at] != b'/') {
        match bytes[at] {
            b'[' => in_class = true,
            b']' => in_class = false,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    at + 1
}
