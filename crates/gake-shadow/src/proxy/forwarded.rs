//! Where a request came from, told to backends: `X-Forwarded-*`, `X-Real-IP` and `Forwarded`.

use std::net::SocketAddr;

use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};

use crate::config::Forwarded;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Bytes of what is said of a client, without its address.
const LINES_BYTES: usize = 240;

/// How most of them begin.
const PREFIX: &[u8] = b"x-forwarded-";

/// What else proxies say of a client, beside `X-Forwarded-*` and `Forwarded`.
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

/// Whether a header says where a request came from, and is therefore a proxy's to say.
pub(crate) fn is_about_the_way(name: &str) -> bool {
    let bytes = name.as_bytes();
    // Nearly all others begin with another letter.
    if !matches!(bytes.first().map(u8::to_ascii_lowercase), Some(b'c' | b'f' | b't' | b'x')) {
        return false;
    }
    let all = bytes.get(..PREFIX.len());
    name.eq_ignore_ascii_case("forwarded")
        || all.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
        || OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// What is said of a client's connection in every request, rendered once.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    address: HeaderValue,
    proto: &'static str,
    /// The port that the client connected to.
    port: HeaderValue,
    /// The last `Host`, and the element of `Forwarded` for it.
    last: Option<(Option<HeaderValue>, HeaderValue)>,
}

/// What a proxy before this one has said in a request's head.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// The name of the first `X-Forwarded-For`.
    for_name: Option<&'a str>,
    for_lines: Vec<&'a [u8]>,
    proto: bool,
    port: bool,
    real_ip: bool,
    host: bool,
}

impl<'a> Said<'a> {
    /// Takes note of a header about the way. Returns whether it stays where it is; `None` for one
    /// that must be read.
    pub(crate) fn take(&mut self, name: &'a str, value: &'a [u8]) -> Option<bool> {
        let said = match name {
            _ if name.eq_ignore_ascii_case("forwarded") => return None,
            _ if name.eq_ignore_ascii_case("x-forwarded-for") => {
                self.for_name.get_or_insert(name);
                self.for_lines.push(value);
                return Some(false);
            }
            _ if name.eq_ignore_ascii_case("x-forwarded-proto") => &mut self.proto,
            _ if name.eq_ignore_ascii_case("x-forwarded-port") => &mut self.port,
            _ if name.eq_ignore_ascii_case("x-real-ip") => &mut self.real_ip,
            _ if name.eq_ignore_ascii_case("x-forwarded-host") => &mut self.host,
            _ => return Some(true),
        };
        *said = true;
        Some(true)
    }
}

impl Origin {
    /// A client at `peer`, which came to our `port`.
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

