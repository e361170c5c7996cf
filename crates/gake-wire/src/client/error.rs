//! Why a request cannot be sent.

use gake_codec::http1::request::RequestError;

use crate::net::address::ResolveError;
use crate::net::location::LocationError;
use crate::net::source::SourceAddressError;
use crate::tls::TlsError;

/// Why a request cannot be sent, found out before the run.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Nothing to send.
    #[error("there is nothing to send: no target, or every weight is 0")]
    Nothing,
    /// A bad URL.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A name without an address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A request that is not HTTP.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Bad TLS files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A source that cannot be used.
    #[error(transparent)]
    Source(#[from] SourceAddressError),
    /// A second WebSocket.
    #[error("{0:?}: all messages of a scenario go to one WebSocket")]
    WebSocket(String),
    /// What HTTP/3 cannot have.
    #[error("HTTP/3 {0}")]
    Http3(&'static str),
    /// A host that may not be connected to.
    #[error("connections to {0:?} are not allowed")]
    NotAllowed(String),
    /// A name that no certificate can have.
    #[error("{0:?} cannot be checked against a certificate")]
    ServerName(String),
}
