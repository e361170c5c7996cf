//! The shapes of differing values: a hint at noise where there is no second instance.

use serde::{Deserialize, Serialize};

use super::field::ValuePair;
use super::template::placeholder;

/// The shape of points in time.
pub const INSTANT: &str = "an instant";

/// Counts of pairs of values by shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValueShapes {
    /// Pairs of points in time.
    #[serde(deserialize_with = "super::bounded::count")]
    pub instants: u64,
    /// Pairs of identifiers.
    #[serde(deserialize_with = "super::bounded::count")]
    pub identifiers: u64,
    /// All pairs.
    #[serde(deserialize_with = "super::bounded::count")]
    pub pairs: u64,
}

impl ValueShapes {
    pub(super) fn count(&mut self, values: &ValuePair) {
        let both = |is: fn(&str) -> bool| {
            u64::from([&values.expected, &values.actual].iter().all(|v| is(v.trim_matches('"'))))
        };
        self.instants += both(is_instant);
        self.identifiers += both(is_identifier);
        self.pairs += 1;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.instants += other.instants;
        self.identifiers += other.identifiers;
        self.pairs += other.pairs;
    }

    /// The shape of at least 95 % of the pairs, if they have one.
    #[must_use]
    pub fn dominant(&self) -> Option<&'static str> {
        match self.pairs {
            0 => None,
            all if self.instants * 20 >= all * 19 => Some(INSTANT),
            all if self.identifiers * 20 >= all * 19 => Some("an identifier"),
            _ => None,
        }
    }
}

/// RFC 3339, an HTTP date, or seconds, milliseconds or more since 1970, between 2001 and 2100.
fn is_instant(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    let iso = digits(0..4)
        && bytes.get(4) == Some(&b'-')
        && digits(5..7)
        && digits(8..10)
        && matches!(bytes.get(10), Some(b'T' | b't' | b' '));
    let http = bytes.len() == 29 && text.ends_with(" GMT") && bytes[3] == b',';
    // Seconds, milliseconds, microseconds or nanoseconds.
    let in_range = |number: f64| {
        [1.0, 1e3, 1e6, 1e9].iter().any(|unit| (1e9..4.2e9).contains(&(number / unit)))
    };
    let unix = text.parse().is_ok_and(in_range);
    iso || http || unix
}

/// A UUID or a long token, but not a number, which may be a quantity.
fn is_identifier(text: &str) -> bool {
    let word = text.contains(|c: char| c.is_ascii_alphabetic());
    text.len() >= 8 && word && placeholder(text) == Some("{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_identifiers_are_recognised() {
        for text in ["2026-11-22T01:02:03Z", "2026-11-22 01:02", "1795309323", "1795309323123.5"] {
            assert!(is_instant(text), "{text}");
        }
        assert!(is_instant("Sun, 22 Nov 2026 01:02:03 GMT"));
        for text in ["17", "2026", "hello", "12345678901234567890123", "", "0.5", "1e400", "nan"] {
            assert!(!is_instant(text), "{text}");
        }
        assert!(is_identifier("6f9619ff-8b86-d011-b42d-00c04fc964ff"));
        assert!(!is_identifier("12345678") && !is_identifier("price"));
    }
}
