//! Converts HTTP/2 requests for the checks of HTTP/1.1 requests.

use http::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, StatusCode};
use httparse::Header;

use crate::message::line::digits;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::client::request::{
    ClientRequest, LINES, ParsedHead, Rejection, RequestRules, RequestTarget,
};
use crate::proxy::policy::forwarded::ClientOrigin;

/// Reads a head; `is_whole` if no body follows.
///
/// The codec has already rejected connection headers, bodies that contradict the first
/// `Content-Length`, and invalid targets.
pub(crate) fn read(
    head: &Parts,
    is_whole: bool,
    rules: RequestRules<'_>,
    origin: &mut ClientOrigin,
) -> Result<ClientRequest, Rejection> {
    let is_chunked = check(head, is_whole).map_err(|refusal| Rejection::Refused {
        refusal,
        is_head: head.method == Method::HEAD,
        is_http10: false,
    })?;
    // HTTP/2 may split the line (RFC 9113, section 8.2.3).
    let cookies: Vec<&[u8]> =
        head.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookie = cookies.join(&b"; "[..]);
    let others = head.headers.iter().filter(|(name, _)| **name != COOKIE);
    let mut lines: Vec<Header<'_>> = others
        .map(|(name, value)| Header { name: name.as_str(), value: value.as_bytes() })
        .collect();
    if !cookies.is_empty() {
        lines.push(Header { name: COOKIE.as_str(), value: &cookie });
    }
    if is_chunked {
        // The length is unknown.
        lines.push(Header { name: TRANSFER_ENCODING.as_str(), value: b"chunked" });
    }
    let parsed = ParsedHead {
        method: head.method.clone(),
        target: RequestTarget::of_uri(head.uri.clone()),
        is_http10: false,
        needs_host: false,
        lines: &lines,
    };
    parsed.accept(rules, origin)
}

/// Whether the body must be chunked.
fn check(head: &Parts, is_whole: bool) -> Result<bool, Refusal> {
    let headers = &head.headers;
    if headers.len() > LINES {
        let reason = "there are too many headers";
        return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason));
    }
    if head.uri.authority().is_none() && !headers.contains_key(HOST) {
        return Err(Refusal::bad("there is neither an authority nor a Host header"));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::bad("there is a transfer coding in HTTP/2"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(!is_whole),
        (Some(one), None) => match digits(one.as_bytes()) {
            Some(_) => Ok(false),
            None => Err(Refusal::bad("the Content-Length is not one number")),
        },
        _ => Err(Refusal::bad("there are several Content-Lengths")),
    }
}
