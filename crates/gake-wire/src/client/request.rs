//! Requests: as described, and prepared for sending.

use std::borrow::Cow;
use std::sync::Arc;

use gake_codec::http1::Version;
use gake_codec::http1::request::{RenderedRequest, RequestError, RequestParts, render};
use gake_codec::http2::RequestTemplate;
use gake_codec::http3::StreamRequest;
use gake_codec::websocket::MessageFrame;

use crate::net::location::{Location, Scheme, basic_authorization};
use crate::net::proxy::ForwardProxy;

/// A request to send. `Host`, `User-Agent` and `Content-Length` are added unless a header sets
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method; case matters.
    pub method: String,
    /// The URL; `http` without a scheme.
    pub url: String,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// Header lines after `headers` whose values are not UTF-8, as in some recordings.
    pub opaque: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Option<Arc<[u8]>>,
}

impl HttpRequest {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let (headers, opaque) = (Vec::new(), Vec::new());
        Self { method: method.into(), url: url.into(), headers, opaque, body: None }
    }
}

/// A request ready to be sent by the clients of the [`Network`](crate::Network) that prepared it.
#[derive(Debug)]
pub struct PreparedRequest {
    /// The number of its origin in the network.
    pub(crate) origin: u32,
    pub(crate) rendered: RenderedRequest,
    /// The encoding for HTTP/2, if connections may speak it.
    pub(crate) http2: Option<Box<RequestTemplate>>,
    /// The encoding for HTTP/3, if connections may speak it.
    pub(crate) http3: Option<Box<StreamRequest>>,
    /// The message, if the protocol is WebSocket.
    pub(crate) websocket: Option<Box<MessageFrame>>,
    /// Kept if redirects are followed.
    pub(crate) message: Option<Box<HttpMessage>>,
}

/// A request independent of its transport.
#[derive(Debug, Clone)]
pub(crate) struct HttpMessage {
    pub(crate) location: Location,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) opaque: Vec<(String, Vec<u8>)>,
    pub(crate) body: Option<Arc<[u8]>>,
}

impl PreparedRequest {
    /// The request in HTTP/1.1, head and body.
    #[must_use]
    pub fn as_http1(&self) -> Vec<u8> {
        [&self.rendered.first[..], self.rendered.rest.as_deref().unwrap_or_default()].concat()
    }

    /// One or several whole requests in HTTP/1.1 to an origin of the network, sent as they are.
    pub(crate) fn raw(origin: u32, bytes: Vec<u8>) -> Self {
        let method = bytes.split(|byte| *byte == b' ').next().unwrap_or_default();
        let idempotent = matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE");
        let is_head = method == b"HEAD";
        let (rest, replayable, closes) = (None, false, false);
        let rendered =
            RenderedRequest { first: bytes, rest, is_head, idempotent, replayable, closes };
        let (http2, http3, websocket, message) = (None, None, None, None);
        Self { origin, rendered, http2, http3, websocket, message }
    }

    /// The same request with one more header, whose name must be in lower case; `None` if it has that
    /// header, or is a WebSocket message.
    pub(crate) fn with_header(&self, name: &str, value: &str) -> Option<Self> {
        if self.websocket.is_some() {
            return None;
        }
        let rendered = self.rendered.with_header(name, value)?;
        let mut http2 = self.http2.clone();
        if let Some(template) = &mut http2 {
            template.push(name, value.as_bytes());
        }
        let mut http3 = self.http3.clone();
        if let Some(request) = &mut http3 {
            request.push(name, value.as_bytes());
        }
        let mut message = self.message.clone();
        if let Some(message) = &mut message {
            message.headers.push((name.to_owned(), value.to_owned()));
        }
        Some(Self { origin: self.origin, rendered, http2, http3, websocket: None, message })
    }
}

impl HttpMessage {
    /// `location`: the parsed URL of `request`.
    pub(crate) fn new(request: &HttpRequest, location: Location) -> Self {
        let mut headers = request.headers.clone();
        let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(user) = location.user.as_ref().filter(|_| !is_given) {
            headers.push(basic_authorization(user));
        }
        let (method, opaque) = (request.method.clone(), request.opaque.clone());
        Self { location, method, headers, opaque, body: request.body.clone() }
    }

    pub(crate) fn render(
        &self,
        version: Version,
        keep_alive: bool,
        proxy: Option<&ForwardProxy>,
    ) -> Result<RenderedRequest, RequestError> {
        let authority = self.location.authority();
        // Requests through a tunnel go to the origin itself.
        let is_clear = self.location.scheme == Scheme::Http;
        let proxy = proxy.filter(|proxy| is_clear && proxy.takes_requests());
        let mut target = Cow::Borrowed(self.location.target.as_str());
        let mut headers = Cow::Borrowed(self.headers.as_slice());
        if let Some(proxy) = proxy {
            target = Cow::Owned(format!("http://{authority}{target}"));
            headers.to_mut().extend(proxy.header());
        }
        render(&RequestParts {
            method: &self.method,
            target: &target,
            authority: &authority,
            headers: &headers,
            opaque: &self.opaque,
            body: self.body.clone(),
            keep_alive,
            version,
        })
    }
}
