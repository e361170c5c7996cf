//! Errors of settings.

use gake_wire::LocationError;
use http::{HeaderName, HeaderValue};

use super::SHADOWS_MAX;

/// Invalid or contradictory settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An invalid URL.
    #[error(transparent)]
    Url(#[from] LocationError),
    /// An invalid name of a backend.
    #[error("{0:?} is not a valid name for a backend; use letters, digits, '-', '_' and '.'")]
    Name(String),
    /// A URL with a path or user.
    #[error("{0:?} has a path or a user; a backend is only a scheme, a host and a port")]
    NotAnOrigin(String),
    /// A name used twice.
    #[error("two backends are named {0:?}; names identify backends in reports and hooks")]
    DuplicateName(String),
    /// More than [`SHADOWS_MAX`] shadows.
    #[error("{0} shadows are too many; the limit is {SHADOWS_MAX}")]
    TooManyShadows(usize),
    /// A percentage outside 0 to 100.
    #[error("the percentage of {0:?} must be 0 to 100")]
    Percentage(String),
    /// A queue or pool of size 0.
    #[error("the queue and the connections of {0:?} must be at least 1; percentage 0 disables it")]
    Zero(String),
    /// A rate of 0 or less.
    #[error("the rate of {0:?} must be above 0 per second")]
    Rate(String),
    /// An admin address that is not loopback.
    #[error("the admin service listens on loopback only; forward a port to reach it remotely")]
    AdminPublic,
    /// A marker secret short enough to guess.
    #[error("the marker secret must have at least {0} bytes")]
    MarkerSecret(usize),
    /// A value that cannot be parsed.
    #[error("{what} {text:?} cannot be used: {reason}")]
    Value {
        /// The setting.
        what: &'static str,
        /// The value.
        text: String,
        /// The error.
        reason: String,
    },
}

pub(super) fn header_name(text: &str) -> Result<HeaderName, ConfigError> {
    text.parse().map_err(|error: http::header::InvalidHeaderName| value("header", text, &error))
}

pub(super) fn header_value(text: &str) -> Result<HeaderValue, ConfigError> {
    HeaderValue::from_str(text).map_err(|error| value("header value", text, &error))
}

pub(super) fn value(what: &'static str, text: &str, reason: impl ToString) -> ConfigError {
    ConfigError::Value { what, text: text.to_owned(), reason: reason.to_string() }
}
