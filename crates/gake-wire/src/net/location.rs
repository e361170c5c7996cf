//! URLs, parsed without normalising the path: it is sent as written, if a URL may contain it.

use std::fmt;

use crate::net::percent::percent_decoded;

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Clear text.
    Http,
    /// TLS.
    Https,
}

/// The components of an `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The scheme; `http` if the URL had none.
    pub scheme: Scheme,
    /// Whether the URL had no scheme.
    pub scheme_assumed: bool,
    /// The host in lower case and ASCII, an IPv6 address without its brackets, its zone after `%`.
    pub host: String,
    /// The port, by default the scheme's.
    pub port: u16,
    /// Path and query as written; `/` by default.
    pub target: String,
    /// `user:password` before the host, percent-decoded.
    pub user: Option<String>,
}

/// Why a text is not a URL that can be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Another scheme.
    #[error("{url:?} has the scheme {scheme:?}; gake speaks http, https, ws, wss, grpc and grpcs")]
    Scheme {
        /// The URL.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A WebSocket where only HTTP is allowed.
    #[error("{0:?} is a WebSocket: only the target of a run or search can be one")]
    WebSocket(String),
    /// A gRPC method where only HTTP is allowed.
    #[error("{0:?} is a gRPC method: only the target of a run or search can be one")]
    Grpc(String),
    /// Not a gRPC method.
    #[error("{0:?} is not a gRPC method: write grpc://HOST:PORT/package.Service/Method")]
    NoGrpc(String),
    /// Not a WebSocket.
    #[error("{0:?} is not a WebSocket: its URL must begin with ws:// or wss://")]
    NoWebSocket(String),
    /// A missing or bad host.
    #[error("{0:?} has no valid host; write for example http://localhost:8080/path")]
    Host(String),
    /// A bad port.
    #[error("{0:?} has a bad port; ports are 1 to 65535")]
    Port(String),
    /// Blanks or control characters.
    #[error("{0:?} holds a blank or a control character; encode it, a blank as %20")]
    Blank(String),
}

impl Location {
    /// Parses a URL.
    ///
    /// # Errors
    /// The text is not an `http` or `https` URL.
    pub fn parse(url: &str) -> Result<Self, LocationError> {
        let url = url.trim();
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(LocationError::Blank(url.to_owned()));
        }
        let (scheme, rest, scheme_assumed) = split_scheme(url)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (user, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(percent_decoded(user)), host_port),
            None => (None, authority),
        };
        let (host, port) = split_port(url, host_port)?;
        let target = match target.bytes().next() {
            None => "/".to_owned(),
            Some(b'?') => format!("/{target}"),
            Some(_) => target.to_owned(),
        };
        Ok(Self {
            scheme,
            scheme_assumed,
            host: checked_host(url, host)?,
            port: port.unwrap_or(scheme.port()),
            target: ascii(&target),
            user,
        })
    }

    /// Parses a URL as Go does: its query is sent as it is written, blanks included.
    ///
    /// # Errors
    /// The text is not an `http` or `https` URL, or its query has a control character.
    pub(crate) fn parse_with_written_query(url: &str) -> Result<Self, LocationError> {
        let url = url.split('#').next().unwrap_or_default();
        let Some((before, query)) = url.split_once('?') else { return Self::parse(url) };
        if query.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(LocationError::Blank(url.to_owned()));
        }
        let mut location = Self::parse(before)?;
        location.target.push('?');
        location.target.push_str(query);
        Ok(location)
    }

    /// Parses the URL of a WebSocket, `ws://` or `wss://`. The scheme is that of the upgrade request.
    ///
    /// # Errors
    /// The text is not such a URL.
    pub fn parse_websocket(url: &str) -> Result<Self, LocationError> {
        let (scheme, rest) = url.trim().split_once("://").unwrap_or_default();
        let upgrade = match scheme.to_ascii_lowercase().as_str() {
            "ws" => "http",
            "wss" => "https",
            _ => return Err(LocationError::NoWebSocket(url.to_owned())),
        };
        Self::parse(&format!("{upgrade}://{rest}"))
    }

    /// Parses the URL of a gRPC method: `grpc://HOST:PORT/package.Service/Method`, or `grpcs://` over
    /// TLS. The scheme is that of its HTTP requests.
    ///
    /// # Errors
    /// The text is not such a URL.
    pub fn parse_grpc(url: &str) -> Result<Self, LocationError> {
        let refuse = || LocationError::NoGrpc(url.to_owned());
        let (scheme, rest) = url.trim().split_once("://").unwrap_or_default();
        let carrier = match scheme.to_ascii_lowercase().as_str() {
            "grpc" => "http",
            "grpcs" => "https",
            _ => return Err(refuse()),
        };
        let location = Self::parse(&format!("{carrier}://{rest}"))?;
        let segments: Vec<_> = location.target.split('/').skip(1).collect();
        match segments[..] {
            [service, method]
                if !service.is_empty() && !method.is_empty() && !method.contains('?') =>
            {
                Ok(location)
            }
            _ => Err(refuse()),
        }
    }

    /// The URL of the gRPC method at this location, without the user's password.
    #[must_use]
    pub fn grpc_url(&self) -> String {
        // `http` becomes `grpc`, and `https` becomes `grpcs`.
        self.to_string().replacen("http", "grpc", 1)
    }

    /// The URL of the WebSocket at this location, without the user's password.
    #[must_use]
    pub fn websocket_url(&self) -> String {
        // `http` becomes `ws`, and `https` becomes `wss`.
        self.to_string().replacen("http", "ws", 1)
    }

    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        self.is_at(other.scheme, &other.host, other.port)
    }

    pub(crate) fn is_at(&self, scheme: Scheme, host: &str, port: u16) -> bool {
        (self.scheme, self.host.as_str(), self.port) == (scheme, host, port)
    }

    /// The value of `Host`: without the scheme's default port, and without a zone, which is only
    /// meaningful on this machine (RFC 6874, section 3).
    #[must_use]
    pub fn authority(&self) -> String {
        let host = match self.host.split('%').next() {
            Some(address) if self.host.contains(':') => format!("[{address}]"),
            _ => self.host.clone(),
        };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }
}

