//! Human-readable values of a spec: times, rates, stages, users, headers, bodies. Written as
//! strings in the syntax of the flags; numbers are accepted where they suffice.

use std::fmt;
use std::time::Duration;

use gake_text::count::parse_count;
use gake_text::duration::{format_duration, parse_duration};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::body::BodyValue;
use crate::plan::{
    ExpectedStatus, Rate, Stage, UserStage, parse_rate, parse_stages, parse_user_stages,
};

/// A time: `30s`, `1m30s`, a number of seconds, or `forever`, which is [`Duration::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeValue(pub Duration);

/// A rate: `1000`, `100/500ms`, `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateValue(pub Rate);

/// Stages of rates: `100@30s,100..1000@2m`.
#[derive(Debug, Clone, PartialEq)]
pub struct StagesValue(pub Vec<Stage>);

/// Users: a number, or stages as `50..200@30s,200@1m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsersValue {
    /// A constant number.
    Number(usize),
    /// A changing number.
    Stages(Vec<UserStage>),
}

/// A whole number, optionally with a suffix: `10k`, `2M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountValue(pub u64);

/// A factor of speed: `2x`, `0.5`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedValue(pub f64);

/// Status codes: `2xx,404`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectValue(pub ExpectedStatus);

/// A header line as in curl: `Name: value`, `Name;` for an empty value, `Name:` to leave it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderValue(pub String, pub String);

/// The value of a [`HeaderValue`] that is sent without one. An empty text leaves the header out.
const EMPTY_HEADER: &str = " ";

/// Headers of every request unless they are left out.
const DEFAULT_HEADERS: [&str; 2] = ["host", "user-agent"];

impl HeaderValue {
    /// Name and value as they are sent; `None` if the header is left out. A default header that is
    /// left out keeps an empty value, and one that is sent empty a blank.
    pub(crate) fn decided(self) -> Option<(String, String)> {
        let Self(name, value) = self;
        match value.as_str() {
            _ if Self::is_default(&name) => Some((name, value)),
            "" => None,
            EMPTY_HEADER => Some((name, String::new())),
            _ => Some((name, value)),
        }
    }

    /// The line of a decided header.
    pub(crate) fn of((name, value): &(String, String)) -> Self {
        let is_empty = value.is_empty() && !Self::is_default(name);
        Self(name.clone(), if is_empty { EMPTY_HEADER.to_owned() } else { value.clone() })
    }

    fn is_default(name: &str) -> bool {
        DEFAULT_HEADERS.iter().any(|default| name.eq_ignore_ascii_case(default))
    }
}

/// How arrivals of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ArrivalsValue {
    /// A perfect grid.
    Uniform,
    /// Exponential gaps.
    Poisson,
    /// Groups of simultaneous arrivals.
    Bursts {
        /// Arrivals of a group; 1 is the plain grid.
        size: CountValue,
        /// Upper bound of a random delay of each arrival.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jitter: Option<TimeValue>,
    },
}

/// What happens to an arrival that is due when every lane is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OverflowValue {
    /// It waits.
    Wait,
    /// It is dropped and counted.
    Drop,
    /// It waits in a queue of this capacity; when it is full, it is dropped and counted.
    Queue(CountValue),
}

/// A value that is written as a string.
trait TextValue: Sized {
    /// Its syntax, for error messages.
    const WHAT: &'static str;
    fn read(text: &str) -> Result<Self, String>;
    fn write(&self) -> String;

    /// The equivalent number, if there is one.
    fn number(&self) -> Option<u64> {
        None
    }
}

impl TextValue for TimeValue {
    const WHAT: &'static str = "a time such as \"30s\" or \"1m30s\", or a number of seconds";

    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "forever" => Ok(Self(Duration::MAX)),
            text => parse_duration(text).map(Self).map_err(|error| error.to_string()),
        }
    }

    fn write(&self) -> String {
        if self.0 == Duration::MAX {
            return "forever".to_owned();
        }
        let text = format_duration(self.0);
        if parse_duration(&text) == Ok(self.0) {
            return text;
        }
        format!("{}.{:09}s", self.0.as_secs(), self.0.subsec_nanos())
    }
}

impl TextValue for RateValue {
    const WHAT: &'static str = "a rate such as 1000, \"100/500ms\" or \"max\"";

