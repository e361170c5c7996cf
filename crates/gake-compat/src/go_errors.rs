//! The errors of requests without a response, in the words of Go's `net/http`, on which scripts
//! depend.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use gake_core::record::{Fault, Phase, Tally};
use gake_wire::PreparedRequests;

/// Go's error for a request that the end of the run aborted.
pub const CANCELED: &str = "context canceled";

/// Requests without a response, by cause in Go's words, sorted. The local port, which Go includes
/// and which would make every line different, is left out.
pub fn errors(
    tally: &Tally,
    wires: &[Arc<PreparedRequests>],
    method: &str,
    url: &str,
) -> Vec<(String, u64)> {
    let origins = wires.first().map(|wire| wire.network.origins.as_slice()).unwrap_or_default();
    let address = origins.first().and_then(|origin| origin.addresses.first());
    let address = address.map_or_else(String::new, ToString::to_string);
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for &(fault, count) in tally.faults() {
        *errors.entry(of_request(method, url, &cause(fault, &address))).or_default() += count;
    }
    if tally.counts.unfinished > 0 {
        *errors.entry(of_request(method, url, CANCELED)).or_default() += tally.counts.unfinished;
    }
    errors.into_iter().collect()
}

/// The error of a request: `Get "http://...": what happened`.
pub fn of_request(method: &str, url: &str, what: &str) -> String {
    let (first, rest) = method.split_at(method.len().min(1));
    format!("{first}{} \"{url}\": {what}", rest.to_ascii_lowercase())
}

/// The cause in Go's words, for a peer at `address`.
pub fn cause(fault: Fault, address: &str) -> String {
    let connect = |what: &str| format!("dial tcp {address}: connect: {what}");
    match fault {
        Fault::Dns => "dial tcp: lookup: no such host".to_owned(),
        Fault::ConnectRefused => connect("connection refused"),
        Fault::ConnectReset => connect("connection reset by peer"),
        Fault::Unreachable(errno) => connect(&gake_wire::fault::go_errno_text(errno)),
        Fault::NoLocalPort => connect("cannot assign requested address"),
        Fault::NoDescriptors => format!("dial tcp {address}: socket: too many open files"),
        Fault::ConnectTimeout | Fault::Timeout(Phase::Connect) => {
            format!("dial tcp {address}: i/o timeout")
        }
        Fault::Timeout(Phase::FirstByte) => {
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()
        }
        Fault::Timeout(Phase::Body) => "context deadline exceeded (Client.Timeout or context \
                                        cancellation while reading body)"
            .to_owned(),
        Fault::Tls(reason) => gake_wire::fault::go_tls_error(reason),
        Fault::Write => format!("write tcp {address}: write: broken pipe"),
        Fault::Reset => format!("read tcp {address}: read: connection reset by peer"),
        Fault::ClosedEarly(_) => "unexpected EOF".to_owned(),
        Fault::Malformed(reason) => {
            format!("net/http: HTTP/1.x transport connection broken: malformed response: {reason}")
        }
        Fault::TooLarge(what) => {
            format!("net/http: HTTP/1.x transport connection broken: head too large: {what}")
        }
        Fault::StreamReset(code) => {
            format!("stream error: stream ID 1; {}; received from peer", code.name())
        }
        Fault::Goaway(code) => format!(
            "http2: server sent GOAWAY and closed the connection; LastStreamID=0, ErrCode={}, \
             debug=\"\"",
            code.name()
        ),
        Fault::RedirectLimit => "stopped after 10 redirects".to_owned(),
        Fault::Other(errno) if errno != 0 => io::Error::from_raw_os_error(errno).to_string(),
        _ => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_gos_words() {
        for (fault, words) in [
            (Fault::ConnectRefused, "dial tcp 127.0.0.1:1: connect: connection refused"),
            (Fault::NoLocalPort, "dial tcp 127.0.0.1:1: connect: cannot assign requested address"),
            (Fault::NoDescriptors, "dial tcp 127.0.0.1:1: socket: too many open files"),
            (Fault::Reset, "read tcp 127.0.0.1:1: read: connection reset by peer"),
        ] {
            assert_eq!(cause(fault, "127.0.0.1:1"), words);
        }
    }
}
