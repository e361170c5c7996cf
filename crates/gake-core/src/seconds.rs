//! Times as numbers of seconds, as files hold them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::{Nanos, nanos};

/// Serialises times as numbers of seconds: `#[serde(with = "AsSeconds")]`. They are exact to the
/// nanosecond up to 104 days; [`Duration::MAX`] is the number nearest to it.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct AsSeconds(#[expect(dead_code, reason = "the type in the JSON schema")] f64);

/// As [`AsSeconds`], with null for no time: [`None`], or [`Duration::MAX`] in a field that always
/// has a time.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct AsOptionalSeconds(
    #[expect(dead_code, reason = "the type in the JSON schema")] Option<f64>,
);

/// A type of times that [`AsSeconds`] serialises.
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

impl AsSeconds {
    /// Serialises a time.
    ///
    /// # Errors
    /// The serializer's.
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

impl AsOptionalSeconds {
    /// Serialises a time.
    ///
    /// # Errors
    /// The serializer's.
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
    // `Duration::MAX` is rounded up when serialised.
    if seconds >= Duration::MAX.as_secs_f64() {
        return Ok(T::from_duration(Duration::MAX));
    }
    let duration = Duration::try_from_secs_f64(seconds);
    let duration = duration.map_err(|_| E::custom(format!("{seconds} seconds is not a time")))?;
    Ok(T::from_duration(duration))
}
