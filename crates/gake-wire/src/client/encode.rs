//! Encodes requests for HTTP/2, HTTP/3 and WebSocket.

use std::sync::Arc;

use gake_codec::http1::request::RequestError;
use gake_codec::http2::{RequestTemplate, SharedFields};
use gake_codec::http3::StreamRequest;
use gake_codec::websocket::UpgradeRequest;

use crate::client::grpc;
use crate::client::request::HttpMessage;
use crate::net::location::Scheme;

/// Headers that HTTP/2 and HTTP/3 forbid (RFC 9113, section 8.2.2; RFC 9114, section 4.2).
const FORBIDDEN: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The fields of a request in HTTP/2 and HTTP/3.
struct RequestFields<'a> {
    own: (&'a str, &'a str, &'a str),
    /// The authority and the headers, which requests often share.
    shared: Vec<(String, Vec<u8>)>,
    length: Option<String>,
    is_grpc: bool,
}

impl HttpMessage {
    /// The request in HTTP/2, without forbidden headers. The message must be valid in HTTP/1.1.
    pub(crate) fn template(&self) -> RequestTemplate {
        let RequestFields { own, shared, length, is_grpc } = self.fields();
        let shared: Vec<_> =
            shared.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let length = length.as_ref().map(|length| ("content-length", length.as_bytes()));
        let shared = Arc::new(SharedFields::new(&shared));
        let mut template = RequestTemplate::new(own, shared, length.as_slice(), self.body.clone());
        template.is_grpc = is_grpc;
        template
    }

    pub(crate) fn stream_request(&self) -> StreamRequest {
        let RequestFields { own: (method, scheme, path), shared, length, is_grpc } = self.fields();
        let own = [(":method", method), (":scheme", scheme), (":path", path)];
        let own = own.map(|(name, value)| (name, value.as_bytes()));
        let shared = shared.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        let length = length.as_ref().map(|length| ("content-length", length.as_bytes()));
        let fields = own.into_iter().chain(shared).chain(length);
        let mut request = StreamRequest::new(fields, self.body.clone());
        (request.is_head, request.is_grpc) = (method == "HEAD", is_grpc);
        request
    }

    fn fields(&self) -> RequestFields<'_> {
        let given =
            |wanted: &str| self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let own_authority = self.location.authority();
        let host = given("host").map(|(_, value)| value.trim()).filter(|host| !host.is_empty());
        let authority = host.unwrap_or(&own_authority);
        let mut shared = vec![(":authority".to_owned(), authority.as_bytes().to_vec())];
        let text = self.headers.iter().map(|(name, value)| (name, value.as_bytes()));
        let opaque = self.opaque.iter().map(|(name, value)| (name, value.as_slice()));
        for (name, value) in text.chain(opaque) {
            let name = name.to_ascii_lowercase();
            let is_empty_agent = name == "user-agent" && value.is_empty();
            if !matches!(name.as_str(), "host" | "content-length")
                && !is_forbidden(&name, value)
                && !is_empty_agent
            {
                shared.push((name, value.trim_ascii().to_vec()));
            }
        }
        if given("user-agent").is_none() {
            let agent = concat!("gake/", env!("CARGO_PKG_VERSION"));
            shared.push(("user-agent".to_owned(), agent.as_bytes().to_vec()));
        }
        let body = self.body.as_deref().unwrap_or_default();
        // RFC 9110, section 8.6: methods that imply content announce even an empty one.
        let announces =
            !body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        let is_streamed = given("transfer-encoding").is_some();
        let content_type = given("content-type").map(|(_, value)| value.trim());
        let is_grpc = content_type.is_some_and(grpc::is_content_type);
        // A gRPC body ends with its stream.
        let has_length =
            (announces && !is_streamed && !is_grpc) || given("content-length").is_some();
        let length = has_length.then(|| body.len().to_string());
        let scheme = if self.location.scheme == Scheme::Https { "https" } else { "http" };
        let own = (self.method.as_str(), scheme, self.location.target.as_str());
        RequestFields { own, shared, length, is_grpc }
    }

    pub(crate) fn upgrade(&self) -> Result<UpgradeRequest, RequestError> {
        let authority = self.location.authority();
        UpgradeRequest::new((&authority, &self.location.target), &self.headers, &self.opaque)
    }

    /// The names of its headers that HTTP/2 forbids.
    pub(crate) fn forbidden_headers(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter();
        let is_forbidden = |(name, value): &&(String, String)| {
            is_forbidden(&name.to_ascii_lowercase(), value.as_bytes())
        };
        headers.filter(is_forbidden).map(|(name, _)| name.as_str())
    }
}

/// `name` must be in lower case.
fn is_forbidden(name: &str, value: &[u8]) -> bool {
    FORBIDDEN.contains(&name)
        || name == "te" && !value.trim_ascii().eq_ignore_ascii_case(b"trailers")
}
