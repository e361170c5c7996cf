//! Redirects: their targets and requests (RFC 9110, section 15.4).

use std::sync::Arc;
use std::task::{Context, Poll};

use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::record::Fault;

use crate::client::request::HttpMessage;
use crate::client::settings::RedirectRules;
use crate::client::visitor::ExchangeVisitor;
use crate::net::alternative::http3_port;
use crate::net::location::{Location, Scheme, basic_authorization};
use crate::tls::facts::ConnectionFacts;

/// The fault of an unusable `Location`.
pub(crate) const BAD_LOCATION: Fault = Fault::Malformed("location");

/// Detects redirects, and shows all other responses to the inner visitor.
#[derive(Debug)]
pub(crate) struct RedirectVisitor<'a, V> {
    follow: bool,
    pub(crate) to: Option<String>,
    follows_alternatives: bool,
    /// The port on which the response advertises HTTP/3.
    pub(crate) http3_port: Option<u16>,
    inner: &'a mut V,
}

impl<'a, V> RedirectVisitor<'a, V> {
    /// `follow`: whether redirects are followed; `follows_alternatives`: whether `Alt-Svc` is.
    pub(crate) fn new((follow, follows_alternatives): (bool, bool), inner: &'a mut V) -> Self {
        Self { follow, to: None, follows_alternatives, http3_port: None, inner }
    }
}

impl<V: Visitor> Visitor for RedirectVisitor<'_, V> {
    #[inline]
    fn wants_head(&self) -> bool {
        self.follows_alternatives || self.inner.wants_head()
    }

    #[inline]
    fn may_want(&self) -> bool {
        self.follow || self.follows_alternatives || self.inner.may_want()
    }

    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        (self.follow && is_redirect(status)) || self.inner.wants_head_of(status)
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        if self.follows_alternatives {
            self.http3_port = head.get("alt-svc").and_then(http3_port);
        }
        if self.follow && is_redirect(head.status) {
            // Without a location, or with an empty one, the response is the last.
            let location = head.get("location").map(<[u8]>::trim_ascii);
            let location = location.filter(|to| !to.is_empty());
            self.to = location.map(|to| String::from_utf8_lossy(to).into_owned());
        }
        if self.to.is_none() {
            self.inner.head(head);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        if self.to.is_none() {
            self.inner.body(bytes);
        }
    }

    #[inline]
    fn trailers(&mut self, trailers: &[httparse::Header<'_>]) {
        if self.to.is_none() {
            self.inner.trailers(trailers);
        }
    }
}

impl<V: ExchangeVisitor> ExchangeVisitor for RedirectVisitor<'_, V> {
    #[inline]
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.inner.connected(facts);
    }

    #[inline]
    fn sent(&mut self) {
        self.inner.sent();
    }

    #[inline]
    fn has_another(&mut self, status: u16, body_bytes: u64) -> bool {
        self.inner.has_another(status, body_bytes)
    }

    #[inline]
    fn is_sending(&self) -> bool {
        self.inner.is_sending()
    }

    #[inline]
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<[u8]>>> {
        self.inner.poll_body(cx)
    }
}

impl HttpMessage {
    /// The request that follows a response of `status` with the `Location` `to`; `None` if that
    /// response is the last.
    pub(crate) fn follow(
        &self,
        status: u16,
        to: &str,
        rules: RedirectRules,
    ) -> Result<Option<Self>, Fault> {
        let is_relative = url::Url::parse(to).is_err();
        let base = url::Url::parse(&self.location.to_string()).map_err(|_| BAD_LOCATION)?;
        let to = base.join(to).map_err(|_| BAD_LOCATION)?;
        if !matches!(to.scheme(), "http" | "https") {
            return Err(BAD_LOCATION);
        }
        let mut location = Location::parse(to.as_str()).map_err(|_| BAD_LOCATION)?;
        // A server does not know the zone of its address.
        if self.location.host.split_once('%').is_some_and(|(host, _)| host == location.host) {
            location.host.clone_from(&self.location.host);
        }
        let mut next = Self { location, ..self.clone() };
        if rules == RedirectRules::Go {
            return Ok(next.redirected_by_go(self, status, is_relative));
        }
        let becomes_get = match status {
            301 | 302 => self.method == "POST",
            303 => self.method != "HEAD",
            _ => false,
        };
        if becomes_get {
            next.method = "GET".to_owned();
            next.body = None;
            next.drop_headers(is_about_content);
        }
        if !next.location.same_origin(&self.location) {
            next.drop_headers(is_for_one_origin);
        }
        if let Some(authorization) = next.location.user.as_deref().map(basic_authorization) {
            next.drop_headers(|name| name == "authorization");
            next.headers.push(authorization);
        }
        Ok(Some(next))
    }

