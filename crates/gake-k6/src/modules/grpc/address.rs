//! Addresses that no gRPC client can dial, in Go's words.

use gake_go::url::normalized;

/// Why `address` is not `host:port`; `None` if it is.
pub(super) fn address_error(address: &str) -> Option<String> {
    let target = format!("passthrough:///{address}");
    if let Err(why) = normalized(&target) {
        return Some(format!("parse {target:?}: {why}"));
    }
    let why = match port(address) {
        Ok(port) if port.parse::<u16>().is_ok() || !is_number(port) => return None,
        Ok(port) => format!("dial tcp: address {port}: invalid port"),
        Err(why) if address.is_empty() => why.to_owned(),
        Err(why) => format!("address {address}: {why}"),
    };
    Some(format!("connection error: desc = \"transport: error while dialing: {why}\""))
}

/// The port of an address, whose host is in brackets if it has colons.
fn port(address: &str) -> Result<&str, &'static str> {
    const MISSING: &str = "missing port in address";
    const TOO_MANY: &str = "too many colons in address";
    let (host, port) = address.rsplit_once(':').ok_or(MISSING)?;
    match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((_, "")) => Ok(port),
            // The colon is within the brackets.
            None if port.ends_with(']') => Err(MISSING),
            Some(_) => Err(TOO_MANY),
            None => Err("missing ']' in address"),
        },
        None if host.contains(':') => Err(TOO_MANY),
        None => Ok(port),
    }
}

fn is_number(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused_in_gos_words() {
        for address in ["localhost:50051", "[::1]:1", "127.0.0.1:0", ":80", "a.test:grpc"] {
            assert_eq!(address_error(address), None, "{address}");
        }
        for (address, why) in [
            ("<%= @url %>", "parse \"passthrough:///<%= @url %>\": invalid URL escape \"%= \""),
            ("", "dialing: missing port in address\""),
            ("localhost", "dialing: address localhost: missing port in address\""),
            ("http://h:1", "dialing: address http://h:1: too many colons in address\""),
            ("::1", "too many colons in address"),
            ("[::1]", "missing port in address"),
            ("[::1:1", "missing ']' in address"),
            ("h:99999", "dialing: dial tcp: address 99999: invalid port\""),
        ] {
            let error = address_error(address).unwrap();
            assert!(error.contains(why), "{address}: {error}");
        }
    }
}
