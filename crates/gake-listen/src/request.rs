//! A request: its head, its body, and whom it is for.

use gake_text::host::{is_local_or_address, without_port};

/// Maximum size of a head, and of a body, in bytes.
const PART_MAX: usize = 8 << 10;

/// A complete request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
    /// The query after the question mark.
    pub query: &'a str,
    /// The body.
    pub body: &'a [u8],
    headers: Vec<(&'a str, &'a str)>,
}

/// What the bytes of a connection are so far.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    Incomplete,
    /// Not HTTP/1, or too long.
    Invalid,
    Complete(Request<'a>),
}

/// The bytes of a request so far.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// The length of the head, once it is complete.
    head: Option<usize>,
}

impl Incoming {
    /// Adds bytes, and judges all.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Received<'_> {
        // The end of a head may span two reads.
        let from = self.bytes.len().saturating_sub(3);
        self.bytes.extend_from_slice(bytes);
        if self.head.is_none() {
            let end = self.bytes[from..].windows(4).position(|four| four == b"\r\n\r\n");
            self.head = end.map(|at| from + at + 4);
        }
        let Some(end) = self.head.filter(|end| *end <= PART_MAX) else {
            let is_long = self.bytes.len() > PART_MAX;
            return if is_long { Received::Invalid } else { Received::Incomplete };
        };
        let (head, body) = self.bytes.split_at(end);
        let Some(request) = Request::parse(head) else { return Received::Invalid };
        match request.length() {
            Some(length) if length > PART_MAX => Received::Invalid,
            Some(length) if length > body.len() => Received::Incomplete,
            Some(length) => Received::Complete(Request { body: &body[..length], ..request }),
            None => Received::Invalid,
        }
    }
}

impl<'a> Request<'a> {
    /// Parses a head; `None` unless it is HTTP/1 for a path.
    fn parse(head: &'a [u8]) -> Option<Self> {
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
        Some(Self { method, path, query, body: &[], headers: headers.collect::<Option<_>>()? })
    }

    /// The length of the body; `None` if it is ambiguous or chunked.
    fn length(&self) -> Option<usize> {
        let has = |name: &str| self.headers.iter().any(|one| one.0.eq_ignore_ascii_case(name));
        match (has("Transfer-Encoding"), has("Content-Length")) {
            (true, _) => None,
            (false, false) => Some(0),
            (false, true) => {
                let length = self.only("Content-Length")?;
                length.bytes().all(|byte| byte.is_ascii_digit()).then(|| length.parse().ok())?
            }
        }
    }

    /// The value of a header that occurs exactly once.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.iter().filter(|header| header.0.eq_ignore_ascii_case(name));
        let value = values.next()?.1;
        values.next().is_none().then_some(value)
    }

    /// Whether it has exactly one Host, and that is an address, `localhost`, or `host`, the name that
    /// the server was configured to listen at.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let Some(requested) = self.only("Host") else { return false };
        is_local_or_address(requested)
            || (!host.is_empty() && without_port(requested).eq_ignore_ascii_case(host))
    }

    /// Whether it comes from a page of this server and has the token.
    #[must_use]
    pub fn is_from_page(&self, token: &str) -> bool {
        let origin = self.only("Origin").and_then(|origin| origin.strip_prefix("http://"));
        let is_same = origin.is_some() && origin == self.only("Host");
        is_same && self.only("X-Gake-Token").is_some_and(|given| is_equal(given, token))
    }

    /// Whether it has the token as `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn has_bearer(&self, token: &str) -> bool {
        let given = self.only("Authorization").and_then(|value| value.strip_prefix("Bearer "));
        given.is_some_and(|given| is_equal(given.trim(), token))
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

    /// The body of a request that arrives byte by byte: `None` if it is invalid, empty if incomplete.
    fn body(bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let mut incoming = Incoming::default();
        for (index, byte) in bytes.iter().enumerate() {
            match incoming.add(&[*byte]) {
                Received::Incomplete => {}
                Received::Invalid => return None,
                Received::Complete(request) => {
                    assert_eq!(index + 1, bytes.len());
                    return Some(Some(request.body.to_vec()));
                }
            }
        }
        Some(None)
    }

    #[test]
    fn bodies_have_the_length_in_the_head() {
        assert_eq!(body(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Some(Some(Vec::new())));
        let ends = b"PATCH / HTTP/1.1\r\nContent-Length: 6\r\n\r\n{\r\n\r\n}";
        assert_eq!(body(ends), Some(Some(b"{\r\n\r\n}".to_vec())));
        assert_eq!(body(b"PATCH / HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}"), Some(None));
        assert_eq!(body(b"GET / HTTP/1.1\r\n"), Some(None));
        let endless = [&b"GET / HTTP/1.1\r\nA: "[..], &vec![b'x'; PART_MAX]].concat();
        assert_eq!(body(&endless), None);
        for header in [
            "Content-Length: 8193",
            "Content-Length: +1",
            "Content-Length: -1",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nContent-Length: 2",
            "Transfer-Encoding: chunked",
        ] {
            assert_eq!(body(format!("POST / HTTP/1.1\r\n{header}\r\n\r\n").as_bytes()), None);
        }
    }

    #[test]
    fn rebound_names_are_rejected() {
        let is_for = |host: &str, own: &str| {
            let head = head(&format!("GET / HTTP/1.1\n{host}"));
            Request::parse(head.as_bytes()).is_some_and(|head| head.is_for(own))
        };
        assert!(is_for("Host: 127.0.0.1:5665", "127.0.0.1"));
        assert!(is_for("host: localhost:5665", "127.0.0.1"));
        assert!(is_for("Host: loadgen:5665", "loadgen"));
        for host in [
            "Host: evil.test:5665",
            "Host:",
            "X: y",
            "Host: localhost\nHost: evil.test",
            "Host: localhost\nhost: localhost",
        ] {
            assert!(!is_for(host, "127.0.0.1"), "{host}");
            assert!(!is_for(host, ""), "{host}");
        }
    }

    #[test]
    fn only_our_own_page_with_the_token_may_stop_the_run() {
        let may = |lines: &str| {
            let head = head(&format!("POST /stop HTTP/1.1\nHost: 127.0.0.1:5665\n{lines}"));
            Request::parse(head.as_bytes()).unwrap().is_from_page("secret")
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
            assert!(Request::parse(head(text).as_bytes()).is_none(), "{text}");
        }
        for header in ["broken", "Host : h", " Host: h", ": h"] {
            let text = head(&format!("GET / HTTP/1.1\nHost: localhost\n{header}"));
            assert!(Request::parse(text.as_bytes()).is_none(), "{header}");
        }
        let query = head("GET /?a=/b HTTP/1.1\nHost: h");
        let query = Request::parse(query.as_bytes()).unwrap();
        assert_eq!((query.path, query.query), ("/", "a=/b"));
    }
}
