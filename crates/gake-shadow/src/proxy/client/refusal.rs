//! The proxy's own responses to refused and failed requests: a status and a line of text.

use std::borrow::Cow;

use bytes::Bytes;
use gake_core::record::{Fault, Phase};
use http::StatusCode;

use crate::message::line::write_line;
use crate::proxy::client::response_writer::ResponseContext;
use crate::proxy::upstream::fault;

/// A response in place of a backend's.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    reason: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status, reason: reason.into() }
    }

    pub(crate) fn bad(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(crate) fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the request body timed out")
    }

    pub(crate) fn body_incomplete() -> Self {
        Self::bad("the request body is incomplete")
    }

    /// 502, or 504 for a timeout.
    pub(crate) fn of_fault(backend: &str, fault: Fault) -> Self {
        let status = match fault {
            Fault::Timeout(Phase::Connect | Phase::FirstByte) | Fault::ConnectTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            _ => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, format!("backend {backend:?}: {}", fault::sentence(fault)))
    }

    /// Whether it is for a fault of a backend.
    pub(crate) fn is_backends(&self) -> bool {
        matches!(self.status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
    }

    /// The response as bytes, without a body for HEAD.
    pub(crate) fn bytes(self, context: &ResponseContext<'_>) -> Vec<u8> {
        let (status, text) = self.into_text();
        let mut bytes = context.version().to_vec();
        bytes.extend_from_slice(format!(" {status}\r\n").as_bytes());
        write_line(&mut bytes, b"content-type", b"text/plain");
        context.write_connection(true, &mut bytes);
        write_line(&mut bytes, b"content-length", text.len().to_string().as_bytes());
        write_line(&mut bytes, b"date", &context.date.now());
        bytes.extend_from_slice(b"\r\n");
        if !context.request_is_head {
            bytes.extend_from_slice(&text);
        }
        bytes
    }

    /// The status and the body.
    pub(crate) fn into_text(self) -> (StatusCode, Bytes) {
        (self.status, format!("gake: {} {}\n", self.status, self.reason).into())
    }
}

/// The response to an invalid request.
pub(crate) fn malformed(status: StatusCode, date: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    write_line(&mut bytes, b"content-length", b"0");
    write_line(&mut bytes, b"connection", b"close");
    write_line(&mut bytes, b"date", date);
    bytes.extend_from_slice(b"\r\n");
    bytes
}
