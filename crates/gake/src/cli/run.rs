//! The flags of `gake run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use gake_core::spec::HttpVersion;
use gake_core::spec::value::{
    ExpectValue, HeaderValue, OverflowValue, RateValue, SpeedValue, StagesValue, UsersValue,
};
use gake_judge::Objective;

use super::grpc::GrpcArgs;
use super::script::ScriptRunArgs;
use super::tls::TlsArgs;
use super::values::{self, WatchedSource};
use super::websocket::WebSocketArgs;
use gake_session::options::{
    FleetArgs, OutputArgs, RedactionArgs, SaveArgs, SpecFormat, TraceArgs, WebArgs,
};

/// Load a URL, a targets file or a k6 script, and judge the run.
///
/// With a rate (or stages) the loop is open: requests leave when they are due, whatever the server
/// does, and latency counts from that instant. Without, the loop is closed: a fixed number of
/// users, each waiting for its response. Every number is a total over all threads.
#[derive(Debug, Args)]
#[command(
    before_help = "\
Examples:
  gake run demo -r 2000 -d 10s                     a built-in server, loaded in this process
  gake run http://localhost:8080/ -c 50 -d 30s     50 users, as fast as the server responds
  gake run http://localhost:8080/ -r 1000 -d 1m --slo 'p99<50ms' --slo 'errors<0.1%'
  gake run http://localhost:8080/ --stages 100@30s,100..1000@2m,0@5s
  gake run targets.http -r 500 -d 30s --html report.html           several requests, with charts
  gake run script.js -u 50 -d 1m --slo 'p99<50ms'  a k6 script",
    before_long_help = "\
Examples:
  gake run demo -r 2000 -d 10s                     a built-in server, loaded in this process
  gake run http://localhost:8080/ -c 50 -d 30s     50 users, as fast as the server responds
  gake run http://localhost:8080/ -r 1000 -d 1m --slo 'p99<50ms' --slo 'errors<0.1%'
  gake run http://localhost:8080/ --stages 100@30s,100..1000@2m,0@5s
  gake run http://localhost:8080/ -r 1000 -d 1m --html report.html                 with charts
  gake run http://localhost:8080/ -r 1000 -d 5m --web --web-open           live in a browser
  gake run targets.http -r 500 -d 30s              a vegeta targets file, or a list of URLs
  gake run --rand-url 'http://localhost:8080/users/[0-9]{3}' -r 500
  gake run 'http://localhost:8080/users/${id}' --data-file users.csv -r 500
  gake run http://localhost:8080/ -o text -o junit=gake.xml -o markdown=gake.md    for CI
  gake run http://localhost:8080/ --users 50..200@30s,200@1m
                                                   from 50 to 200 users, then 200 for a minute
  gake run http://localhost:8080/ -c 10000 --once   a spike: one request from each of 10,000 clients
  gake run traffic.gakerec --speed 2x --target http://localhost:8080
                                                   a recording, replayed at twice its speed
  gake run http://h/ -r 20k --nats nats://h:4222 --agents 4   on four machines (docs/fleet.md)
  gake run script.js -u 50 -d 1m --slo 'p99<50ms'  a k6 script (docs/k6.md)
  gake run --spec checkout.toml                    several loads side by side, from a file
  gake run ws://localhost:8080/chat -c 100 --ws-message hello      messages in WebSocket sessions
  gake run grpc://localhost:50051/shop.v1.Shop/Order --proto shop.proto --data @order.json
  gake run http://h/api -X POST --data @body.json -H 'Content-Type: application/json' -r 50",
    after_help = "\
Unambiguous flags of hey, ab, wrk, oha, vegeta, k6 and curl work too (--rps, -z, --json, -L ...).

