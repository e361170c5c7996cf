//! Parsers of flag values for clap.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use gake_core::plan::Rate;
use gake_core::spec::value::{HeaderValue, OverflowValue, RateValue};
use gake_core::spec::{HttpVersion, TlsVersion};
use gake_sinks::{SinkAddress, SinkAddressError, SinkKind};
use gake_text::count::parse_count;
use gake_watch::SourceError;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::exit::Failure;

/// A parser whose known values are offered by completions.
#[derive(Clone)]
pub struct KnownValues<T> {
    names: &'static [&'static str],
    read: fn(&str) -> Result<T, String>,
}

impl<T> KnownValues<T> {
    /// Parses with `read`; known values are, or begin with, `names`.
    pub const fn new(names: &'static [&'static str], read: fn(&str) -> Result<T, String>) -> Self {
        Self { names, read }
    }

    /// The known values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied()
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for KnownValues<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&self.read, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}

/// Maximum bytes of a file with a secret.
const SECRET_MAX: u64 = 64 << 10;

/// A value that may hold a password or token: as it is, or in place of it `env:NAME` or `file:PATH`,
/// so that it stands neither in the list of processes nor in the history of the shell.
///
/// # Errors
/// When there is no such variable or file, or nothing in it.
pub fn secret(text: &str) -> Result<Cow<'_, str>, String> {
    let found = match text.split_once(':') {
        Some(("env", name)) => std::env::var(name)
            .map_err(|_| format!("the environment has no variable {name} that is UTF-8"))?,
        Some(("file", path)) => gake_files::read_to_string(path.as_ref(), "a secret", SECRET_MAX)
            .map_err(|error| error.to_string())?,
        _ => return Ok(Cow::Borrowed(text)),
    };
    match found.trim() {
        "" => Err(format!("{text} is empty")),
        found => Ok(Cow::Owned(found.to_owned())),
    }
}

/// Parses a destination of figures.
pub fn sink(text: &str) -> Result<SinkAddress, String> {
    let text = secret(text)?;
    let address: SinkAddress = text.parse().map_err(|e: SinkAddressError| e.to_string())?;
    match address.kind() {
        SinkKind::Grafana => {
            Err("Grafana takes annotations, not figures: use --annotate".to_owned())
        }
        _ => Ok(address),
    }
}

/// Parses a destination of annotations.
pub fn annotated(text: &str) -> Result<SinkAddress, String> {
    let text = secret(text)?;
    let address: SinkAddress = text.parse().map_err(|e: SinkAddressError| e.to_string())?;
    match address.kind() {
        SinkKind::Grafana => Ok(address),
        kind => Err(format!("{} takes figures, not annotations: --sink", kind.name())),
    }
}

/// Parses a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    gake_text::duration::parse_duration(text).map_err(|error| error.to_string())
}

/// Parses a duration above 0.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        duration => Ok(duration),
    }
}

/// Parses a rate that must not be `max`.
pub fn finite_rate(text: &str) -> Result<f64, String> {
    match text.parse()? {
        RateValue(Rate::PerSecond(rate)) => Ok(rate),
        RateValue(Rate::Max) => Err("write a number a second".to_owned()),
    }
}

/// Parses a precision, a percentage of the capacity, into a share of 1.
pub fn precision(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match percent {
        Ok(percent) if (0.1..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0.1% to 100%".to_owned()),
    }
}

/// A source to watch: [`secret`] has been looked up.
#[derive(Clone)]
pub struct WatchedSource(pub String);

impl fmt::Debug for WatchedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchedSource")
    }
}

impl WatchedSource {
    /// Parses the source.
    ///
    /// # Errors
    /// When it is not a source; the message does not contain the password.
    pub fn source(&self) -> Result<gake_watch::WatchSource, Failure> {
        self.0.parse().map_err(|error| Failure::usage(format!("--watch: {error}")))
    }
}

fn watched(text: &str) -> Result<WatchedSource, String> {
    let text = secret(text)?;
    let checked: Result<gake_watch::WatchSource, SourceError> = text.parse();
    checked.map_err(|error| error.to_string())?;
    Ok(WatchedSource(text.into_owned()))
}

/// A source to watch, with the kinds as known values.
pub const WATCHED: KnownValues<WatchedSource> = KnownValues::new(
    &["pid:", "port:", "prometheus:", "actuator:", "mysql://", "postgres://"],
    watched,
);

/// Versions of HTTP, by their names in a spec.
pub const HTTP: KnownValues<HttpVersion> =
    KnownValues::new(&["1.0", "1.1", "2", "auto", "3", "auto3"], named);

/// Versions of TLS, by their names in a spec.
pub const TLS: KnownValues<TlsVersion> = KnownValues::new(&["1.2", "1.3"], named);

/// Overflow of an open loop, by its names in a spec.
pub const OVERFLOW: KnownValues<OverflowValue> = KnownValues::new(&["wait", "drop"], named);

/// A value by its name in a spec.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(text.into_deserializer()).map_err(|error: ValueError| error.to_string())
}

/// Parses a header line, as in curl.
pub fn header(text: &str) -> Result<(String, String), String> {
    text.parse().map(|HeaderValue(name, value)| (name, value))
}

/// Parses a count of at least 1.
pub fn at_least_one(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Parses a count of connections or users, at least 1.
pub fn connections(text: &str) -> Result<usize, String> {
    usize::try_from(at_least_one(text)?).map_err(|error| error.to_string())
}

/// Parses a count with SI suffixes as in wrk: `10k`, `2M`.
fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_suffixes() {
        assert_eq!(at_least_one("10k"), Ok(10_000));
        assert_eq!(at_least_one("2M"), Ok(2_000_000));
        for text in ["0", "-1", "", "k", "1.5", "99999999999999999999"] {
            assert!(at_least_one(text).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_are_trimmed() {
        assert_eq!(header("A:  b: c "), Ok(("A".to_owned(), "b: c".to_owned())));
        assert!(header("no colon").is_err() && header(": x").is_err());
    }
}