/// Parses URLs one after the other; one with the origin of the last one costs little.
#[derive(Debug, Default)]
pub struct LocationParser {
    /// The last URL up to the end of its authority.
    origin: String,
    last: Option<Location>,
}

impl LocationParser {
    /// Parses a URL, as [`Location::parse`] does.
    ///
    /// # Errors
    /// The text is not an `http` or `https` URL.
    pub fn parse(&mut self, url: &str) -> Result<&Location, LocationError> {
        let path = url.strip_prefix(self.origin.as_str()).filter(|path| {
            path.starts_with('/') && path.bytes().all(|byte| byte != b'#' && is_legal(byte))
        });
        let known = self.last.as_mut().filter(|_| !self.origin.is_empty());
        if let (Some(last), Some(path)) = (known, path) {
            last.target.clear();
            last.target.push_str(path);
        } else {
            let location = Location::parse(url)?;
            self.origin.clear();
            self.origin.push_str(origin(url));
            self.last = Some(location);
        }
        self.last.as_ref().ok_or_else(|| LocationError::Host(url.to_owned()))
    }
}

/// A URL up to the end of its authority; empty without a scheme or without anything after it.
fn origin(url: &str) -> &str {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let end = rest.and_then(|rest| Some(url.len() - rest.len() + rest.find(['/', '?', '#'])?));
    &url[..end.unwrap_or(0)]
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        // Never the user's password.
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

impl Scheme {
    /// The default port.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

fn split_scheme(url: &str) -> Result<(Scheme, &str, bool), LocationError> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok((Scheme::Http, url, true)) };
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok((Scheme::Http, rest, false)),
        "https" => Ok((Scheme::Https, rest, false)),
        "ws" | "wss" => Err(LocationError::WebSocket(url.to_owned())),
        "grpc" | "grpcs" => Err(LocationError::Grpc(url.to_owned())),
        _ if scheme.contains(['/', '?', '.']) => Ok((Scheme::Http, url, true)),
        _ => Err(LocationError::Scheme { url: url.to_owned(), scheme: scheme.to_owned() }),
    }
}

fn split_port<'a>(url: &str, text: &'a str) -> Result<(&'a str, Option<u16>), LocationError> {
    let bad = || LocationError::Port(url.to_owned());
    let (host, port) = if let Some(bracketed) = text.strip_prefix('[') {
        let (host, rest) = bracketed
            .split_once(']')
            .filter(|(host, _)| host.contains(':'))
            .ok_or_else(|| LocationError::Host(url.to_owned()))?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err(bad()),
        };
        (host, port)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    match port {
        None | Some("") => Ok((host, None)),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => {
            let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
            Ok((host, Some(port)))
        }
        Some(_) => Err(bad()),
    }
}

