//! Network settings from k6's options.

use gake_core::spec::IpFamily;
use gake_k6::duration::GoDuration;
use gake_k6::options::K6Options;

/// The option `hosts` as rules of curl's `--connect-to`. Names precede patterns, and longer
/// patterns precede shorter ones.
pub(super) fn connect_to(options: &K6Options) -> Vec<String> {
    let mut hosts: Vec<(&String, &String)> = options.hosts.iter().flatten().collect();
    hosts.sort_by_key(|(host, _)| (host.contains('*'), usize::MAX - host.len()));
    hosts.into_iter().map(|(host, address)| rule(host, address)).collect()
}

/// `host[:port]` to `address[:port]`.
fn rule(host: &str, address: &str) -> String {
    let (host, from_port) = host.split_once(':').unwrap_or((host, ""));
    let (address, port) = match address.rsplit_once(':') {
        Some((address, port)) if !address.contains(':') || address.ends_with(']') => {
            (address, port)
        }
        _ => (address, ""),
    };
    let is_bare_v6 = address.contains(':') && !address.starts_with('[');
    let address = if is_bare_v6 { format!("[{address}]") } else { address.to_owned() };
    format!("{host}:{from_port}:{address}:{port}")
}

/// The address family of `dns.policy`, if it allows only one.
pub(super) fn family(options: &K6Options) -> Option<IpFamily> {
    match options.dns.as_ref()?.policy.as_deref()? {
        "onlyIPv4" => Some(IpFamily::Ipv4),
        "onlyIPv6" => Some(IpFamily::Ipv6),
        _ => None,
    }
}

/// Warnings about options that gake handles differently from k6.
pub(super) fn warnings(options: &K6Options) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(dns) = &options.dns else { return warnings };
    if dns.ttl.as_deref().is_some_and(|ttl| ttl != "inf") {
        warnings.push("dns.ttl has no effect: a name is resolved once".to_owned());
    }
    if matches!(dns.select.as_deref(), Some("first" | "random")) {
        let what = "dns.select has no effect: connections use the addresses of a name in turn";
        warnings.push(what.to_owned());
    }
    if matches!(dns.policy.as_deref(), Some("preferIPv4" | "preferIPv6")) {
        let what = "dns.policy has no effect: connections use addresses of both families; \
                    onlyIPv4 and onlyIPv6 choose one";
        warnings.push(what.to_owned());
    }
    warnings
}

/// The error if `dns.ttl` is not valid, in k6's words.
pub(super) fn wrong_ttl(options: &K6Options) -> Option<String> {
    let ttl = options.dns.as_ref()?.ttl.as_deref().filter(|ttl| !ttl.is_empty())?;
    let is_known = ttl == "inf" || GoDuration::parse(ttl).is_ok();
    (!is_known).then(|| format!("invalid DNS TTL: {ttl}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_rules_of_connections() {
        assert_eq!(rule("a.test", "127.0.0.1"), "a.test::127.0.0.1:");
        assert_eq!(rule("a.test:80", "127.0.0.1:8080"), "a.test:80:127.0.0.1:8080");
        assert_eq!(rule("*.test", "::1"), "*.test::[::1]:");
        assert_eq!(rule("a.test", "[::1]:81"), "a.test::[::1]:81");
        let pairs = [("*.b.test", "1.1.1.1"), ("*.test", "2.2.2.2"), ("z.test", "3.3.3.3")];
        let hosts = pairs.map(|(host, to)| (host.to_owned(), to.to_owned())).into();
        let rules = connect_to(&K6Options { hosts: Some(hosts), ..K6Options::default() });
        assert_eq!(rules, ["z.test::3.3.3.3:", "*.b.test::1.1.1.1:", "*.test::2.2.2.2:"]);
    }
}
