//! Congestion control towards peers that are near.
//!
//! BBR, where it is the system's default, paces what it sends: each small write is delayed and
//! costs a timer. Over a wide network that is worth it; to a peer of the same machine or the same
//! private network it is not, and Reno, which every kernel has, sends at once.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use socket2::SockRef;
use tokio::net::TcpStream;

/// The system's default.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Turns pacing off for a connection to a near peer.
pub(crate) fn send_at_once(stream: &TcpStream, peer: IpAddr) {
    static PACES: OnceLock<bool> = OnceLock::new();
    let paces = || std::fs::read(DEFAULT).is_ok_and(|name| name.starts_with(b"bbr"));
    if is_near(peer) && *PACES.get_or_init(paces) {
        // A kernel that refuses it goes on with its own.
        let _ = SockRef::from(stream).set_tcp_congestion(b"reno");
    }
}

/// Whether an address is this machine's or of a private network.
fn is_near(peer: IpAddr) -> bool {
    let of_v6 = |peer: Ipv6Addr| {
        peer.is_loopback() || peer.is_unique_local() || peer.is_unicast_link_local()
    };
    match peer.to_canonical() {
        IpAddr::V4(peer) => peer.is_loopback() || peer.is_private() || peer.is_link_local(),
        IpAddr::V6(peer) => of_v6(peer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_this_machine_or_a_private_network() {
        for near in ["127.0.0.1", "10.1.2.3", "192.168.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(is_near(near.parse().unwrap()), "{near}");
        }
        for far in ["8.8.8.8", "2001:db8::1", "172.32.0.1", "0.0.0.0"] {
            assert!(!is_near(far.parse().unwrap()), "{far}");
        }
    }

    #[tokio::test]
    async fn a_near_connection_is_not_paced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = TcpStream::connect(addr).await.unwrap();
        send_at_once(&stream, addr.ip());
        let congestion = SockRef::from(&stream).tcp_congestion().unwrap();
        assert!(!congestion.starts_with(b"bbr"), "{congestion:?}");
    }
}
