//! Renders a request into bytes, once before the run.

use std::io::Write;
use std::sync::Arc;

use super::scan::{is_text, is_token};
use super::types::Version;

/// Bodies up to this size are joined to the head, so that a request is one write.
pub const JOINED_BODY: usize = 16 * 1024;

/// The parts of a request before rendering.
#[derive(Debug, Clone)]
pub struct RequestParts<'a> {
    /// The method; case matters (RFC 9110, section 9.1).
    pub method: &'a str,
    /// The request target: path and query, an absolute URL for a proxy, or `*` (RFC 9112,
    /// section 3.2).
    pub target: &'a str,
    /// The value of `Host` unless a header gives it: the host, and the port if it is not the
    /// scheme's.
    pub authority: &'a str,
    /// Header lines, sent in this order and case.
    pub headers: &'a [(String, String)],
    /// Header lines after `headers` whose values are not UTF-8.
    pub opaque: &'a [(String, Vec<u8>)],
    /// The body, sent with `Content-Length`, or as one chunk if the headers contain
    /// `Transfer-Encoding: chunked`.
    pub body: Option<Arc<[u8]>>,
    /// If false, the request has `Connection: close`.
    pub keep_alive: bool,
    /// The version in the request line. The response may have the other one.
    pub version: Version,
}

/// The bytes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedRequest {
    /// The head, and the body after it when that is at most [`JOINED_BODY`].
    pub first: Vec<u8>,
    /// The body if it is larger, written with `first` in one vectored write.
    pub rest: Option<Arc<[u8]>>,
    /// Whether the method is HEAD, so that the response has no body.
    pub is_head: bool,
    /// Whether the request may be sent again when its connection turns out to be stale (RFC 9110,
    /// section 9.2.2).
    pub idempotent: bool,
    /// Whether the request may be sent as TLS early data, which others can replay (RFC 8470): a
    /// safe method without a body.
    pub replayable: bool,
    /// Whether the request announces that it is the last on its connection.
    pub closes: bool,
}

impl RenderedRequest {
    /// Bytes on the wire.
    #[allow(clippy::len_without_is_empty, reason = "a request is never empty")]
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// The method and the target.
    pub fn first_line(&self) -> (&str, &str) {
        let end = self.first.iter().position(|byte| *byte == b'\r').unwrap_or(0);
        let line = std::str::from_utf8(&self.first[..end]).unwrap_or_default();
        let mut words = line.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    /// The same request with one more header; `None` if it has that header already.
    pub fn with_header(&self, name: &str, value: &str) -> Option<Self> {
        let end = self.first.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 2;
        let (head, rest) = self.first.split_at(end);
        let is_given = |line: &[u8]| {
            let (start, colon) = (line.get(..name.len()), line.get(name.len()));
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
                && colon == Some(&b':')
        };
        if head.split(|byte| *byte == b'\n').any(is_given) {
            return None;
        }
        let mut first = Vec::with_capacity(self.first.len() + name.len() + value.len() + 4);
        first.extend_from_slice(head);
        line(&mut first, name, value);
        first.extend_from_slice(rest);
        let Self { is_head, idempotent, replayable, closes, .. } = *self;
        Some(Self { first, rest: self.rest.clone(), is_head, idempotent, replayable, closes })
    }
}

/// Why a request cannot be sent as described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The method is not a token (RFC 9110, section 9.1).
    #[error("{0:?} is not an HTTP method")]
    Method(String),
    /// CONNECT opens a tunnel, which is not a load.
    #[error("the method CONNECT is not supported")]
    Connect,
    /// The target is empty or holds a control character or `#`.
    #[error("{0:?} is not a request target: special characters must be %-encoded")]
    Target(String),
    /// The authority holds a blank or a control character, or is not ASCII.
    #[error("{0:?} cannot be sent as Host")]
    Authority(String),
    /// A header name is not a token.
    #[error("{0:?} is not a header name")]
    HeaderName(String),
    /// A header value holds a line break or another control character.
    #[error("the value of the header {0} holds a line break or another control character")]
    HeaderValue(String),
    /// The given `Content-Length` is not the length of the body.
    #[error("Content-Length is given as {given:?}, but the body has {actual} bytes")]
    ContentLength {
        /// The header's value.
        given: String,
        /// Bytes of the body.
        actual: usize,
    },
    /// A transfer coding other than `chunked`.
    #[error("Transfer-Encoding {0:?} is not supported: only chunked is")]
    TransferEncoding(String),
    /// A header that the upgrade to a WebSocket sets, or that it cannot have.
    #[error("the header {0} cannot be given: the upgrade to a WebSocket has its own")]
    UpgradeHeader(String),
    /// Both `Content-Length` and `Transfer-Encoding` are given (RFC 9112, section 6.2).
    #[error("a request cannot have both Content-Length and Transfer-Encoding")]
    LengthAndTransferEncoding,
}

