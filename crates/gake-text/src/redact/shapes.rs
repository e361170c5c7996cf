//! Secrets recognised by shape: JSON web tokens, keys of cloud services, private keys, card
//! numbers.

use std::ops::Range;

use super::TAG;

/// Prefixes of keys, and the minimum number of characters after them.
const MARKED: &[(&[u8], usize)] = &[
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"ABIA", 16),
    (b"ACCA", 16),
    (b"ghp_", 30),
    (b"gho_", 30),
    (b"ghu_", 30),
    (b"ghs_", 30),
    (b"ghr_", 30),
    (b"github_pat_", 30),
    (b"glpat-", 18),
    (b"gldt-", 18),
    (b"glrt-", 18),
    (b"xoxa-", 10),
    (b"xoxb-", 10),
    (b"xoxe-", 10),
    (b"xoxp-", 10),
    (b"xoxr-", 10),
    (b"xoxs-", 10),
    (b"xapp-", 10),
    (b"sk_live_", 16),
    (b"sk_test_", 16),
    (b"rk_live_", 16),
    (b"whsec_", 16),
    (b"sk-", 32),
    (b"AIza", 30),
    (b"ya29.", 20),
    (b"npm_", 30),
    (b"pypi-", 30),
    (b"dop_v1_", 32),
    (b"hvs.", 20),
    (b"hvb.", 20),
    (b"shpat_", 30),
    (b"SG.", 40),
];

/// `{"` in base64, the start of a JSON web token.
const TOKEN_BEGIN: &[u8] = b"eyJ";

/// Maximum characters of a key after its prefix.
const MARKED_MAX: usize = 512;

const PEM_BEGIN: &[u8] = b"-----BEGIN ";
const PEM_PRIVATE: &[u8] = b"PRIVATE KEY-----";
const PEM_END: &[u8] = b"-----END ";

/// Characters of an AWS secret key.
const AWS_SECRET: usize = 40;

/// Digits of card numbers.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;

/// The ranges of secrets, in order. In a path, `/` is a separator and not part of a key.
pub(super) fn find(bytes: &[u8], in_path: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    // If a run of characters is not a token, no substring is.
    let mut no_token = 0;
    while at < bytes.len() {
        // The digits of a hash may look like a card number.
        if bytes.get(at..at + TAG).is_some_and(super::is_tag) {
            at += TAG;
            continue;
        }
        let mut end = None;
        if at >= no_token && bytes[at..].starts_with(TOKEN_BEGIN) && begins(bytes, at) {
            end = web_token(bytes, at);
            no_token = at + run(&bytes[at..], is_url_safe);
        }
        match end.or_else(|| at_start(bytes, at, in_path)) {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// Whether a word may begin at `at`.
fn begins(bytes: &[u8], at: usize) -> bool {
    !at.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_alphanumeric())
}

/// The end of a secret that begins at `at`, except web tokens.
fn at_start(bytes: &[u8], at: usize, in_path: bool) -> Option<usize> {
    let byte = bytes[at];
    if byte == b'-' && bytes[at..].starts_with(PEM_BEGIN) {
        return private_key(bytes, at);
    }
    if !begins(bytes, at) {
        return None;
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    match byte {
        b'0'..=b'9' => card(bytes, at).or_else(|| aws_secret(bytes, at, before, in_path)),
        b'a'..=b'z' | b'A'..=b'Z' => {
            marked(bytes, at).or_else(|| aws_secret(bytes, at, before, in_path))
        }
        b'/' | b'+' => aws_secret(bytes, at, before, in_path),
        _ => None,
    }
}

/// The characters of base64 in URLs.
fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| of(**byte)).count()
}

/// A JWT: base64 of a JSON object, and two or four further segments.
fn web_token(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + run(&bytes[at..], is_url_safe);
    let (mut segments, mut whole) = (1, at);
    while segments < 5 && bytes.get(end) == Some(&b'.') {
        end += 1 + run(&bytes[end + 1..], is_url_safe);
        segments += 1;
        // Unsigned tokens end in a dot; truncated tokens are secrets, too.
        if segments >= 2 {
            whole = end;
        }
    }
    (segments >= 2 && whole - at >= 20).then_some(whole)
}

fn marked(bytes: &[u8], at: usize) -> Option<usize> {
    MARKED.iter().find_map(|(mark, least)| {
        let rest = bytes[at..].strip_prefix(*mark)?;
        let rest = &rest[..rest.len().min(MARKED_MAX)];
        let dotted = mark.ends_with(b".");
        let length = run(rest, |byte| is_url_safe(byte) || (dotted && byte == b'.'));
        let shouts = mark.iter().all(u8::is_ascii_uppercase);
        let fits = !shouts
            || (length == *least
                && rest[..length].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()));
        // Words joined by dashes are not a key.
        let mixed = shouts || rest[..length].iter().any(u8::is_ascii_digit) || length > 40;
        (length >= *least && fits && mixed).then_some(at + mark.len() + length)
    })
}

