//! A spec as written: any field may be missing, and no default is applied yet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::value::{
    ArrivalsValue, BodyValue, CountValue, ExpectValue, HeaderValue, OverflowValue, RateValue,
    SpeedValue, StagesValue, TimeValue, UsersValue,
};
use super::{HttpVersion, IpFamily, TlsVersion};

/// A run as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDraft {
    /// The version of the format; the newest by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The name of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Worker threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<CountValue>,
    /// Whether a worker polls the last part of each wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spin: Option<bool>,
    /// Makes random arrivals repeatable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<CountValue>,
    /// The first part of the run, left out of the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<TimeValue>,
    /// Objectives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<String>,
    /// Whether the run ends as soon as an objective is missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<bool>,
    /// Maximum number of distinct series of the run's own metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_series: Option<CountValue>,
    /// Sources to sample during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
    /// How connections are made and used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub connection: ConnectionDraft,
    /// TLS settings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: TlsDraft,
    /// The loads.
    #[serde(default, rename = "scenario", skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<ScenarioDraft>,
}

/// A load as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioDraft {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// The URL of its one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A targets file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<PathBuf>,
    /// A recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// The origin that a recording is sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Speed relative to the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedValue>,
    /// Patterns of the recorded requests to send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// A script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// The function of the script that an iteration calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The script's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The name of requests that the embedding program provides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,

    /// Method of every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Header lines of every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderValue>,
    /// The body of requests that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyValue>,
    /// `user:password` for basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Status codes that are ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectValue>,
    /// The check that the body of a response must pass to be ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_body: Option<String>,
    /// The message that is sent to a WebSocket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ws_message: Option<BodyValue>,
    /// Which message of a WebSocket is an answer: a check like that of a body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ws_expect: Option<String>,
    /// Whether messages of a WebSocket await no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ws_send_only: Option<bool>,
    /// Files that define the services of gRPC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proto: Vec<PathBuf>,
    /// A compiled set of definitions in place of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto_set: Option<BodyValue>,
    /// Folders that these files import from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proto_paths: Vec<PathBuf>,
    /// Whether the parts of answers are timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether the bodies of failed answers are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_errors: Option<bool>,

    /// Arrivals a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateValue>,
    /// Steps and ramps of the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StagesValue>,
    /// How arrivals are spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsValue>,
    /// Users of a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<UsersValue>,
    /// Maximum users of a closed loop whose number is set from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_max: Option<CountValue>,
    /// Time between an answer and a user's next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<TimeValue>,
    /// Time from one start of a user to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<TimeValue>,
    /// Iterations of all users together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<CountValue>,
    /// Iterations that each user makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations_per_user: Option<CountValue>,
    /// How long a user that leaves before the end may take for what it has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graceful_ramp_down: Option<TimeValue>,

    /// From the start of the run to the start of this load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<TimeValue>,
    /// How long to send requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<TimeValue>,
    /// The number of arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<CountValue>,
    /// How long those in flight may take after the last arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graceful_stop: Option<TimeValue>,
    /// Maximum number of connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<CountValue>,
    /// Maximum number of arrivals in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<CountValue>,
    /// What happens to an arrival that is due while all lanes are busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<OverflowValue>,
    /// Tags of every sample.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Its requests, in turn by their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<RequestDraft>,
}

/// One request as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestDraft {
    /// The name its figures are kept under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URL.
    pub url: String,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Header lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderValue>,
    /// The body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyValue>,
    /// How often it is sent, relative to the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Connection settings as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionDraft {
    /// Time-out of a whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeValue>,
    /// Time-out of opening a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<TimeValue>,
    /// Time-out of the first byte of a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_timeout: Option<TimeValue>,
    /// Whether a connection serves more than one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive: Option<bool>,
    /// Maximum number of redirects followed for one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_redirects: Option<u32>,
    /// Maximum number of new connections a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_rate: Option<RateValue>,
    /// Connections opened at the start and held without a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<CountValue>,
    /// Idle connections kept to a host after use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_idle: Option<CountValue>,
    /// The HTTP version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpVersion>,
    /// Maximum number of concurrent requests on an HTTP/2 connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<CountValue>,
    /// Flow-control window of an HTTP/2 stream in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window: Option<u32>,
    /// Flow-control window of an HTTP/2 connection in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_window: Option<u32>,
    /// Source addresses of connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// `HOST:PORT:ADDRESS` rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<String>,
    /// `HOST1:PORT1:HOST2:PORT2` rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect_to: Vec<String>,
    /// A Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<PathBuf>,
    /// A proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Only addresses of this family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<IpFamily>,
    /// Answers kept on each worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_answers: Option<CountValue>,
    /// Bytes kept of the body of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_body_bytes: Option<CountValue>,
}

/// TLS settings as written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsDraft {
    /// Whether any certificate is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// PEM files that are trusted instead of the system's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ca_certificates: Vec<PathBuf>,
    /// The client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Whether sessions are resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_tickets: Option<bool>,
    /// Whether sessions are resumed and requests sent with the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_data: Option<bool>,
    /// The oldest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<TlsVersion>,
    /// The newest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_version: Option<TlsVersion>,
    /// The cipher suites that are offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
    /// The configurations by which the hello is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ech: Option<PathBuf>,
    /// Where the secrets of sessions are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_log: Option<PathBuf>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
