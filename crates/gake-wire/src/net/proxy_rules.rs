//! Which proxy an origin has: one for all, or one per scheme with exceptions, as Go's
//! `net/http/httpproxy` reads them from the environment.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::net::ip_network::IpNetwork;
use crate::net::location::{Location, Scheme, ascii_host};
use crate::net::proxy::{ForwardProxy, ProxyError};

/// The proxies of a run. As text: the URL of one for every origin, or
/// `http=URL;https=URL;no=HOST,HOST...`, where any part may be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyRules {
    /// One for every connection.
    Single(ForwardProxy),
    /// One per scheme. `localhost`, loopback addresses and exceptions have none.
    PerScheme {
        /// For `http://` and `ws://`.
        http: Option<ForwardProxy>,
        /// For `https://` and `wss://`.
        https: Option<ForwardProxy>,
        /// Hosts without a proxy.
        exceptions: ProxyExceptions,
    },
}

/// Hosts without a proxy, in the notation of `NO_PROXY`: hosts with their subdomains (`.h` and
/// `*.h`: subdomains only), addresses, networks, each but the last with an optional port; `*` is
/// everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyExceptions {
    text: String,
    rules: Vec<ProxyException>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProxyException {
    Everything,
    Network(IpNetwork),
    Address(IpAddr, Option<u16>),
    Host { name: String, has_itself: bool, port: Option<u16> },
}

impl ProxyRules {
    /// The rules in an environment, as text, from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` (upper
    /// case first). `None` if it has no proxy.
    ///
    /// # Errors
    /// The name of a variable, and what is wrong with its value.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, (&'static str, ProxyError)> {
        let value = |upper: &str| {
            let values = [variable(upper), variable(&upper.to_ascii_lowercase())];
            values.into_iter().flatten().find(|value| !value.is_empty())
        };
        let mut text = String::new();
        for (scheme, name) in [("http", "HTTP_PROXY"), ("https", "HTTPS_PROXY")] {
            if let Some(url) = value(name) {
                // A password may hold the separator.
                let url = url.replace(';', "%3B");
                url.parse::<ForwardProxy>().map_err(|error| (name, error))?;
                text.push_str(&format!("{scheme}={url};"));
            }
        }
        let no = value("NO_PROXY").map(|no| format!("no={no}"));
        Ok((!text.is_empty()).then(|| text + no.as_deref().unwrap_or_default()))
    }

    /// The proxy for requests to `location`, if any.
    pub(crate) fn proxy_for(&self, location: &Location) -> Option<&ForwardProxy> {
        let (http, https, exceptions) = match self {
            Self::Single(proxy) => return Some(proxy),
            Self::PerScheme { http, https, exceptions } => (http, https, exceptions),
        };
        let proxy = match location.scheme {
            Scheme::Http => http,
            Scheme::Https => https,
        };
        proxy.as_ref().filter(|_| !exceptions.hold(&location.host, location.port))
    }

    /// Whether a proxy is reached over TLS.
    pub(crate) fn has_tls(&self) -> bool {
        match self {
            Self::Single(proxy) => proxy.is_tls(),
            Self::PerScheme { http, https, .. } => {
                http.iter().chain(https).any(ForwardProxy::is_tls)
            }
        }
    }
}

impl FromStr for ProxyRules {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        if !["http=", "https=", "no="].iter().any(|key| text.starts_with(key)) {
            return text.parse().map(Self::Single);
        }
        let (mut http, mut https, mut exceptions) = (None, None, ProxyExceptions::default());
        for part in text.split(';').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("http", url)) => http = Some(url.parse()?),
                Some(("https", url)) => https = Some(url.parse()?),
                Some(("no", list)) => exceptions = ProxyExceptions::new(list),
                _ => return Err(ProxyError::Url),
            }
        }
        Ok(Self::PerScheme { http, https, exceptions })
    }
}

impl fmt::Display for ProxyRules {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (http, https, exceptions) = match self {
            Self::Single(proxy) => return proxy.fmt(f),
            Self::PerScheme { http, https, exceptions } => (http, https, exceptions),
        };
        let mut parts = Vec::new();
        parts.extend(http.as_ref().map(|proxy| format!("http={proxy}")));
        parts.extend(https.as_ref().map(|proxy| format!("https={proxy}")));
        parts.extend((!exceptions.text.is_empty()).then(|| format!("no={}", exceptions.text)));
        f.write_str(&parts.join(";"))
    }
}

impl ProxyExceptions {
    fn new(text: &str) -> Self {
        let rules = text.split(',').filter_map(ProxyException::new).collect();
        Self { text: text.to_owned(), rules }
    }

    /// Whether connections to `host` (in lower case) have no proxy.
    fn hold(&self, host: &str, port: u16) -> bool {
        let address = host.split('%').next().and_then(|host| host.parse::<IpAddr>().ok());
        host == "localhost"
            || address.is_some_and(|address| address.to_canonical().is_loopback())
            || self.rules.iter().any(|rule| rule.holds(host, address, port))
    }
}