/// Forty characters of base64 with letters of both cases and a digit.
fn aws_secret(bytes: &[u8], at: usize, before: Option<u8>, in_path: bool) -> Option<usize> {
    let of = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || (byte == b'/' && !in_path);
    if in_path || before.is_some_and(|byte| of(byte) || matches!(byte, b'-' | b'_' | b'.' | b'%')) {
        return None;
    }
    let length = run(&bytes[at..bytes.len().min(at + AWS_SECRET + 1)], of);
    let key = &bytes[at..at + length];
    let ends = !matches!(bytes.get(at + length), Some(b'=' | b'-' | b'_' | b'.' | b'%'));
    let has = |of: fn(&u8) -> bool| key.iter().any(of);
    (length == AWS_SECRET
        && ends
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && key.iter().filter(|byte| **byte == b'/').count() <= 4)
        .then_some(at + length)
}

fn private_key(bytes: &[u8], at: usize) -> Option<usize> {
    let label = &bytes[at + PEM_BEGIN.len()..];
    let line = &label[..label.len().min(64)];
    if !line.windows(PEM_PRIVATE.len()).any(|part| part == PEM_PRIVATE) {
        return None;
    }
    let end = bytes[at..].windows(PEM_END.len()).position(|part| part == PEM_END);
    // A truncated key extends to the end.
    Some(end.map_or(bytes.len(), |end| at + end))
}

/// Digits, perhaps in groups, with the prefix, length and check digit of a card number.
fn card(bytes: &[u8], at: usize) -> Option<usize> {
    let prior = |back: usize| at.checked_sub(back).map(|at| bytes[at]);
    if prior(1) == Some(b'.') && prior(2).is_some_and(|byte| byte.is_ascii_digit()) {
        return None; // Digits after a decimal point.
    }
    let (mut digits, mut end) = (Vec::new(), at);
    for (offset, byte) in bytes[at..].iter().enumerate().take(2 * CARD.end()) {
        match byte {
            b'0'..=b'9' => {
                digits.push(byte - b'0');
                end = at + offset + 1;
            }
            // One blank or dash between groups.
            b' ' | b'-' if end == at + offset => {}
            _ => break,
        }
    }
    // The last groups may be something else.
    while digits.len() > *CARD.start() || (digits.len() == *CARD.start()) {
        let next = bytes.get(end);
        let alone = !next.is_some_and(|byte| byte.is_ascii_alphanumeric());
        if alone && CARD.contains(&digits.len()) && is_issued(&digits) && luhn(&digits) {
            return Some(end);
        }
        let group = bytes[at..end].iter().rposition(|byte| !byte.is_ascii_digit())?;
        digits.truncate(digits.len() - (end - at - group - 1));
        end = at + group;
    }
    None
}

/// Whether prefix and length match a card network.
fn is_issued(digits: &[u8]) -> bool {
    let number = |count: usize| digits[..count].iter().fold(0_u32, |n, d| n * 10 + u32::from(*d));
    match (number(2), digits.len()) {
        (34 | 37, 15) | (30 | 36 | 38 | 39, 14) | (35, 16..) => true,
        (40..=49, 13 | 16 | 19) => true,
        (51..=55, 16) => true,
        (50 | 56..=58 | 60..=69, 13..) => true,
        (22..=27, 16) => (2221..=2720).contains(&number(4)),
        _ => false,
    }
}

/// The Luhn check of ISO/IEC 7812.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, &digit)| match (at % 2, u32::from(digit) * 2) {
            (0, _) => u32::from(digit),
            (_, double @ 10..) => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g";

    fn found(text: &str) -> Vec<&str> {
        find(text.as_bytes(), false).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn secrets_are_recognised_by_shape() {
        let github = format!("ghp_{}7", "aB3".repeat(12));
        let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let slack = ["xoxb", "123456789012", "abcDEF"].join("-");
        for secret in [
            JWT,
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn",
            "AKIAIOSFODNN7EXAMPLE",
            &github,
            aws,
            "AIzaSyA-1234567890abcdefghijklmnopqrstu",
            &slack,
            "4111111111111111",
            "4111 1111 1111 1111",
            "5500-0055-5555-5559",
            "378282246310005",
            "6011000990139424",
            "2223003122003222",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
        ] {
            assert_eq!(found(secret), [secret]);
            assert_eq!(found(&format!("a {secret}; b")).len(), 1, "{secret}");
        }
        assert_eq!(found("4111 1111 1111 1111 12/29"), ["4111 1111 1111 1111"]);
        assert_eq!(found(&format!("x={JWT}&y={JWT}")), [JWT, JWT]);
    }

    #[test]
    fn similar_text_is_kept() {
        for plain in [
            "",
            "4111111111111112",
            "1700000000000000000",
            "1732271234123",
            "0.4111111111111111",
            "x4111111111111111",
            "41111111111111110000",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "6f9619ff-8b86-d011-b42d-00c04fc964ff",
            "AKIAIOSFODNN7EXAMPLEX1",
            "sk-this-is-a-name-of-something-long",
            "eyJ.a",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "2026-11-22 01:02:03 1234 5678",
        ] {
            assert!(found(plain).is_empty(), "{plain}: {:?}", found(plain));
        }
        let path = "/Users/Documents/Reports/2026/November22/";
        assert!(find(path.as_bytes(), true).is_empty());
        let found = find(format!("/reset/{JWT}/x").as_bytes(), true);
        assert!(found.len() == 1 && found[0] == (7..7 + JWT.len()), "{found:?}");
    }
}
