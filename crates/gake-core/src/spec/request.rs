//! What is sent, as a spec says it.

use std::path::PathBuf;
use std::sync::Arc;

/// Where requests come from.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestSource {
    /// One request.
    Url(String),
    /// These requests, in turn by their weights.
    Requests(Vec<RequestSpec>),
    /// The requests of a targets file, in turn; `-` is standard input.
    Targets(PathBuf),
    /// The requests of a recording, as they were recorded.
    Recording(RecordingSpec),
    /// A script's function.
    Script(ScriptSpec),
    /// Requests that the program makes while the run goes on, under this name. It gives them beside
    /// the spec; a file alone cannot.
    Given(String),
}

/// What all requests of a scenario have in common, where they say nothing themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestDefaults {
    /// The method; wins over that of a targets file.
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
    /// The name its figures are kept under; method and path without one.
    pub name: Option<String>,
    /// The method; GET without one, POST with a body.
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
    /// What a file holds; `-` is standard input.
    File(PathBuf),
}

/// A recording, and where it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingSpec {
    /// The file.
    pub path: PathBuf,
    /// The origin that its paths are sent to: `http://HOST:PORT`.
    pub to: String,
    /// Only requests like one of these, as `GET /api/*`; all without any.
    pub select: Vec<String>,
}

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptSpec {
    /// The file.
    pub path: PathBuf,
    /// The function that an iteration calls; the script's default without one.
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
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Bytes(Arc::from(text.as_bytes()))
    }
}
