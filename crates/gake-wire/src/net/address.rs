//! Name resolution.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use crate::net::location::ascii_host;
use crate::net::proxy::ForwardProxy;
use crate::net::proxy_rules::ProxyRules;

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// `HOST1:PORT1:HOST2:PORT2` as in curl: connections to the first go to the second. An empty first
/// host or port matches any; an empty second one keeps the original. A `*` at the start of the first
/// host matches any prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    from_host: String,
    from_port: Option<u16>,
    to_host: String,
    to_port: Option<u16>,
}

/// Why a name cannot be resolved, or a rule is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The system does not know the name.
    #[error("{host:?} could not be resolved: {reason}")]
    Unknown {
        /// The name.
        host: String,
        /// The system's message.
        reason: String,
    },
    /// The name has no address of the requested family.
    #[error("{host:?} has no IPv{family} address")]
    Family {
        /// The name.
        host: String,
        /// 4 or 6.
        family: u8,
    },
    /// An invalid `--resolve`.
    #[error("{0:?} is not HOST:PORT:ADDRESS[,ADDRESS...], for example example.org:443:127.0.0.1")]
    Resolve(String),
    /// An invalid `--connect-to`.
    #[error("{0:?} is not HOST1:PORT1:HOST2:PORT2, for example example.org:443:127.0.0.1:8443")]
    ConnectTo(String),
}

impl ConnectTo {
    fn is_for(&self, host: &str) -> bool {
        match self.from_host.strip_prefix('*') {
            Some(end) => host.ends_with(end),
            None => self.from_host.is_empty() || self.from_host == host,
        }
    }
}

impl std::str::FromStr for ConnectTo {
    type Err = ResolveError;

    fn from_str(text: &str) -> Result<Self, ResolveError> {
        let bad = || ResolveError::ConnectTo(text.to_owned());
        let fields = split_colons(text);
        let [from_host, from_port, to_host, to_port] = fields.as_slice() else { return Err(bad()) };
        let port = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| bad()),
        };
        Ok(Self {
            from_host: rule_host(from_host),
            from_port: port(from_port)?,
            to_host: to_host.clone(),
            to_port: port(to_port)?,
        })
    }
}

/// Splits at colons outside brackets, and removes the brackets.
fn split_colons(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut bracketed = false;
    for c in text.chars() {
        match c {
            '[' => bracketed = true,
            ']' => bracketed = false,
            ':' if !bracketed => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

/// Resolves names: by the user's rules first, then by the system.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    /// `--resolve`: host, port (`None`: any), addresses.
    fixed: Vec<(String, Option<u16>, Vec<IpAddr>)>,
    /// `--connect-to`.
    pub connect_to: Vec<ConnectTo>,
    /// `--unix-socket`: the target of every connection.
    pub unix_socket: Option<PathBuf>,
    /// 4 for IPv4 only, 6 for IPv6 only.
    pub family: Option<u8>,
    /// The family, 4 or 6, that is used alone if a name has addresses of both.
    pub prefers: Option<u8>,
    /// Whether only the first address of a name is used.
    pub takes_first: bool,
    /// The lookup of names instead of the system's.
    pub names: Option<NameLookup>,
    /// Proxies, the targets of connections. They resolve names themselves.
    pub proxy: Option<ProxyRules>,
}

/// A lookup of the addresses of a name. It may block.
#[derive(Clone)]
pub struct NameLookup(Arc<NameLookupFn>);

type NameLookupFn = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

impl NameLookup {
    /// A lookup by a function, which gets the name and returns its addresses.
    pub fn new(look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }
}

impl fmt::Debug for NameLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameLookup").finish_non_exhaustive()
    }
}

impl Resolver {
    /// Adds a `--resolve HOST:PORT:ADDRESS[,ADDRESS...]`; the port may be `*`.
    ///
    /// # Errors
    /// The rule is invalid.
    pub fn fix(&mut self, rule: &str) -> Result<(), ResolveError> {
        let bad = || ResolveError::Resolve(rule.to_owned());
        let fields: Vec<_> = rule.splitn(3, ':').collect();
        let [host, port, addresses] = fields[..] else { return Err(bad()) };
        let port = if port == "*" { None } else { Some(port.parse().map_err(|_| bad())?) };
        let addresses = addresses
            .split(',')
            .map(|a| a.trim_matches(['[', ']']).parse().map_err(|_| bad()))
            .collect::<Result<Vec<_>, _>>()?;
        self.fixed.push((rule_host(host), port, addresses));
        Ok(())
    }