Exit codes: 0 done, objectives met; 1 the run failed; 2 bad usage; 3 the run is invalid;
99 an objective failed; 130 interrupted (after the summary)."
)]
pub struct RunArgs {
    /// A URL (http:// unless it has a scheme), a targets file, a recording, a spec (.toml, .json), a k6
    /// script (.js, .ts), or `demo`
    #[arg(
        value_name = "TARGET",
        value_hint = ValueHint::FilePath,
        required_unless_present_any = ["spec", "rand_url"]
    )]
    pub target: Option<String>,

    #[command(flatten)]
    pub load: LoadArgs,

    #[command(flatten)]
    pub judge: JudgeArgs,

    #[command(flatten)]
    pub request: RequestArgs,

    /// Instead of TARGET: URLs whose path and query match a regular expression,
    /// 'http://h/users/[0-9]{3}'; 10,000 are generated before the run
    #[arg(long, value_name = "PATTERN", help_heading = "Request", conflicts_with = "target")]
    pub rand_url: Option<String>,

    /// Send one request, show it and its response with their times, secrets masked, and end
    #[arg(long, help_heading = "Request")]
    pub debug: bool,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    #[command(flatten)]
    pub script: ScriptRunArgs,

    #[command(flatten)]
    pub spec: SpecArgs,

    #[command(flatten)]
    pub replay: ReplayArgs,

    /// Sample the target during the run: port:8080, pid:1234, prometheus:URL ...; may be repeated
    ///
    /// Sources: pid:1234, port:8080, prometheus:URL, actuator:URL, or the target's database:
    /// mysql://USER:PASSWORD@HOST, postgres://...; env:NAME or file:PATH holds it
    #[arg(
        long,
        value_name = "SOURCE",
        help_heading = "Target",
        value_parser = values::WATCHED,
        hide_possible_values = true
    )]
    pub watch: Vec<WatchedSource>,

    #[command(flatten)]
    pub output: OutputArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub trace: TraceArgs,

    #[command(flatten)]
    pub web: WebArgs,

    #[command(flatten)]
    pub history: SaveArgs,

    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// The spec file of the run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Spec")]
pub struct SpecArgs {
    /// Run the TOML or JSON spec in FILE (- is standard input); flags override it
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,

    /// Print the spec of this run and exit: TOML, or =json. It includes the credentials of the run
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "toml",
        value_enum
    )]
    pub print_spec: Option<SpecFormat>,
}

/// The load: rate or users, and duration.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Requests a second: 1000, 100/1s, 6000/m, 2.5k, or max (the closed loop)
    #[arg(short, long)]
    pub rate: Option<RateValue>,

    /// Steps and ramps, in order: 100@30s,100..1000@2m,0@5s
    #[arg(long, conflicts_with_all = ["rate", "duration"])]
    pub stages: Option<StagesValue>,

    /// Users of a closed loop (default 50), or maximum connections of an open one (default 1000)
    #[arg(short, long, value_parser = values::connections)]
    pub connections: Option<usize>,

    /// Users of a closed loop or a script: 50, or steps and ramps: 50..200@30s,200@1m
    ///
    /// With a script at a rate, the maximum number of users (default 100).
    #[arg(short, long, value_name = "USERS", visible_alias = "vus", conflicts_with = "stages")]
    pub users: Option<UsersValue>,

    /// How long to send requests: 30s, 2m, 1h; seconds without a unit (default 10s)
    #[arg(short, long, value_parser = values::positive_duration)]
    pub duration: Option<Duration>,

    /// Number of requests to send; of a script, of iterations to run
    #[arg(
        short = 'n',
        long,
        visible_alias = "iterations",
        short_alias = 'i',
        value_parser = values::at_least_one
    )]
    pub requests: Option<u64>,

    /// One request per user, all at once, with every connection kept open to the end: a spike of
    /// -c clients
    #[arg(long, conflicts_with_all = ["stages", "requests", "think", "warmup", "no_keepalive"])]
    pub once: bool,

    /// Warm-up time, left out of the figures; added to the duration
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub warmup: Option<Duration>,

    /// How the arrivals of an open loop are distributed (default uniform)
    #[arg(long, value_enum)]
    pub arrivals: Option<Arrivals>,

    /// Make random arrivals and URLs repeatable
    #[arg(long)]
    pub seed: Option<u64>,

    /// Time between a response and the user's next request (closed loop)
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub think: Option<Duration>,

    /// Maximum number of requests in flight, if lower than the number of connections
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub max_in_flight: Option<usize>,

    /// What to do with a request that is due while every connection is busy: let it wait, which
    /// counts as latency (the default), or drop and count it
    #[arg(long, value_parser = values::OVERFLOW)]
    pub overflow: Option<OverflowValue>,

    /// How long to wait for responses at the end (default 5s; with -n alone, the time-out)
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub drain: Option<Duration>,

    /// Threads (default: as many as the load needs, at most one per core)
    #[arg(short, long, value_parser = values::connections)]
    pub threads: Option<usize>,

    /// Maximum series (metric and tags) of custom metrics; further ones count under `other`
    /// (default 10000)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub max_series: Option<usize>,

    /// Poll during the last part of each wait: the most precise arrivals, at the cost of a whole core
    #[arg(long)]
    pub spin: bool,
}

