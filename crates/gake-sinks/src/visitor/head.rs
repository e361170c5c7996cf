//! The head of a visitor's request, and its authorization.

use gake_text::host::{is_local_or_address, without_port};

/// The head of a request.
#[derive(Debug)]
pub struct VisitorHead<'a> {
    /// The method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// The query after the question mark.
    pub query: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> VisitorHead<'a> {
    /// Parses a head; `None` unless it is HTTP/1.
    #[must_use]
    pub fn parse(head: &'a [u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target, version) = (first.next()?, first.next()?, first.next()?);
        if !version.starts_with("HTTP/1.") || first.next().is_some() || !target.starts_with('/') {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| line.split_once(':'));
        // `Host : x`, and a folded line, are headers to some servers only.
        let is_name = |name: &str| !name.is_empty() && !name.contains([' ', '\t']);
        let headers = headers.map(|header| header.filter(|(name, _)| is_name(name)));
        let headers = headers.map(|header| header.map(|(name, value)| (name, value.trim())));
        Some(Self { method, path, query, headers: headers.collect::<Option<_>>()? })
    }

    /// The value of a header that occurs exactly once.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.iter().filter(|header| header.0.eq_ignore_ascii_case(name));
        let value = values.next()?.1;
        values.next().is_none().then_some(value)
    }

    /// Whether its Host is this server: an address, `localhost`, or `host`, the name it was
    /// configured to listen at. This excludes web pages that use DNS rebinding.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let Some(requested) = self.only("Host") else { return false };
        is_local_or_address(requested)
            || (!host.is_empty() && without_port(requested).eq_ignore_ascii_case(host))
    }

    /// Whether it comes from a page of this server and has the token.
    #[must_use]
    pub fn is_allowed(&self, token: &str) -> bool {
        let origin = self.only("Origin").and_then(|origin| origin.strip_prefix("http://"));
        let is_same = origin.is_some() && origin == self.only("Host");
        is_same && self.only("X-Gake-Token").is_some_and(|given| is_equal(given, token))
    }
}

/// Compares in constant time.
fn is_equal(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> String {
        format!("{}\r\n\r\n", lines.replace('\n', "\r\n"))
    }

    #[test]
    fn rebound_names_are_rejected() {
        let is_for = |host: &str, own: &str| {
            let head = head(&format!("GET / HTTP/1.1\n{host}"));
            VisitorHead::parse(head.as_bytes()).is_some_and(|head| head.is_for(own))
        };
        assert!(is_for("Host: 127.0.0.1:5665", "127.0.0.1"));
        assert!(is_for("host: localhost:5665", "127.0.0.1"));
        assert!(is_for("Host: loadgen:5665", "loadgen"));
        for host in ["Host: evil.test:5665", "Host:", "X: y", "Host: localhost\nHost: evil.test"] {
            assert!(!is_for(host, "127.0.0.1"), "{host}");
            assert!(!is_for(host, ""), "{host}");
        }
    }

    #[test]
    fn only_our_own_page_with_the_token_may_stop_the_run() {
        let may = |lines: &str| {
            let head = head(&format!("POST /stop HTTP/1.1\nHost: 127.0.0.1:5665\n{lines}"));
            VisitorHead::parse(head.as_bytes()).unwrap().is_allowed("secret")
        };
        assert!(may("Origin: http://127.0.0.1:5665\nX-Gake-Token: secret"));
        for lines in [
            "Origin: http://127.0.0.1:5665",
            "X-Gake-Token: secret",
            "Origin: http://127.0.0.1:5665\nX-Gake-Token: secre",
            "Origin: http://127.0.0.1:5665\nX-Gake-Token: secrets",
            "Origin: http://127.0.0.1:5665\nX-Gake-Token: Secret",
            "Origin: http://127.0.0.1:80\nX-Gake-Token: secret",
            "Origin: https://127.0.0.1:5665\nX-Gake-Token: secret",
            "Origin: null\nX-Gake-Token: secret",
            "Origin: http://127.0.0.1:5665\nOrigin: http://evil.test\nX-Gake-Token: secret",
        ] {
            assert!(!may(lines), "{lines}");
        }
    }

    #[test]
    fn malformed_heads_are_none() {
        for text in ["", "GET /\n", "GET / HTTP/2\nHost: h", "GET http://h/ HTTP/1.1\nHost: h"] {
            assert!(VisitorHead::parse(head(text).as_bytes()).is_none(), "{text}");
        }
        for header in ["broken", "Host : h", " Host: h", ": h"] {
            let text = head(&format!("GET / HTTP/1.1\nHost: localhost\n{header}"));
            assert!(VisitorHead::parse(text.as_bytes()).is_none(), "{header}");
        }
        let query = head("GET /?a=/b HTTP/1.1\nHost: h");
        let query = VisitorHead::parse(query.as_bytes()).unwrap();
        assert_eq!((query.path, query.query), ("/", "a=/b"));
    }
}
