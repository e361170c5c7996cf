//! Follows redirects.

use std::rc::Rc;

use url::{Host, Url};

use super::hop::{AUTHORIZATION, COOKIE, Hop, REFERER};
use super::request_headers;
use super::response_facts::ResponseFacts;

/// Headers that are not sent to other hosts.
const SECRET: [&str; 6] = [
    AUTHORIZATION,
    "Www-Authenticate",
    COOKIE,
    "Cookie2",
    "Proxy-Authorization",
    "Proxy-Authenticate",
];

/// Headers that are dropped with the body.
const OF_BODY: [&str; 4] =
    ["Content-Encoding", "Content-Language", "Content-Location", "Content-Type"];

impl Hop {
    /// The next hop, if the response is a redirect; a URL of another protocol is an error.
    pub(super) fn next(
        &self,
        response: &ResponseFacts,
        origin: &Url,
    ) -> Option<Result<Self, Box<Url>>> {
        if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = response.header("location").filter(|location| !location.is_empty())?;
        let url = match self.url.join(location) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Rc::new(url),
            Ok(url) => return Some(Err(Box::new(url))),
            Err(_) => return None,
        };
        let drops_body = matches!(response.status, 301..=303);
        let becomes_get = drops_body && !matches!(&*self.method, "GET" | "HEAD");
        let has_left = self.has_left || !is_at_home(&url, origin);
        let has_no_body = self.has_no_body || drops_body;
        let is_relative = Url::parse(location).is_err();
        let mut headers = self.headers.to_vec();
        headers.retain(|(name, _)| {
            let name = name.as_str();
            let is_out = (has_left && SECRET.contains(&name))
                || (has_no_body && OF_BODY.contains(&name))
                // Cookies are added again for each hop.
                || name == COOKIE
                || (name == "Host" && !is_relative);
            !is_out
        });
        Some(Ok(Self {
            method: if becomes_get { "GET".into() } else { self.method.clone() },
            headers: Rc::new(headers),
            body: if has_no_body { None } else { self.body.clone() },
            known: None,
            number: self.number + 1,
            referer: self.referer_of(&url),
            text: if is_relative { url.as_str().into() } else { location.into() },
            has_left,
            has_no_body,
            url,
        }))
    }

    /// The `Referer` of the request to `next`; none if the script sets it, or if it would send an
    /// https URL over plain HTTP.
    fn referer_of(&self, next: &Url) -> Option<String> {
        let is_set = request_headers::get(&self.headers, REFERER).is_some();
        if is_set || (self.url.scheme() == "https" && next.scheme() == "http") {
            return None;
        }
        let mut url = (*self.url).clone();
        // Cannot fail for HTTP URLs.
        let _ = (url.set_username(""), url.set_password(None));
        Some(url.into())
    }
}

/// Whether a URL is of the first request's host or a subdomain.
fn is_at_home(url: &Url, origin: &Url) -> bool {
    let (Some(host), Some(first)) = (url.host_str(), origin.host_str()) else { return false };
    let is_below = || host.strip_suffix(first).is_some_and(|rest| rest.ends_with('.'));
    host == first || (matches!(url.host(), Some(Host::Domain(_))) && is_below())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_have_a_referer() {
        let hop = |url: &str, headers: &[(&str, &str)]| Hop {
            method: "GET".into(),
            url: Rc::new(Url::parse(url).unwrap()),
            headers: Rc::new(headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()),
            body: None,
            known: None,
            number: 0,
            text: url.into(),
            referer: None,
            has_left: false,
            has_no_body: false,
        };
        let referer = |from: &str, headers: &[(&str, &str)], to: &str| {
            hop(from, headers).referer_of(&Url::parse(to).unwrap())
        };
        let masked = referer("http://me:secret@a/x?y=1", &[], "http://b/");
        assert_eq!(masked.as_deref(), Some("http://a/x?y=1"));
        assert_eq!(referer("https://a/", &[], "http://a/"), None);
        assert_eq!(referer("https://a/", &[], "https://b/").as_deref(), Some("https://a/"));
        assert_eq!(referer("http://a/", &[("Referer", "http://own/")], "http://b/"), None);
    }
}
