//! Forwarding headers: `X-Forwarded-*`, `X-Real-IP` and `Forwarded`.

use std::net::SocketAddr;

use http::HeaderValue;

use crate::message::line::write_line;

/// Bytes of the forwarding headers without the client's address.
const LINES_BYTES: usize = 240;

const PREFIX: &[u8] = b"x-forwarded-";

/// Other headers by which proxies describe a client.
const OTHERS: &[&str] = &[
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded-for",
    "front-end-https",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-forwarded",
    "x-original-forwarded-for",
    "x-original-host",
    "x-real-ip",
    "x-url-scheme",
];

/// Whether a header describes the origin of a request, which only proxies may.
pub(crate) fn is_forwarding_header(name: &str) -> bool {
    let bytes = name.as_bytes();
    // Rules out nearly all other headers by the first letter.
    if !matches!(bytes.first().map(u8::to_ascii_lowercase), Some(b'c' | b'f' | b't' | b'x')) {
        return false;
    }
    let all = bytes.get(..PREFIX.len());
    name.eq_ignore_ascii_case("forwarded")
        || all.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
        || OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// A client's connection as described in forwarding headers, rendered once.
#[derive(Debug, Clone)]
pub(crate) struct ClientOrigin {
    address: HeaderValue,
    proto: &'static str,
    /// The port that the client connected to.
    port: HeaderValue,
    last: Option<LastHost>,
}

/// What is written for the last `Host`, which most requests of a connection share.
#[derive(Debug, Clone)]
struct LastHost {
    host: Option<HeaderValue>,
    /// Its element of `Forwarded`.
    element: HeaderValue,
    /// All lines, if no proxy is in front of this one.
    lines: Vec<u8>,
}

/// The forwarding headers of proxies in front of this one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PriorProxies<'a> {
    /// `X-Forwarded-For`.
    addresses: PriorList<'a>,
    /// `Forwarded`.
    elements: PriorList<'a>,
    proto: bool,
    port: bool,
    real_ip: bool,
    host: bool,
}

/// Lines of one name, which are joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct PriorList<'a> {
    /// With the case of the first line.
    name: Option<&'a str>,
    values: Vec<&'a [u8]>,
}

impl<'a> PriorList<'a> {
    fn take(&mut self, name: &'a str, value: &'a [u8]) {
        self.name.get_or_insert(name);
        self.values.push(value);
    }

    /// Writes one line of all values and `last`: many servers read only the first line.
    fn write(&self, head: &mut Vec<u8>, name: &str, last: &[u8]) {
        head.extend_from_slice(self.name.unwrap_or(name).as_bytes());
        head.extend_from_slice(b": ");
        for value in &self.values {
            head.extend_from_slice(value);
            head.extend_from_slice(b", ");
        }
        head.extend_from_slice(last);
        head.extend_from_slice(b"\r\n");
    }
}

impl<'a> PriorProxies<'a> {
    /// Records a forwarding header. Returns whether the line is passed on unchanged.
    pub(crate) fn take(&mut self, name: &'a str, value: &'a [u8]) -> bool {
        let seen = match name {
            _ if name.eq_ignore_ascii_case("forwarded") => {
                // An unclosed quote would swallow our element.
                if is_list(value) {
                    self.elements.take(name, value);
                }
                return false;
            }
            _ if name.eq_ignore_ascii_case("x-forwarded-for") => {
                self.addresses.take(name, value);
                return false;
            }
            _ if name.eq_ignore_ascii_case("x-forwarded-proto") => &mut self.proto,
            _ if name.eq_ignore_ascii_case("x-forwarded-port") => &mut self.port,
            _ if name.eq_ignore_ascii_case("x-real-ip") => &mut self.real_ip,
            _ if name.eq_ignore_ascii_case("x-forwarded-host") => &mut self.host,
            _ => return true,
        };
        *seen = true;
        true
    }
}

