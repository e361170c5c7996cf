//! gRPC: calls, their messages and schemas.
//!
//! A call is a POST with the content type `application/grpc`. Its status comes in the trailers, or in
//! a head without a body.

mod error;
mod message;
#[cfg(feature = "grpc")]
mod reflection;
#[cfg(feature = "grpc")]
mod schema;
#[cfg(not(feature = "grpc"))]
mod without_schema;

pub use error::GrpcError;
pub use message::{GrpcMessages, grpc_frame};
#[cfg(feature = "grpc")]
pub use reflection::GrpcReflection;
#[cfg(feature = "grpc")]
pub use schema::{GrpcMethod, GrpcSchema};
#[cfg(not(feature = "grpc"))]
pub use without_schema::{GrpcMethod, GrpcReflection, GrpcSchema};

use std::time::Duration;

use gake_core::record::{ErrorCode, Fault, GrpcStatus, Phase, ResponseSummary};

use crate::client::request::HttpRequest;

/// The maximum of `grpc-timeout`: 8 digits.
const TIMEOUT_MAX: u128 = 99_999_999;

/// Whether a request of this content type is a gRPC call.
pub(crate) fn is_content_type(value: &str) -> bool {
    let rest = value.strip_prefix("application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The outcome of a call with a complete response of HTTP status 200.
pub(crate) fn outcome(
    answer: ResponseSummary,
    status: Option<GrpcStatus>,
) -> Result<ResponseSummary, Fault> {
    match status {
        Some(GrpcStatus::OK) => Ok(answer),
        Some(status) => Err(Fault::Grpc(status)),
        None => Err(Fault::Malformed("grpc_status_missing")),
    }
}

/// The fault of a call whose stream the server reset. A CANCEL after the deadline is the server's
/// enforcement of the same time-out.
pub(crate) fn reset(code: ErrorCode, is_late: bool, phase: Phase) -> Fault {
    match is_late && code == ErrorCode::Cancel {
        true => Fault::Timeout(phase),
        false => Fault::StreamReset(code),
    }
}

/// A call of the method at `url` (`http` or `https`), with `metadata`, a framed `body`, and `timeout`
/// as `grpc-timeout`.
#[must_use]
pub fn grpc_call(
    url: String,
    metadata: &[(String, String)],
    timeout: Duration,
    body: Vec<u8>,
) -> HttpRequest {
    let mut request = HttpRequest::new("POST", url);
    let own = [
        ("Content-Type", "application/grpc".to_owned()),
        ("TE", "trailers".to_owned()),
        ("Grpc-Timeout", timeout_text(timeout)),
    ];
    let is_given = |name: &str| metadata.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let own = own.into_iter().filter(|(name, _)| !is_given(name));
    request.headers = own.map(|(name, value)| (name.to_owned(), value)).collect();
    request.headers.extend_from_slice(metadata);
    request.body = Some(body.into());
    request
}

/// The value of `grpc-timeout`, in the finest unit that fits.
fn timeout_text(timeout: Duration) -> String {
    let units = [(1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S')];
    let nanos = timeout.as_nanos();
    let fits = units.into_iter().find(|(unit, _)| nanos / unit <= TIMEOUT_MAX);
    let (unit, letter) = fits.unwrap_or((1_000_000_000, 'S'));
    format!("{}{letter}", (nanos / unit).clamp(1, TIMEOUT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_at_most_eight_digits() {
        for (timeout, text) in [
            (Duration::from_millis(20), "20000u"),
            (Duration::from_secs(30), "30000000u"),
            (Duration::from_secs(3_600), "3600000m"),
            (Duration::from_secs(1_000_000), "1000000S"),
            (Duration::MAX, "99999999S"),
            (Duration::ZERO, "1u"),
        ] {
            assert_eq!(timeout_text(timeout), text);
        }
    }

    #[test]
    fn a_cancel_after_the_deadline_is_a_time_out() {
        let phase = Phase::FirstByte;
        assert_eq!(reset(ErrorCode::Cancel, true, phase), Fault::Timeout(phase));
        for (code, is_late) in [(ErrorCode::Cancel, false), (ErrorCode::InternalError, true)] {
            assert_eq!(reset(code, is_late, phase), Fault::StreamReset(code));
        }
    }

    #[test]
    fn calls_are_recognised_by_their_content_type() {
        for value in ["application/grpc", "application/grpc+proto", "application/grpc;x=y"] {
            assert!(is_content_type(value), "{value}");
        }
        assert!(!is_content_type("application/grpc-web") && !is_content_type("application/json"));
        let own = [("content-type".to_owned(), "application/grpc+x".to_owned())];
        let call = grpc_call("http://h/S/M".to_owned(), &own, Duration::from_secs(1), Vec::new());
        let types =
            call.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        assert_eq!(types.count(), 1);
    }
}
