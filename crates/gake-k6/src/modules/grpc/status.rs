//! The status of a call without one from the server, as gRPC for Go derives it.

use gake_core::record::{ErrorCode, ExchangeEnd, Fault, GrpcStatus};
use gake_wire::fault::go_errno_text;
use gake_wire::{lookup, percent_decoded};
use http::StatusCode;

pub(super) const CANCELED: GrpcStatus = GrpcStatus::new(1);
const PERMISSION_DENIED: GrpcStatus = GrpcStatus::new(7);
/// The status of an invalid response.
pub(super) const INTERNAL: GrpcStatus = GrpcStatus::new(13);

/// A status and its message.
pub(super) type StatusMessage = (GrpcStatus, String);

/// The status of a response that is not gRPC; `None` if it is.
pub(super) fn of_head(status: u16, content_type: Option<&str>) -> Option<StatusMessage> {
    let wrong_type = match content_type {
        Some(kind) if is_grpc(kind) => None,
        Some(kind) => Some(format!("transport: received unexpected content-type {kind:?}")),
        None => Some("malformed header: missing HTTP content-type".to_owned()),
    };
    let wrong_status = (status != 200).then(|| {
        let reason = StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason());
        let reason = reason.unwrap_or_default();
        format!("unexpected HTTP status code received from server: {status} ({reason})")
    });
    let why: Vec<String> = wrong_status.into_iter().chain(wrong_type).collect();
    let code = match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    };
    (!why.is_empty()).then(|| (GrpcStatus::new(code), why.join("; ")))
}

fn is_grpc(content_type: &str) -> bool {
    let rest = content_type.to_ascii_lowercase();
    let rest = rest.strip_prefix("application/grpc").map(str::to_owned);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The status of a call by its end. `address` is the server's.
pub(super) fn of_end(
    end: ExchangeEnd,
    headers: &[(String, String)],
    trailers: &[(String, String)],
    address: &str,
) -> StatusMessage {
    let line = |lines: &[(String, String)], wanted: &str| {
        lines.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
    };
    match end {
        ExchangeEnd::Response(response) if response.status == 200 => {
            (GrpcStatus::OK, String::new())
        }
        ExchangeEnd::Response(summary) => {
            of_head(summary.status, line(headers, "content-type").as_deref())
                .unwrap_or((GrpcStatus::UNKNOWN, String::new()))
        }
        ExchangeEnd::Fault(Fault::Grpc(status)) => {
            let message = line(trailers, "grpc-message").unwrap_or_default();
            (status, percent_decoded(&message))
        }
        ExchangeEnd::Fault(fault) => of_fault(fault, address, !trailers.is_empty()),
        ExchangeEnd::Unfinished => (CANCELED, "context canceled".to_owned()),
    }
}

/// The status of a call that ended with a fault. `address` is the server's.
fn of_fault(fault: Fault, address: &str, has_trailers: bool) -> StatusMessage {
    match fault {
        fault if fault.is_timeout() => {
            (GrpcStatus::DEADLINE_EXCEEDED, "context deadline exceeded".to_owned())
        }
        Fault::Malformed("grpc_status_missing") if has_trailers => {
            (GrpcStatus::UNKNOWN, String::new())
        }
        Fault::Malformed("grpc_status_missing") => {
            (INTERNAL, "server closed the stream without sending trailers".to_owned())
        }
        Fault::StreamReset(code) => {
            let why = format!("stream terminated by RST_STREAM with error code: {}", code.name());
            (of_reset(code), why)
        }
        other => (GrpcStatus::UNAVAILABLE, go_text(other, address)),
    }
}

fn of_reset(code: ErrorCode) -> GrpcStatus {
    match code {
        ErrorCode::FlowControlError | ErrorCode::EnhanceYourCalm => GrpcStatus::RESOURCE_EXHAUSTED,
        ErrorCode::RefusedStream => GrpcStatus::UNAVAILABLE,
        ErrorCode::Cancel => CANCELED,
        ErrorCode::InadequateSecurity => PERMISSION_DENIED,
        _ => INTERNAL,
    }
}

/// Go's message for a peer that ended or responded before it spoke HTTP/2; `None` for other faults.
pub(super) fn preface_error(fault: Fault) -> Option<String> {
    let why = match fault {
        Fault::ClosedEarly(_) => "EOF",
        Fault::Reset | Fault::Write => "connection reset by peer",
        Fault::TooLarge(_) | Fault::Malformed(_) => {
            "http2: failed reading the frame payload: http2: frame too large, note that the frame \
             header looked like an HTTP/1.1 header"
        }
        _ => return None,
    };
    Some(format!("error reading server preface: {why}"))
}

/// Go's message for a fault.
pub(super) fn go_text(fault: Fault, address: &str) -> String {
    let dialing = "connection error: desc = \"transport: error while dialing: dial tcp";
    match fault {
        Fault::ConnectRefused => format!("{dialing} {address}: connect: connection refused\""),
        Fault::ConnectReset => format!("{dialing} {address}: connect: connection reset by peer\""),
        Fault::Unreachable(errno) => {
            format!("{dialing} {address}: connect: {}\"", go_errno_text(errno))
        }
        Fault::Dns => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let text = lookup::error(host).text;
            format!("connection error: desc = \"transport: error while dialing: {text}\"")
        }
        Fault::ConnectTimeout | Fault::Timeout(_) => "context deadline exceeded".to_owned(),
        other => format!("connection error: desc = \"{other}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_responses_have_a_status_by_their_http_status() {
        assert_eq!(of_head(200, Some("application/grpc+proto")), None);
        for (status, kind, code, why) in [
            (
                200,
                Some("text/html"),
                2,
                "transport: received unexpected content-type \"text/html\"",
            ),
            (200, None, 2, "malformed header: missing HTTP content-type"),
            (503, Some("application/grpc"), 14, "from server: 503 (Service Unavailable)"),
            (404, Some("text/plain"), 12, "404 (Not Found); transport: received unexpected"),
            (418, Some("application/grpc-web"), 2, "418 (I'm a teapot); transport"),
        ] {
            let (status, text) = of_head(status, kind).unwrap();
            assert_eq!(status.number(), code);
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn faults_of_the_wire_have_a_status() {
        let of = |fault, has_trailers| of_fault(fault, "h:1", has_trailers);
        let missing = Fault::Malformed("grpc_status_missing");
        assert_eq!(of(missing, true), (GrpcStatus::UNKNOWN, String::new()));
        assert!(of(missing, false).1.contains("without sending trailers"));
        for (code, status) in [
            (ErrorCode::NoError, 13),
            (ErrorCode::InternalError, 13),
            (ErrorCode::EnhanceYourCalm, 8),
            (ErrorCode::RefusedStream, 14),
            (ErrorCode::Cancel, 1),
        ] {
            let (found, why) = of(Fault::StreamReset(code), false);
            assert_eq!(found.number(), status);
            assert!(why.ends_with(&format!("error code: {}", code.name())), "{why}");
        }
        assert_eq!(of(Fault::Reset, false).0, GrpcStatus::UNAVAILABLE);
    }

    #[test]
    fn messages_of_statuses_are_percent_encoded() {
        assert_eq!(percent_decoded("50%25 of %C3%A9 %zz %"), "50% of é %zz %");
    }
}
