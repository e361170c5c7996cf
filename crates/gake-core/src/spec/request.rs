//! The requests of a spec.

use std::path::PathBuf;
use std::sync::Arc;

use crate::plan::ExpectedStatus;

/// The status of the answer that opens a session (RFC 6455, section 4.2.2).
const SESSION_OPEN: u16 = 101;

/// The HTTP status of an answer that has a status of gRPC.
const CALLED: u16 = 200;

/// Where requests come from.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestSource {
    /// One request.
    Url(String),
    /// Messages in sessions of a WebSocket.
    WebSocket(WebSocketSpec),
    /// Calls of a method of gRPC; the body of the scenario is the message, in JSON.
    Grpc(GrpcSpec),
    /// These requests, interleaved by weight.
    Requests(Vec<RequestSpec>),
    /// The requests of a targets file, in turn; `-` is standard input.
    Targets(PathBuf),
    /// The requests of a recording, as they were recorded.
    Recording(RecordingSpec),
    /// A script's function.
    Script(ScriptSpec),
    /// Requests that the embedding program makes during the run, under this name. It provides them
    /// in addition to the spec; a file alone cannot.
    Given(String),
}

impl RequestSource {
    /// What a scenario sends unless it says otherwise is ok with these status codes: a WebSocket's
    /// session is open with 101.
    #[must_use]
    pub(crate) fn expect(&self) -> ExpectedStatus {
        match self {
            Self::WebSocket(_) => ExpectedStatus::only(SESSION_OPEN),
            Self::Grpc(_) => ExpectedStatus::only(CALLED),
            _ => ExpectedStatus::default(),
        }
    }
}

/// Messages in sessions of a WebSocket (RFC 6455).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebSocketSpec {
    /// The URL, with the scheme `ws` or `wss`.
    pub url: String,
    /// The message that an arrival sends; a ping without one.
    pub message: Option<BodySpec>,
    /// Which message is an answer: one that passes this check, written like that of a body; the
    /// next one without it.
    pub expect: Option<String>,
    /// Whether no answer is awaited: a message is done once it is written.
    pub send_only: bool,
}

impl WebSocketSpec {
    /// Whether a URL is that of a WebSocket: `ws://` or `wss://`.
    #[must_use]
    pub fn has_scheme(url: &str) -> bool {
        let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("ws") || s.eq_ignore_ascii_case("wss"))
    }
}

/// Calls of a method of gRPC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrpcSpec {
    /// The URL: `grpc://HOST:PORT/package.Service/Method`, or `grpcs://` over TLS.
    pub url: String,
    /// Files of definitions: `.proto` sources, or compiled sets. The server's reflection tells
    /// them if there are none.
    pub proto: Vec<PathBuf>,
    /// A compiled set in place of the files, as `protoc --descriptor_set_out --include_imports`
    /// writes it: a spec that is to be run elsewhere has it in itself.
    pub proto_set: Option<BodySpec>,
    /// Folders that the sources import from; by default their own.
    pub proto_paths: Vec<PathBuf>,
}

impl GrpcSpec {
    /// Whether a URL is that of a method of gRPC: `grpc://` or `grpcs://`.
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
    /// The body.
    pub body: Option<BodySpec>,
    /// `user:password` for basic authentication.
    pub user: Option<String>,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSpec {
    /// The name of its figures; method and path by default.
    pub name: Option<String>,
    /// The method; by default GET, or POST with a body.
    pub method: Option<String>,
    /// The URL.
    pub url: String,
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<BodySpec>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
}

/// A body.
#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The contents of a file; `-` is standard input.
    File(PathBuf),
}

/// A recording, and where it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingSpec {
    /// The file.
    pub path: PathBuf,
    /// The origin that its paths are sent to: `http://HOST:PORT`.
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
    /// Its environment: names and values.
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
    /// A body of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Bytes(Arc::from(text.as_bytes()))
    }
}
