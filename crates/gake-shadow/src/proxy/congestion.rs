//! Congestion control towards nearby peers.
//!
//! BBR paces: each small write is delayed and costs a timer. That pays on wide-area networks, but not
//! on the same machine or private network. There Reno, which every kernel has, replaces it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use socket2::SockRef;
use tokio::net::TcpStream;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Disables pacing for a connection to a nearby peer.
pub(crate) fn send_at_once(stream: &TcpStream, peer: IpAddr) {
    static PACES: OnceLock<bool> = OnceLock::new();
    let paces = || std::fs::read(DEFAULT).is_ok_and(|name| name.starts_with(b"bbr"));
    if is_local(peer) && *PACES.get_or_init(paces) {
        // On an error the default remains.
        let _ = SockRef::from(stream).set_tcp_congestion(b"reno");
    }
}

/// Whether an address is on this machine or a private network.
fn is_local(peer: IpAddr) -> bool {
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
    fn loopback_and_private_addresses_are_local() {
        for near in ["127.0.0.1", "10.1.2.3", "192.168.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(is_local(near.parse().unwrap()), "{near}");
        }
        for far in ["8.8.8.8", "2001:db8::1", "172.32.0.1", "0.0.0.0"] {
            assert!(!is_local(far.parse().unwrap()), "{far}");
        }
    }

    #[tokio::test]
    async fn a_local_connection_is_not_paced() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = TcpStream::connect(addr).await.unwrap();
        send_at_once(&stream, addr.ip());
        let congestion = SockRef::from(&stream).tcp_congestion().unwrap();
        assert!(!congestion.starts_with(b"bbr"), "{congestion:?}");
    }
}
