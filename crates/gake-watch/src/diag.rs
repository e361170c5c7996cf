//! The kernel's figures of sockets, by netlink (as in `ss -ltnm`).
//!
//! /proc/net/tcp has the length of an accept queue, but neither its limit nor the drops at this
//! socket; the counters in /proc/net/netstat cover the whole network namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// A socket in the network namespace of this process, as a rule a listening one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiagSocket {
    pub(crate) local: SocketAddr,
    pub(crate) inode: u64,
    /// Connections waiting to be accepted, or unread bytes of a connection: `Recv-Q` of `ss -tn`.
    pub(crate) queue: u32,
    /// The limit of the queue: `Send-Q` of `ss -ltn`.
    pub(crate) backlog: u32,
    /// Attempts to connect dropped at this socket since it was opened: `d` in `skmem` of `ss
    /// -ltnm`.
    pub(crate) drops: Option<u32>,
}

impl DiagSocket {
    /// Whether a connection to `address` reaches this socket.
    pub(crate) fn takes(&self, address: SocketAddr) -> bool {
        let (mine, theirs) = (self.local.ip().to_canonical(), address.ip().to_canonical());
        self.local.port() == address.port() && (mine.is_unspecified() || mine == theirs)
    }
}

// From linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const HEADER: usize = 16;
/// Sockets of both families in one walk through the kernel's table, which takes 0.2 ms on a machine
/// with much memory; `SOCK_DIAG_BY_FAMILY` walks for each family.
const TCPDIAG_GETSOCK: u16 = 18;
const REQUEST_AND_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const LISTEN: u32 = 1 << 10;
const ESTABLISHED: u32 = 1 << 1;
const SKMEMINFO: u16 = 7;
/// Bytes of a request, an `inet_diag_req` after the header.
const REQUEST: usize = HEADER + 60;
/// Bytes of an `inet_diag_msg`, before its attributes.
const MESSAGE: usize = 72;
/// The offset of `sk_drops` in the attribute `SKMEMINFO`.
const DROPS: usize = 8 * 4;

/// Maximum bytes of a datagram of a dump.
const DATAGRAM_MAX: usize = 1 << 16;
const DATAGRAMS_MAX: usize = 256;

pub(crate) fn listeners() -> io::Result<Vec<DiagSocket>> {
    dump(LISTEN, 0)
}

/// The connections to local ports with bytes that nothing has read, those not yet accepted
/// included.
pub(crate) fn unread(ports: &[u16]) -> io::Result<usize> {
    let mut count = 0;
    for port in ports {
        count += dump(ESTABLISHED, *port)?.iter().filter(|socket| socket.queue > 0).count();
    }
    Ok(count)
}

/// The sockets in `states`, with the local port, unless it is 0.
fn dump(states: u32, port: u16) -> io::Result<Vec<DiagSocket>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&socket, &request(states, port), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut datagram = vec![0; DATAGRAM_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let (length, _) = recv(&socket, &mut datagram[..], RecvFlags::DONTWAIT)?;
        if take(&datagram[..length], &mut found)? {
            break;
        }
    }
    Ok(found)
}

fn request(states: u32, port: u16) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&TCPDIAG_GETSOCK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[HEADER] = AF_INET;
    bytes[HEADER + 3] = 1 << (SKMEMINFO - 1);
    bytes[HEADER + 4..HEADER + 6].copy_from_slice(&port.to_be_bytes());
    bytes[HEADER + 52..HEADER + 56].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Collects the listeners of a datagram; true after the last one.
