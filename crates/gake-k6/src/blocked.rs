//! Blocked targets: the options `blockHostnames` and `blacklistIPs`.

use std::net::IpAddr;

use gake_wire::IpNetwork;

/// Host names and networks to which no request is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockedTargets {
    /// In lower case; `*` only at the start.
    names: Vec<String>,
    /// With their texts.
    networks: Vec<(IpNetwork, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockReason {
    /// k6's error code.
    pub(crate) code: u32,
    /// The response's `error`.
    pub(crate) error: &'static str,
    pub(crate) log_message: String,
}

impl BlockedTargets {
    /// Parses the two options.
    ///
    /// # Errors
    /// When a pattern or network is invalid, in k6's words.
    pub fn read(hostnames: &[String], networks: &[String]) -> Result<Self, String> {
        let names = hostnames.iter().map(|pattern| {
            let rest = pattern.strip_prefix('*').unwrap_or(pattern);
            let fits = |c: char| c.is_alphanumeric() || "-._".contains(c);
            match rest.chars().all(fits) && !pattern.is_empty() {
                true => Ok(pattern.to_lowercase()),
                false => Err(format!("invalid hostname pattern '{pattern}'")),
            }
        });
        let networks = networks.iter().map(|text| {
            let network = text.parse().map_err(|_| {
                format!("failed to parse CIDR '{text}': invalid CIDR address: {text}")
            })?;
            Ok::<_, String>((network, text.clone()))
        });
        Ok(Self {
            names: names.collect::<Result<_, _>>()?,
            networks: networks.collect::<Result<_, _>>()?,
        })
    }

    /// Why a host name is blocked, if it is; addresses never are.
    pub(crate) fn host(&self, host: &str) -> Option<BlockReason> {
        if self.names.is_empty() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return None;
        }
        let name = host.to_lowercase();
        let pattern = self.names.iter().find(|pattern| match pattern.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => **pattern == name,
        })?;
        let log_message = format!("hostname ({host}) is in a blocked pattern ({pattern})");
        Some(BlockReason { code: 1111, error: "hostname is blocked", log_message })
    }

    /// Whether nothing is blocked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.networks.is_empty()
    }

    /// The patterns of host names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether a host with these addresses is blocked.
    #[must_use]
    pub fn blocks(&self, host: &str, addresses: &[IpAddr]) -> bool {
        self.host(host).is_some() || self.address(addresses).is_some()
    }

    /// Whether addresses are blocked.
    #[must_use]
    pub fn has_networks(&self) -> bool {
        !self.networks.is_empty()
    }

    /// Why a host with these addresses is blocked: one blocked address is enough.
    pub(crate) fn address(&self, addresses: &[IpAddr]) -> Option<BlockReason> {
        addresses.iter().find_map(|address| {
            let (_, text) = self.networks.iter().find(|(network, _)| network.holds(*address))?;
            let log_message = format!("IP ({address}) is in a blacklisted range ({text})");
            Some(BlockReason { code: 1110, error: "ip is blacklisted", log_message })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], networks: &[&str]) -> Result<BlockedTargets, String> {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        BlockedTargets::read(&owned(names), &owned(networks))
    }

    #[test]
    fn names_are_blocked_by_pattern() {
        let blocked = read(&["*.example.com", "Shop.test"], &[]).unwrap();
        for host in ["a.example.com", "b.a.Example.com", "shop.test"] {
            assert!(blocked.host(host).is_some(), "{host}");
        }
        for host in ["example.com", "a.shop.test", "127.0.0.1"] {
            assert!(blocked.host(host).is_none(), "{host}");
        }
        assert!(read(&["a*b"], &[]).unwrap_err().contains("a*b"));
    }

    #[test]
    fn addresses_are_blocked_by_network() {
        let blocked = read(&[], &["10.0.0.0/8", "192.168.1.7/32", "fe80::/10"]).unwrap();
        for (address, is_blocked) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.168.1.7", true),
            ("192.168.1.6", false),
            ("fe80::1", true),
            ("::ffff:10.0.0.1", true),
            ("2001:db8::1", false),
        ] {
            let found = blocked.address(&[address.parse().unwrap()]).is_some();
            assert_eq!(found, is_blocked, "{address}");
        }
        assert!(
            read(&[], &["0.0.0.0/0"]).unwrap().address(&["8.8.8.8".parse().unwrap()]).is_some()
        );
        for bad in ["127.0.0.1", "x/8", "10.0.0.0/33"] {
            assert!(read(&[], &[bad]).unwrap_err().contains(bad), "{bad}");
        }
    }
}
