//! Network settings from k6's options.

use std::time::Duration;

use gake_core::spec::IpFamily;
use gake_k6::duration::GoDuration;
use gake_k6::options::K6Options;

/// k6's default of `dns.ttl`.
const DNS_TTL: Duration = Duration::from_secs(300);

/// The option `hosts` in the order in which the first match holds: names precede patterns, and
/// longer patterns precede shorter ones.
pub(super) fn hosts(options: &K6Options) -> Vec<(&String, &String)> {
    let mut hosts: Vec<(&String, &String)> = options.hosts.iter().flatten().collect();
    hosts.sort_by_key(|(host, _)| (host.contains('*'), usize::MAX - host.len()));
    hosts
}

/// The option `hosts` as rules of curl's `--connect-to`.
pub(super) fn connect_to(options: &K6Options) -> Vec<String> {
    hosts(options).into_iter().map(|(host, address)| rule(host, address)).collect()
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

/// The address family of `dns.policy`; without one, both are used.
pub(super) fn family(options: &K6Options) -> Option<IpFamily> {
    match options.dns.as_ref()?.policy.as_deref()? {
        "onlyIPv4" => Some(IpFamily::Ipv4),
        "onlyIPv6" => Some(IpFamily::Ipv6),
        "preferIPv4" => Some(IpFamily::PreferIpv4),
        "preferIPv6" => Some(IpFamily::PreferIpv6),
        _ => None,
    }
}

/// Whether `dns.select` is the first address of a name; otherwise connections use all in turn.
pub(super) fn takes_first(options: &K6Options) -> bool {
    options.dns.as_ref().and_then(|dns| dns.select.as_deref()) == Some("first")
}

/// How long the addresses of a name are used, by `dns.ttl`; `None` for the whole run.
pub(super) fn dns_ttl(options: &K6Options) -> Option<Duration> {
    let ttl = options.dns.as_ref().and_then(|dns| dns.ttl.as_deref());
    match ttl.filter(|ttl| !ttl.is_empty()) {
        None => Some(DNS_TTL),
        // Validated before.
        Some(ttl) => GoDuration::parse(ttl).ok().map(GoDuration::to_std),
    }
}

/// The error if `dns.ttl` is not valid, in k6's words.
pub(super) fn wrong_ttl(options: &K6Options) -> Option<String> {
    let ttl = options.dns.as_ref()?.ttl.as_deref().filter(|ttl| !ttl.is_empty())?;
    let is_known = ttl == "inf" || GoDuration::parse(ttl).is_ok();
    (!is_known).then(|| format!("invalid DNS TTL: {ttl}"))
}

#[cfg(test)]
mod tests {
    use gake_k6::options::DnsOptions;

    use super::*;

    #[test]
    fn dns_options_are_those_of_connections() {
        let of = |ttl: &str, select: &str, policy: &str| {
            let text = |text: &str| Some(text.to_owned());
            let dns = DnsOptions { ttl: text(ttl), select: text(select), policy: text(policy) };
            K6Options { dns: Some(dns), ..K6Options::default() }
        };
        let options = of("90s", "first", "preferIPv6");
        assert_eq!(dns_ttl(&options), Some(Duration::from_secs(90)));
        assert!(takes_first(&options));
        assert_eq!(family(&options), Some(IpFamily::PreferIpv6));
        let options = of("inf", "random", "any");
        assert_eq!((dns_ttl(&options), takes_first(&options)), (None, false));
        assert_eq!(family(&options), None);
        assert_eq!(dns_ttl(&of("0", "", "")), Some(Duration::ZERO));
        assert_eq!(dns_ttl(&of("1500", "", "")), Some(Duration::from_millis(1_500)));
        assert_eq!(dns_ttl(&K6Options::default()), Some(DNS_TTL));
    }

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
