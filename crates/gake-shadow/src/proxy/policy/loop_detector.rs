//! Detects requests that return to the proxy, directly or through other proxies. Each round trip
//! would take another connection.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};

use http::HeaderValue;
use http::StatusCode;

use crate::proxy::client::refusal::Refusal;

/// Recognises this proxy's requests by their `Via`.
#[derive(Debug)]
pub(crate) struct LoopDetector {
    via: HeaderValue,
}

impl LoopDetector {
    /// With an identity unique to this proxy.
    pub(crate) fn new() -> Self {
        // Randomly keyed.
        let id = RandomState::new().hash_one(std::process::id());
        let via = HeaderValue::from_str(&format!("1.1 gake ({id:016x})"));
        Self { via: via.unwrap_or_else(|_| HeaderValue::from_static("1.1 gake")) }
    }

    /// Our `Via` in requests.
    pub(crate) fn via(&self) -> &[u8] {
        self.via.as_bytes()
    }

    /// Whether a `Via` line contains this proxy.
    pub(crate) fn contains_own_via(&self, line: &[u8]) -> bool {
        let ours = self.via();
        line.windows(ours.len()).any(|window| window == ours)
    }
}

pub(crate) fn refusal() -> Refusal {
    let reason = "loop detected: a backend forwards to this proxy";
    Refusal::new(StatusCode::LOOP_DETECTED, reason)
}

/// Whether a connection to `backend` reaches the listener at `listen`.
pub(crate) fn is_same_endpoint(listen: SocketAddr, backend: SocketAddr) -> bool {
    if listen.port() != backend.port() {
        return false;
    }
    let (ours, theirs) = (listen.ip().to_canonical(), backend.ip().to_canonical());
    match (ours.is_unspecified(), theirs.is_unspecified()) {
        (false, false) => ours == theirs,
        // Connecting to the unspecified address reaches this machine.
        (false, true) => ours.is_loopback(),
        (true, true) => true,
        // Only a local address can be bound.
        (true, false) => UdpSocket::bind((theirs, 0)).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_equal_under_every_local_address() {
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
    fn own_requests_are_recognised() {
        let (ours, other) = (LoopDetector::new(), LoopDetector::new());
        assert!(!ours.contains_own_via(b"1.1 gake, 1.0 x") && !ours.contains_own_via(other.via()));
        let joined = [b"1.0 a, ", ours.via(), b", 1.1 b"].concat();
        assert!(ours.contains_own_via(&joined));
    }
}
