//! Requests that two servers could read in two ways are refused, or made plain.
//!
//! httparse refuses lines folded (obs-fold), bytes that are not allowed in names and values and
//! blanks before a colon; [`request_head`](super::request_head) lengths that are no numbers or differ
//! and codings without a final `chunked`; and the codec bad chunks. A line that ends in a bare LF is
//! read, and `Transfer-Encoding` is preferred to `Content-Length`; what has been read is written
//! anew, so no backend sees the ambiguity. The rest is here. Requests that need none of it pass by
//! [`plain`](super::plain).

use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body::Body;

use super::refusal::Refusal;
use super::request_head::digits;

/// Header lines of a request of HTTP/2; as many as of HTTP/1.1.
const HEADERS: usize = 100;
const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");

/// Refuses a request that is ambiguous or not for us, and makes its target a path.
pub(crate) fn check<B>(request: &mut Request<B>) -> Result<(), Refusal> {
    if request.method() == Method::CONNECT {
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "CONNECT is for forward proxies"));
    }
    coding(request.headers_mut())?;
    // Before the target's own host takes their place.
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host.as_bytes()) => {}
        (Some(_), None) => return Err(Refusal::bad("the Host header is not a valid host")),
        (Some(_), Some(_)) => return Err(Refusal::bad("there are several Host headers")),
        (None, _) if request.version() == Version::HTTP_11 => {
            return Err(Refusal::bad("there is no Host header"));
        }
        (None, _) => {}
    }
    target(request)?;
    if request.headers().get(EXPECT).is_some_and(is_continue) {
        // Kept by us, as soon as the backend's connection wants the body.
        request.headers_mut().remove(EXPECT);
    }
    // Whatever the client speaks, backends are spoken to in 1.1.
    *request.version_mut() = Version::HTTP_11;
    Ok(())
}

/// Makes a request of HTTP/2 one of HTTP/1.1, which [`check`] has to see.
///
/// The codec has refused what belongs to a connection, bodies of another length than the first
/// `Content-Length` says, and targets that are no path. What it leaves to us is the rest.
pub(crate) fn from_http2<B: Body>(request: &mut Request<B>) -> Result<(), Refusal> {
    let is_whole = request.body().is_end_stream();
    let has_authority = request.uri().authority().is_some();
    let headers = request.headers_mut();
    if headers.len() > HEADERS {
        let reason = "there are too many headers";
        return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason));
    }
    if !has_authority && !headers.contains_key(HOST) {
        return Err(Refusal::bad("there is neither an authority nor a Host header"));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::bad("there is a transfer coding in HTTP/2"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (None, _) if is_whole => {}
        // Its end is known when it comes.
        (None, _) => drop(headers.insert(TRANSFER_ENCODING, CHUNKED)),
        (Some(one), None) => {
            let length = digits(one.as_bytes())
                .ok_or_else(|| Refusal::bad("the Content-Length is not one number"))?;
            // Without leading zeros, so that every backend reads the same number.
            headers.insert(CONTENT_LENGTH, length.into());
        }
        _ => return Err(Refusal::bad("there are several Content-Lengths")),
    }
    // One line in HTTP/1.1, several pieces here (RFC 9113, section 8.2.3).
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, cookie);
    }
    Ok(())
}

/// `chunked` and nothing else: we would have to undo any other coding. It is written as everybody
/// knows it: a server that does not take `chunKed` for it would see no body, and then a request.
fn coding(headers: &mut HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            headers.insert(TRANSFER_ENCODING, CHUNKED);
            Ok(())
        }
        _ => Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "the transfer coding is not chunked")),
    }
}

