//! Why a proxy cannot be started.

use std::io;
use std::net::SocketAddr;

/// Why a proxy cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyStartError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// A backend's name or certificate name is of no use.
    #[error("backend {name:?}: {reason}")]
    Backend {
        /// The backend.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The proxy would be its own backend.
    #[error(
        "backend {name:?} is this proxy itself ({addr}): its requests would come back for ever; \
         listen elsewhere, or name another backend"
    )]
    Loop {
        /// The backend.
        name: String,
        /// Where the proxy listens.
        addr: SocketAddr,
    },
    /// TLS towards backends.
    #[error(transparent)]
    Tls(#[from] gake_wire::TlsError),
    /// TLS towards clients.
    #[error("{what} cannot be used: {reason}")]
    Certificate {
        /// Which file.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// The system has no thread or descriptor for it.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}