    /// The addresses of a host, in the system's order. Blocks.
    ///
    /// # Errors
    /// The host has no address.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<Address>, ResolveError> {
        if let Some(path) = &self.unix_socket {
            return Ok(vec![Address::Unix(path.clone())]);
        }
        let (host, port) = self.redirected(host, port);
        self.addresses(host, port)
    }

    /// The addresses of a host that no `--connect-to` replaces, such as a proxy. Blocks.
    pub(crate) fn addresses(&self, host: String, port: u16) -> Result<Vec<Address>, ResolveError> {
        let addresses = self.look_up(&host, port).map_err(|error| ResolveError::Unknown {
            host: host.clone(),
            reason: plain_reason(&error),
        })?;
        let mut unique: Vec<Address> = Vec::with_capacity(addresses.len());
        for address in addresses {
            let fits = self.family.is_none_or(|family| (family == 6) == address.is_ipv6());
            let address = Address::Tcp(address);
            if fits && !unique.contains(&address) {
                unique.push(address);
            }
        }
        let is_preferred = |address: &Address| match address {
            Address::Tcp(address) => {
                self.prefers.is_some_and(|six| (six == 6) == address.is_ipv6())
            }
            Address::Unix(_) => false,
        };
        if unique.iter().any(is_preferred) {
            unique.retain(is_preferred);
        }
        unique.truncate(if self.takes_first { 1 } else { usize::MAX });
        match (unique.is_empty(), self.family) {
            (false, _) => Ok(unique),
            (true, Some(family)) => Err(ResolveError::Family { host, family }),
            (true, None) => {
                Err(ResolveError::Unknown { host, reason: "it has no address".to_owned() })
            }
        }
    }

    /// Whether every lookup of a host, or of the proxy for it, has the same result.
    pub(crate) fn is_fixed(&self, host: &str, port: u16, proxy: Option<&ForwardProxy>) -> bool {
        let (host, port) = match proxy {
            Some(proxy) => (proxy.host.clone(), proxy.port),
            None => self.redirected(host, port),
        };
        self.unix_socket.is_some()
            || self.fixed_addresses(&host, port).is_some()
            || with_effective_zone(&host).parse::<IpAddr>().is_ok()
    }

    fn fixed_addresses(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        let is_for = |p: Option<u16>| p.is_none_or(|p| p == port);
        let fixed = self.fixed.iter().find(|(h, p, _)| *h == host && is_for(*p));
        fixed.map(|(_, _, addresses)| addresses.as_slice())
    }

    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let at = |ips: &[IpAddr]| ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        match (self.fixed_addresses(host, port), &self.names) {
            (Some(ips), _) => Ok(at(ips)),
            (None, Some(NameLookup(names))) => names(host).map(|ips| at(&ips)),
            (None, None) => Ok((with_effective_zone(host), port).to_socket_addrs()?.collect()),
        }
    }

    fn redirected(&self, host: &str, port: u16) -> (String, u16) {
        let rule = self
            .connect_to
            .iter()
            .find(|rule| rule.is_for(host) && rule.from_port.is_none_or(|from| from == port));
        match rule {
            Some(rule) => {
                let to = if rule.to_host.is_empty() { host } else { &rule.to_host };
                (to.to_owned(), rule.to_port.unwrap_or(port))
            }
            None => (host.to_owned(), port),
        }
    }
}

/// The host without a zone that has no effect: the system refuses one on an address that is not
/// link-local.
fn with_effective_zone(host: &str) -> &str {
    let address =
        host.split_once('%').and_then(|(address, _)| Some((address, address.parse().ok()?)));
    match address {
        Some((address, ip)) if !Ipv6Addr::is_unicast_link_local(&ip) => address,
        _ => host,
    }
}

