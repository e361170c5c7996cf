//! k6's codes and texts for what can go wrong with a request.

use gake_core::record::{Fault, Phase};

/// Why a request has no response: k6's code, and what `error` says.
pub(super) fn of(fault: Fault) -> (u32, String) {
    match fault {
        Fault::Dns => (1101, "lookup: no such host".to_owned()),
        Fault::ConnectRefused => (1212, "dial: connection refused".to_owned()),
        Fault::ConnectTimeout => (1211, "dial: i/o timeout".to_owned()),
        Fault::Timeout(Phase::Connect | Phase::FirstByte | Phase::Body) => {
            (1050, "request timeout".to_owned())
        }
        Fault::ConnectReset => (1210, "dial: connection reset by peer".to_owned()),
        Fault::NoLocalPort => (1210, "dial: cannot assign requested address".to_owned()),
        Fault::NoDescriptors => (1210, "dial: too many open files".to_owned()),
        Fault::Tls(reason) => (1300, format!("tls: {reason}")),
        Fault::Write | Fault::Reset => (1220, "read: connection reset by peer".to_owned()),
        Fault::ClosedEarly(Phase::Body) => (1000, "unexpected EOF".to_owned()),
        Fault::ClosedEarly(_) => (1000, "EOF".to_owned()),
        other => (1000, other.to_string()),
    }
}

/// The code of a response with this status.
pub(super) fn of_status(status: u16) -> u32 {
    if status >= 400 { 1000 + u32::from(status) } else { 0 }
}
