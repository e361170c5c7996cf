//! The requests of a spec.

use std::path::PathBuf;
use std::sync::Arc;

use crate::plan::ExpectedStatus;

/// The status that opens a WebSocket session (RFC 6455, section 4.2.2).
const SESSION_OPEN: u16 = 101;

/// The HTTP status of a gRPC response.
const GRPC_OK: u16 = 200;

/// Where requests come from.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestSource {
    /// One request.
    Url(String),
    /// A request for each row of a data file, in turn.
    Rows(RowsSpec),
    /// Messages in sessions of a WebSocket.
    WebSocket(WebSocketSpec),
    /// Calls of a gRPC method; the body of the scenario is the message, in JSON.
    Grpc(GrpcSpec),
    /// These requests, interleaved by weight.
    Requests(Vec<RequestSpec>),
    /// The requests of a targets file, in turn; `-` is standard input.
    Targets(PathBuf),
    /// The requests of a recording.
    Recording(RecordingSpec),
    /// A script's function.
    Script(ScriptSpec),
    /// Requests supplied by the embedding program, with a name for reports. Not possible in a file
    /// alone.
    Given(String),
}

impl RequestSource {
    /// The default of the expected status.
    #[must_use]
    pub(crate) fn expect(&self) -> ExpectedStatus {
        match self {
            Self::WebSocket(_) => ExpectedStatus::only(SESSION_OPEN),
            Self::Grpc(_) => ExpectedStatus::only(GRPC_OK),
            _ => ExpectedStatus::default(),
        }
    }
}

/// Requests from the rows of a data file: its values replace `${column}` in URL, headers and body.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsSpec {
    /// The URL.
    pub url: String,
    /// The file: comma-separated values whose first line names the columns.
    pub path: PathBuf,
}

/// Messages in sessions of a WebSocket (RFC 6455).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebSocketSpec {
    /// The URL, with the scheme `ws` or `wss`.
    pub url: String,
    /// The message that an arrival sends; by default a ping.
    pub message: Option<BodySpec>,
    /// A check, as of a body, for the message that is the response; by default the next message.
    pub expect: Option<String>,
    /// Whether a message completes when it is written, without a response.
    pub send_only: bool,
}

impl WebSocketSpec {
    /// Whether the scheme of a URL is `ws` or `wss`.
    #[must_use]
    pub fn has_scheme(url: &str) -> bool {
        let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("ws") || s.eq_ignore_ascii_case("wss"))
    }
}

/// Calls of a gRPC method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrpcSpec {
    /// The URL: `grpc://HOST:PORT/package.Service/Method`, or `grpcs://` over TLS.
    pub url: String,
    /// Definitions: `.proto` sources, or compiled sets. By default, server reflection.
    pub proto: Vec<PathBuf>,
    /// A compiled set in place of the files (`protoc --descriptor_set_out --include_imports`), so
    /// that a spec can be run elsewhere.
    pub proto_set: Option<BodySpec>,
    /// Import paths of the sources; by default their own folders.
    pub proto_paths: Vec<PathBuf>,
}

impl GrpcSpec {
    /// Whether the scheme of a URL is `grpc` or `grpcs`.
    #[must_use]
    pub fn has_scheme(url: &str) -> bool {
        let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("grpc") || s.eq_ignore_ascii_case("grpcs"))
    }
}

/// Defaults for all requests of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestDefaults {
    /// The method; overrides that of a targets file.
    pub method: Option<String>,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The body, for requests without one.
    pub body: Option<BodySpec>,
    /// `user:password` for basic authentication.
    pub user: Option<String>,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSpec {
    /// The label of its figures; by default method and path.
    pub name: Option<String>,
    /// The method; by default GET, or POST with a body.
    pub method: Option<String>,
    /// The URL.
    pub url: String,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<BodySpec>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
}

/// A request body.
#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The contents of a file; `-` is standard input.
    File(PathBuf),
}

/// A recording, and its new target.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingSpec {
    /// The file.
    pub path: PathBuf,
    /// The origin that replaces the recorded one: `http://HOST:PORT`.
    pub to: String,
    /// Patterns of the requests to send, such as `GET /api/*`; all if empty.
    pub select: Vec<String>,
}

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptSpec {
    /// The file.
    pub path: PathBuf,
    /// The function that an iteration calls; by default the script's default export.
    pub function: Option<String>,
    /// Environment variables: names and values.
    pub environment: Vec<(String, String)>,
}

impl RequestSpec {
    /// A request without headers and body.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            name: None,
            method: None,
            url: url.into(),
            headers: Vec::new(),
            body: None,
            weight: 1,
        }
    }
}

impl BodySpec {
    /// A body from a string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Bytes(Arc::from(text.as_bytes()))
    }
}
