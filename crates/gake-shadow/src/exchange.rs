//! One request and what every backend made of it.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use gake_core::record::Fault;
use http::{HeaderMap, Method, StatusCode, Uri};

/// One request and the outcomes of all backends that were chosen for it.
#[derive(Debug, Clone)]
pub struct MirroredExchange {
    /// Unique within one run of the proxy, in no strict order.
    pub id: u64,
    /// When the request's head had been read, in nanoseconds since the Unix epoch.
    pub received_unix_ns: u64,
    /// Who sent it.
    pub client: Option<SocketAddr>,
    /// The request as it was received, without its hop-by-hop headers.
    pub request: CapturedRequest,
    /// The master first, the others in the order of the configuration.
    pub backends: Vec<BackendOutcome>,
}

impl MirroredExchange {
    /// The outcome of the backend whose answer the client got, or was to get.
    #[must_use]
    pub fn master(&self) -> Option<&BackendOutcome> {
        self.backends.iter().find(|outcome| outcome.role == Role::Master)
    }

    /// The outcome of a backend by its name.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&BackendOutcome> {
        self.backends.iter().find(|outcome| &*outcome.name == name)
    }
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    /// The method.
    pub method: Method,
    /// The target as it stood in the request line: path and query, byte for byte.
    pub uri: Uri,
    /// The headers, `Host` among them.
    pub headers: HeaderMap,
    /// The body.
    pub body: CapturedBody,
}

/// A body, kept up to a limit.
#[derive(Debug, Clone, Default)]
pub struct CapturedBody {
    /// Its first bytes.
    pub bytes: Bytes,
    /// Whether there were more.
    pub truncated: bool,
    /// How many bytes were seen in all; a reader that stopped early has not seen the rest.
    pub len: u64,
}

/// What a backend is to the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Answers the client.
    Master,
    /// Gets a copy.
    Shadow,
    /// Gets a copy and is known to be the same as the master: what differs between the two is
    /// noise.
    Secondary,
}

impl Role {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Shadow => "shadow",
            Self::Secondary => "secondary",
        }
    }
}

/// What came of a request at one backend.
#[derive(Debug, Clone)]
pub struct BackendOutcome {
    /// The backend's name, as in the configuration.
    pub name: std::sync::Arc<str>,
    /// What it is.
    pub role: Role,
    /// The answer, or why it is missing.
    pub result: Result<BackendResponse, BackendFailure>,
    /// From the request's turn to an open connection, in nanoseconds; 0 when one was open already.
    pub connect_ns: u64,
    /// From the request's turn (a copy's wait in its queue not counted) to the answer's head.
    /// `None` when there was none.
    pub first_byte_ns: Option<u64>,
    /// From the request's turn to the end, whatever it was.
    pub total_ns: u64,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct BackendResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers, without the hop-by-hop ones.
    pub headers: HeaderMap,
    /// The body.
    pub body: CapturedBody,
}

/// Why a backend has no answer to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendFailure {
    /// It was asked, and this went wrong.
    Fault(Fault),
    /// The client left before it was done.
    ClientGone,
    /// It was never asked, for this reason (a category of the ledger, as `shed_queue`).
    NotSent(&'static str),
}

impl BackendFailure {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::ClientGone => "client_gone",
            Self::NotSent(reason) => reason,
        }
    }
}

impl fmt::Display for BackendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::ClientGone => f.write_str("the client left"),
            Self::NotSent(reason) => write!(f, "not sent: {reason}"),
        }
    }
}
