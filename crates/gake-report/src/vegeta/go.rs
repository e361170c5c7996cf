//! Go's formats of durations, instants, numbers and JSON strings.

use std::fmt::Write as _;

use gake_core::clock::SECOND;

use super::record::Timestamp;

const MINUTE: i64 = 60 * NANOS;
const HOUR: i64 = 60 * MINUTE;
const NANOS: i64 = SECOND as i64;

/// The units of durations in nanoseconds; `µ` has two code points.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", MINUTE as f64),
    ("h", HOUR as f64),
];

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration; write 500ms, 10s or 1m30s")]
pub struct VegetaDurationError(String);

/// Parses a duration as Go writes it, in nanoseconds: `1h2m3.5s`, `-1.5ms`, `0`.
///
/// # Errors
/// When the text has no unit or an unknown one, or is out of range.
pub fn parse_duration(text: &str) -> Result<i64, VegetaDurationError> {
    let fault = || VegetaDurationError(text.to_owned());
    let (negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    let mut sum = 0;
    let mut rest = unsigned;
    while !rest.is_empty() || unsigned.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fault)?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, nanos) = UNITS.iter().find(|known| known.0 == unit).ok_or_else(fault)?;
        let part = part(number, *nanos).ok_or_else(fault)?;
        sum = part.checked_add(sum).ok_or_else(fault)?;
        rest = after;
    }
    Ok(if negative { -sum } else { sum })
}

/// A decimal number of units in nanoseconds; its integer is exact.
fn part(number: &str, nanos: f64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    whole.checked_mul(nanos as i64)?.checked_add((fraction * nanos) as i64)
}

/// Formats nanoseconds as Go's `Duration.String`: `1h2m3.5s`, `677.965µs`.
#[must_use]
pub fn duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(size, 1_000_000)),
        _ => {
            let (minutes, rest) = (size / MINUTE as u64, size % MINUTE as u64);
            let mut text = sign.to_owned();
            if minutes >= 60 {
                let _ = write!(text, "{}h", minutes / 60);
            }
            if minutes > 0 {
                let _ = write!(text, "{}m", minutes % 60);
            }
            text + &decimal(rest, SECOND) + "s"
        }
    }
}

/// `size / unit` without trailing zeros; `unit` is a power of ten.
fn decimal(size: u64, unit: u64) -> String {
    let (whole, fraction) = (size / unit, size % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{fraction:0width$}").trim_end_matches('0').to_owned()
}

/// Rounds a duration to the unit below its own, as Vegeta's text report does: 1.98318 s to
/// milliseconds, 3.112126 ms to microseconds.
#[must_use]
pub fn rounded(nanos: i64) -> i64 {
    const UNITS: [i64; 6] = [HOUR, MINUTE, NANOS, 1_000_000, 1_000, 1];
    let below = UNITS.windows(2).find(|pair| nanos >= pair[0]).map(|pair| pair[1]);
    below.map_or(nanos, |unit| nanos.saturating_add(unit / 2) / unit * unit)
}

/// A duration in seconds, rounded as Go's `Duration.Seconds`.
#[must_use]
pub fn seconds(nanos: i64) -> f64 {
    (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9
}

/// Formats an instant as Go's JSON does: RFC 3339 with as many digits as needed.
#[must_use]
pub fn timestamp(timestamp: Timestamp) -> String {
    let offset = timestamp.offset.unwrap_or(0);
    let shown = i128::from(timestamp.unix_ns) + i128::from(offset) * i128::from(SECOND);
    // Within jiff's range at any offset: i64 nanoseconds end in 2262.
    let shown = jiff::Timestamp::from_nanosecond(shown).unwrap_or_default().to_string();
    if offset == 0 {
        return shown;
    }
    let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    format!("{}{sign}{:02}:{:02}", shown.trim_end_matches('Z'), size / 60, size % 60)
}

/// Parses an RFC 3339 text.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    let unix_ns = i64::try_from(instant.as_nanosecond()).ok()?;
    if text.ends_with(['Z', 'z']) {
        return Some(Timestamp { unix_ns, offset: None });
    }
    let at = text.len().checked_sub("+00:00".len())?;
    let (hours, minutes) = text.get(at + 1..)?.split_once(':')?;
    let size = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    let offset = if text.get(at..)?.starts_with('-') { -size } else { size };
    Some(Timestamp { unix_ns, offset: Some(offset) })
}

/// Formats a number as Go's JSON does: the shortest digits, no `.0`, an exponent at the extremes.
#[must_use]
pub fn float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        return if size >= 1e21 { text.replace('e', "e+") } else { text };
    }
    value.to_string()
}

/// Appends a quoted string with Go's escapes: control characters, `<`, `>`, `&`, and the line
/// separators of JavaScript.
pub fn push_json_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed and parsed by Go.
    #[test]
    fn durations_are_those_of_go() {
        for (nanos, text) in [
            (0, "0s"),
            (999, "999ns"),
            (-1_500, "-1.5µs"),
            (3_112_000, "3.112ms"),
            (1_984_000_000, "1.984s"),
            (60_000_000_000, "1m0s"),
            (3_723_500_000_000, "1h2m3.5s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(duration(nanos), text);
            assert_eq!(parse_duration(text), Ok(nanos));
        }
        assert_eq!(duration(i64::MIN), "-2562047h47m16.854775808s");
        assert_eq!(parse_duration("1.5h"), Ok(90 * MINUTE));
        assert_eq!(parse_duration(".5s"), Ok(500_000_000));
        for bad in ["", "-", "1", "1x", "s", "1..5s", "5 s", "9999999h", "99999999999999999999ns"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_duration_is_rounded_to_the_unit_below() {
        for (nanos, text) in [
            (3_112_126, "3.112ms"),
            (677_965, "677.965µs"),
            (1_983_858_019, "1.984s"),
            (75_400_000_000, "1m15s"),
            (5_431_000_000_000, "1h31m0s"),
            (0, "0s"),
        ] {
            assert_eq!(duration(rounded(nanos)), text);
        }
    }

    #[test]
    fn numbers_are_those_of_gos_json() {
        for (value, text) in [
            (4.0, "4"),
            (2.8333333333333335, "2.8333333333333335"),
            (0.0, "0"),
            (1e-7, "1e-7"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn an_instant_keeps_its_zone() {
        for text in ["2026-11-21T20:08:04.781924887Z", "2026-11-21T22:08:04+02:00"] {
            assert_eq!(timestamp(parse_timestamp(text).unwrap()), text);
        }
        let newfoundland = parse_timestamp("2026-11-21T16:38:04.5-03:30").unwrap();
        assert_eq!(newfoundland.offset, Some(-12_600));
        assert_eq!(timestamp(newfoundland), "2026-11-21T16:38:04.5-03:30");
        assert_eq!(parse_timestamp("yesterday"), None);
    }
}