impl ClientOrigin {
    /// A client at `peer`, connected to our `port`.
    pub(crate) fn new(peer: SocketAddr, port: u16, tls: bool) -> Self {
        let address = peer.ip().to_canonical().to_string();
        Self {
            // An address is always a valid value.
            address: HeaderValue::from_str(&address)
                .unwrap_or_else(|_| HeaderValue::from_static("unknown")),
            proto: if tls { "https" } else { "http" },
            port: port.into(),
            last: None,
        }
    }

    /// Estimated bytes of [`write`](Self::write) and a `Via`.
    pub(crate) fn room(&self) -> usize {
        LINES_BYTES + 4 * self.address.len()
    }

    /// Writes the forwarding headers of a request for `host`, after the values of earlier proxies.
    pub(crate) fn write(
        &mut self,
        head: &mut Vec<u8>,
        host: Option<&[u8]>,
        prior: &PriorProxies<'_>,
    ) {
        let is_known = |last: &LastHost| last.host.as_ref().map(HeaderValue::as_bytes) == host;
        let last = match self.last.take().filter(is_known) {
            Some(last) => last,
            None => {
                // Copied, because it outlives the request.
                let own = host.and_then(|host| HeaderValue::from_bytes(host).ok());
                let element = self.element(own.as_ref());
                let mut lines = Vec::new();
                self.write_lines(&mut lines, host, &element, &PriorProxies::default());
                LastHost { host: own, element, lines }
            }
        };
        if *prior == PriorProxies::default() {
            head.extend_from_slice(&last.lines);
        } else {
            self.write_lines(head, host, &last.element, prior);
        }
        self.last = Some(last);
    }

    fn write_lines(
        &self,
        head: &mut Vec<u8>,
        host: Option<&[u8]>,
        element: &HeaderValue,
        prior: &PriorProxies<'_>,
    ) {
        prior.addresses.write(head, "x-forwarded-for", self.address.as_bytes());
        // The outermost proxy's values take precedence.
        for (is_present, name, value) in [
            (prior.proto, "x-forwarded-proto", Some(self.proto.as_bytes())),
            (prior.port, "x-forwarded-port", Some(self.port.as_bytes())),
            (prior.real_ip, "x-real-ip", Some(self.address.as_bytes())),
            (prior.host, "x-forwarded-host", host),
        ] {
            if let Some(value) = value.filter(|_| !is_present) {
                write_line(head, name.as_bytes(), value);
            }
        }
        prior.elements.write(head, "forwarded", element.as_bytes());
    }

    /// An element of `Forwarded` (RFC 7239).
    fn element(&self, host: Option<&HeaderValue>) -> HeaderValue {
        let address = self.address.to_str().unwrap_or("unknown");
        let address = match address.contains(':') {
            true => format!("\"[{address}]\""),
            false => address.to_owned(),
        };
        let host = host.and_then(|host| host.to_str().ok()).map(|host| format!(";host=\"{host}\""));
        let text = format!("for={address}{};proto={}", host.unwrap_or_default(), self.proto);
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("for=unknown"))
    }
}

/// Whether a line is a list of `Forwarded` elements (RFC 7239, section 4). Unquoted addresses, which
/// are common and harmless, are allowed.
fn is_list(line: &[u8]) -> bool {
    let mut rest = line.trim_ascii();
    loop {
        rest = match pair(rest) {
            Some(rest) => rest.trim_ascii_start(),
            None => return false,
        };
        match rest.split_first() {
            None => return true,
            Some((b',' | b';', more)) => rest = more.trim_ascii_start(),
            Some(_) => return false,
        }
    }
}

