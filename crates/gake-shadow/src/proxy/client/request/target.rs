//! Request targets and hosts.

use std::borrow::Cow;

use http::uri::Authority;
use http::{Method, StatusCode, Uri};

use super::Rejection;
use crate::proxy::client::refusal::Refusal;

pub(crate) struct RequestTarget<'a> {
    pub(crate) path: Cow<'a, str>,
    /// Of a target in absolute form; replaces `Host` (RFC 9112, section 3.2.2).
    pub(crate) authority: Option<Authority>,
    is_http: bool,
}

impl<'a> RequestTarget<'a> {
    pub(crate) fn of(target: &'a str) -> Result<Self, Rejection> {
        if is_plain_target(target.as_bytes()) {
            return Ok(Self { path: target.into(), authority: None, is_http: true });
        }
        let bad = |_| Rejection::Malformed(StatusCode::BAD_REQUEST);
        Uri::try_from(target).map(Self::of_uri).map_err(bad)
    }

    pub(crate) fn of_uri(uri: Uri) -> Self {
        let is_http = uri.scheme_str().is_none_or(|scheme| matches!(scheme, "http" | "https"));
        let parts = uri.into_parts();
        let path = parts.path_and_query.as_ref().map_or("", |path| path.as_str());
        Self { path: path.to_owned().into(), authority: parts.authority, is_http }
    }

    pub(crate) fn refusal(&self, method: &Method) -> Option<Refusal> {
        if &*self.path == "*" {
            let is_allowed = *method == Method::OPTIONS;
            return (!is_allowed).then(|| Refusal::bad("the target * is for OPTIONS"));
        }
        if !self.path.starts_with('/') {
            return Some(Refusal::bad("the target is not a path"));
        }
        let is_url = self.is_http
            && self.authority.as_ref().is_none_or(|authority| !authority.as_str().contains('@'));
        (!is_url).then(|| Refusal::bad("the target is neither a path nor an http URL"))
    }
}

/// Whether a target is a path and query of unambiguous characters.
fn is_plain_target(target: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:@?".contains(byte);
    target.first() == Some(&b'/') && target.iter().all(plain)
}

/// Whether a `Host` is valid: empty, or a host and port. HTTP/2 backends get it as `:authority`.
pub(crate) fn is_host(host: &[u8]) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let (name, port) = match memchr::memrchr(b':', host) {
        Some(colon) => (&host[..colon], &host[colon + 1..]),
        None => (host, &host[..0]),
    };
    if name.iter().all(is_usual) && port.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let is_known = |byte: &u8| is_usual(byte) || b"~!$&'()*+;=:[]".contains(byte);
    host.iter().all(is_known) && Authority::try_from(host).is_ok()
}
