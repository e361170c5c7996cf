//! Durations as people write them: `20ms`, `1.5s`, `2m`.

use std::time::Duration;

/// The longest duration accepted: longer ones are mistakes, and every instant computed from one
/// stays representable.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDuration {
    /// Not a number with a unit.
    #[error("{0:?} is not a duration: write a number and a unit, as in 20ms, 1.5s or 2m")]
    Malformed(String),
    /// Beyond a day.
    #[error("{0:?} is longer than 24h")]
    TooLong(String),
}

/// Parses a duration with a unit, at most 24 hours. A bare `0` needs no unit.
///
/// # Errors
/// [`BadDuration`] for any other text.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let malformed = || BadDuration::Malformed(text.to_owned());
    let is_bare = text != "0" && text.parse::<f64>().is_ok();
    if is_bare || text.contains(char::is_whitespace) {
        return Err(malformed());
    }
    let duration = gake_text::duration::parse_duration(text).map_err(|_| malformed())?;
    if duration > LONGEST {
        return Err(BadDuration::TooLong(text.to_owned()));
    }
    Ok(duration)
}

/// As [`parse_duration`], but a bare number is milliseconds, as is usual in a URL.
pub(crate) fn parse_duration_ms(text: &str) -> Result<Duration, BadDuration> {
    if text.parse::<f64>().is_ok() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        parse_duration(&format!("{text}ms"))
    } else {
        parse_duration(text)
    }
}

#[cfg(test)]
mod tests {
    use gake_text::duration::format_duration;

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
