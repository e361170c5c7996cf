//! Durations: Go's (`1m30s`, `500ms`), and k6's extensions of them: days in front (`1d2h`), and
//! bare numbers of milliseconds.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A Go duration: signed nanoseconds, at most 292 years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    ns: i64,
}

/// Why a text is not a duration, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError {
    /// It is malformed or too long.
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number in it has no unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A number in it has an unknown unit.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// The number before the `d` is not a whole number.
    #[error("strconv.ParseInt: parsing {0:?}: invalid syntax")]
    Days(String),
    /// The rest after the days is negative.
    #[error("invalid time format '{0}'")]
    NegativeRest(String),
}

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const DAY: i64 = 86_400 * SECOND;

impl GoDuration {
    /// No time.
    pub const ZERO: Self = Self { ns: 0 };

    /// A number of seconds.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Self { ns: seconds.saturating_mul(SECOND) }
    }

    /// A number of milliseconds, possibly fractional.
    #[must_use]
    pub fn from_millis(ms: f64) -> Self {
        Self { ns: (ms * MILLISECOND as f64) as i64 }
    }

    /// A number of nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: i64) -> Self {
        Self { ns }
    }

    /// Its whole length in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.ns
    }

    /// The seconds, with a fraction.
    #[must_use]
    pub fn secs(self) -> f64 {
        self.ns as f64 / SECOND as f64
    }

    /// Whether it is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.ns < 0
    }

    /// As a Rust duration; negative ones become zero.
    #[must_use]
    pub const fn to_std(self) -> Duration {
        Duration::from_nanos(if self.ns < 0 { 0 } else { self.ns as u64 })
    }

    /// Parses a duration as k6 does in flags: numbers need a unit.
    ///
    /// # Errors
    /// When it is not a duration, in k6's words.
    pub fn parse_go(text: &str) -> Result<Self, GoDurationError> {
        go_duration(text).map(|ns| Self { ns })
    }

    /// Parses a duration as k6 does in options and environment.
    ///
    /// # Errors
    /// When it is not a duration, in k6's words.
    pub fn parse(text: &str) -> Result<Self, GoDurationError> {
        if let Some(ms) = bare_number(text) {
            return Ok(Self::from_millis(ms));
        }
        let Some((days, rest)) = text.split_once('d') else {
            return go_duration(text).map(|ns| Self { ns });
        };
        let rest_ns = if rest.is_empty() { 0 } else { go_duration(rest)? };
        if rest_ns < 0 {
            return Err(GoDurationError::NegativeRest(rest.to_owned()));
        }
        let days: i64 = days.parse().map_err(|_| GoDurationError::Days(days.to_owned()))?;
        let rest_ns = if days < 0 { -rest_ns } else { rest_ns };
        Ok(Self { ns: days.saturating_mul(DAY).saturating_add(rest_ns) })
    }
}

/// A number of milliseconds without a unit.
fn bare_number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if is_plain { text.parse().ok() } else { None }
}

/// Parses Go's syntax: a sign, then numbers with a unit each. Returns nanoseconds.
fn go_duration(text: &str) -> Result<i64, GoDurationError> {
    let invalid = || GoDurationError::Invalid(text.to_owned());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let number_end = end_of(rest, |c| c.is_ascii_digit() || c == '.');
        let (number, after) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let unit_end = end_of(after, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = after.split_at(unit_end);
        if unit.is_empty() {
            return Err(GoDurationError::MissingUnit(text.to_owned()));
        }
        let unit = unit_ns(unit).ok_or_else(|| GoDurationError::UnknownUnit {
            unit: unit.to_owned(),
            text: text.to_owned(),
        })?;
        let whole: i128 =
            if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        total += whole.checked_mul(i128::from(unit)).ok_or_else(invalid)?;
        total += fraction_ns(fraction, unit);
        if total > i128::from(i64::MAX) {
            return Err(invalid());
        }
        rest = after;
    }
    let total = total as i64;
    Ok(if text.starts_with('-') { -total } else { total })
}

/// The length of the prefix of `text` whose characters belong to a kind.
fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn unit_ns(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        _ => return None,
    })
}

/// The digits after a point as nanoseconds of a unit, rounded down.
fn fraction_ns(digits: &str, unit: i64) -> i128 {
    let (mut sum, mut scale) = (0_i128, 1_i128);
    // A unit has 13 digits at most, so further digits add nothing.
    for digit in digits.bytes().take(18) {
        scale *= 10;
        sum = sum * 10 + i128::from(digit - b'0');
    }
    i128::from(unit) * sum / scale
}