    /// Says where the request came from. Before that, what the client said of itself is thrown away
    /// ([`Forwarded::Replace`]), or only what cannot be read ([`Forwarded::Append`]).
    pub(crate) fn tell(&mut self, headers: &mut HeaderMap, how: Forwarded) {
        match how {
            Forwarded::Off => return,
            Forwarded::Append => drop_unreadable(headers),
            Forwarded::Replace => {
                let said: Vec<_> = headers
                    .keys()
                    .filter(|name| is_about_the_way(name.as_str()))
                    .cloned()
                    .collect();
                for name in said {
                    headers.remove(name);
                }
            }
        }
        let host = headers.get(HOST).cloned();
        append(headers, X_FORWARDED_FOR, &self.address);
        // The outermost proxy knows these; one before us has set them already.
        headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static(self.proto));
        headers.entry(X_FORWARDED_PORT).or_insert_with(|| self.port.clone());
        headers.entry(X_REAL_IP).or_insert_with(|| self.address.clone());
        if let Some(host) = &host {
            headers.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
        }
        let known = self.last.as_ref().is_some_and(|(last, _)| *last == host);
        if !known {
            let element = self.element(host.as_ref());
            // A copy of its own: the value is a part of the buffer that was read into, and would keep
            // all of that for as long as the connection is open.
            let own = host.and_then(|host| HeaderValue::from_bytes(host.as_bytes()).ok());
            self.last = Some((own, element));
        }
        if let Some((_, element)) = &self.last {
            append(headers, FORWARDED, element);
        }
    }

    /// How many bytes [`write`](Self::write) and a `Via` add, more or less.
    pub(crate) fn room(&self) -> usize {
        LINES_BYTES + 4 * self.address.len()
    }

    /// Does what [`tell`](Self::tell) does for a head of bytes; `said` is what stood in it already.
    pub(crate) fn write(&mut self, head: &mut Vec<u8>, host: &[u8], said: &Said<'_>) {
        let known = |last: &(Option<HeaderValue>, HeaderValue)| {
            last.0.as_ref().is_some_and(|last| last.as_bytes() == host)
        };
        if !self.last.as_ref().is_some_and(known) {
            let own = HeaderValue::from_bytes(host).ok();
            let element = self.element(own.as_ref());
            self.last = Some((own, element));
        }
        head.extend_from_slice(said.for_name.unwrap_or("x-forwarded-for").as_bytes());
        head.extend_from_slice(b": ");
        for line in &said.for_lines {
            head.extend_from_slice(line);
            head.extend_from_slice(b", ");
        }
        head.extend_from_slice(self.address.as_bytes());
        head.extend_from_slice(b"\r\n");
        for (is_said, name, value) in [
            (said.proto, &b"x-forwarded-proto: "[..], self.proto.as_bytes()),
            (said.port, b"x-forwarded-port: ", self.port.as_bytes()),
            (said.real_ip, b"x-real-ip: ", self.address.as_bytes()),
            (said.host, b"x-forwarded-host: ", host),
        ] {
            if !is_said {
                head.extend_from_slice(name);
                head.extend_from_slice(value);
                head.extend_from_slice(b"\r\n");
            }
        }
        if let Some((_, element)) = &self.last {
            head.extend_from_slice(b"forwarded: ");
            head.extend_from_slice(element.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
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

/// Removes the lines of `Forwarded` that are no list of elements: an unclosed quote would swallow
/// the element that follows.
fn drop_unreadable(headers: &mut HeaderMap) {
    if headers.get_all(FORWARDED).iter().all(|line| is_list(line.as_bytes())) {
        return;
    }
    let lines: Vec<_> = headers.get_all(FORWARDED).iter().cloned().collect();
    headers.remove(FORWARDED);
    for line in lines.into_iter().filter(|line| is_list(line.as_bytes())) {
        headers.append(FORWARDED, line);
    }
}

/// Whether a line is a list of `Forwarded` elements (RFC 7239, section 4). Addresses without their
/// quotes are let through, for many write them so and they swallow nothing.
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

/// What follows a `name=value`, or an empty place of the list.
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

/// Appends to a list: one line, since many read only the first.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    let mut joined: Vec<u8> = Vec::new();
    for line in headers.get_all(&name) {
        joined.extend_from_slice(line.as_bytes());
        joined.extend_from_slice(b", ");
    }
    if joined.is_empty() {
        headers.insert(name, value.clone());
        return;
    }
    joined.extend_from_slice(value.as_bytes());
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(name, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::tests::{lines, map};
    use super::*;

    fn origin(peer: &str, tls: bool) -> Origin {
        Origin::new(peer.parse().unwrap(), 8080, tls)
    }

    #[test]
    fn the_way_is_told() {
        let mut headers = map(&[("host", "shop:8080")]);
        origin("192.0.2.1:5", false).tell(&mut headers, Forwarded::Append);
        assert_eq!(
            lines(&headers),
            [
                "forwarded: for=192.0.2.1;host=\"shop:8080\";proto=http",
                "host: shop:8080",
                "x-forwarded-for: 192.0.2.1",
                "x-forwarded-host: shop:8080",
                "x-forwarded-port: 8080",
                "x-forwarded-proto: http",
                "x-real-ip: 192.0.2.1",
            ]
        );
        let mut origin = origin("[2001:db8::1]:5", true);
        let before = [
            ("host", "h"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-for", "10.0.0.2"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-port", "99"),
            ("x-real-ip", "10.0.0.1"),
            ("true-client-ip", "10.0.0.1"),
            ("x-forwarded-prefix", "/admin"),
            ("forwarded", "for=10.0.0.1"),
        ];
        let mut headers = map(&before);
        origin.tell(&mut headers, Forwarded::Append);
        assert_eq!(
            lines(&headers),
            [
                "forwarded: for=10.0.0.1, for=\"[2001:db8::1]\";host=\"h\";proto=https",
                "host: h",
                "true-client-ip: 10.0.0.1",
                "x-forwarded-for: 10.0.0.1, 10.0.0.2, 2001:db8::1",
                "x-forwarded-host: h",
                "x-forwarded-port: 99",
                "x-forwarded-prefix: /admin",
                "x-forwarded-proto: http",
                "x-real-ip: 10.0.0.1",
            ]
        );
        let mut headers = map(&before);
        origin.tell(&mut headers, Forwarded::Replace);
        assert_eq!(
            lines(&headers),
            [
                "forwarded: for=\"[2001:db8::1]\";host=\"h\";proto=https",
                "host: h",
                "x-forwarded-for: 2001:db8::1",
                "x-forwarded-host: h",
                "x-forwarded-port: 8080",
                "x-forwarded-proto: https",
                "x-real-ip: 2001:db8::1",
            ]
        );
        let mut headers = map(&before);
        origin.tell(&mut headers, Forwarded::Off);
        assert_eq!(headers, map(&before));
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
            let mut headers = map(&[("forwarded", "for=a"), ("forwarded", bad)]);
            origin("192.0.2.1:5", false).tell(&mut headers, Forwarded::Append);
            assert_eq!(headers["forwarded"], "for=a, for=192.0.2.1;proto=http", "{bad}");
        }
    }
}