    fn read(text: &str) -> Result<Self, String> {
        parse_rate(text).map(Self).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        match self.0 {
            Rate::PerSecond(rate) => format!("{rate}/s"),
            Rate::Max => "max".to_owned(),
        }
    }
}

impl TextValue for StagesValue {
    const WHAT: &'static str = "stages such as \"100@30s,100..1000@2m\"";

    fn read(text: &str) -> Result<Self, String> {
        parse_stages(text).map(Self).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        let one = |stage: &Stage| {
            let rates = match stage.from == stage.to {
                true => stage.from.to_string(),
                false => format!("{}..{}", stage.from, stage.to),
            };
            format!("{rates}@{}", TimeValue(stage.duration).write())
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

impl TextValue for UsersValue {
    const WHAT: &'static str = "a number of users, or stages such as \"50..200@30s\"";

    fn read(text: &str) -> Result<Self, String> {
        if text.contains(['@', ',', '.']) {
            return parse_user_stages(text).map(Self::Stages).map_err(|error| error.to_string());
        }
        let CountValue(users) = CountValue::read(text)?;
        usize::try_from(users).map(Self::Number).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        match self {
            Self::Number(users) => users.to_string(),
            Self::Stages(stages) => {
                let one = |stage: &UserStage| {
                    let from = match stage.from == stage.to {
                        true => String::new(),
                        false => format!("{}..", stage.from),
                    };
                    format!("{from}{}@{}", stage.to, TimeValue(stage.duration).write())
                };
                stages.iter().map(one).collect::<Vec<_>>().join(",")
            }
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(users) => Some(*users as u64),
            Self::Stages(_) => None,
        }
    }
}

impl TextValue for CountValue {
    const WHAT: &'static str = "a whole number such as 1000 or \"10k\"";

    fn read(text: &str) -> Result<Self, String> {
        parse_count(text.trim()).map(Self).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn number(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl TextValue for SpeedValue {
    const WHAT: &'static str = "a factor such as 2 or \"0.5x\"";

    fn read(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix(['x', 'X']).unwrap_or(text);
        match number.trim().parse::<f64>() {
            Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(Self(speed)),
            _ => Err(format!("{text:?} is not a speed; write for example 2x or 0.5x")),
        }
    }

    fn write(&self) -> String {
        format!("{}x", self.0)
    }
}

impl TextValue for ExpectValue {
    const WHAT: &'static str = "status codes such as 200 or \"2xx,404\"";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| format!("{error}"))
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

impl TextValue for HeaderValue {
    const WHAT: &'static str = "a header line such as \"Name: value\"";

    fn read(text: &str) -> Result<Self, String> {
        let line = match text.split_once(':') {
            Some((name, value)) => Some((name.trim(), value.trim())),
            None => text.trim_end().strip_suffix(';').map(|name| (name.trim(), EMPTY_HEADER)),
        };
        match line {
            Some((name, value)) if !name.is_empty() => Ok(Self(name.to_owned(), value.to_owned())),
            _ => Err(
                "write a header as 'Name: value', 'Name;' without a value, or 'Name:' to leave \
                      it out"
                    .to_owned(),
            ),
        }
    }

    fn write(&self) -> String {
        match self.1.as_str() {
            "" => format!("{}:", self.0),
            EMPTY_HEADER => format!("{};", self.0),
            value => format!("{}: {value}", self.0),
        }
    }
}

impl CountValue {
    /// The number as `usize`. Saturates.
    #[must_use]
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl RateValue {
    /// Arrivals a second; infinite for `max`.
    #[must_use]
    pub const fn per_second(self) -> f64 {
        match self.0 {
            Rate::PerSecond(rate) => rate,
            Rate::Max => f64::INFINITY,
        }
    }
}

macro_rules! texts {
    ($($type:ty),*) => {$(
        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                <Self as TextValue>::read(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&TextValue::write(self))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // TOML integers have 64 bits, signed.
                match self.number().and_then(|number| i64::try_from(number).ok()) {
                    Some(number) => serializer.serialize_i64(number),
                    None => serializer.collect_str(self),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextVisitor(std::marker::PhantomData))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": ["string", "number"],
                    "description": <Self as TextValue>::WHAT,
                })
            }
        }
    )*};
}

texts!(
    TimeValue,
    RateValue,
    StagesValue,
    UsersValue,
    CountValue,
    SpeedValue,
    ExpectValue,
    HeaderValue
);

struct TextVisitor<T>(std::marker::PhantomData<T>);

impl<T: TextValue> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}
