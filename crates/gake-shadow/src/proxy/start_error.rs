//! Errors of starting a proxy.

use std::io;
use std::net::SocketAddr;

/// Why a proxy cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyStartError {
    /// Listening fails.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A backend's name cannot be resolved, or is invalid in TLS.
    #[error("backend {name:?}: {reason}")]
    Backend {
        /// The name of the backend.
        name: String,
        /// The error.
        reason: String,
    },
    /// A backend's address is that of the proxy.
    #[error(
        "backend {name:?} is this proxy itself ({addr}): requests would loop; \
         listen elsewhere, or name another backend"
    )]
    Loop {
        /// The name of the backend.
        name: String,
        /// The proxy's address.
        addr: SocketAddr,
    },
    /// The TLS settings for backends are invalid.
    #[error(transparent)]
    Tls(#[from] gake_wire::TlsError),
    /// The certificate or key for clients is invalid.
    #[error("{what} cannot be used: {reason}")]
    Certificate {
        /// The file.
        what: String,
        /// The error.
        reason: String,
    },
    /// A thread or its runtime cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}