/// A host of a rule as URLs have it: an international name as Punycode.
fn rule_host(host: &str) -> String {
    match host.is_ascii() {
        true => host.to_ascii_lowercase(),
        false => ascii_host(host).unwrap_or_else(|| host.to_owned()),
    }
}

/// The error without the library's preamble.
fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    #[test]
    fn the_users_rules_come_first() {
        let mut resolver = Resolver::default();
        resolver.fix("shop.test:443:127.0.0.7,[::1]").unwrap();
        assert_eq!(
            resolver.resolve("shop.test", 443).unwrap(),
            [tcp("127.0.0.7:443"), tcp("[::1]:443")]
        );
        resolver.connect_to.push("api.test:80:127.0.0.9:8080".parse().unwrap());
        assert_eq!(resolver.resolve("api.test", 80).unwrap(), [tcp("127.0.0.9:8080")]);
        resolver.connect_to.push("*.wild.test::127.0.0.8:".parse().unwrap());
        assert_eq!(resolver.resolve("a.wild.test", 80).unwrap(), [tcp("127.0.0.8:80")]);
        resolver.connect_to.push("::[::1]:".parse().unwrap());
        assert_eq!(resolver.resolve("wild.test", 81).unwrap(), [tcp("[::1]:81")]);
        assert_eq!(resolver.resolve("any.test", 81).unwrap(), [tcp("[::1]:81")]);
    }

    #[test]
    fn rules_name_international_hosts_as_urls_do() {
        let mut resolver = Resolver::default();
        resolver.fix("BÜCHER.test:80:127.0.0.7").unwrap();
        resolver.connect_to.push("äpfel.test:80:127.0.0.9:".parse().unwrap());
        assert_eq!(resolver.resolve("xn--bcher-kva.test", 80).unwrap(), [tcp("127.0.0.7:80")]);
        assert_eq!(resolver.resolve("xn--pfel-koa.test", 80).unwrap(), [tcp("127.0.0.9:80")]);
    }

    #[test]
    fn a_zone_counts_only_where_it_has_a_meaning() {
        assert_eq!(with_effective_zone("::1%lo"), "::1");
        assert_eq!(with_effective_zone("fe80::1%lo"), "fe80::1%lo");
        assert_eq!(with_effective_zone("h%lo"), "h%lo");
        assert_eq!(Resolver::default().resolve("::1%lo", 80).unwrap(), [tcp("[::1]:80")]);
    }

    #[test]
    fn an_unknown_name_is_in_the_error() {
        let error = Resolver::default().resolve("no-such-host.invalid", 80).unwrap_err();
        assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
    }

    #[test]
    fn a_family_filters_addresses() {
        let mut resolver = Resolver { family: Some(6), ..Resolver::default() };
        resolver.fix("h:*:127.0.0.1,::1").unwrap();
        assert_eq!(resolver.resolve("h", 80).unwrap(), [tcp("[::1]:80")]);
    }

    #[test]
    fn a_preferred_family_is_used_alone_where_a_name_has_it() {
        let mut resolver = Resolver { prefers: Some(6), ..Resolver::default() };
        resolver.fix("both:*:127.0.0.1,::1,::2").unwrap();
        resolver.fix("four:*:127.0.0.1,127.0.0.2").unwrap();
        assert_eq!(resolver.resolve("both", 80).unwrap(), [tcp("[::1]:80"), tcp("[::2]:80")]);
        assert_eq!(resolver.resolve("four", 80).unwrap().len(), 2);
        resolver.takes_first = true;
        assert_eq!(resolver.resolve("both", 80).unwrap(), [tcp("[::1]:80")]);
    }

    #[test]
    fn refuses_bad_rules() {
        for rule in ["", "h", "h:80", "h:80:", "h:x:127.0.0.1", "h:80:name"] {
            assert!(Resolver::default().fix(rule).is_err(), "{rule}");
        }
        for rule in ["", "a:1:b", "a:x:b:1", "a:1:b:2:3"] {
            assert!(rule.parse::<ConnectTo>().is_err(), "{rule}");
        }
    }
}
