//! A request: as a user describes it, as all transports know it, and ready to send.

use std::sync::Arc;

use crate::authorization::basic_authorization;
use crate::http1::Version;
use crate::http1::request::{Rendered, RequestError, RequestParts, render};
use crate::http2::RequestTemplate;
use crate::location::{Location, Scheme};
use crate::proxy::HttpProxy;
use crate::websocket::MessageFrame;

/// A request to send. `Host`, `User-Agent` and `Content-Length` are added unless a header sets
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, as it is sent.
    pub method: String,
    /// The URL; `http` when it has no scheme.
    pub url: String,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// Header lines after them whose values are not UTF-8, as in some recordings.
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
    /// What HTTP/1.1 writes.
    pub(crate) rendered: Rendered,
    /// What HTTP/2 writes, when a connection may speak it.
    pub(crate) http2: Option<Box<RequestTemplate>>,
    /// What is written in a session of a WebSocket, when that is the protocol.
    pub(crate) websocket: Option<Box<MessageFrame>>,
    /// What it says, when redirects are followed.
    pub(crate) message: Option<Box<Message>>,
}

/// What a request says, whatever transport carries it.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) location: Location,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) opaque: Vec<(String, Vec<u8>)>,
    pub(crate) body: Option<Arc<[u8]>>,
}

impl Message {
    /// What `request`, whose URL is `location`, says.
    pub(crate) fn new(request: &HttpRequest, location: Location) -> Self {
        let mut headers = request.headers.clone();
        let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(user) = location.user.as_ref().filter(|_| !is_given) {
            headers.push(basic_authorization(user));
        }
        let (method, opaque) = (request.method.clone(), request.opaque.clone());
        Self { location, method, headers, opaque, body: request.body.clone() }
    }

    /// The bytes that HTTP/1.1 writes.
    pub(crate) fn render(
        &self,
        version: Version,
        keep_alive: bool,
        proxy: Option<&HttpProxy>,
    ) -> Result<Rendered, RequestError> {
        let authority = self.location.authority();
        // Through a tunnel the origin itself is asked.
        let proxy = proxy.filter(|_| self.location.scheme == Scheme::Http);
        let (mut target, mut headers) = (self.location.target.clone(), self.headers.clone());
        if let Some(proxy) = proxy {
            target = format!("http://{authority}{target}");
            headers.extend(proxy.header());
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
