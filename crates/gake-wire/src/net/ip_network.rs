//! Networks of addresses (CIDR).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, written `ADDRESS/BITS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a network is written ADDRESS/BITS, for example 10.0.0.0/8")]
pub struct IpNetworkError;

impl IpNetwork {
    /// Whether the address is in it; an IPv4 address mapped to IPv6 counts as IPv4.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            rest == width || a >> rest == b >> rest
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        let (address, bits) = text.split_once('/').ok_or(IpNetworkError)?;
        let address: IpAddr = address.parse().map_err(|_| IpNetworkError)?;
        let bits: u8 = bits.parse().map_err(|_| IpNetworkError)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits <= most { Ok(Self { address, bits }) } else { Err(IpNetworkError) }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
