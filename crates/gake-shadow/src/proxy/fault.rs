//! Which fault an error of hyper is.

use std::error::Error;
use std::io;

use gake_core::record::{ErrorCode, Fault, Phase};
use gake_wire::fault;

/// The fault of an error while a request is under way, as far as it had come.
pub(crate) fn of(error: &hyper::Error, phase: Phase) -> Fault {
    if error.is_parse_too_large() {
        return Fault::TooLarge("head");
    }
    if error.is_parse() {
        return Fault::Malformed("not an HTTP/1.1 answer");
    }
    if let Some(error) = http2(error) {
        return of_http2(error, phase);
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return Fault::ClosedEarly(phase);
    }
    match cause(error) {
        Some(error)
            if error.kind() == io::ErrorKind::InvalidInput
                || error.kind() == io::ErrorKind::InvalidData =>
        {
            Fault::Malformed("a bad chunk")
        }
        Some(error) => fault::of_read(error, phase),
        None if error.is_body_write_aborted() => Fault::Write,
        None => Fault::ClosedEarly(phase),
    }
}

/// The error of HTTP/2 in an error of hyper.
fn http2(error: &hyper::Error) -> Option<&h2::Error> {
    error.source().and_then(|error| error.downcast_ref())
}

fn of_http2(error: &h2::Error, phase: Phase) -> Fault {
    match (error.get_io(), error.reason()) {
        (Some(error), _) => fault::of_read(error, phase),
        (None, Some(_)) if error.is_library() => Fault::Malformed("not an HTTP/2 answer"),
        (None, Some(reason)) => {
            let code = ErrorCode::from_number(reason.into());
            if error.is_go_away() { Fault::Goaway(code) } else { Fault::StreamReset(code) }
        }
        (None, None) => Fault::ClosedEarly(phase),
    }
}

/// Whether the backend says that it did nothing with the request.
pub(crate) fn is_untouched(error: &hyper::Error) -> bool {
    let refused = |error: &h2::Error| {
        let reason = error.reason();
        error.is_remote()
            && (reason == Some(h2::Reason::REFUSED_STREAM)
                || (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)))
    };
    http2(error).is_some_and(refused)
}

fn cause(error: &hyper::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

/// A fault for people, in the words of an error page.
pub(crate) fn sentence(fault: Fault) -> String {
    match fault {
        Fault::Dns => "its name could not be resolved".to_owned(),
        Fault::ConnectRefused => "it refused the connection".to_owned(),
        Fault::ConnectTimeout | Fault::Timeout(Phase::Connect) => {
            "it took no connection in time".to_owned()
        }
        Fault::ConnectReset => "it cannot be reached".to_owned(),
        Fault::NoLocalPort => "the proxy has no local port left".to_owned(),
        Fault::NoDescriptors => "the proxy has no file descriptor left".to_owned(),
        Fault::Reset => "it reset the connection".to_owned(),
        Fault::ClosedEarly(_) => "it closed the connection before it answered".to_owned(),
        Fault::Timeout(_) => "it did not answer in time".to_owned(),
        fault => fault.to_string(),
    }
}
