//! Checks of the `Host` header against DNS rebinding: a web page that has rebound its name to this
//! machine sends that name.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether a `Host` header is `localhost` or an address, with or without a port.
#[must_use]
pub fn is_local_or_address(host: &str) -> bool {
    let name = without_port(host);
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok(),
    }
}

/// A `Host` header without its port.
#[must_use]
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    }
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_ours_and_names_are_not() {
        for host in ["localhost", "LocalHost:9000", "10.1.2.3:80", "[::1]", "[fe80::1]:81"] {
            assert!(is_local_or_address(host), "{host}");
        }
        for host in ["", "evil.test:9000", "localhost.evil.test", "localhost:x", "127.1", "::1"] {
            assert!(!is_local_or_address(host), "{host}");
        }
    }
}
