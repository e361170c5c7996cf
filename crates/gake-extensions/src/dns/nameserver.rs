//! The address of a name server, as scripts write it.

use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 53;

/// Parses `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1` or `[2001:db8::1]:53`.
///
/// # Errors
/// The extension's message.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = parts(text)?;
    let ip: IpAddr = host.parse().map_err(|_| format!("invalid nameserver IP address: {host}"))?;
    // As in Go, an IPv4 address in IPv6 is the IPv4 address.
    Ok(SocketAddr::new(ip.to_canonical(), port))
}

fn parts(text: &str) -> Result<(&str, u16), String> {
    if let Some(host) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Ok((host, PORT));
    }
    if !text.contains(':') || text.parse::<IpAddr>().is_ok() {
        return Ok((text, PORT));
    }
    let wrong = |what: &str| format!("invalid nameserver address format: address {text}: {what}");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) =
                rest.split_once(']').ok_or_else(|| wrong("missing ']' in address"))?;
            (host, rest.strip_prefix(':').ok_or_else(|| wrong("missing port in address"))?)
        }
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, port),
            _ => return Err(wrong("too many colons in address")),
        },
    };
    match port.parse::<i64>() {
        Ok(number) => u16::try_from(number)
            .map(|port| (host, port))
            .map_err(|_| format!("nameserver port out of range {number}")),
        Err(_) => Err(format!(
            "nameserver port not a number {port}: strconv.Atoi: parsing {port:?}: invalid syntax"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_default() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("::1", "[::1]:53"),
            ("[::1]", "[::1]:53"),
            ("[::1]:5353", "[::1]:5353"),
            ("::ffff:192.0.2.1", "192.0.2.1:53"),
        ] {
            assert_eq!(parse(text).map(|address| address.to_string()), Ok(address.to_owned()));
        }
        for (text, why) in [
            ("dns.test", "invalid nameserver IP address: dns.test"),
            ("", "invalid nameserver IP address: "),
            ("127.0.0.1:70000", "nameserver port out of range 70000"),
            (
                "127.0.0.1:x",
                "nameserver port not a number x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                "a:1:2",
                "invalid nameserver address format: address a:1:2: too many colons in address",
            ),
            ("[::1", "invalid nameserver address format: address [::1: missing ']' in address"),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()));
        }
    }
}
