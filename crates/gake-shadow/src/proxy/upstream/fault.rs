//! Maps HTTP/2 errors to faults, and faults to sentences.

use std::io;

use gake_core::record::{ErrorCode, Fault, Phase};
use gake_wire::fault;

/// The fault for an HTTP/2 error in a phase of a request.
pub(crate) fn of(error: &h2::Error, phase: Phase) -> Fault {
    match (error.get_io(), error.reason()) {
        // Closed by the peer.
        (Some(error), _) if error.kind() == io::ErrorKind::BrokenPipe => Fault::ClosedEarly(phase),
        (Some(error), _) => fault::of_read(error, phase),
        // The codec's, or our own.
        (None, Some(_)) if error.is_library() || !(error.is_reset() || error.is_go_away()) => {
            Fault::Malformed("not an HTTP/2 response")
        }
        (None, Some(reason)) => {
            let code = ErrorCode::from_number(reason.into());
            if error.is_go_away() { Fault::Goaway(code) } else { Fault::StreamReset(code) }
        }
        (None, None) => Fault::ClosedEarly(phase),
    }
}

/// Whether the backend guarantees that it has not processed the request.
pub(crate) fn is_untouched(error: &h2::Error) -> bool {
    let reason = error.reason();
    error.is_remote()
        && (reason == Some(h2::Reason::REFUSED_STREAM)
            || (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)))
}

/// The sentence of an error page.
pub(crate) fn sentence(fault: Fault) -> String {
    match fault {
        Fault::Dns => "its name could not be resolved".to_owned(),
        Fault::ConnectRefused => "it refused the connection".to_owned(),
        Fault::ConnectTimeout | Fault::Timeout(Phase::Connect) => {
            "the connection timed out".to_owned()
        }
        Fault::ConnectReset | Fault::Unreachable(_) => "it is unreachable".to_owned(),
        Fault::NoLocalPort => "the proxy has no local port left".to_owned(),
        Fault::NoDescriptors => "the proxy has no file descriptor left".to_owned(),
        Fault::Reset => "it reset the connection".to_owned(),
        Fault::ClosedEarly(_) => "it closed the connection before responding".to_owned(),
        Fault::Timeout(_) => "it did not respond in time".to_owned(),
        fault => fault.to_string(),
    }
}
