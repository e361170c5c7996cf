//! Durations as people write them: `30s`, `1m30s`, `250ms`, `1.5h`, and bare seconds.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write for example 30s, 1m30s, 250ms, or bare seconds")]
pub struct DurationError {
    text: String,
}

/// Maximum duration: a year. Keeps sums of instants far from overflow.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Reads a duration; a number without a unit is in seconds.
///
/// # Errors
/// When the text is not a duration, is negative, or is longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let trimmed = text.trim();
    let duration = if let Ok(seconds) = trimmed.parse::<f64>() {
        Duration::try_from_secs_f64(seconds).map_err(|_| error())?
    } else {
        let signed: jiff::SignedDuration = trimmed.parse().map_err(|_| error())?;
        Duration::try_from(signed).map_err(|_| error())?
    };
    if duration > LONGEST {
        return Err(error());
    }
    Ok(duration)
}

/// Formats a duration in the largest unit that keeps its value; [`parse_duration`] reads it back.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0 => "0s".to_owned(),
        _ if ns.is_multiple_of(3_600_000_000_000) => format!("{}h", ns / 3_600_000_000_000),
        _ if ns.is_multiple_of(60_000_000_000) => format!("{}m", ns / 60_000_000_000),
        _ if ns.is_multiple_of(1_000_000_000) || ns > 1_000_000_000 => {
            format!("{}s", duration.as_secs_f64())
        }
        _ if ns >= 1_000_000 => format!("{}ms", ns as f64 / 1e6),
        _ if ns >= 1_000 => format!("{}µs", ns as f64 / 1e3),
        _ => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ms) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("10", 10_000),
            ("1.5", 1_500),
            ("1.5h", 5_400_000),
            ("2m", 120_000),
            (" 5s ", 5_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "abc", "-5s", "-1", "10x", "NaN", "inf", "1e300", "9999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["30s", "90s", "250ms", "2m", "1.5s", "3h", "20us", "20µs", "0s", "7ns"] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration), "{text}");
        }
    }
}