fn checked_host(url: &str, host: &str) -> Result<String, LocationError> {
    let bad = || LocationError::Host(url.to_owned());
    // An IPv6 address may name a zone, `fe80::1%eth0` or as RFC 6874 has it `fe80::1%25eth0`.
    if host.contains(':') {
        let (address, zone) = host.split_once('%').map_or((host, None), |(a, z)| (a, Some(z)));
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(bad());
        }
        let address = address.to_ascii_lowercase();
        let Some(zone) = zone else { return Ok(address) };
        return match zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone) {
            "" => Err(bad()),
            zone => Ok(format!("{address}%{zone}")),
        };
    }
    ascii_host(host).ok_or_else(bad)
}

/// A host in lower case and ASCII, an international name as Punycode; `None` if it is not valid.
pub(crate) fn ascii_host(host: &str) -> Option<String> {
    match url::Host::parse(host).ok()? {
        url::Host::Domain(domain) if domain.is_empty() => None,
        host => Some(host.to_string()),
    }
}

/// Percent-encodes everything that no URL may contain (RFC 3986, section 2): other letters than
/// ASCII, quotes, brackets that are not square.
fn ascii(target: &str) -> String {
    if target.bytes().all(is_legal) {
        return target.to_owned();
    }
    let mut encoded = String::with_capacity(target.len() * 2);
    for byte in target.bytes() {
        if is_legal(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Whether a URL may contain this byte.
fn is_legal(byte: u8) -> bool {
    let is_other = matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}');
    byte.is_ascii_graphic() && !is_other
}

/// The `Authorization` header for `USER:PASSWORD`; `USER` has an empty password (RFC 7617, section
/// 2).
#[must_use]
pub fn basic_authorization(user: &str) -> (String, String) {
    match user.contains(':') {
        true => basic_authorization_as_given(user),
        false => basic_authorization_as_given(&format!("{user}:")),
    }
}

/// The `Authorization` header for credentials sent verbatim, as ab does.
#[must_use]
pub fn basic_authorization_as_given(credentials: &str) -> (String, String) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
    ("Authorization".to_owned(), format!("Basic {encoded}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_user_without_a_password_has_an_empty_one() {
        assert_eq!(basic_authorization("bob").1, "Basic Ym9iOg==");
        assert_eq!(basic_authorization("bob:").1, "Basic Ym9iOg==");
        assert_eq!(basic_authorization("bob:a:b").1, "Basic Ym9iOmE6Yg==");
    }

    #[test]
    fn a_parser_of_many_urls_parses_each_like_a_single_one() {
        let urls = [
            "http://h/a",
            "http://h/b?c#d",
            "http://h/é",
            "http://h/\"",
            "http://h",
            " http://h/x ",
            "http://h?y",
            "http://h/z",
            "http://h:81/",
            "https://h/",
            "http://u:p@h/1",
            "http://u@h/2",
            "http://h /",
            "h/3",
            "h/4",
            "/5",
            "http://h#f",
            "http://h/6",
            "ftp://h/",
            "http://h/7 ",
            "http://H/8",
            "http://h/9",
            "http://h:0/",
            "http://h/10\t",
            "http://[::1]/",
            "http://[::1]/b",
        ];
        let mut parser = LocationParser::default();
        for first in urls {
            for url in urls {
                for url in [first, url] {
                    let one = parser.parse(url).cloned();
                    assert_eq!(one, Location::parse(url), "{url:?} after {first:?}");
                }
            }
        }
    }

    #[test]
    fn parses_urls() {
        for (url, host, port, target, shown) in [
            ("http://a.b/c?d=e#f", "a.b", 80, "/c?d=e", "http://a.b/c?d=e"),
            ("localhost:8080", "localhost", 8080, "/", "http://localhost:8080/"),
            ("HTTPS://Ex.Org?x", "ex.org", 443, "/?x", "https://ex.org/?x"),
            ("http://[::1]:81/", "::1", 81, "/", "http://[::1]:81/"),
            ("http://[FE80::1%25Eth0]/", "fe80::1%Eth0", 80, "/", "http://[fe80::1]/"),
            ("http://[fe80::1%Eth0]/", "fe80::1%Eth0", 80, "/", "http://[fe80::1]/"),
            ("http://h//a/../b", "h", 80, "//a/../b", "http://h//a/../b"),
            ("a.b/x?u=http://y", "a.b", 80, "/x?u=http://y", "http://a.b/x?u=http://y"),
            ("http://h/é", "h", 80, "/%C3%A9", "http://h/%C3%A9"),
            (
                "http://h/[a]|{\"b\"}%zz",
                "h",
                80,
                "/[a]%7C%7B%22b%22%7D%zz",
                "http://h/[a]%7C%7B%22b%22%7D%zz",
            ),
            ("http://h:/", "h", 80, "/", "http://h/"),
        ] {
            let location = Location::parse(url).unwrap();
            assert_eq!((location.host.as_str(), location.port), (host, port), "{url}");
            assert_eq!(location.target, target, "{url}");
            assert_eq!(location.to_string(), shown, "{url}");
        }
    }

    #[test]
    fn a_query_is_kept_as_it_is_written() {
        for (url, target) in [
            ("http://h/a b", None),
            ("http://h/a?b c&\"é\"#d e", Some("/a?b c&\"é\"")),
            ("http://h?x", Some("/?x")),
            ("http://h/?a\r\nX: y", None),
            ("http://h/<", Some("/%3C")),
        ] {
            let location = Location::parse_with_written_query(url).ok();
            assert_eq!(location.as_ref().map(|location| location.target.as_str()), target, "{url}");
        }
    }

    #[test]
    fn a_password_is_taken_and_never_shown() {
        let location = Location::parse("http://me:p%40ss@h/").unwrap();
        assert_eq!(location.user.as_deref(), Some("me:p@ss"));
        assert_eq!(location.to_string(), "http://h/");
    }

    #[test]
    fn parses_websockets() {
        for (url, scheme, port, shown) in [
            ("ws://h/chat?a", Scheme::Http, 80, "ws://h/chat?a"),
            ("WSS://me:p@H", Scheme::Https, 443, "wss://h/"),
            ("ws://http:81/", Scheme::Http, 81, "ws://http:81/"),
        ] {
            let location = Location::parse_websocket(url).unwrap();
            assert_eq!((location.scheme, location.port), (scheme, port), "{url}");
            assert_eq!(location.websocket_url(), shown);
            assert_eq!(Location::parse(url), Err(LocationError::WebSocket(url.to_owned())));
        }
        assert!(Location::parse_websocket("http://h/").is_err());
        assert!(Location::parse_websocket("h").is_err());
    }

    #[test]
    fn parses_grpc_methods() {
        let location = Location::parse_grpc("GRPCS://H:8443/a.b.S/Call").unwrap();
        assert_eq!((location.scheme, location.port), (Scheme::Https, 8443));
        assert_eq!(location.grpc_url(), "grpcs://h:8443/a.b.S/Call");
        for url in ["grpc://h/", "grpc://h/S", "grpc://h/S/", "grpc://h//M", "grpc://h/S/M/x"] {
            assert_eq!(Location::parse_grpc(url), Err(LocationError::NoGrpc(url.to_owned())));
        }
        assert!(Location::parse_grpc("http://h/S/M").is_err());
        let refused = Location::parse("grpc://h/S/M");
        assert_eq!(refused, Err(LocationError::Grpc("grpc://h/S/M".to_owned())));
    }

    #[test]
    fn refuses_the_rest() {
        for url in [
            "",
            "ftp://h/",
            "http://",
            "http:///x",
            "http://h:99999/",
            "http://h:0/",
            "http://h:x/",
            "http://a b/",
            "http://[::1",
            "http://[zz]/",
            "http://h/a b",
            "http://a^b/",
        ] {
            assert!(Location::parse(url).is_err(), "{url}");
        }
        let bad = ["ftp://h/", "http://", "http://h:0/", "http://h/a b", "ws://h/", "grpc://h/S/M"];
        let mut errors = bad.map(|url| Location::parse(url).unwrap_err().to_string()).to_vec();
        errors.push(Location::parse_websocket("http://h/").unwrap_err().to_string());
        errors.push(Location::parse_grpc("http://h/S/M").unwrap_err().to_string());
        expect![[r#"
            "ftp://h/" has the scheme "ftp"; gake speaks http, https, ws, wss, grpc and grpcs
            "http://" has no valid host; write for example http://localhost:8080/path
            "http://h:0/" has a bad port; ports are 1 to 65535
            "http://h/a b" holds a blank or a control character; encode it, a blank as %20
            "ws://h/" is a WebSocket: only the target of a run or search can be one
            "grpc://h/S/M" is a gRPC method: only the target of a run or search can be one
            "http://h/" is not a WebSocket: its URL must begin with ws:// or wss://
            "http://h/S/M" is not a gRPC method: write grpc://HOST:PORT/package.Service/Method"#]]
        .assert_eq(&errors.join("\n"));
    }
}
