//! Source addresses. With several, local ports do not run out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::net::address::Address;
use crate::net::sockopt;

/// Maximum number of addresses from ranges: a /16, enough for 4 billion connections.
const ADDRESSES_MAX: usize = 65_536;

/// The source addresses of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceAddresses {
    /// Addresses to bind to, round-robin; if empty, the system chooses.
    pub addresses: Vec<IpAddr>,
    /// The interface to bind to.
    pub device: Option<String>,
}

/// Why source addresses cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceAddressError {
    /// Not an address, range or name.
    #[error(
        "{0:?} is not a source; write an address, a range 127.0.0.2-127.0.0.20, a network \
         127.0.1.0/28, or the name of an interface"
    )]
    Bad(String),
    /// A range over 65,536 addresses.
    #[error("{0:?} holds more than 65,536 addresses; write a smaller range")]
    TooMany(String),
    /// Not an address of this machine.
    #[error("{0} is not an address of this machine; `ip address` lists its addresses")]
    NotOurs(IpAddr),
    /// The system does not allow an address or a device.
    #[error("{name} cannot be a source: {reason}")]
    Unusable {
        /// The address or device.
        name: String,
        /// The system's message.
        reason: String,
    },
    /// Sources and target are of different families.
    #[error("{host} is {address}, which no source address can reach: one is IPv4, the other IPv6")]
    Family {
        /// The target's host.
        host: String,
        /// One of its addresses.
        address: String,
    },
}

impl SourceAddresses {
    /// Adds a comma-separated list of addresses, ranges, networks, or one interface's name.
    ///
    /// # Errors
    /// An item is none of these.
    pub fn add(&mut self, list: &str) -> Result<(), SourceAddressError> {
        for item in list.split(',').map(str::trim) {
            let bad = || SourceAddressError::Bad(item.to_owned());
            if let Ok(address) = item.parse::<IpAddr>() {
                self.addresses.push(address);
            } else if let Some((from, to)) = item.split_once('-')
                && let (Ok(from), Ok(to)) = (from.trim().parse(), to.trim().parse())
            {
                self.add_range(item, from, to)?;
            } else if let Some((network, bits)) = item.split_once('/') {
                let network: Ipv4Addr = network.parse().map_err(|_| bad())?;
                let bits: u32 = bits.parse().ok().filter(|b| *b <= 32).ok_or_else(bad)?;
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                let from = network.to_bits() & mask;
                self.add_range(item, Ipv4Addr::from_bits(from).into(), {
                    Ipv4Addr::from_bits(from | !mask).into()
                })?;
            } else if is_device(item) && self.device.is_none() {
                self.device = Some(item.to_owned());
            } else {
                return Err(bad());
            }
        }
        Ok(())
    }

    /// Tries every source, so that a foreign address fails before the run and is not mistaken for a
    /// lack of ports during it.
    pub(crate) fn check(&self) -> Result<(), SourceAddressError> {
        if self.addresses.is_empty() && self.device.is_some() {
            self.socket(Ipv4Addr::LOCALHOST.into(), None)
                .map_err(|error| unusable(self.device.as_deref().unwrap_or_default(), &error))?;
        }
        for &address in &self.addresses {
            match self.socket(address, Some(address)) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {
                    return Err(SourceAddressError::NotOurs(address));
                }
                Err(error) => return Err(unusable(&address.to_string(), &error)),
            }
        }
        Ok(())
    }

    pub(crate) fn is_default(&self) -> bool {
        self.addresses.is_empty() && self.device.is_none()
    }

    /// A socket for a connection from `source` to `target`.
    pub(crate) fn socket(&self, target: IpAddr, source: Option<IpAddr>) -> io::Result<Socket> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let domain = if target.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if let Some(source) = source {
            sockopt::bind_address_no_port(socket.as_fd())?;
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        Ok(socket)
    }

    /// A UDP socket connected from `source` to `target`.
    pub(crate) fn udp_socket(
        &self,
        target: SocketAddr,
        source: Option<IpAddr>,
    ) -> io::Result<std::net::UdpSocket> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(target), kind, Some(Protocol::UDP))?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect(&target.into())?;
        Ok(socket.into())
    }

    /// The addresses of a host that have a source of the same family.
    pub(crate) fn reaching(
        &self,
        host: &str,
        addresses: Vec<Address>,
    ) -> Result<Vec<Address>, SourceAddressError> {
        if self.addresses.is_empty() {
            return Ok(addresses);
        }
        let family =
            |address: IpAddr| self.addresses.iter().any(|a| a.is_ipv4() == address.is_ipv4());
        let (fit, other): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| match address {
                Address::Tcp(address) => family(address.ip()),
                Address::Unix(_) => true,
            });
        match (fit.is_empty(), other.first()) {
            (true, Some(address)) => Err(SourceAddressError::Family {
                host: host.to_owned(),
                address: address.to_string(),
            }),
            _ => Ok(fit),
        }
    }

    fn add_range(
        &mut self,
        item: &str,
        from: IpAddr,
        to: IpAddr,
    ) -> Result<(), SourceAddressError> {
        let (from_bits, to_bits, v4) = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                (u128::from(from.to_bits()), u128::from(to.to_bits()), true)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => (from.to_bits(), to.to_bits(), false),
            _ => return Err(SourceAddressError::Bad(item.to_owned())),
        };
        let count = to_bits
            .checked_sub(from_bits)
            .ok_or_else(|| SourceAddressError::Bad(item.to_owned()))?;
        if count >= (ADDRESSES_MAX - self.addresses.len()) as u128 {
            return Err(SourceAddressError::TooMany(item.to_owned()));
        }
        self.addresses.extend((from_bits..=to_bits).map(|bits| {
            if v4 {
                IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
            } else {
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
        }));
        Ok(())
    }
}

fn unusable(name: &str, error: &io::Error) -> SourceAddressError {
    SourceAddressError::Unusable { name: name.to_owned(), reason: error.to_string() }
}

/// Whether a text can be the name of a Linux interface (at most 15 bytes) and not an address.
fn is_device(text: &str) -> bool {
    (1..16).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_@".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Result<SourceAddresses, SourceAddressError> {
        let mut sources = SourceAddresses::default();
        sources.add(text).map(|()| sources)
    }

    #[test]
    fn reads_addresses_ranges_and_networks() {
        let all = sources("127.0.0.1,127.0.0.5-127.0.0.7,127.0.1.0/30,::1").unwrap().addresses;
        assert_eq!(all.len(), 1 + 3 + 4 + 1);
        assert_eq!(all[3], IpAddr::from([127, 0, 0, 7]));
        assert_eq!(all[7], IpAddr::from([127, 0, 1, 3]));
        assert_eq!(sources("eth0").unwrap().device.as_deref(), Some("eth0"));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "1.2.3", "127.0.0.9-127.0.0.1", "127.0.0.0/33", "eth0,eth1", "::1-1.2.3.4"]
        {
            assert!(matches!(sources(text), Err(SourceAddressError::Bad(_))), "{text}");
        }
        assert!(matches!(sources("10.0.0.0/8"), Err(SourceAddressError::TooMany(_))));
    }
}