/// A recording as the target: a .gakerec of `gake shadow --record`, a .gor of GoReplay, or an
/// access log in the combined format.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Replay")]
pub struct ReplayArgs {
    /// Where to send the recording: http://HOST:PORT
    #[arg(id = "origin", long = "target", value_name = "URL")]
    pub target: Option<String>,

    /// Speed relative to the recording: 2x, 0.5x
    #[arg(long, value_name = "FACTOR")]
    pub speed: Option<SpeedValue>,

    /// Send only requests that match, such as 'GET /api/*'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub select: Vec<String>,

    /// The target is a recording (the default when its first line says so)
    #[arg(long)]
    pub replay: bool,
}

/// The requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Method (default GET, POST with --data)
    #[arg(short = 'X', long)]
    pub method: Option<String>,

    /// Header line 'Name: value', 'Name;' (empty) or 'Name:' (left out); may be repeated
    #[arg(short = 'H', long, value_name = "LINE")]
    pub header: Vec<HeaderValue>,

    /// Body: text, @FILE, or @- for standard input
    ///
    /// For gRPC, the message in JSON; for a client stream, several: repeat the flag, or give an array
    /// or lines.
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub data: Vec<String>,

    /// A form field (multipart/form-data), as in curl: name=value, name=@FILE, name=<FILE; may be
    /// repeated
    #[arg(short = 'F', long, value_name = "FIELD", conflicts_with = "data")]
    pub form: Vec<String>,

    /// A CSV file whose columns replace ${name} in URL, headers and body; one request per row, in
    /// turn
    #[arg(long, value_name = "FILE", conflicts_with = "targets")]
    pub data_file: Option<PathBuf>,

    /// User and password for basic authentication
    #[arg(long, value_name = "USER:PASSWORD")]
    pub user: Option<String>,

    /// The target is a targets file (the default when the file exists); - is standard input
    #[arg(long)]
    pub targets: bool,

    /// Status codes that count as ok: 2xx,404 or 200-299 (default 200-399)
    #[arg(long, value_name = "CODES")]
    pub expect: Option<ExpectValue>,

    /// Check that a response body must pass to count as ok: a regular expression, sha256:HEX, or
    /// json:PATH=VALUE. gzip, deflate, br and zstd are decoded
    #[arg(long, value_name = "CHECK")]
    pub expect_body: Option<String>,

    /// Time the parts of each response as they arrive: server-sent events, lines of NDJSON, otherwise
    /// chunks. Always on for gRPC methods that return a stream
    #[arg(long)]
    pub stream: bool,

    /// Show the most frequent bodies of failed responses: their first 512 bytes, with secrets
    /// hidden
    #[arg(long)]
    pub body_errors: bool,

    #[command(flatten)]
    pub websocket: WebSocketArgs,

    #[command(flatten)]
    pub grpc: GrpcArgs,
}

