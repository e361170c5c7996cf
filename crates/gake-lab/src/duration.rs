//! Durations as people write them: `20ms`, `1.5s`, `2m`.

use std::time::Duration;

/// The longest duration the lab takes: longer ones are slips, and it keeps
/// every instant that is computed from one representable.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDuration {
    /// Not a number with a unit.
    #[error("{0:?} is not a duration: write a number and a unit, as in 20ms, 1.5s or 2m")]
    Malformed(String),
    /// Beyond a day.
    #[error("{0:?} is longer than 24h")]
    TooLong(String),
}

/// Reads a duration: a decimal number and one of `ns`, `us`, `ms`, `s`, `m`,
/// `h`. A bare `0` needs no unit. At most 24 hours.
///
/// # Errors
/// [`BadDuration`] when the text is anything else.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let malformed = || BadDuration::Malformed(text.to_owned());
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_s = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "" if number == "0" => 1.0,
        _ => return Err(malformed()),
    };
    let value: f64 = number.parse().map_err(|_| malformed())?;
    let seconds = value * unit_s;
    if seconds > LONGEST.as_secs_f64() {
        return Err(BadDuration::TooLong(text.to_owned()));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| malformed())
}

/// As [`parse_duration`], and a bare number counts as milliseconds: in a URL
/// that is what is meant.
pub(crate) fn parse_duration_ms(text: &str) -> Result<Duration, BadDuration> {
    if text.parse::<f64>().is_ok() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        parse_duration(&format!("{text}ms"))
    } else {
        parse_duration(text)
    }
}

/// Writes a duration the way [`parse_duration`] reads it, in the largest unit
/// that keeps the number at 1 or above: `20ms`, `1.5s`, `2m`.
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let units: [(u128, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
        (1, "ns"),
    ];
    for (unit_ns, unit) in units {
        // Minutes and hours only when whole: 90s reads better than 1.5m.
        let fits = unit_ns <= 1_000_000_000 || ns.is_multiple_of(unit_ns);
        if ns >= unit_ns && fits {
            return format!("{}{unit}", ns as f64 / unit_ns as f64);
        }
    }
    "0s".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("0", 0),
            ("24h", 86_400_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        assert_eq!(parse_duration_ms("50"), Ok(Duration::from_millis(50)));
        assert_eq!(parse_duration_ms("50us"), Ok(Duration::from_micros(50)));
    }

    #[test]
    fn rejects_the_rest() {
        for text in ["", "ms", "20", "-1s", "1 s", "1e3s", "1.2.3s", "inf", "nan", ".s", "ü", "25h"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_duration_ms("").is_err());
        assert!(parse_duration_ms("999999999999999999999").is_err());
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["20ms", "1.5s", "90s", "2m", "250µs", "0s", "100ns", "24h"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }
}
