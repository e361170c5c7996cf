//! One request on the wire: the first, or one after a redirect.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gake_wire::{HttpRequest, PreparedRequest};
use url::Url;

use super::cookies::values_for;
use super::credentials::{self, has_credentials, shown_url, without_credentials};
use super::request_headers;
use super::script_request::ScriptRequest;
use gake_go::url::{host_header, request_url};

pub(super) const AUTHORIZATION: &str = "Authorization";
pub(super) const COOKIE: &str = "Cookie";
pub(super) const REFERER: &str = "Referer";

pub(super) struct Hop {
    pub(super) method: Cow<'static, str>,
    pub(super) url: Rc<Url>,
    pub(super) headers: Rc<Vec<(String, String)>>,
    pub(super) body: Option<Arc<[u8]>>,
    /// The cached request, used if no cookies are added.
    pub(super) known: Option<Rc<PreparedRequest>>,
    pub(super) number: u32,
    /// The URL as a script or a server wrote it.
    pub(super) text: Rc<str>,
    /// The URL that led to it.
    pub(super) referer: Option<String>,
    /// Whether redirects have left the first server.
    pub(super) has_left: bool,
    /// Whether redirects have dropped the body.
    pub(super) has_no_body: bool,
}

impl Hop {
    /// Why it cannot be sent, in Go's words.
    pub(super) fn invalid(&self, headers: &[(String, String)]) -> Option<String> {
        request_headers::invalid(headers).or_else(|| {
            let is_method = !self.method.is_empty() && gake_go::cookies::is_token(&self.method);
            (!is_method).then(|| format!("net/http: invalid method {:?}", self.method))
        })
    }

    /// The request with these headers.
    pub(super) fn request(&self, headers: &[(String, String)]) -> HttpRequest {
        let url = match self.number {
            0 => request_url(&self.text, &self.url),
            // The target of a redirect is resolved.
            _ => Cow::Borrowed(self.url.as_str()),
        };
        let length = self.body.as_ref().map(|body| body.len());
        let host = host_header(&self.text, &self.url);
        let mut headers = Cow::Borrowed(headers);
        // As in Go, a missing password is empty.
        if has_credentials(&self.url) && request_headers::get(&headers, AUTHORIZATION).is_none() {
            headers.to_mut().push((AUTHORIZATION.to_owned(), basic(&self.url)));
        }
        if let Some(referer) = &self.referer {
            headers.to_mut().push((REFERER.to_owned(), referer.clone()));
        }
        let headers = request_headers::written(&headers, (&self.method, length), &host);
        let body = self.body.clone();
        HttpRequest { headers, body, ..HttpRequest::new(&*self.method, url) }
    }

    /// Its URL for scripts.
    pub(super) fn url_text(&self) -> Rc<str> {
        match self.number {
            0 => Rc::clone(&self.text),
            _ => self.url.as_str().into(),
        }
    }

    /// Its URL for tags, with masked credentials.
    pub(super) fn shown(&self) -> Rc<str> {
        match self.number {
            0 => without_credentials(&self.text),
            _ => shown_url(&self.url).into(),
        }
    }

    /// Its cookies: the request's own, and the jar's unless replaced by them.
    pub(super) fn cookies(&self, request: &ScriptRequest) -> Vec<String> {
        let own =
            request.cookies.iter().map(|(name, value, _)| gake_go::cookies::written(name, value));
        let jar = request.jar.borrow();
        let is_replaced =
            |name: &str| request.cookies.iter().any(|(own, _, replace)| *replace && own == name);
        let kept: Vec<(&str, &str)> = match (&request.jar_cookies, self.number) {
            (Some(earlier), 0) => earlier.iter().map(|(name, value)| (&**name, &**value)).collect(),
            _ => values_for(&jar, &self.url),
        };
        let kept = kept.into_iter();
        let kept = kept.filter(|(name, _)| !is_replaced(name));
        own.chain(kept.map(|(name, value)| gake_go::cookies::written(name, value))).collect()
    }
}

/// The value of `Authorization` for the credentials of a URL.
fn basic(url: &Url) -> String {
    let (user, password) = credentials::decoded(url);
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Adds cookies to the `Cookie` header, which may exist.
pub(super) fn join_cookies(headers: &mut Vec<(String, String)>, cookies: &[String]) {
    let cookies = cookies.join("; ");
    let joined = match request_headers::get(headers, COOKIE).filter(|own| !own.is_empty()) {
        Some(own) => format!("{own}; {cookies}"),
        None => cookies,
    };
    request_headers::set(headers, COOKIE, joined);
}
