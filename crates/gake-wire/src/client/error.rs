//! Errors in preparing requests.

use gake_codec::http1::request::RequestError;

use crate::net::address::ResolveError;
use crate::net::location::LocationError;
use crate::net::source::SourceAddressError;
use crate::tls::TlsError;

/// Why a request cannot be prepared before the run.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No request, or none with a positive weight.
    #[error("there is nothing to send: no target, or every weight is 0")]
    Nothing,
    /// An invalid URL.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A name without an address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A request that is not valid HTTP.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Invalid TLS settings or files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A source that cannot be used.
    #[error(transparent)]
    Source(#[from] SourceAddressError),
    /// A second WebSocket.
    #[error("{0:?}: all messages of a scenario must go to the same WebSocket")]
    WebSocket(String),
    /// A setting that excludes HTTP/3.
    #[error("HTTP/3 {0}")]
    Http3(&'static str),
    /// A host outside the allowed targets.
    #[error("connections to {0:?} are not allowed")]
    NotAllowed(String),
    /// A name that no certificate can have.
    #[error("{0:?} cannot be checked against a certificate")]
    ServerName(String),
}