impl ProxyException {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Ok(network) = text.parse() {
            return Some(Self::Network(network));
        }
        let (host, port) = match text.rsplit_once(':') {
            // Not the colon of an IPv6 address.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (text.as_str(), None),
        };
        let port = port.filter(|port| !port.is_empty()).map(str::parse).transpose().ok()?;
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, port));
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let has_itself = !host.starts_with('.');
        let name = host.trim_start_matches('.');
        let name = if name.is_ascii() { name.to_owned() } else { ascii_host(name)? };
        (!name.is_empty()).then_some(Self::Host { name, has_itself, port })
    }

    fn holds(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let is_port = |only: &Option<u16>| only.is_none_or(|only| only == port);
        match self {
            Self::Everything => true,
            Self::Network(network) => address.is_some_and(|address| network.holds(address)),
            Self::Address(only, at) => {
                is_port(at) && address.is_some_and(|to| to.to_canonical() == only.to_canonical())
            }
            Self::Host { name, has_itself, port: at } => {
                is_port(at)
                    && host.strip_suffix(name.as_str()).is_some_and(|rest| match rest {
                        "" => *has_itself,
                        rest => rest.ends_with('.'),
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> Option<ProxyRules> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let text = ProxyRules::from_environment(value).unwrap();
        text.map(|text| text.parse().unwrap())
    }

    /// Whether requests to `url` go through a proxy, if `NO_PROXY` is `no`.
    fn is_proxied(no: &str, url: &str) -> bool {
        let rules = rules(&[("HTTP_PROXY", "p:1"), ("HTTPS_PROXY", "p:2"), ("NO_PROXY", no)]);
        rules.unwrap().proxy_for(&Location::parse(url).unwrap()).is_some()
    }

    #[test]
    fn each_scheme_has_its_own_proxy() {
        let port = |rules: &ProxyRules, url: &str| {
            rules.proxy_for(&Location::parse(url).unwrap()).map(|proxy| proxy.port)
        };
        let both = rules(&[
            ("HTTP_PROXY", ""),
            ("http_proxy", "http://me:a;b@p:1"),
            ("HTTPS_PROXY", "socks5://p:2"),
            ("https_proxy", "p:3"),
        ])
        .unwrap();
        assert_eq!(port(&both, "http://a.test/"), Some(1));
        assert_eq!(port(&both, "https://a.test/"), Some(2), "upper case comes first");
        assert_eq!(both.to_string(), "http=http://p:1;https=socks5://p:2");
        let ProxyRules::PerScheme { http: Some(http), .. } = both else { panic!("{both:?}") };
        assert_eq!(http, "http://me:a%3Bb@p:1".parse().unwrap());
        let only = rules(&[("https_proxy", "p:3"), ("no_proxy", "h.test")]).unwrap();
        assert_eq!(port(&only, "http://a.test/"), None);
        assert_eq!(port(&only, "https://a.test/"), Some(3));
        assert_eq!(only.to_string(), "https=http://p:3;no=h.test");
        assert_eq!(rules(&[("NO_PROXY", "a"), ("ALL_PROXY", "p:1")]), None);
        let single: ProxyRules = "http://p:1".parse().unwrap();
        assert_eq!(port(&single, "https://localhost/"), Some(1));
        assert_eq!("http=p:1;ftp=p:2".parse::<ProxyRules>(), Err(ProxyError::Url));
        let bad = ProxyRules::from_environment(|name| {
            (name == "HTTPS_PROXY").then(|| "ftp://p".to_owned())
        });
        assert_eq!(bad, Err(("HTTPS_PROXY", ProxyError::Scheme("ftp".to_owned()))));
    }

    #[test]
    fn exceptions_are_read_as_go_reads_them() {
        for (no, url, proxied) in [
            ("", "http://a.test/", true),
            ("", "http://localhost/", false),
            ("", "http://sub.localhost/", true),
            ("", "http://127.9.8.7:81/", false),
            ("", "https://[::1]/", false),
            ("", "http://[::ffff:127.0.0.1]/", false),
            ("*", "http://a.test/", false),
            ("b, *", "http://a.test/", false),
            ("a.test", "http://A.test/", false),
            ("a.test", "http://x.a.test/", false),
            ("a.test", "http://xa.test/", true),
            (".a.test", "http://a.test/", true),
            (".a.test", "http://x.y.a.test/", false),
            ("*.a.test", "http://a.test/", true),
            ("*.a.test", "http://x.a.test/", false),
            ("x,, A.TEST:81 ", "http://a.test:81/", false),
            ("a.test:81", "http://a.test/", true),
            ("a.test:443", "https://a.test/", false),
            ("10.0.0.0/8", "http://10.255.0.1/", false),
            ("10.0.0.0/8", "http://11.0.0.1/", true),
            ("10.0.0.0/8", "http://10.test/", true),
            ("192.0.2.1", "http://192.0.2.1:9/", false),
            ("192.0.2.1:8", "http://192.0.2.1:9/", true),
            ("2001:db8::1", "http://[2001:db8::1]/", false),
            ("[2001:db8::1]:80", "http://[2001:db8::1]/", false),
            ("[2001:db8::1]:81", "http://[2001:db8::1]/", true),
            ("2001:db8::/32", "http://[2001:db8:1::1]/", false),
            ("BÜCHER.test", "http://bücher.test/", false),
        ] {
            assert_eq!(is_proxied(no, url), proxied, "{no:?} {url}");
        }
    }
}
