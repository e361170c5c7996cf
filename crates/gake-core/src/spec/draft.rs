//! Drafts: specs as written, without defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::fields::{Layer, fields};
use super::settings::{ConnectionDraft, TlsDraft};
use super::value::{
    ArrivalsValue, BodyValue, CountValue, ExpectValue, HeaderValue, OverflowValue, RateValue,
    SpeedValue, StagesValue, TimeValue, UsersValue,
};

fields! {
    /// A run as written.
    pub struct RunDraft {
        /// version of this format
        version: Option<u64> = "1";
        /// name of the run in reports
        name: Option<String> = "what it loads";
        /// worker threads
        threads: Option<CountValue> ["--threads"] = "as many as the load needs, at most one per core";
        /// busy-poll at the end of each wait
        spin: Option<bool> ["--spin"] = "false";
        /// makes random arrivals repeatable
        seed: Option<CountValue> ["--seed"] = "1";
        /// time at the start of each scenario, excluded from the figures; added to its duration
        warmup: Option<TimeValue> ["--warmup"] = "0";
        /// list: `"p99<50ms"`, `"errors<0.1%"`
        objectives: Vec<String> ["--slo"] = "none";
        /// end the run as soon as an objective is missed
        abort: Option<bool> ["--abort"] = "false";
        /// maximum series (metric and tags) of custom metrics; further ones count under `other` of
        /// their metric
        max_series: Option<CountValue> ["--max-series"] = "10000";
        /// list: `"port:8080"`, `"pid:1234"`, `"prometheus:URL"`, `"actuator:URL"`
        watch: Vec<String> ["--watch"] = "none";
        /// how connections are made and used
        connection: ConnectionDraft;
        /// TLS settings
        tls: TlsDraft;
        /// the loads
        #[serde(rename = "scenario")]
        scenarios: Vec<ScenarioDraft>;
    }
}

fields! {
    /// A load as written.
    pub struct ScenarioDraft {
        /// distinguishes the scenarios' figures; required with several
        name: Option<String> = "`default`";

        /// the URL of its one request; `demo` is the built-in server
        url: Option<String>;
        /// a CSV file whose rows, in turn, replace `${column}` in URL, headers and body
        data_file: Option<PathBuf> ["--data-file"];
        /// a targets file; `-` is standard input
        targets: Option<PathBuf>;
        /// a recording
        recording: Option<PathBuf>;
        /// the origin that a recording is sent to: `http://HOST:PORT`
        to: Option<String> ["--target"];
        /// speed relative to the recording: `"2x"`
        speed: Option<SpeedValue> ["--speed"];
        /// patterns of the recorded requests to send: `["GET /api/*"]`
        select: Vec<String> ["--select"];
        /// a script
        script: Option<PathBuf>;
        /// the function of the script that an iteration calls
        function: Option<String>;
        /// the script's environment
        environment: BTreeMap<String, String>;
        /// the name of requests that a Rust program supplies
        given: Option<String>;

        /// of every request; overrides that of a targets file
        method: Option<String> ["--method"] = "`GET`; `POST` with a body";
        /// header lines of every request
        headers: Vec<HeaderValue> ["--header"] = "none";
        /// for requests without one
        body: Option<BodyValue> ["--data"] = "none";
        /// `"name:password"` for basic authentication
        user: Option<String> ["--user"] = "none";
        /// status codes that are ok: `"2xx,404"`
        expect: Option<ExpectValue> ["--expect"] = "`\"200-399\"`";
        /// what a body must match: a regular expression, `"sha256:HEX"`, `"json:PATH=VALUE"`
        expect_body: Option<String> ["--expect-body"] = "any";
        /// the message sent to a WebSocket; by default a ping
        ws_message: Option<BodyValue> ["--ws-message"];
        /// a check, like `expect_body`, for the WebSocket message that is the response
        ws_expect: Option<String> ["--ws-expect"];
        /// whether messages of a WebSocket await no response
        ws_send_only: Option<bool> ["--ws-send-only"];
        /// files that define the services of gRPC
        proto: Vec<PathBuf> ["--proto"];
        /// a compiled set of definitions in place of the files
        proto_set: Option<BodyValue>;
        /// folders that these files import from
        proto_paths: Vec<PathBuf> ["--proto-path"];
        /// time the events, lines, messages or chunks of responses
        stream: Option<bool> ["--stream"] = "false; messages of gRPC streams always are";
        /// count the bodies of failed responses
        body_errors: Option<bool> ["--body-errors"] = "false";

        /// arrivals a second
        rate: Option<RateValue> ["--rate"];
        /// steps and ramps of the rate
        stages: Option<StagesValue> ["--stages"];
        /// distribution of arrivals in time
        arrivals: Option<ArrivalsValue> ["--arrivals"];
        /// users of a closed loop
        users: Option<UsersValue> ["--users"];
        /// maximum users of a closed loop whose number is set from outside
        users_max: Option<CountValue>;
        /// time between a response and a user's next request
        think: Option<TimeValue> ["--think"];
        /// time from one start of a user to the next
        pace: Option<TimeValue>;
        /// iterations of all users together
        iterations: Option<CountValue>;
        /// iterations that each user makes
        iterations_per_user: Option<CountValue> ["--once"];
        /// time that a user who leaves before the end has to finish its iteration
        graceful_ramp_down: Option<TimeValue>;

        /// delay from the start of the run to the start of this load
        start: Option<TimeValue> = "0";
        /// how long to send requests
        duration: Option<TimeValue> ["-d"];
        /// number of arrivals after which it ends
        requests: Option<CountValue> ["-n"] = "none";
        /// time for requests in flight to finish at the end
        graceful_stop: Option<TimeValue> ["--drain"] = "5s; with only a count, `timeout`";
        /// maximum connections of an open loop; in a closed loop each user has one
        connections: Option<CountValue> ["-c"] = "1000";
        /// maximum requests in flight; formerly `lanes`
        #[serde(alias = "lanes")]
        max_in_flight: Option<CountValue> ["--max-in-flight"] = "`connections`";
        /// what happens to an arrival that is due when `max_in_flight` is reached: `"wait"`,
        /// `"drop"`, or `{ queue = 100 }` (up to 100 wait, the rest is dropped)
        overflow: Option<OverflowValue> ["--overflow"] = "`\"wait\"`";
        /// keys and values that the run file keeps with the scenario; [objectives](verdict.md),
        /// `--abort` and [`gake compare`](compare.md) select by them: `errors{team:payments}<1%`
        tags: BTreeMap<String, String> = "none";
        /// its requests, interleaved by weight
        request: Vec<RequestDraft>;
    }
}