    /// This copy of `from` with what Go's client changes.
    fn redirected_by_go(mut self, from: &Self, status: u16, is_relative: bool) -> Option<Self> {
        let keeps_body = matches!(status, 307 | 308);
        if keeps_body && from.body.as_ref().is_some_and(|body| !body.is_empty()) {
            return None;
        }
        if !keeps_body {
            if !matches!(self.method.as_str(), "GET" | "HEAD") {
                self.method = "GET".to_owned();
            }
            self.body = None;
            self.drop_headers(is_about_content);
        }
        let (host, home) = (self.location.host.clone(), from.location.host.as_str());
        let is_name = host.parse::<std::net::IpAddr>().is_err();
        let is_below = is_name && host.strip_suffix(home).is_some_and(|rest| rest.ends_with('.'));
        if host != home && !is_below {
            self.drop_headers(|name| is_for_one_origin(name) && name != "host");
        }
        if !is_relative {
            self.drop_headers(|name| name == "host");
        }
        if let Some(authorization) = self.location.user.as_deref().map(basic_authorization) {
            self.drop_headers(|name| name == "authorization");
            self.headers.push(authorization);
        }
        let is_downgrade =
            (from.location.scheme, self.location.scheme) == (Scheme::Https, Scheme::Http);
        if !is_downgrade {
            self.drop_headers(|name| name == "referer");
            self.headers.push(("Referer".to_owned(), from.location.to_string()));
        }
        Some(self)
    }