/// Renders `spec`. Added unless given: `Host` (first), `User-Agent`, `Content-Length` if there is a
/// body or the method implies one (POST, PUT, PATCH), and `Connection` if it differs from the
/// version's default. `Accept` is not added: its absence means `*/*` (RFC 9110, section 12.5.1),
/// and every byte is sent a million times.
///
/// # Errors
/// An element that is not valid HTTP, or would break out of its line.
pub fn render(spec: &RequestParts<'_>) -> Result<RenderedRequest, RequestError> {
    check(spec)?;
    let body = spec.body.as_deref().unwrap_or_default();
    let chunked = transfer_coding(spec)?;
    check_length(spec, body.len(), chunked)?;

    let mut head = Vec::with_capacity(256 + body.len().min(JOINED_BODY));
    head.extend_from_slice(spec.method.as_bytes());
    head.push(b' ');
    head.extend_from_slice(spec.target.as_bytes());
    head.extend_from_slice(match spec.version {
        Version::Http10 => b" HTTP/1.0\r\n",
        Version::Http11 => b" HTTP/1.1\r\n",
    });
    if !given(spec, "host") {
        line(&mut head, "Host", spec.authority);
    }
    let mut has_host = false;
    for (name, value) in spec.headers {
        // RFC 9112, section 3.2: a server refuses a request with several; the first counts.
        let is_host = name.eq_ignore_ascii_case("host");
        if !(leaves_out(name, value) || is_host && has_host) {
            line(&mut head, name, value);
        }
        has_host |= is_host;
    }
    for (name, value) in spec.opaque {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    if !given(spec, "user-agent") {
        line(&mut head, "User-Agent", concat!("gake/", env!("CARGO_PKG_VERSION")));
    }
    // RFC 9110, section 8.6: methods that mean content announce even an empty one.
    let announces = !body.is_empty() || matches!(spec.method, "POST" | "PUT" | "PATCH");
    if announces && !chunked && !given(spec, "content-length") {
        line(&mut head, "Content-Length", &body.len().to_string());
    }
    match (spec.version, spec.keep_alive) {
        _ if given(spec, "connection") => {}
        (Version::Http10, true) => line(&mut head, "Connection", "Keep-Alive"),
        (Version::Http11, false) => line(&mut head, "Connection", "close"),
        _ => {}
    }
    head.extend_from_slice(b"\r\n");

    let is_safe = matches!(spec.method, "GET" | "HEAD" | "OPTIONS");
    let replayable = is_safe && body.is_empty() && !chunked;
    let (first, rest) = if chunked { attach(head, one_chunk(body)) } else { join(head, spec) };
    Ok(RenderedRequest {
        first,
        rest,
        is_head: spec.method == "HEAD",
        idempotent: matches!(spec.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"),
        replayable,
        closes: closes(spec),
    })
}

fn check(spec: &RequestParts<'_>) -> Result<(), RequestError> {
    if !is_method(spec.method) {
        return Err(RequestError::Method(spec.method.to_owned()));
    }
    if spec.method == "CONNECT" {
        return Err(RequestError::Connect);
    }
    let visible = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
    // Blanks and other letters than ASCII end no line: some tools send them.
    let has_control = spec.target.bytes().any(|byte| byte.is_ascii_control());
    if spec.target.is_empty() || has_control || spec.target.contains('#') {
        return Err(RequestError::Target(spec.target.to_owned()));
    }
    if !visible(spec.authority) {
        return Err(RequestError::Authority(spec.authority.to_owned()));
    }
    for (name, value) in spec.headers {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if !value.bytes().all(is_text) {
            return Err(RequestError::HeaderValue(name.clone()));
        }
    }
    for (name, value) in spec.opaque {
        // Headers that frame the message or name its host must be text.
        if name.is_empty()
            || !name.bytes().all(is_token)
            || FRAMING.iter().any(|one| name.eq_ignore_ascii_case(one))
        {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if !value.iter().all(|byte| is_text(*byte)) {
            return Err(RequestError::HeaderValue(name.clone()));
        }
    }
    Ok(())
}

/// Whether a header is given to suppress it: an empty `User-Agent` or `Host`.
fn leaves_out(name: &str, value: &str) -> bool {
    value.is_empty() && ["user-agent", "host"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Headers that frame a message or name its host.
const FRAMING: &[&str] = &["host", "content-length", "transfer-encoding", "connection"];

fn is_method(method: &str) -> bool {
    !method.is_empty() && method.bytes().all(is_token)
}

fn transfer_coding(spec: &RequestParts<'_>) -> Result<bool, RequestError> {
    let mut chunked = false;
    for value in values(spec, "transfer-encoding") {
        if chunked || !value.trim().eq_ignore_ascii_case("chunked") {
            return Err(RequestError::TransferEncoding(value.to_owned()));
        }
        chunked = true;
    }
    Ok(chunked)
}

/// A wrong length would desynchronise the connection: the server takes the start of the next
/// request for the body, or waits forever.
fn check_length(spec: &RequestParts<'_>, actual: usize, chunked: bool) -> Result<(), RequestError> {
    for value in values(spec, "content-length") {
        if chunked {
            return Err(RequestError::LengthAndTransferEncoding);
        }
        let digits = value.trim();
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        if !plain || digits.parse() != Ok(actual) {
            return Err(RequestError::ContentLength { given: value.to_owned(), actual });
        }
    }
    Ok(())
}

fn values<'a>(spec: &RequestParts<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    spec.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
}

fn given(spec: &RequestParts<'_>, name: &str) -> bool {
    values(spec, name).next().is_some()
}

fn closes(spec: &RequestParts<'_>) -> bool {
    let mut options = values(spec, "connection").flat_map(|v| v.split(',')).peekable();
    match options.peek() {
        Some(_) => options.any(|option| option.trim().eq_ignore_ascii_case("close")),
        None => !spec.keep_alive,
    }
}

fn line(head: &mut Vec<u8>, name: &str, value: &str) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}

type Parts = (Vec<u8>, Option<Arc<[u8]>>);

/// The head with the body of `spec`, which is shared, not copied, when it is large.
fn join(head: Vec<u8>, spec: &RequestParts<'_>) -> Parts {
    match &spec.body {
        Some(body) if body.len() > JOINED_BODY => (head, Some(Arc::clone(body))),
        Some(body) => attach(head, body.to_vec()),
        None => (head, None),
    }
}

fn attach(mut head: Vec<u8>, body: Vec<u8>) -> Parts {
    if body.len() > JOINED_BODY {
        return (head, Some(body.into()));
    }
    head.extend_from_slice(&body);
    (head, None)
}

/// The body as a chunk and the last chunk (RFC 9112, section 7.1).
fn one_chunk(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 32);
    if !body.is_empty() {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{:x}\r\n", body.len());
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
