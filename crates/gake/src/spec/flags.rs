//! Flags as a draft.

use std::path::Path;
use std::time::Duration;

use gake_core::spec::value::{
    ArrivalsValue, BodyValue, CountValue, HeaderValue, RateValue, TimeValue, UsersValue,
};
use gake_core::spec::{
    BodySpec, ConnectionDraft, GrpcSpec, HttpVersion, IpFamily, RunDraft, ScenarioDraft, TlsDraft,
};

use crate::cli::{Arrivals, ConnectionArgs, FindArgs, RequestArgs, RunArgs};
use gake_run::multipart_form;
use gake_session::files::is_script;
use gake_session::{Failure, generated_requests, recording};

/// The draft of the flags of `gake run`.
///
/// # Errors
/// When the target is not of the kind that the flags name.
pub fn draft(args: &RunArgs) -> Result<RunDraft, Failure> {
    let load = &args.load;
    let mut scenario = request(&args.request)?;
    if let Some(target) = &args.target {
        source(args, target, &mut scenario)?;
    }
    if let Some(pattern) = &args.rand_url {
        scenario.request = generated_requests::of_pattern(pattern, load.seed.unwrap_or(1))?;
    }
    scenario.to.clone_from(&args.replay.target);
    scenario.speed = args.replay.speed;
    scenario.select.clone_from(&args.replay.select);
    scenario.rate = load.rate;
    scenario.stages = load.stages.clone();
    scenario.users.clone_from(&load.users);
    scenario.connections = load.connections.map(count);
    let mut draft = connection(&args.connection);
    if args.spec.spec.is_none() {
        connections_or_users(&mut scenario, &draft.connection);
    }
    scenario.duration = time(load.duration);
    scenario.requests = load.requests.map(CountValue);
    scenario.iterations_per_user = load.once.then_some(CountValue(1));
    scenario.arrivals = load.arrivals.map(|arrivals| match arrivals {
        Arrivals::Uniform => ArrivalsValue::Uniform,
        Arrivals::Poisson => ArrivalsValue::Poisson,
    });
    scenario.think = time(load.think);
    scenario.max_in_flight = load.max_in_flight.map(count);
    scenario.overflow = load.overflow;
    scenario.graceful_stop = time(load.drain);
    draft.warmup = time(load.warmup);
    draft.seed = load.seed.map(CountValue);
    draft.threads = load.threads.map(count);
    draft.spin = load.spin.then_some(true);
    draft.max_series = load.max_series.map(count);
    draft.objectives = args.judge.slo.iter().map(ToString::to_string).collect();
    draft.abort = args.judge.abort.then_some(true);
    draft.watch = args.watch.iter().map(|source| source.0.clone()).collect();
    draft.scenarios.push(scenario);
    Ok(draft)
}

/// The draft of the flags of `gake find`, whose trials have a load of their own, with `target`.
///
/// # Errors
/// When the target is not of the kind that the flags name.
pub fn of_find(args: &FindArgs, target: &str) -> Result<RunDraft, Failure> {
    let mut scenario = request(&args.request)?;
    if !args.request.targets && is_script(Path::new(target)) {
        if let Some(flag) = of_requests(&args.request, &args.connection) {
            return Err(Failure::usage(format!(
                "{flag}: a script defines its own requests and pauses"
            )));
        }
        scenario.script = Some(target.into());
    } else {
        url_or_targets(&args.request, target, &mut scenario)?;
    }
    let mut draft = connection(&args.connection);
    draft.threads = args.search.threads.map(count);
    draft.objectives = args.search.slo.iter().map(ToString::to_string).collect();
    draft.watch = args.watch.iter().map(|source| source.0.clone()).collect();
    draft.scenarios.push(scenario);
    Ok(draft)
}

/// `-c` means connections of an open loop, and users of a closed one; with HTTP/2 it means
/// connections of either, and a closed loop has a user for each stream.
pub fn connections_or_users(scenario: &mut ScenarioDraft, connection: &ConnectionDraft) {
    let is_open = scenario.rate.is_some_and(|rate| rate.0 != gake_core::plan::Rate::Max)
        || scenario.stages.is_some()
        || scenario.recording.is_some();
    let is_grpc = scenario.url.as_deref().is_some_and(GrpcSpec::has_scheme);
    let is_multiplexed = connection.http.map_or(is_grpc, HttpVersion::is_multiplexed);
    if is_open || scenario.users.is_some() {
        return;
    }
    if let (true, Some(CountValue(connections))) = (is_multiplexed, scenario.connections) {
        let streams = connection.streams.map_or(1, |CountValue(streams)| streams);
        let users = usize::try_from(connections.saturating_mul(streams)).unwrap_or(usize::MAX);
        scenario.users = Some(UsersValue::Number(users));
    } else {
        let users =
            |CountValue(users)| UsersValue::Number(usize::try_from(users).unwrap_or(usize::MAX));
        scenario.users = scenario.connections.take().map(users);
    }
}

