//! Durations as people write them: `30s`, `1m30s`, `250ms`, `1.5h`, and bare seconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::{Nanos, nanos};

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write for example 30s, 1m30s, 250ms, or bare seconds")]
pub struct DurationError {
    text: String,
}

/// Longest duration we accept: a year. It keeps every sum of instants far from overflow.
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

/// Writes a duration the way it is read: the fewest units that keep its value.
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

/// Serialises times as numbers of seconds: `#[serde(with = "Seconds")]`. They are exact to the
/// nanosecond up to 104 days; [`Duration::MAX`] is the number nearest to it.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Seconds(#[expect(dead_code, reason = "the type in the JSON schema")] f64);

/// As [`Seconds`], with null for no time: [`None`], or [`Duration::MAX`] in a field that always has
/// a time.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct OptionalSeconds(
    #[expect(dead_code, reason = "the type in the JSON schema")] Option<f64>,
);

/// A type of times that [`Seconds`] serialises.
pub trait Time: Copy {
    /// The time, or [`Duration::MAX`] for none.
    fn duration(self) -> Duration;
    /// The same from a duration.
    fn from_duration(duration: Duration) -> Self;
}

impl Time for Duration {
    fn duration(self) -> Duration {
        self
    }

    fn from_duration(duration: Duration) -> Self {
        duration
    }
}

impl Time for Option<Duration> {
    fn duration(self) -> Duration {
        self.unwrap_or(Duration::MAX)
    }

    fn from_duration(duration: Duration) -> Self {
        Some(duration).filter(|duration| *duration != Duration::MAX)
    }
}

impl Time for Nanos {
    fn duration(self) -> Duration {
        Duration::from_nanos(self)
    }

    fn from_duration(duration: Duration) -> Self {
        nanos(duration)
    }
}

impl Seconds {
    /// Serialises a time.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &impl Time, serializer: S) -> Result<S::Ok, S::Error> {
        time.duration().as_secs_f64().serialize(serializer)
    }

    /// Deserialises a time.
    ///
    /// # Errors
    /// When it is not a number of at least 0.
    pub fn deserialize<'de, T: Time, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        of_seconds(f64::deserialize(from)?)
    }
}

impl OptionalSeconds {
    /// Serialises a time.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &impl Time, serializer: S) -> Result<S::Ok, S::Error> {
        let duration = Some(time.duration()).filter(|duration| *duration != Duration::MAX);
        duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
    }

    /// Deserialises a time.
    ///
    /// # Errors
    /// When it is neither null nor a number of at least 0.
    pub fn deserialize<'de, T: Time, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let seconds = Option::<f64>::deserialize(from)?;
        seconds.map_or(Ok(T::from_duration(Duration::MAX)), of_seconds)
    }
}

fn of_seconds<T: Time, E: serde::de::Error>(seconds: f64) -> Result<T, E> {
    // Above the largest duration is what MAX was rounded to.
    if seconds >= Duration::MAX.as_secs_f64() {
        return Ok(T::from_duration(Duration::MAX));
    }
    let duration = Duration::try_from_secs_f64(seconds);
    let duration = duration.map_err(|_| E::custom(format!("{seconds} seconds is not a time")))?;
    Ok(T::from_duration(duration))
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
