//! Why settings are of no use.

use gake_wire::LocationError;
use http::{HeaderName, HeaderValue};

use super::SHADOWS_MAX;

/// Settings that cannot be what was meant.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A bad URL.
    #[error(transparent)]
    Url(#[from] LocationError),
    /// A bad name.
    #[error("{0:?} is not a valid name for a backend; use letters, digits, '-', '_' and '.'")]
    Name(String),
    /// A URL with a path.
    #[error("{0:?} has a path or a user; a backend is scheme, host and port alone")]
    NotAnOrigin(String),
    /// A name twice.
    #[error("two backends are called {0:?}; reports and hooks tell them by their names")]
    DuplicateName(String),
    /// Too many shadows.
    #[error("{0} shadows are too many; {SHADOWS_MAX} are the most")]
    TooManyShadows(usize),
    /// Not a valid percentage.
    #[error("the percentage of {0:?} must be 0 to 100")]
    Percentage(String),
    /// A queue or pool of nothing.
    #[error("the queue and the connections of {0:?} must be at least 1; percentage 0 turns it off")]
    Zero(String),
    /// Not a valid rate.
    #[error("the rate of {0:?} must be above 0 a second")]
    Rate(String),
    /// Admin for everybody.
    #[error("the admin service listens on loopback alone; forward a port to reach it from afar")]
    AdminPublic,
    /// A secret for markers that could be guessed.
    #[error("the marker secret must have at least {0} bytes")]
    MarkerSecret(usize),
    /// A setting of text that cannot be read.
    #[error("{what} {text:?} cannot be used: {reason}")]
    Value {
        /// What it was to be.
        what: &'static str,
        /// The text.
        text: String,
        /// What is wrong.
        reason: String,
    },
}

/// The name of a header.
pub(super) fn header_name(text: &str) -> Result<HeaderName, ConfigError> {
    text.parse().map_err(|error: http::header::InvalidHeaderName| value("header", text, &error))
}

/// The value of a header.
pub(super) fn header_value(text: &str) -> Result<HeaderValue, ConfigError> {
    HeaderValue::from_str(text).map_err(|error| value("header value", text, &error))
}

/// Why a value cannot be used.
pub(super) fn value(what: &'static str, text: &str, reason: impl ToString) -> ConfigError {
    ConfigError::Value { what, text: text.to_owned(), reason: reason.to_string() }
}