fields! {
    /// One request as written.
    pub struct RequestDraft {
        /// the name its figures are kept under
        name: Option<String>;
        /// the URL
        url: Option<String>;
        /// the method
        method: Option<String>;
        /// header lines
        headers: Vec<HeaderValue>;
        /// the body
        body: Option<BodyValue>;
        /// how often it is sent, relative to the others
        weight: Option<u32>;
    }
}

impl ScenarioDraft {
    /// The keys of request sources: a layer that sets one of [`Self::SOURCES`] replaces all.
    const SOURCE_KEYS: &'static [&'static str] = &[
        "url",
        "data_file",
        "targets",
        "recording",
        "to",
        "speed",
        "select",
        "script",
        "function",
        "environment",
        "given",
        "request",
        "ws_message",
        "ws_expect",
        "ws_send_only",
        "proto",
        "proto_set",
        "proto_paths",
    ];

    const SOURCES: [&'static str; 6] =
        ["url", "targets", "recording", "script", "given", "request"];

    /// Applies the fields of the layer above. Header lines are joined by name; a request source, a
    /// rate or stages replace the ones of this layer.
    pub fn join(&mut self, mut above: Self) {
        let keys = above.keys();
        if Self::SOURCES.iter().any(|key| keys.contains(key)) {
            self.unset(Self::SOURCE_KEYS);
        }
        if above.rate.is_some() {
            self.stages = None;
        }
        if above.stages.is_some() {
            self.unset(&["rate", "duration"]);
        }
        let set = std::mem::take(&mut above.headers);
        self.headers.retain(|line| !set.iter().any(|own| own.0.eq_ignore_ascii_case(&line.0)));
        self.headers.extend(set);
        self.overlay(above);
    }
}

impl RunDraft {
    /// Applies the fields of the layer above, except its scenarios.
    pub fn join(&mut self, above: Self) {
        self.overlay(Self { scenarios: Vec::new(), ..above });
    }
}
