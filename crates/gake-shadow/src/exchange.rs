//! One mirrored request and its outcome at every backend.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use gake_core::record::Fault;
use http::{HeaderMap, Method, StatusCode, Uri};

/// The numbers of a request, the same wherever it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestIds {
    /// Unique within a run of the proxy; not strictly ordered.
    pub id: u64,
    /// The client's connection, unique within a run of the proxy.
    pub connection: u64,
    /// The place of the request on its connection, from 1.
    pub sequence: u64,
}

/// One request and its outcomes at all backends selected for it.
#[derive(Debug, Clone)]
pub struct MirroredExchange {
    /// The numbers of the request.
    pub ids: RequestIds,
    /// When the request's head was read, in nanoseconds since the Unix epoch.
    pub received_unix_ns: u64,
    /// The client's address.
    pub client: Option<SocketAddr>,
    /// The request as received, without hop-by-hop headers.
    pub request: CapturedRequest,
    /// The master first, then the shadows in configuration order.
    pub backends: Vec<BackendOutcome>,
}

impl MirroredExchange {
    /// The outcome of the master, whose response goes to the client.
    #[must_use]
    pub fn master(&self) -> Option<&BackendOutcome> {
        self.backends.iter().find(|outcome| outcome.role == Role::Master)
    }

    /// The outcome at the backend of this name.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&BackendOutcome> {
        self.backends.iter().find(|outcome| &*outcome.name == name)
    }
}

/// A request as received.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    /// The method.
    pub method: Method,
    /// Path and query, byte for byte as in the request line.
    pub uri: Uri,
    /// The headers, including `Host`.
    pub headers: HeaderMap,
    /// The body.
    pub body: CapturedBody,
}

/// A body, captured up to a limit.
#[derive(Debug, Clone, Default)]
pub struct CapturedBody {
    /// The captured bytes, from the start.
    pub bytes: Bytes,
    /// Whether the body is longer than `bytes`.
    pub truncated: bool,
    /// Bytes read in all; less than the whole body where reading stopped early.
    pub len: u64,
}

/// The role of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Its responses go to the clients.
    Master,
    /// Gets copies.
    Shadow,
    /// Gets copies and runs the master's version: its differences from the master are noise.
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

/// The outcome of a request at one backend.
#[derive(Debug, Clone)]
pub struct BackendOutcome {
    /// The backend's name, as in the configuration.
    pub name: std::sync::Arc<str>,
    /// The backend's role.
    pub role: Role,
    /// The response, or why there is none.
    pub result: Result<BackendResponse, BackendFailure>,
    /// Time to open a connection, in nanoseconds; 0 on a reused one. All times start when the copy
    /// leaves its queue.
    pub connect_ns: u64,
    /// Time to the response's head, in nanoseconds; `None` without a response.
    pub first_byte_ns: Option<u64>,
    /// Time to the end of the response or to the failure, in nanoseconds.
    pub total_ns: u64,
}

/// A backend's response.
#[derive(Debug, Clone)]
pub struct BackendResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers, without hop-by-hop ones.
    pub headers: HeaderMap,
    /// The body.
    pub body: CapturedBody,
}

/// Why a backend has no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendFailure {
    /// The exchange failed.
    Fault(Fault),
    /// The client disconnected first.
    ClientGone,
    /// The request was not sent; the reason is a category of the ledger such as `shed_queue`.
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
