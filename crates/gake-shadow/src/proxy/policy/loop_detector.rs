//! Requests that come back: a proxy that is its own backend, at once or over others, would ask
//! itself until it has no connection left.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};

use http::HeaderValue;
use http::StatusCode;

use crate::proxy::client::refusal::Refusal;

/// Tells this proxy's requests by their `Via`.
#[derive(Debug)]
pub(crate) struct LoopDetector {
    via: HeaderValue,
}

impl LoopDetector {
    /// With a name that no other proxy has.
    pub(crate) fn new() -> Self {
        // Keyed by the system's randomness, anew for each.
        let id = RandomState::new().hash_one(std::process::id());
        let via = HeaderValue::from_str(&format!("1.1 gake ({id:016x})"));
        Self { via: via.unwrap_or_else(|_| HeaderValue::from_static("1.1 gake")) }
    }

    /// What we call ourselves in a request's `Via`.
    pub(crate) fn via(&self) -> &[u8] {
        self.via.as_bytes()
    }

    /// Whether a line of a request's `Via` says that it has been here before.
    pub(crate) fn contains_own_via(&self, line: &[u8]) -> bool {
        let ours = self.via();
        line.windows(ours.len()).any(|part| part == ours)
    }
}

/// The answer to a request that came back.
pub(crate) fn refusal() -> Refusal {
    let reason = "this request has been here before: a backend leads back to this proxy";
    Refusal::new(StatusCode::LOOP_DETECTED, reason)
}

/// Whether a connection to `backend` ends at who listens on `listen`.
pub(crate) fn is_same_endpoint(listen: SocketAddr, backend: SocketAddr) -> bool {
    if listen.port() != backend.port() {
        return false;
    }
    let (ours, theirs) = (listen.ip().to_canonical(), backend.ip().to_canonical());
    match (ours.is_unspecified(), theirs.is_unspecified()) {
        (false, false) => ours == theirs,
        // Connecting to the unspecified address is connecting to this machine.
        (false, true) => ours.is_loopback(),
        (true, true) => true,
        // An address can be bound where it is the machine's own.
        (true, false) => UdpSocket::bind((theirs, 0)).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_same_under_every_name_of_this_machine() {
        let same = |listen: &str, backend: &str| {
            is_same_endpoint(listen.parse().unwrap(), backend.parse().unwrap())
        };
        assert!(same("127.0.0.1:80", "127.0.0.1:80"));
        assert!(same("127.0.0.1:80", "[::ffff:127.0.0.1]:80"));
        assert!(same("127.0.0.1:80", "0.0.0.0:80"));
        assert!(same("0.0.0.0:80", "127.0.0.1:80"));
        assert!(same("0.0.0.0:80", "127.0.0.9:80"));
        assert!(same("[::]:80", "127.0.0.1:80"));
        assert!(!same("127.0.0.1:80", "127.0.0.1:81"));
        assert!(!same("127.0.0.1:80", "127.0.0.2:80"));
        assert!(!same("0.0.0.0:80", "192.0.2.1:80"));
    }

    #[test]
    fn a_request_that_was_here_is_known() {
        let (ours, other) = (LoopDetector::new(), LoopDetector::new());
        assert!(!ours.contains_own_via(b"1.1 gake, 1.0 x") && !ours.contains_own_via(other.via()));
        let joined = [b"1.0 a, ", ours.via(), b", 1.1 b"].concat();
        assert!(ours.contains_own_via(&joined));
    }
}
