//! k6's error codes and messages for faults of requests.

use std::net::{IpAddr, SocketAddr};

use gake_core::record::{ErrorCode, Fault, Phase};
use url::Url;

use gake_wire::lookup::{self, LookupError};

/// The `error_code` and `error` of a response for a fault of a request to `url`.
pub(super) fn of(fault: Fault, url: &Url) -> (u32, String) {
    match fault {
        Fault::Dns => match lookup::error(url.host_str().unwrap_or_default()) {
            LookupError { is_not_found: true, .. } => (1101, "lookup: no such host".to_owned()),
            unknown => (1100, unknown.text),
        },
        Fault::ConnectRefused => (1212, "dial: connection refused".to_owned()),
        Fault::ConnectTimeout => (1211, "dial: i/o timeout".to_owned()),
        Fault::Timeout(Phase::Connect | Phase::FirstByte | Phase::Body) => {
            (1050, "request timeout".to_owned())
        }
        Fault::ConnectReset => (1210, "dial: connection reset by peer".to_owned()),
        Fault::NoLocalPort => (1210, "dial: cannot assign requested address".to_owned()),
        Fault::NoDescriptors => (1210, "dial: too many open files".to_owned()),
        Fault::NotAllowed(why) => (1110, format!("not allowed: {why}")),
        Fault::Tls(reason) => (1300, format!("tls: {reason}")),
        Fault::Write | Fault::Reset => (1220, "read: connection reset by peer".to_owned()),
        Fault::ClosedEarly(Phase::Body) => (1000, "unexpected EOF".to_owned()),
        Fault::ClosedEarly(_) => (1000, "EOF".to_owned()),
        Fault::Goaway(code) => (of_http2(1610, code), fault.to_string()),
        Fault::StreamReset(code) => (of_http2(1630, code), fault.to_string()),
        other => (1000, other.to_string()),
    }
}

/// Go's message, for the log, for the fault of a request to `url` at `ip`; else `error`.
pub(super) fn go_text(fault: Fault, url: &Url, ip: Option<IpAddr>, error: &str) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let address = match ip {
        Some(ip) => SocketAddr::new(ip, port).to_string(),
        None => format!("{host}:{port}"),
    };
    let dial = |why: &str| format!("dial tcp {address}: connect: {why}");
    match fault {
        Fault::Dns => lookup::error(host).text,
        Fault::ConnectRefused => dial("connection refused"),
        Fault::ConnectReset => dial("connection reset by peer"),
        Fault::NoLocalPort => dial("cannot assign requested address"),
        Fault::Write | Fault::Reset => {
            format!("read tcp {address}: read: connection reset by peer")
        }
        _ => error.to_owned(),
    }
}

/// k6's code of an HTTP/2 error: the protocol's codes follow the general one.
fn of_http2(general: u32, code: ErrorCode) -> u32 {
    const NAMED: u32 = 0xd;
    let code = code as u32;
    if code <= NAMED { general + 1 + code } else { general }
}

/// The reason phrase of a status, which HTTP/2 does not send.
pub(super) fn phrase(status: u16) -> &'static str {
    // Go's phrases that differ from the current standard.
    match status {
        203 => "Non-Authoritative Information",
        413 => "Request Entity Too Large",
        414 => "Request URI Too Long",
        416 => "Requested Range Not Satisfiable",
        status => {
            let status = http::StatusCode::from_u16(status).ok();
            status.and_then(|status| status.canonical_reason()).unwrap_or_default()
        }
    }
}

/// The `error_code` of a response with this status.
pub(super) fn of_status(status: u16) -> u32 {
    if status >= 400 { 1000 + u32::from(status) } else { 0 }
}
