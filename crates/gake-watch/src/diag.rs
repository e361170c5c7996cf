//! The kernel's own figures of each listening socket, by netlink (`ss -ltnm` shows the same).
//!
//! /proc/net/tcp has the length of an accept queue, but neither its bound nor what was dropped at
//! this one socket; the counters of /proc/net/netstat belong to the whole network namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// A socket that listens, in the network namespace of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) local: SocketAddr,
    pub(crate) inode: u64,
    /// Connections that wait to be accepted: `Recv-Q` of `ss -ltn`.
    pub(crate) queue: u32,
    /// How many may wait: `Send-Q` of `ss -ltn`.
    pub(crate) backlog: u32,
    /// Attempts to connect that the kernel dropped at this socket since it was opened: `d` in
    /// `skmem` of `ss -ltnm`.
    pub(crate) drops: Option<u32>,
}

impl Listener {
    /// Whether a connection to `address` reaches this socket.
    pub(crate) fn takes(&self, address: SocketAddr) -> bool {
        let (mine, theirs) = (self.local.ip().to_canonical(), address.ip().to_canonical());
        self.local.port() == address.port() && (mine.is_unspecified() || mine == theirs)
    }
}

// From linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const HEADER: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;
const LISTEN: u32 = 1 << 10;
const SKMEMINFO: u16 = 7;
/// Bytes of an `inet_diag_msg`, before its attributes.
const MESSAGE: usize = 72;
/// Where `sk_drops` is in the attribute `SKMEMINFO`.
const DROPS: usize = 8 * 4;

/// A dump is answered in parts of at most this.
const PART: usize = 1 << 16;
/// Parts of a dump that are read: a machine with more listeners has something else to see to.
const PARTS_MAX: usize = 256;

/// Every TCP socket that listens.
pub(crate) fn listeners() -> io::Result<Vec<Listener>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let mut all = dump(&socket, AF_INET)?;
    all.extend(dump(&socket, AF_INET6)?);
    Ok(all)
}

fn dump(socket: &OwnedFd, family: u8) -> io::Result<Vec<Listener>> {
    send(socket, &request(family), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut part = vec![0; PART];
    for _ in 0..PARTS_MAX {
        let (length, _) = recv(socket, &mut part[..], RecvFlags::DONTWAIT)?;
        if take(&part[..length], &mut found)? {
            break;
        }
    }
    Ok(found)
}

fn request(family: u8) -> [u8; HEADER + 56] {
    let mut bytes = [0; HEADER + 56];
    bytes[0..4].copy_from_slice(&((HEADER + 56) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[HEADER] = family;
    bytes[HEADER + 1] = TCP;
    bytes[HEADER + 2] = 1 << (SKMEMINFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&LISTEN.to_ne_bytes());
    bytes
}

/// Takes the messages of a part in; true after the last.
fn take(mut part: &[u8], found: &mut Vec<Listener>) -> io::Result<bool> {
    while part.len() >= HEADER {
        let length = u32_at(part, 0) as usize;
        if length < HEADER || length > part.len() {
            return Err(io::Error::other("a netlink answer is cut"));
        }
        match u16_at(part, 4) {
            DONE => return Ok(true),
            ERROR => return Err(io::Error::other("sock_diag is refused")),
            SOCK_DIAG_BY_FAMILY => found.extend(listener(&part[HEADER..length])),
            _ => {}
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

fn listener(message: &[u8]) -> Option<Listener> {
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
    Some(Listener {
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

/// Messages and attributes begin at multiples of four.
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

    fn of(address: SocketAddr) -> Listener {
        let all = listeners().unwrap();
        let mut mine = all.into_iter().filter(|listener| listener.takes(address));
        let listener = mine.next().unwrap();
        assert_eq!(mine.next(), None);
        listener
    }

    #[test]
    fn a_full_queue_drops_at_its_own_socket_alone() {
        let (_full, full) = listening(2);
        let (_other, other) = listening(2);
        assert_eq!((of(full).queue, of(full).backlog, of(full).drops), (0, 2, Some(0)));
        // Linux holds one more than asked for.
        let held: Vec<_> = (0..3).map(|_| TcpStream::connect(full).unwrap()).collect();
        assert_eq!((of(full).queue, of(full).drops), (3, Some(0)));
        let late = TcpStream::connect_timeout(&full, Duration::from_millis(100));
        assert!(late.is_err(), "{late:?}");
        assert!(of(full).drops.unwrap() >= 1);
        assert_eq!((of(other).queue, of(other).drops), (0, Some(0)));
        drop(held);
    }

    #[test]
    fn a_listener_takes_what_comes_to_its_address() {
        let listener = |local: &str| Listener {
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
    fn what_is_cut_is_refused() {
        let mut found = Vec::new();
        assert!(take(&[0; 20], &mut found).is_err());
        assert!(!take(&[], &mut found).unwrap());
        assert_eq!(listener(&[0; 10]), None);
        assert_eq!(attribute(&[8, 0, 7, 0], 7), None);
    }
}