fn take(mut datagram: &[u8], found: &mut Vec<DiagSocket>) -> io::Result<bool> {
    while datagram.len() >= HEADER {
        let length = u32_at(datagram, 0) as usize;
        if length < HEADER || length > datagram.len() {
            return Err(io::Error::other("a netlink message is truncated"));
        }
        match u16_at(datagram, 4) {
            DONE => return Ok(true),
            ERROR => return Err(io::Error::other("sock_diag is refused")),
            TCPDIAG_GETSOCK => found.extend(listener(&datagram[HEADER..length])),
            _ => {}
        }
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

fn listener(message: &[u8]) -> Option<DiagSocket> {
    if message.len() < MESSAGE {
        return None;
    }
    let port = u16::from_be_bytes([message[4], message[5]]);
    let address: [u8; 16] = message[8..24].try_into().ok()?;
    let address = match message[0] {
        AF_INET => IpAddr::V4(Ipv4Addr::new(address[0], address[1], address[2], address[3])),
        AF_INET6 => IpAddr::V6(Ipv6Addr::from(address)),
        _ => return None,
    };
    let memory = attribute(&message[MESSAGE..], SKMEMINFO);
    Some(DiagSocket {
        local: SocketAddr::new(address, port),
        queue: u32_at(message, 56),
        backlog: u32_at(message, 60),
        inode: u64::from(u32_at(message, 68)),
        drops: memory.filter(|m| m.len() >= DROPS + 4).map(|memory| u32_at(memory, DROPS)),
    })
}

fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0));
        if length < 4 || length > attributes.len() {
            return None;
        }
        if u16_at(attributes, 2) == wanted {
            return Some(&attributes[4..length]);
        }
        attributes = attributes.get(aligned(length)..)?;
    }
    None
}

/// Messages and attributes are aligned to four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn listening(backlog: i32) -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(backlog).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, address)
    }

    fn of(address: SocketAddr) -> DiagSocket {
        let all = listeners().unwrap();
        let mut mine = all.into_iter().filter(|listener| listener.takes(address));
        let listener = mine.next().unwrap();
        assert_eq!(mine.next(), None);
        listener
    }

    #[test]
    fn a_full_queue_drops_only_at_its_own_socket() {
        let (_full, full) = listening(2);
        let (_other, other) = listening(2);
        assert_eq!((of(full).queue, of(full).backlog, of(full).drops), (0, 2, Some(0)));
        // Linux holds one more than the backlog.
        let held: Vec<_> = (0..3).map(|_| TcpStream::connect(full).unwrap()).collect();
        assert_eq!((of(full).queue, of(full).drops), (3, Some(0)));
        let late = TcpStream::connect_timeout(&full, Duration::from_millis(100));
        assert!(late.is_err(), "{late:?}");
        assert!(of(full).drops.unwrap() >= 1);
        assert_eq!((of(other).queue, of(other).drops), (0, Some(0)));
        drop(held);
    }

    #[test]
    fn listeners_of_both_families_are_found() {
        let listener = |address| std::net::TcpListener::bind((address, 0)).unwrap();
        for listener in [listener("127.0.0.1"), listener("::1")] {
            let address = listener.local_addr().unwrap();
            assert_eq!((of(address).local, of(address).backlog), (address, 128));
        }
    }

    #[test]
    fn bytes_that_nobody_reads_are_seen_at_their_port_only() {
        use std::io::{Read, Write};
        let (server, address) = listening(8);
        let (_other, other) = listening(8);
        let mut clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut accepted = TcpStream::from(server.accept().unwrap().0);
        let unread = |address: SocketAddr| unread(&[address.port()]).unwrap();
        assert_eq!(unread(address), 0);
        clients.iter_mut().for_each(|client| client.write_all(b"GET").unwrap());
        // Loopback delivers with the write; the server has accepted one of them.
        assert_eq!((unread(address), unread(other)), (3, 0));
        accepted.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(unread(address), 2);
    }

    #[test]
    fn a_listener_takes_connections_to_its_address() {
        let listener = |local: &str| DiagSocket {
            local: local.parse().unwrap(),
            inode: 1,
            queue: 0,
            backlog: 1,
            drops: None,
        };
        let to = "127.0.0.1:80".parse().unwrap();
        for (local, takes) in [
            ("127.0.0.1:80", true),
            ("0.0.0.0:80", true),
            ("[::]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:81", false),
            ("10.0.0.1:80", false),
            ("[::1]:80", false),
        ] {
            assert_eq!(listener(local).takes(to), takes, "{local}");
        }
    }

    #[test]
    fn truncated_messages_are_refused() {
        let mut found = Vec::new();
        assert!(take(&[0; 20], &mut found).is_err());
        assert!(!take(&[], &mut found).unwrap());
        assert_eq!(listener(&[0; 10]), None);
        assert_eq!(attribute(&[8, 0, 7, 0], 7), None);
    }
}