/// The rest after a `name=value`, or after an empty element.
fn pair(text: &[u8]) -> Option<&[u8]> {
    let token = |text: &[u8], more: &[u8]| {
        let of_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        text.iter().take_while(|byte| of_token(byte) || more.contains(byte)).count()
    };
    let name = token(text, b"");
    if name == 0 {
        return matches!(text.first(), None | Some(b',' | b';')).then_some(text);
    }
    let value = text[name..].strip_prefix(b"=")?;
    let Some(quoted) = value.strip_prefix(b"\"") else {
        let length = token(value, b":[]/");
        return (length > 0).then(|| &value[length..]);
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some(&quoted[at + 1..]),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forwarding headers of a request with these lines.
    fn forwarding(peer: &str, tls: bool, host: &str, lines: &[(&str, &str)]) -> String {
        let mut prior = PriorProxies::default();
        let mut head = Vec::new();
        for (name, value) in lines {
            if prior.take(name, value.as_bytes()) {
                write_line(&mut head, name.as_bytes(), value.as_bytes());
            }
        }
        let mut origin = ClientOrigin::new(peer.parse().unwrap(), 8080, tls);
        origin.write(&mut head, Some(host.as_bytes()), &prior);
        String::from_utf8(head).unwrap().replace("\r\n", "\n")
    }

    #[test]
    fn forwarding_headers_are_added() {
        assert_eq!(
            forwarding("192.0.2.1:5", false, "shop:8080", &[]),
            "x-forwarded-for: 192.0.2.1\nx-forwarded-proto: http\nx-forwarded-port: 8080\n\
             x-real-ip: 192.0.2.1\nx-forwarded-host: shop:8080\n\
             forwarded: for=192.0.2.1;host=\"shop:8080\";proto=http\n"
        );
        let before = [
            ("X-Forwarded-For", "10.0.0.1"),
            ("x-forwarded-for", "10.0.0.2"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-port", "99"),
            ("x-real-ip", "10.0.0.1"),
            ("true-client-ip", "10.0.0.1"),
            ("x-forwarded-prefix", "/admin"),
            ("forwarded", "for=10.0.0.1"),
        ];
        assert_eq!(
            forwarding("[2001:db8::1]:5", true, "h", &before),
            "x-forwarded-proto: http\nx-forwarded-port: 99\nx-real-ip: 10.0.0.1\n\
             true-client-ip: 10.0.0.1\nx-forwarded-prefix: /admin\n\
             X-Forwarded-For: 10.0.0.1, 10.0.0.2, 2001:db8::1\nx-forwarded-host: h\n\
             forwarded: for=10.0.0.1, for=\"[2001:db8::1]\";host=\"h\";proto=https\n"
        );
    }

    #[test]
    fn the_cached_element_follows_the_host() {
        let mut origin = ClientOrigin::new("192.0.2.1:5".parse().unwrap(), 8080, false);
        for (host, element) in [
            (Some(&b"a"[..]), "for=192.0.2.1;host=\"a\";proto=http"),
            (Some(b"b"), "for=192.0.2.1;host=\"b\";proto=http"),
            (None, "for=192.0.2.1;proto=http"),
            (None, "for=192.0.2.1;proto=http"),
        ] {
            let mut head = Vec::new();
            origin.write(&mut head, host, &PriorProxies::default());
            let head = String::from_utf8(head).unwrap();
            assert!(head.ends_with(&format!("forwarded: {element}\r\n")), "{head}");
            assert_eq!(head.contains("x-forwarded-host"), host.is_some(), "{head}");
        }
    }

    #[test]
    fn a_client_cannot_swallow_the_element_that_follows() {
        for good in [
            "for=1.2.3.4",
            "for=\"[2001:db8::1]:47\";proto=http;by=_x",
            "for=a, for=b;host=\"x, y; z\"",
            "for=\"a\\\"b\", ,for=c;",
            "for=1.2.3.4:80, for=[::1]",
            "",
        ] {
            assert!(is_list(good.as_bytes()), "{good}");
        }
        for bad in [
            "for=\"1.2.3.4",
            "for=\"1.2.3.4\\\"",
            "for=1.2.3.4\"",
            "for=\"a\"b",
            "for",
            "for=",
            "for=a b",
            "=a",
            "for=a, \"",
            "for=(",
        ] {
            assert!(!is_list(bad.as_bytes()), "{bad}");
            let head = forwarding(
                "192.0.2.1:5",
                false,
                "h",
                &[("forwarded", "for=a"), ("forwarded", bad)],
            );
            let end = "forwarded: for=a, for=192.0.2.1;host=\"h\";proto=http\n";
            assert!(head.ends_with(end), "{bad}: {head}");
        }
    }
}