impl fmt::Display for GoDuration {
    /// As Go writes it: `1h0m5s`, `1.5s`, `500ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        let ns = self.ns.unsigned_abs();
        match ns {
            0 => return f.write_str("0s"),
            1..1_000 => return write!(f, "{ns}ns"),
            1_000..1_000_000 => return decimal(f, ns, 1_000, "µs"),
            1_000_000..1_000_000_000 => return decimal(f, ns, 1_000_000, "ms"),
            _ => {}
        }
        let minute = 60 * SECOND as u64;
        let (hours, minutes) = (ns / (60 * minute), ns / minute % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        decimal(f, ns % minute, SECOND as u64, "s")
    }
}

/// A number of nanoseconds in a unit, with the decimals it needs.
fn decimal(f: &mut fmt::Formatter<'_>, ns: u64, unit: u64, name: &str) -> fmt::Result {
    let digits = unit.ilog10() as usize;
    write!(f, "{}", ns / unit)?;
    let fraction = format!("{:0digits$}", ns % unit);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        write!(f, ".{fraction}")?;
    }
    f.write_str(name)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    /// From a text, or from a number of milliseconds.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMillis)
    }
}

struct TextOrMillis;

impl Visitor<'_> for TextOrMillis {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration, or a number of milliseconds")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<GoDuration, E> {
        GoDuration::parse(text).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, ms: f64) -> Result<GoDuration, E> {
        Ok(GoDuration::from_millis(ms))
    }

    fn visit_u64<E: de::Error>(self, ms: u64) -> Result<GoDuration, E> {
        Ok(GoDuration::from_millis(ms as f64))
    }

    fn visit_i64<E: de::Error>(self, ms: i64) -> Result<GoDuration, E> {
        Ok(GoDuration::from_millis(ms as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_by_k6() {
        for (text, ms, written) in [
            ("500ms", 500.0, "500ms"),
            ("10", 10.0, "10ms"),
            ("1.5", 1.5, "1.5ms"),
            ("1e3", 1e3, "1s"),
            ("-5", -5.0, "-5ms"),
            ("1m30s", 90e3, "1m30s"),
            ("90s", 90e3, "1m30s"),
            (".5s", 500.0, "500ms"),
            ("1.h", 3.6e6, "1h0m0s"),
            ("1d", 86.4e6, "24h0m0s"),
            ("1d2h", 93.6e6, "26h0m0s"),
            ("-1d2h", -93.6e6, "-26h0m0s"),
            ("1h5s", 3.605e6, "1h0m5s"),
            ("0", 0.0, "0s"),
            ("1us", 0.001, "1µs"),
            ("1.25µs", 0.00125, "1.25µs"),
            ("7ns", 0.000_007, "7ns"),
            ("1.005s", 1005.0, "1.005s"),
        ] {
            let duration = GoDuration::parse(text).unwrap();
            assert_eq!(duration, GoDuration::from_millis(ms), "{text}");
            assert_eq!(duration.to_string(), written, "{text}");
            assert_eq!(GoDuration::parse(written), Ok(duration), "{written}");
        }
    }

    #[test]
    fn invalid_durations_are_refused_in_gos_words() {
        for (text, error) in [
            ("", "time: invalid duration \"\""),
            ("abc", "time: invalid duration \"abc\""),
            ("10q", "time: unknown unit \"q\" in duration \"10q\""),
            ("1m30", "time: missing unit in duration \"1m30\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
            ("1.5d", "strconv.ParseInt: parsing \"1.5\": invalid syntax"),
            ("1d-2h", "invalid time format '-2h'"),
        ] {
            assert_eq!(GoDuration::parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn json_holds_strings_or_milliseconds() {
        for (json, ms) in [("\"2s\"", 2e3), ("1500", 1.5e3), ("0.5", 0.5), ("\"250\"", 250.0)] {
            let duration: GoDuration = serde_json::from_str(json).unwrap();
            assert_eq!(duration, GoDuration::from_millis(ms), "{json}");
        }
        assert!(serde_json::from_str::<GoDuration>("true").is_err());
        let written = serde_json::to_string(&GoDuration::from_secs(90)).unwrap();
        assert_eq!(written, "\"1m30s\"");
    }
}
