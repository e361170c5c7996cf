//! Untrusted text, from clients, backends, files and scripts. Control characters (escape sequences,
//! C1 controls), bidirectional controls and zero-width characters are shown as escapes: `\u001b`.

use std::borrow::Cow;

/// A text on one line, control characters and line breaks escaped.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && c != '\t' && !is_hazard(c), |_| None)
}

/// A text of several lines, other control characters escaped.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !is_hazard(c), |_| None)
}

/// As [`lines`], but colour and weight sequences are kept.
#[must_use]
pub fn coloured_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !is_hazard(c), colour)
}

/// A text for files and pipes: control characters escaped, except colour and weight sequences;
/// zero-width characters are kept.
#[must_use]
pub fn without_controls(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !c.is_control() || matches!(c, '\n' | '\t' | '\r'), colour)
}

/// As [`line`], but colour and weight sequences are kept.
#[must_use]
pub fn coloured_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && c != '\t' && !is_hazard(c), colour)
}

/// Whether a terminal interprets a character, or a reader cannot see it.
#[must_use]
pub fn is_hazard(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Zero width: soft hyphen, joiners, fillers, selectors, marks, tags.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// The length of a colour or weight sequence at the start.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find('m').filter(|end| *end <= 16)?;
    let known = |number: &str| {
        let usual = |n: u8| matches!(n, 0..=4 | 22..=24 | 30..=37 | 39 | 90..=97);
        number.is_empty() || number.parse().is_ok_and(usual)
    };
    parameters[..end].split(';').all(known).then_some(end + 3)
}

/// Escapes characters that are not `plain`, except sequences whose length `keep` returns.
fn escaped(
    text: &str,
    plain: impl Fn(char) -> bool,
    keep: impl Fn(&str) -> Option<usize>,
) -> Cow<'_, str> {
    if text.chars().all(&plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = keep(rest) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let line_end = c == '\r' && rest.starts_with('\n') && plain('\n');
        if plain(c) || line_end {
            out.push(c);
            continue;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // JSON escapes, so that documents stay valid.
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                out.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("plain é 日本 🐵", "plain é 日本 🐵"),
            ("\u{1b}]0;PWN\u{7}", "\\u001b]0;PWN\\u0007"),
            ("a\u{9b}31mb", "a\\u009b31mb"),
            ("\u{90}q\u{9c}", "\\u0090q\\u009c"),
            ("x\u{7f}y", "x\\u007fy"),
            ("user\u{202e}gpj", "user\\u202egpj"),
            ("a\u{200b}b\u{feff}c\u{2066}d\u{ad}", "a\\u200bb\\ufeffc\\u2066d\\u00ad"),
            ("\u{e0041}", "\\udb40\\udc41"),
            ("over\rwritten", "over\\rwritten"),
            ("a\nwarning: b\tc", "a\\nwarning: b\\tc"),
            ("\u{1b}[31m", "\\u001b[31m"),
            ("l\u{2028}m", "l\\u2028m"),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(lines("a\r\nb\tc\rd"), "a\r\nb\tc\\rd");
    }

    #[test]
    fn only_colours_are_kept() {
        let ours = "\u{1b}[1m\u{1b}[31mred\u{1b}[0m \u{1b}[1;32mgreen\u{1b}[39m";
        assert_eq!((&*coloured_lines(ours), &*coloured_line(ours)), (ours, ours));
        assert_eq!(coloured_line("\u{1b}[1ma\n\u{1b}[2J"), "\u{1b}[1ma\\n\\u001b[2J");
        for theirs in [
            "\u{1b}[2J",
            "\u{1b}[8mhidden",
            "\u{1b}]8;;http://x\u{7}",
            "\u{1b}[",
            "\u{1b}[1;9999m",
            "\u{1b}c",
            "\u{1b}[1\u{202e}m",
            "\u{1b}[38;5;1m",
            "\u{1b}P",
            "\u{1b}[48m",
            "\u{9b}31m",
        ] {
            assert!(!coloured_lines(theirs).chars().any(is_hazard), "{theirs:?}");
        }
    }

    #[test]
    fn json_stays_valid() {
        let value = serde_json::json!({"a": "\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n\r"});
        let shown = lines(&value.to_string()).into_owned();
        assert!(!shown.chars().any(is_hazard));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