    fn drop_headers(&mut self, which: impl Fn(&str) -> bool) {
        self.headers.retain(|(name, _)| !which(&name.to_ascii_lowercase()));
        self.opaque.retain(|(name, _)| !which(&name.to_ascii_lowercase()));
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

fn is_about_content(name: &str) -> bool {
    name.starts_with("content-") || matches!(name, "transfer-encoding" | "trailer" | "expect")
}

/// Headers that must not go to another origin.
fn is_for_one_origin(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie" | "host")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn post() -> HttpMessage {
        let header = |name: &str| (name.to_owned(), "x".to_owned());
        HttpMessage {
            location: Location::parse("http://a.test/dir/page?q").unwrap(),
            method: "POST".to_owned(),
            headers: ["Authorization", "Cookie", "Content-Type", "X-Own"].map(header).to_vec(),
            opaque: Vec::new(),
            body: Some(Arc::from(&b"hello"[..])),
        }
    }

    fn followed(message: &HttpMessage, status: u16, to: &str) -> Result<HttpMessage, Fault> {
        message.follow(status, to, RedirectRules::Curl).map(Option::unwrap)
    }

    fn names(message: &HttpMessage) -> Vec<&str> {
        message.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_location_may_be_relative() {
        for (to, expected) in [
            ("/x", "http://a.test/x"),
            ("x?y#z", "http://a.test/dir/x?y"),
            ("../x", "http://a.test/x"),
            ("?r", "http://a.test/dir/page?r"),
            ("//b.test/x", "http://b.test/x"),
            ("https://b.test:8443", "https://b.test:8443/"),
            ("/a b", "http://a.test/a%20b"),
        ] {
            assert_eq!(followed(&post(), 302, to).unwrap().location.to_string(), expected, "{to}");
        }
    }

    #[test]
    fn an_unusable_location_is_a_fault() {
        for to in ["ftp://a.test/", "http://", "mailto:a@b", "http://a.test:99999/"] {
            assert_eq!(followed(&post(), 302, to).unwrap_err(), BAD_LOCATION, "{to}");
        }
    }

    #[test]
    fn a_redirect_stays_in_the_zone_of_its_address() {
        let location = Location::parse("http://[fe80::1%25eth0]:81/a").unwrap();
        let next = followed(&HttpMessage { location, ..post() }, 307, "/b").unwrap();
        assert_eq!(next.location.host, "fe80::1%eth0");
        assert_eq!(next.location.to_string(), "http://[fe80::1]:81/b");
        assert!(names(&next).contains(&"Authorization"), "it is the same origin");
    }

    #[test]
    fn the_method_depends_on_the_status() {
        for (status, method, expected) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "POST", "GET"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
            (301, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (302, "HEAD", "HEAD"),
        ] {
            let message = HttpMessage { method: method.to_owned(), ..post() };
            let next = followed(&message, status, "/x").unwrap();
            assert_eq!(next.method, expected, "{status} {method}");
            let keeps = method == expected;
            assert_eq!(next.body.is_some(), keeps, "{status} {method}");
            assert_eq!(names(&next).contains(&"Content-Type"), keeps, "{status} {method}");
        }
    }

    #[test]
    fn secrets_stay_with_their_origin() {
        let same = followed(&post(), 307, "http://a.test:80/x").unwrap();
        assert_eq!(names(&same), ["Authorization", "Cookie", "Content-Type", "X-Own"]);
        for to in ["http://b.test/", "https://a.test/", "http://a.test:81/"] {
            let other = followed(&post(), 307, to).unwrap();
            assert_eq!(names(&other), ["Content-Type", "X-Own"], "{to}");
            let back = followed(&other, 307, "http://a.test/").unwrap();
            assert_eq!(names(&back), ["Content-Type", "X-Own"], "{to}");
        }
        let named = followed(&post(), 307, "http://me:pw@b.test/").unwrap();
        assert_eq!(named.headers[2], basic_authorization("me:pw"));
    }

    #[test]
    fn gos_rules_keep_what_go_keeps() {
        let go = |message: &HttpMessage, status, to: &str| {
            message.follow(status, to, RedirectRules::Go).unwrap()
        };
        assert!(go(&post(), 307, "/x").is_none(), "its body cannot be read again");
        let hosted = |method: &str, body: Option<Arc<[u8]>>| {
            let mut message = HttpMessage { method: method.to_owned(), body, ..post() };
            message.headers.push(("Host".to_owned(), "own".to_owned()));
            message
        };
        let bodiless = |method: &str| hosted(method, None);
        let all = ["Authorization", "Cookie", "Content-Type", "X-Own", "Host", "Referer"];
        assert_eq!(names(&go(&bodiless("POST"), 308, "/x").unwrap()), all);
        for (method, status, expected) in [
            ("POST", 302, "GET"),
            ("PUT", 301, "GET"),
            ("DELETE", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("DELETE", 307, "DELETE"),
        ] {
            assert_eq!(go(&bodiless(method), status, "/x").unwrap().method, expected);
        }
        let next = go(&hosted("PUT", post().body), 302, "/x").unwrap();
        assert_eq!(names(&next), ["Authorization", "Cookie", "X-Own", "Host", "Referer"]);
        assert_eq!(next.headers[4].1, "http://a.test/dir/page?q");
        assert!(next.body.is_none());
        for (to, expected) in [
            // Another port is the same host.
            ("http://a.test:81/x", &["Authorization", "Cookie", "X-Own", "Referer"][..]),
            ("https://sub.a.test/", &["Authorization", "Cookie", "X-Own", "Referer"]),
            ("http://b.test/", &["X-Own", "Referer"]),
            ("//b.test/", &["X-Own", "Host", "Referer"]),
        ] {
            assert_eq!(names(&go(&bodiless("GET"), 302, to).unwrap()), expected, "{to}");
        }
    }
}