fn source(args: &RunArgs, target: &str, scenario: &mut ScenarioDraft) -> Result<(), Failure> {
    if !args.request.targets && is_script(Path::new(target)) {
        without_requests(args)?;
        scenario.script = Some(target.into());
        return Ok(());
    }
    let replay = &args.replay;
    let is_replay = replay.replay || replay.speed.is_some() || replay.target.is_some();
    if let Some(format) = recording::known(is_replay, args.request.targets, target)? {
        if args.replay.target.is_none() && args.spec.spec.is_none() {
            return Err(Failure::usage(format!(
                "{target} is {format}: say where it is to be sent, with --target http://HOST:PORT"
            )));
        }
        scenario.recording = Some(target.into());
        return Ok(());
    }
    url_or_targets(&args.request, target, scenario)
}

/// The first flag about requests that is given.
fn of_requests(request: &RequestArgs, connection: &ConnectionArgs) -> Option<&'static str> {
    let given = [
        ("--method", request.method.is_some()),
        ("--header", !request.header.is_empty()),
        ("--data", !request.data.is_empty()),
        ("--form", !request.form.is_empty()),
        ("--data-file", request.data_file.is_some()),
        ("--user", request.user.is_some()),
        ("--expect", request.expect.is_some()),
        ("--expect-body", request.expect_body.is_some()),
        ("--stream", request.stream),
        ("--ws-message", request.websocket.ws_message.is_some()),
        ("--proto", !request.grpc.proto.is_empty()),
        ("--timeout", connection.timeout.is_some()),
        ("--first-byte-timeout", connection.first_byte_timeout.is_some()),
        ("--max-redirs", connection.max_redirs.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
}

/// Refuses flags about requests, which a script defines itself.
fn without_requests(args: &RunArgs) -> Result<(), Failure> {
    let given = [
        ("--speed", args.replay.speed.is_some()),
        ("--target", args.replay.target.is_some()),
        ("--trace-sample", args.trace.trace_sample.is_some()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag);
    match of_requests(&args.request, &args.connection).or(given) {
        Some(flag) => Err(Failure::usage(format!(
            "{flag}: a script defines its own requests and pauses; pass variables with --env \
             NAME=VALUE"
        ))),
        None => Ok(()),
    }
}

fn url_or_targets(
    args: &RequestArgs,
    target: &str,
    scenario: &mut ScenarioDraft,
) -> Result<(), Failure> {
    let is_file = || !target.contains("://") && Path::new(target).is_file();
    if args.targets || target == "-" || is_file() {
        scenario.targets = Some(target.into());
    } else if target.parse::<u16>().is_ok() {
        // A port of this machine; as an address it would be 0.0.0.0/16.
        scenario.url = Some(format!("localhost:{target}"));
    } else if let Some(problem) = missing_file(target) {
        return Err(Failure::could_not(problem));
    } else {
        scenario.url = Some(target.to_owned());
    }
    if args.data.len() > 1 && !GrpcSpec::has_scheme(target) {
        return Err(Failure::usage(
            "--data is given more than once: only a stream of gRPC has several messages",
        ));
    }
    Ok(())
}

/// Endings of files that hold requests or runs; none is a top-level domain.
const FILE_ENDINGS: [&str; 14] = [
    "txt", "http", "json", "jsonl", "ndjson", "toml", "yaml", "yml", "csv", "log", "gakerec",
    "gor", "hlog", "js",
];

/// Why `target`, which is not a file, cannot be a URL either: it reads like a path.
fn missing_file(target: &str) -> Option<String> {
    let path = Path::new(target);
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| target.starts_with(start));
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let named = !target.contains([':', '?']) && FILE_ENDINGS.contains(&ending);
    // `host/data.json` is a URL: its first part has a dot, as a file's folder seldom has.
    let first = target.split('/').next().unwrap_or_default();
    let is_url = target.contains('/') && (first.contains('.') || first == "localhost");
    if target.contains("://") || !(is_path || (named && !is_url)) {
        return None;
    }
    Some(match path.is_dir() {
        true => format!("{target} is a directory; name a targets file, or a URL"),
        false => format!("{target}: no such file (a URL begins with http:// or https://)"),
    })
}

fn request(args: &RequestArgs) -> Result<ScenarioDraft, Failure> {
    let body = |data: &String| match data.strip_prefix('@') {
        None => BodyValue(BodySpec::text(data)),
        Some(path) => BodyValue(BodySpec::File(path.into())),
    };
    let mut scenario = ScenarioDraft {
        data_file: args.data_file.clone(),
        method: args.method.clone(),
        headers: args.header.clone(),
        body: match args.data.as_slice() {
            [] => None,
            [only] => Some(body(only)),
            several => Some(BodyValue(BodySpec::text(&messages(several)?))),
        },
        user: args.user.clone(),
        expect: args.expect.clone(),
        expect_body: args.expect_body.clone(),
        ws_message: args.websocket.ws_message.as_ref().map(body),
        ws_expect: args.websocket.ws_expect.clone(),
        ws_send_only: args.websocket.ws_send_only.then_some(true),
        proto: args.grpc.proto.clone(),
        proto_paths: args.grpc.proto_path.clone(),
        stream: args.stream.then_some(true),
        body_errors: args.body_errors.then_some(true),
        ..ScenarioDraft::default()
    };
    if !args.form.is_empty() {
        let form = multipart_form(args.form.iter().map(String::as_str));
        let (content_type, body) = form.map_err(Failure::could_not)?;
        // The content type cannot be overridden: it holds the boundary.
        scenario.headers.retain(|header| !header.0.eq_ignore_ascii_case("content-type"));
        scenario.headers.push(HeaderValue("Content-Type".to_owned(), content_type));
        scenario.body = Some(BodyValue(BodySpec::Bytes(body.into())));
    }
    Ok(scenario)
}

/// Messages of a stream of gRPC, given one by one.
fn messages(several: &[String]) -> Result<String, Failure> {
    if let Some(file) = several.iter().find(|one| one.starts_with('@')) {
        let problem = format!("--data {file}: give one file, with all messages in it");
        return Err(Failure::usage(problem));
    }
    Ok(several.join("\n"))
}

fn connection(args: &ConnectionArgs) -> RunDraft {
    let connection = ConnectionDraft {
        timeout: time(args.timeout),
        connect_timeout: time(args.connect_timeout),
        first_byte_timeout: time(args.first_byte_timeout),
        keepalive: args.no_keepalive.then_some(false),
        max_redirects: args.max_redirs,
        connect_rate: args
            .connect_rate
            .map(|rate| RateValue(gake_core::plan::Rate::PerSecond(rate))),
        idle_connections: args.idle_connections.map(count),
        http: http(args),
        streams: args.streams.map(count),
        sources: args.interface.clone(),
        resolve: args.resolve.clone(),
        connect_to: args.connect_to.clone(),
        dns_ttl: time(args.dns_ttl),
        unix_socket: args.unix_socket.clone(),
        proxy: args.proxy.clone(),
        family: match (args.ipv4, args.ipv6) {
            (true, _) => Some(IpFamily::Ipv4),
            (_, true) => Some(IpFamily::Ipv6),
            _ => None,
        },
        ..ConnectionDraft::default()
    };
    let tls = TlsDraft {
        insecure: args.insecure.then_some(true),
        ca_certificates: args.cacert.clone(),
        certificate: args.cert.clone(),
        key: args.key.clone(),
        session_tickets: args.tls.session_tickets.then_some(true),
        early_data: args.tls.tls_early_data.then_some(true),
        min_version: args.tls.tls_min,
        max_version: args.tls.tls_max,
        ciphers: args.tls.ciphers.clone(),
        ech: args.tls.ech.clone(),
        key_log: args.tls.key_log.clone(),
    };
    RunDraft { connection, tls, ..RunDraft::default() }
}

fn http(args: &ConnectionArgs) -> Option<HttpVersion> {
    if args.http2 {
        return Some(HttpVersion::Http2);
    }
    if args.http3 {
        return Some(HttpVersion::Http3);
    }
    args.http
}

fn time(time: Option<Duration>) -> Option<TimeValue> {
    time.map(TimeValue)
}

fn count(count: usize) -> CountValue {
    CountValue(count as u64)
}