/// How to connect.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Time-out for a whole request, connection included (default 30s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub timeout: Option<Duration>,

    /// Follow up to N redirects
    #[arg(long, value_name = "N")]
    pub max_redirs: Option<u32>,

    /// Time-out for opening a connection, TLS included (default 10s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub connect_timeout: Option<Duration>,

    /// Time-out for the first byte of a response
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub first_byte_timeout: Option<Duration>,

    /// Speak HTTP/2: by ALPN over TLS, by prior knowledge in clear text (--http 2)
    #[arg(long, conflicts_with = "http")]
    pub http2: bool,

    /// Speak HTTP/3, over QUIC (--http 3)
    #[arg(long, conflicts_with_all = ["http", "http2"])]
    pub http3: bool,

    /// HTTP version (default 1.1); auto: what ALPN chooses over TLS, 1.1 in clear text; auto3: as
    /// auto, and HTTP/3 where responses offer it (Alt-Svc)
    #[arg(long, value_name = "VERSION", value_parser = values::HTTP)]
    pub http: Option<HttpVersion>,

    /// Maximum number of concurrent requests on a connection of HTTP/2 or 3 (default 100; in a closed loop
    /// the users per connection: -c 50 --streams 10 is 500 users)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub streams: Option<usize>,

    /// Open a new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,

    /// Maximum number of new connections a second
    #[arg(long, value_name = "RATE", value_parser = values::finite_rate)]
    pub connect_rate: Option<f64>,

    /// Open N connections at the start and hold them idle
    #[arg(long, value_name = "N")]
    pub idle_connections: Option<usize>,

    /// Source addresses: an address, 127.0.0.2-127.0.0.20, 127.0.1.0/28, or an interface's name
    #[arg(long, value_name = "SOURCES")]
    pub interface: Vec<String>,

    /// HOST:PORT:ADDRESS: use this address instead of resolving the name, as in curl
    #[arg(long, value_name = "RULE")]
    pub resolve: Vec<String>,

    /// HOST1:PORT1:HOST2:PORT2: connect to HOST2:PORT2 instead, as in curl
    #[arg(long, value_name = "RULE")]
    pub connect_to: Vec<String>,

    /// Use the addresses of a name this long, then look it up again; 0: for each connection
    /// (default: one lookup before the run)
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub dns_ttl: Option<Duration>,

    /// Connect to a Unix socket
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,

    /// Send everything through a proxy: http(s)://HOST:PORT (absolute URLs for http, CONNECT for
    /// https) or socks5://HOST:PORT; or one per scheme: http=URL;https=URL;no=HOST,...
    #[arg(short = 'x', long, value_name = "URL", conflicts_with = "unix_socket")]
    pub proxy: Option<String>,

    /// Use only IPv4 addresses
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,

    /// Use only IPv6 addresses
    #[arg(short = '6', long)]
    pub ipv6: bool,

    /// Accept any certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,

    /// Trust the certificates in this PEM file instead of the system's; may be repeated
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,

    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    #[command(flatten)]
    pub tls: TlsArgs,
}

/// The objectives of the run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Objectives")]
pub struct JudgeArgs {
    /// Objective: 'p99<50ms', 'errors<0.1%', 'rate>=990/s'; may be repeated
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Objective>,

    /// Stop as soon as an objective is missed
    #[arg(long)]
    pub abort: bool,

    /// Count rows before and after the run, and compare the difference with the number of ok
    /// responses: 'sql:mysql://USER:PASSWORD@HOST:SELECT COUNT(*) FROM DATABASE.TABLE' (or postgres://,
    /// sqlite:FILE), http:URL#FIELD of a JSON response, or lab: the users of the `gake serve --db` under
    /// load; env:NAME or file:PATH holds the value
    #[arg(long, value_name = "SOURCE")]
    pub reconcile: Option<String>,

    /// Send nothing after the load. Otherwise up to 30 requests follow one at a time, and up to 32 in
    /// groups of 2 to 4, to learn their time without a queue: only GET and HEAD, only when requests may
    /// have waited, not with -n
    #[arg(long)]
    pub no_probe: bool,
}

/// How arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Equally spaced
    Uniform,
    /// Independent of each other
    Poisson,
}