/// A target in absolute form becomes a path, and its authority the host (RFC 9112, section 3.2.2).
fn target<B>(request: &mut Request<B>) -> Result<(), Refusal> {
    let uri = request.uri();
    let Some(path) = uri.path_and_query() else {
        return Err(Refusal::bad("the target is not a path"));
    };
    if path.as_str() == "*" && request.method() != Method::OPTIONS {
        return Err(Refusal::bad("the target * is for OPTIONS"));
    }
    if !path.as_str().starts_with('/') && path.as_str() != "*" {
        return Err(Refusal::bad("the target is not a path"));
    }
    let Some(authority) = uri.authority() else { return Ok(()) };
    let http = uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https"));
    let host = HeaderValue::from_str(authority.as_str());
    let (true, false, Ok(host)) = (http, authority.as_str().contains('@'), host) else {
        return Err(Refusal::bad("the target is neither a path nor an http URL"));
    };
    let path = crate::hooks::origin_form(uri.clone());
    *request.uri_mut() = path;
    request.headers_mut().insert(HOST, host);
    Ok(())
}

/// A host and its port, or nothing; backends that speak HTTP/2 get it as `:authority`. What else a
/// name may be, backends decide.
pub(super) fn is_host(host: &[u8]) -> bool {
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

fn is_continue(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"100-continue")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, lines: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::builder().uri(target);
        for (name, value) in lines {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    fn status(target: &str, lines: &[(&str, &str)]) -> Option<u16> {
        check(&mut request(target, lines)).err().map(|refusal| refusal.answer().status().as_u16())
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        let host = ("host", "h");
        assert_eq!(status("/", &[host]), None);
        assert_eq!(status("/", &[]), Some(400));
        assert_eq!(status("/", &[host, host]), Some(400));
        assert_eq!(status("http://b/", &[host]), None);
        assert_eq!(status("http://b/", &[]), Some(400), "1.1 always says a Host");
        assert_eq!(status("http://b/", &[host, host]), Some(400));
        assert_eq!(status("http://b/", &[("host", "a b")]), Some(400));
        for bad in ["a b", "a/b", "u@h", "h?x", "a,b", "<h>", "a%b", "h:1:2", "["] {
            assert_eq!(status("/", &[("host", bad)]), Some(400), "{bad}");
        }
        for bad in ["gzip, chunked", "chunked, chunked", "identity", "xchunked", ""] {
            assert_eq!(status("/", &[host, ("transfer-encoding", bad)]), Some(501), "{bad}");
        }
        assert_eq!(status("/", &[host, ("transfer-encoding", "Chunked")]), None);
        let mut odd = request("/", &[host, ("transfer-encoding", "chunKed")]);
        check(&mut odd).unwrap();
        assert_eq!(odd.headers()[TRANSFER_ENCODING], "chunked");
        assert_eq!(status("*", &[host]), Some(400));
        assert_eq!(status("h:80", &[host]), Some(400));
        assert_eq!(status("ftp://h/x", &[host]), Some(400));
        assert_eq!(status("http://u@h/x", &[host]), Some(400));
    }

    #[test]
    fn a_path_stays_as_it_is_and_an_url_becomes_one() {
        for path in ["//a/../b?x=%2f", "/%00?", "/a;b=c?d=e&&f", "/?"] {
            let mut plain = request(path, &[("host", "h")]);
            check(&mut plain).unwrap();
            assert_eq!(plain.uri().to_string(), path);
        }
        let mut absolute = request("http://shop:81//x/?y", &[("host", "other")]);
        check(&mut absolute).unwrap();
        assert_eq!(absolute.uri().to_string(), "//x/?y");
        assert_eq!(absolute.headers()[HOST], "shop:81");
        // An empty path beside a fragment is a path too.
        let mut bare = request("http://shop#", &[("host", "shop")]);
        check(&mut bare).unwrap();
        assert_eq!(bare.uri().to_string(), "/");
    }

    #[test]
    fn an_expectation_that_we_keep_goes_no_further() {
        let mut request = request("/", &[("host", "h"), ("expect", "100-Continue")]);
        check(&mut request).unwrap();
        assert!(!request.headers().contains_key(EXPECT));
    }
}
