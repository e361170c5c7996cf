//! How Go's resolver reports that a name has no address.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::Duration;

use super::fault::go_text;

const PORT: u16 = 53;

/// Name servers that Go reads from its file.
const SERVERS_MAX: usize = 3;

/// The time for a server on this machine to refuse a datagram.
const REFUSAL: Duration = Duration::from_millis(20);

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupError {
    /// Go's message.
    pub text: String,
    /// Whether the name does not exist, as far as is known; else no name server can be asked.
    pub is_not_found: bool,
}

/// The name servers of this machine, as Go sees them.
struct NameServers {
    /// As ` on 192.0.2.1:53`.
    first: String,
    /// The last one, and why it cannot be asked.
    failure: Option<String>,
}

/// The error of a lookup of `host` that found no address.
pub fn error(host: &str) -> LookupError {
    static SERVERS: OnceLock<NameServers> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| {
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        NameServers::new(&addresses(&text))
    });
    servers.error(host)
}

impl NameServers {
    fn new(addresses: &[SocketAddr]) -> Self {
        let on = |address: &SocketAddr| format!(" on {address}");
        let last = addresses.last();
        Self {
            first: addresses.first().map(on).unwrap_or_default(),
            failure: last.and_then(|last| Some(format!("{}: {}", on(last), failure(*last)?))),
        }
    }

    fn error(&self, host: &str) -> LookupError {
        let text = match &self.failure {
            Some(failure) => format!("lookup {host}{failure}"),
            None => format!("lookup {host}{}: no such host", self.first),
        };
        LookupError { text, is_not_found: self.failure.is_none() }
    }
}

/// The name servers of a `resolv.conf`.
fn addresses(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = (words.next() == Some("nameserver")).then(|| words.next()).flatten()?;
        Some(SocketAddr::new(address.parse().ok()?, PORT))
    });
    let servers: Vec<_> = servers.take(SERVERS_MAX).collect();
    if !servers.is_empty() {
        return servers;
    }
    let local = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    local.map(|ip| SocketAddr::new(ip, PORT)).into()
}

/// Why a name server cannot be asked. Blocks for a moment if it is on this machine.
fn failure(server: SocketAddr) -> Option<String> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    if let Err(error) = socket.connect(server) {
        return Some(format!("dial udp {server}: connect: {}", go_text(&error)));
    }
    if !server.ip().is_loopback() {
        return None;
    }
    socket.set_read_timeout(Some(REFUSAL)).ok()?;
    let asked = socket.send(&[0]).and_then(|_| socket.recv(&mut [0]));
    let refused = asked.err().filter(|error| error.kind() == ErrorKind::ConnectionRefused)?;
    let own = socket.local_addr().ok()?;
    Some(format!("read udp {own}->{server}: read: {}", go_text(&refused)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read_as_in_go() {
        let text = "# nameserver 1.1.1.1\nsearch a.test\nnameserver 192.0.2.1\nnameserver ::2 x\n\
                    nameserver bad\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        let read: Vec<_> = addresses(text).iter().map(SocketAddr::to_string).collect();
        assert_eq!(read, ["192.0.2.1:53", "[::2]:53", "192.0.2.3:53"]);
        let read: Vec<_> = addresses("").iter().map(SocketAddr::to_string).collect();
        assert_eq!(read, ["127.0.0.1:53", "[::1]:53"]);
    }

    #[test]
    fn a_server_that_refuses_is_named_with_both_ends() {
        // A port that was free a moment ago, of an address that no other test uses.
        let taken = UdpSocket::bind("127.83.11.7:0").unwrap();
        let server = taken.local_addr().unwrap();
        drop(taken);
        let servers = NameServers::new(&[server]);
        let error = servers.error("a.test");
        let (start, end) =
            (format!("lookup a.test on {server}: read udp 127."), "connection refused");
        assert!(error.text.starts_with(&start) && error.text.ends_with(end), "{}", error.text);
        assert!(!error.is_not_found);
    }

    #[test]
    fn a_name_that_no_server_knows_does_not_exist() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = silent.local_addr().unwrap();
        let error = NameServers::new(&[server]).error("a.test");
        assert_eq!(error.text, format!("lookup a.test on {server}: no such host"));
        assert!(error.is_not_found);
    }
}
