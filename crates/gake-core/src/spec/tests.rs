//! Drafts, specs and files are equivalent.

use std::path::PathBuf;
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::file::{BYTES_MAX, SpecFile};
use super::*;
use crate::exact;
use crate::plan::{Stage, UserStage};
use crate::schedule::Process;

fn time() -> impl Strategy<Value = Duration> {
    let longest = 366 * 86_400_000_000_000u64;
    prop_oneof![
        (1u64..100_000).prop_map(Duration::from_millis),
        (1..longest).prop_map(Duration::from_nanos),
    ]
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![(1u32..100_000).prop_map(f64::from), 1e-6..1e7]
}

fn text() -> impl Strategy<Value = String> {
    "[a-z0-9 '\"\\\\#=č/-]{1,12}".prop_filter("a name is not blank", |text| !text.trim().is_empty())
}

fn process() -> impl Strategy<Value = Process> {
    prop_oneof![
        Just(Process::Uniform),
        Just(Process::Poisson),
        (1u64..50, 0u64..10_000_000_000)
            .prop_map(|(size, jitter)| Process::Bursts { size, jitter }),
    ]
}

fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let stage =
        (rate(), rate(), time()).prop_map(|(from, to, duration)| Stage { from, to, duration });
    prop_oneof![
        vec(stage, 1..5),
        (rate(), time()).prop_map(|(rate, time)| vec![Stage::step(rate, time)]),
        rate().prop_map(|rate| vec![Stage::step(rate, Duration::MAX)]),
    ]
}

fn user_stages() -> impl Strategy<Value = Vec<UserStage>> {
    let stage = (0usize..500, 1usize..500, time());
    vec(stage.prop_map(|(from, to, duration)| UserStage { from, to, duration }), 1..5)
}

/// A load, with its duration and number of arrivals if they are set separately.
fn load() -> impl Strategy<Value = (Load, Option<Duration>, Option<u64>)> {
    let count = || 1u64..1_000_000;
    let users = || 1usize..100_000;
    let think = || prop_oneof![Just(Duration::ZERO), time()];
    prop_oneof![
        (stages(), process(), of(count())).prop_map(|(stages, process, n)| (
            Load::Open { stages, process },
            None,
            n
        )),
        (users(), think(), of(time()), of(count())).prop_map(|(users, think, time, n)| (
            Load::Closed { users, think },
            time,
            n
        )),
        (users(), time(), of(time()), of(count())).prop_map(|(users, pace, time, n)| (
            Load::Paced { users, pace },
            time,
            n
        )),
        (user_stages(), time(), think()).prop_map(|(stages, graceful_ramp_down, think)| {
            (Load::Ramping { stages, graceful_ramp_down, think }, None, None)
        }),
        (users(), count(), of(time())).prop_map(|(users, iterations, time)| (
            Load::Shared { users, iterations },
            time,
            None
        )),
        (users(), count(), of(time())).prop_map(|(users, iterations, time)| (
            Load::PerUser { users, iterations },
            time,
            None
        )),
        (0usize..50, 50usize..5_000, of(time())).prop_map(|(users, max, time)| (
            Load::External { users, max },
            time,
            None
        )),
    ]
}

fn body() -> impl Strategy<Value = BodySpec> {
    prop_oneof![
        text().prop_map(|text| BodySpec::text(&text)),
        vec(any::<u8>(), 0..20).prop_map(|bytes| BodySpec::Bytes(bytes.into())),
        text().prop_map(|path| BodySpec::File(path.into())),
    ]
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let header = ("[A-Za-z-]{1,10}", "[!-~]{0,10}");
    vec(header.prop_map(|(name, value)| (name, value)), 0..3)
}

fn source() -> impl Strategy<Value = RequestSource> {
    let request = (of(text()), of("[A-Z]{3}"), text(), headers(), of(body()), 1u32..9).prop_map(
        |(name, method, url, headers, body, weight)| RequestSpec {
            name,
            method,
            url,
            headers,
            body,
            weight,
        },
    );
    let environment = proptest::collection::btree_map("[A-Z]{1,4}", text(), 0..3);
    let script = (text(), of(text()), environment).prop_map(|(path, function, environment)| {
        let environment = environment.into_iter().collect();
        RequestSource::Script(ScriptSpec { path: path.into(), function, environment })
    });
    prop_oneof![
        text().prop_map(RequestSource::Url),
        vec(request, 1..4).prop_map(RequestSource::Requests),
        text().prop_map(|path| RequestSource::Targets(path.into())),
        text().prop_map(RequestSource::Given),
        (text(), text())
            .prop_map(|(url, path)| RequestSource::Rows(RowsSpec { url, path: path.into() })),
        script,
    ]
}

fn scenario() -> impl Strategy<Value = ScenarioSpec> {
    let overflow = prop_oneof![
        Just(Overflow::Wait),
        Just(Overflow::Drop),
        (0usize..99).prop_map(|waiting| Overflow::Queue { waiting }),
    ];
    let request = (of("[A-Z]{3,7}"), headers(), of(body()), of("[a-z]{1,5}:[!-~]{1,5}"))
        .prop_map(|(method, headers, body, user)| RequestDefaults { method, headers, body, user });
    let tags = proptest::collection::btree_map("[a-z]{1,5}", text(), 0..3);
    let how = (text(), source(), request, load(), overflow);
    let bounds = (1usize..9_000, 1usize..9_000, of(time()), of(time()), tags);
    (how, bounds).prop_map(|((name, source, request, load, overflow), bounds)| {
        let (connections, in_flight, start, graceful_stop, tags) = bounds;
        let (load, duration, requests) = load;
        let mut spec = ScenarioSpec::new(source, load);
        if spec.load.is_open() {
            (spec.connections, spec.max_in_flight, spec.overflow) =
                (connections, in_flight, overflow);
        }
        let graceful_stop = graceful_stop.unwrap_or(spec.graceful_stop);
        let (start, tags) = (start.unwrap_or_default(), tags.into_iter().collect());
        let expect = "2xx,404".parse().unwrap();
        // A script determines its own requests.
        let is_script = matches!(spec.source, RequestSource::Script(_));
        let request = if is_script { RequestDefaults::default() } else { request };
        ScenarioSpec {
            name,
            request,
            duration,
            requests,
            graceful_stop,
            start,
            tags,
            expect,
            expect_body: (!is_script).then(|| "json:ok=true".to_owned()),
            body_errors: true,
            ..spec
        }
    })
}

fn connection() -> impl Strategy<Value = ConnectionSpec> {
    let keep = of((any::<u32>(), of(0usize..9_999)));
    let family = of(prop_oneof![Just(IpFamily::Ipv4), Just(IpFamily::PreferIpv6)]);
    let bounds = (time(), time(), of(time()), any::<bool>(), 0u32..20, of(rate()));
    let ways = (0usize..99, of(0usize..99), vec(text(), 0..3), of(text()), family, keep);
    (bounds, ways).prop_map(|(bounds, ways)| {
        let (connect_timeout, timeout, first_byte_timeout, keepalive, max_redirects, connect_rate) =
            bounds;
        let (idle_connections, max_idle, rules, socket, family, keep) = ways;
        let http = match (keepalive, max_redirects % 3) {
            (false, _) => HttpVersion::Http10,
            (true, 0) => HttpVersion::Http11,
            (true, 1) => HttpVersion::Http2,
            (true, _) => HttpVersion::Auto,
        };
        ConnectionSpec {
            timeout,
            connect_timeout,
            first_byte_timeout,
            keepalive,
            max_redirects,
            connect_rate,
            idle_connections,
            max_idle,
            http,
            streams: max_idle.filter(|streams| *streams > 0 && http.is_multiplexed()),
            stream_window: http.is_multiplexed().then_some(max_redirects + 1),
            connection_window: http.is_multiplexed().then_some(max_redirects + 65_535),
            sources: rules.clone(),
            resolve: rules.clone(),
            connect_to: rules,
            dns_ttl: first_byte_timeout,
            first_address: keepalive,
            // Exclusive with a Unix socket.
            proxy: socket.is_none().then(|| "http://127.0.0.1:3128".to_owned()),
            unix_socket: socket.map(PathBuf::from),
            family,
            keep_answers: keep.map(|(answers, _)| answers.into()),
            keep_body_bytes: keep.and_then(|(_, bytes)| bytes),
        }
    })
}

fn series() -> impl Strategy<Value = usize> {
    prop_oneof![Just(MAX_SERIES), 1..=SERIES_MAX]
}

fn run() -> impl Strategy<Value = RunSpec> {
    let rest = (of(text()), of(1usize..64), any::<bool>(), any::<u64>(), of(time()), series());
    (vec(scenario(), 1..4), connection(), rest, vec(text(), 0..3)).prop_map(
        |(mut scenarios, connection, (name, threads, spin, seed, warmup, max_series), texts)| {
            for (i, scenario) in scenarios.iter_mut().enumerate() {
                scenario.name = format!("{i}{}", scenario.name);
            }
            let tls = TlsSpec {
                insecure: spin,
                ca_certificates: texts.iter().map(PathBuf::from).collect(),
                certificate: name.clone().map(PathBuf::from),
                key: None,
                session_tickets: spin,
                early_data: false,
                min_version: spin.then_some(TlsVersion::Tls12),
                max_version: spin.then_some(TlsVersion::Tls13),
                ciphers: texts.clone(),
                ech: name.clone().map(PathBuf::from),
                key_log: name.clone().map(PathBuf::from),
            };
            RunSpec {
                name,
                threads,
                spin: spin && scenarios.iter().any(|scenario| scenario.load.is_open()),
                seed,
                warmup: warmup.unwrap_or_default(),
                connection,
                tls,
                abort: !texts.is_empty(),
                max_series,
                objectives: texts.clone(),
                watch: texts,
                scenarios,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_spec_that_is_written_and_read_is_the_same(spec in run()) {
        for (name, syntax) in [("spec.toml", Syntax::Toml), ("spec.json", Syntax::Json)] {
            let text = spec.draft().write(syntax).unwrap();
            let read = SpecFile::read(name, text.as_bytes()).unwrap().spec();
            prop_assert_eq!(read.as_ref(), Ok(&spec), "{}", text);
        }
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RunSpec>(&json).unwrap(), &spec);
    }

    #[test]
    fn a_spec_that_another_process_gets_is_the_same(spec in run()) {
        let bytes = exact::encode(&spec).unwrap();
        prop_assert_eq!(&exact::decode::<RunSpec>(&bytes).unwrap(), &spec);
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "[\\[\\]{}\",:=.a-z0-9 \n#-]{0,80}") {
        for name in ["a.toml", "a.json", "a"] {
            if let Ok(file) = SpecFile::read(name, text.as_bytes()) {
                let _ = file.spec();
            }
        }
    }
}

#[test]
fn a_recording_survives_writing_and_reading() {
    let recording = RecordingSpec {
        path: "traffic.gakerec".into(),
        to: "http://localhost:8080".to_owned(),
        select: vec!["GET /api/*".to_owned()],
    };
    let load = Load::Replay { speed: 0.1, trace: None };
    let mut scenario = ScenarioSpec::new(RequestSource::Recording(recording), load);
    scenario.duration = Some(Duration::from_secs(90));
    let spec = RunSpec::new(scenario);
    let text = spec.draft().write(Syntax::Toml).unwrap();
    assert_eq!(SpecFile::read("a.toml", text.as_bytes()).unwrap().spec(), Ok(spec), "{text}");
}

#[test]
fn streams_make_few_connections_of_many_requests_in_flight() {
    let bounds = |text: &str| {
        let text = format!("[connection]\nhttp = \"2\"\n{text}");
        let spec = SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
        let one = &spec.scenarios[0];
        (one.connections, one.max_in_flight, one.streams(&spec.connection))
    };
    let open = "[[scenario]]\nurl = \"http://h/\"\nrate = 5\n";
    assert_eq!(bounds(open), (10, 1_000, 100));
    assert_eq!(bounds(&format!("{open}connections = 3")), (3, 300, 100));
    assert_eq!(bounds(&format!("streams = 7\n{open}lanes = 20")), (3, 20, 7));
    let closed = "[[scenario]]\nurl = \"http://h/\"\nusers = 50\n";
    assert_eq!(bounds(closed), (50, 50, 1));
    assert_eq!(bounds(&format!("streams = 20\n{closed}")), (3, 50, 20));
    assert_eq!(bounds(&format!("{closed}connections = 4")), (4, 50, 13));
    let plain = format!("[connection]\nstreams = 2\n{closed}");
    expect!["a.toml:2:1: connection.streams: it needs HTTP/2 or HTTP/3"]
        .assert_eq(&error("a.toml", &plain));
}

#[test]
fn missing_fields_have_their_defaults() {
    let spec = |text: &str| SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
    let one = spec("[[scenario]]\nurl = \"http://h/\"\n");
    let url = || RequestSource::Url("http://h/".to_owned());
    let closed =
        ScenarioSpec { duration: Some(DURATION), ..ScenarioSpec::new(url(), Load::closed(USERS)) };
    assert_eq!(one, RunSpec::new(closed));
    let open = spec("scenario = [{ url = \"http://h/\", rate = 50, requests = 7 }]");
    let expected = ScenarioSpec {
        requests: Some(7),
        graceful_stop: crate::plan::Timeouts::default().total,
        ..ScenarioSpec::new(url(), Load::rate(50.0, Duration::MAX))
    };
    assert_eq!(open, RunSpec::new(expected));
    let three = spec(
        "[[scenario]]\nname = \"a\"\nurl = \"u\"\nusers = \"1..9@30s\"\n\
         [[scenario]]\nname = \"b\"\nurl = \"u\"\nrate = \"5/s\"\nstart = 10\n\
         [[scenario]]\nname = \"c\"\nurl = \"u\"\nusers = 3\niterations_per_user = 4\n",
    );
    let loads: Vec<_> = three.scenarios.iter().map(|scenario| &scenario.load).collect();
    assert!(matches!(loads[0], Load::Ramping { stages, .. } if stages[0].to == 9));
    assert_eq!(*loads[1], Load::rate(5.0, DURATION));
    assert_eq!(three.scenarios[1].start, Duration::from_secs(10));
    assert_eq!(*loads[2], Load::PerUser { users: 3, iterations: 4 });
}

#[test]
fn a_websocket_is_recognised_by_its_scheme() {
    let read = |text: &str| SpecFile::read("a.toml", text.as_bytes()).unwrap().spec();
    let spec = |fields: &str| read(&format!("[[scenario]]\nurl = \"WSS://h/chat\"\n{fields}"));
    let asked = spec("ws_message = \"hi\"\nws_expect = \"ho\"\n").unwrap();
    let websocket = WebSocketSpec {
        url: "WSS://h/chat".to_owned(),
        message: Some(BodySpec::text("hi")),
        expect: Some("ho".to_owned()),
        send_only: false,
    };
    assert_eq!(asked.scenarios[0].source, RequestSource::WebSocket(websocket));
    let expect = &asked.scenarios[0].expect;
    assert!(expect.accepts(101) && !expect.accepts(200));
    let printed = asked.draft().write(Syntax::Toml).unwrap();
    assert_eq!(read(&printed), Ok(asked), "{printed}");
    let url = "[[scenario]]\nurl = \"ws://h/chat\"\n";
    errors(
        "a.toml",
        &[
            format!("{url}method = \"GET\""),
            format!("{url}body = \"x\""),
            format!("{url}ws_send_only = true"),
            format!("{url}ws_message = \"a\"\nws_send_only = true\nws_expect = \"b\""),
            format!("{url}[connection]\nhttp = \"2\""),
            format!("{url}[connection]\nkeepalive = false"),
            format!("{url}[connection]\nmax_redirects = 1"),
            "[[scenario]]\nurl = \"http://h/\"\nws_message = \"x\"\n".to_owned(),
        ],
        &expect![[r#"
            a.toml:3:1: scenario[0].method: a WebSocket has no methods
            a.toml:3:1: scenario[0].body: a WebSocket has no body: its messages are ws_message
            a.toml:3:1: scenario[0].ws_send_only: it needs a message (ws_message)
            a.toml:4:1: scenario[0].ws_send_only: there is no response to check
            a.toml:4:1: connection.http: a WebSocket needs HTTP/1.1
            a.toml:4:1: connection.keepalive: WebSocket sessions stay open
            a.toml:4:1: connection.max_redirects: a WebSocket follows no redirects
            a.toml:3:1: scenario[0].ws_message: it needs a URL that begins with ws:// or wss://
        "#]],
    );
}

#[test]
fn a_grpc_method_is_recognised_by_its_scheme() {
    let read = |text: &str| SpecFile::read("a.toml", text.as_bytes()).unwrap().spec();
    let spec = |fields: &str| read(&format!("[[scenario]]\nurl = \"grpcs://h/S/M\"\n{fields}"));
    let asked = spec("body = \"{}\"\nproto = [\"a.proto\"]\nproto_paths = [\"p\"]\n").unwrap();
    let grpc = GrpcSpec {
        url: "grpcs://h/S/M".to_owned(),
        proto: vec!["a.proto".into()],
        proto_set: None,
        proto_paths: vec!["p".into()],
    };
    assert_eq!(asked.scenarios[0].source, RequestSource::Grpc(grpc));
    assert_eq!(asked.connection.http, HttpVersion::Http2);
    let expect = &asked.scenarios[0].expect;
    assert!(expect.accepts(200) && !expect.accepts(204));
    let printed = asked.draft().write(Syntax::Toml).unwrap();
    assert_eq!(read(&printed), Ok(asked), "{printed}");
    let inlined = spec("proto_set = { base64 = \"CgD/\" }").unwrap();
    let RequestSource::Grpc(grpc) = &inlined.scenarios[0].source else { panic!("{inlined:?}") };
    assert_eq!(grpc.proto_set, Some(BodySpec::Bytes(vec![10, 0, 255].into())));
    let printed = inlined.draft().write(Syntax::Toml).unwrap();
    assert_eq!(read(&printed), Ok(inlined), "{printed}");
    let url = "[[scenario]]\nurl = \"grpcs://h/S/M\"\n";
    errors(
        "a.toml",
        &[
            format!("{url}method = \"GET\""),
            format!("{url}proto = [\"p\"]\nproto_set = \"x\""),
            format!("{url}proto_paths = [\"p\"]"),
            format!("{url}[connection]\nhttp = \"1.1\""),
            format!("{url}[connection]\nmax_redirects = 1"),
            "[[scenario]]\nurl = \"http://h/\"\nproto = [\"a\"]\n".to_owned(),
        ],
        &expect![[r#"
            a.toml:3:1: scenario[0].method: a gRPC call is always a POST
            a.toml:4:1: scenario[0].proto_set: it replaces proto: leave one of them out
            a.toml:3:1: scenario[0].proto_paths: it needs proto
            a.toml:4:1: connection.http: gRPC needs HTTP/2
            a.toml:4:1: connection.max_redirects: gRPC calls follow no redirects
            a.toml:3:1: scenario[0].proto: it needs a URL that begins with grpc:// or grpcs://
        "#]],
    );
}

/// The error of an invalid file.
fn error(name: &str, text: &str) -> String {
    let spec = SpecFile::read(name, text.as_bytes()).and_then(|file| file.spec());
    spec.expect_err(text).to_string()
}

/// Compares the errors of invalid files, one a line.
fn errors(name: &str, texts: &[String], expected: &Expect) {
    let errors: String = texts.iter().map(|text| error(name, text) + "\n").collect();
    expected.assert_eq(&errors);
}

#[test]
fn errors_say_the_line_and_the_field() {
    let url = "[[scenario]]\nurl = \"http://h/\"\n";
    errors(
        "a.toml",
        &[
            "seed = ".to_owned(),
            "threads = 0\n".to_owned(),
            format!("{url}rate = \"fast\"\n"),
            format!("threads = 0\n{url}"),
            format!("{url}rate = 5\nthink = \"1s\"\n"),
            format!("{url}targets = \"t\"\n"),
            "[[scenario]]\nrate = 5\n".to_owned(),
            format!("{url}{url}"),
            format!("version = 9\n{url}"),
            format!("{url}[scenario.tags]\na = \"\"\n"),
            "[connection]\ntimeout = 0\n".to_owned(),
            "[connection]\nhttp = \"9\"\n".to_owned(),
        ],
        &expect![[r#"
            a.toml:1:8: seed: string values must be quoted, expected literal string
            a.toml: there is no scenario: write [[scenario]] and its url
            a.toml:3:8: scenario[0].rate: "fast" is not a rate up to 10,000,000/s; write for example 1000, 100/1s, 6000/m, 2.5k, or max
            a.toml:1:1: threads: it must be at least 1
            a.toml:4:1: scenario[0].think: it belongs to a closed loop; a rate makes the loop open
            a.toml:3:1: scenario[0].targets: the scenario already has url
            a.toml:1:1: scenario[0]: there is nothing to send: write url, targets, request or recording
            a.toml:1:1: scenario[0].name: each of several scenarios needs a name
            a.toml:1:1: version: this gake reads versions 1 to 1 of a spec, not 9
            a.toml:4:1: scenario[0].tags.a: it is empty
            a.toml:2:1: connection.timeout: it must be longer than 0
            a.toml:2:8: connection.http: unknown variant `9`, expected one of `1.0`, `1.1`, `2`, `auto`, `3`, `auto3`
        "#]],
    );
    let unknown = error("a.toml", &format!("{url}rats = 5\n"));
    assert!(unknown.starts_with("a.toml:3:1: scenario[0].rats: unknown field `rats`"), "{unknown}");
}

#[test]
fn errors_in_json_say_the_line_and_the_field() {
    errors(
        "a.json",
        &[
            "{\n \"seed\": }".to_owned(),
            "{\"scenario\": [\n {\"url\": \"u\",\n  \"rate\": \"fast\"}]}".to_owned(),
            "{\"scenario\": [\n {\"url\": \"u\", \"think\": 1,\n  \"rate\": 5}]}".to_owned(),
        ],
        &expect![[r#"
            a.json:2:10: seed: expected value
            a.json:3:16: scenario[0].rate: "fast" is not a rate up to 10,000,000/s; write for example 1000, 100/1s, 6000/m, 2.5k, or max
            a.json:2:15: scenario[0].think: it belongs to a closed loop; a rate makes the loop open
        "#]],
    );
    let unknown = error("a.json", "{\"scenario\": [\n {\"url\": \"u\", \"x\": 1}]}");
    assert!(unknown.starts_with("a.json:2:") && unknown.contains("unknown field `x`"), "{unknown}");
}

#[test]
fn contradictions_are_rejected() {
    let keys = [
        "rate = 5\nstages = \"5@5s\"",
        "stages = \"5@5s\"\nduration = 5",
        "arrivals = \"poisson\"",
        "overflow = \"drop\"",
        "max_in_flight = 7",
        "lanes = 7",
        "users = 0",
        "users = \"1..5@5s\"\nduration = 5",
        "iterations = 5\niterations_per_user = 5",
        "iterations = 5\nrequests = 5",
        "pace = 1\nthink = 1",
        "users = 9\nusers_max = 5",
        "graceful_ramp_down = 5",
        "speed = 2",
        "function = \"f\"",
        "rate = 5\nusers = 5",
        "duration = 0",
        "requests = 0",
    ];
    let url = "[[scenario]]\nurl = \"http://h/\"\n";
    errors(
        "a.toml",
        &keys.map(|keys| format!("{url}{keys}\n")),
        &expect![[r#"
        a.toml:4:1: scenario[0].stages: they are rates already: leave the rate out
        a.toml:4:1: scenario[0].duration: the stages have times of their own
        a.toml:3:1: scenario[0].arrivals: it needs a rate: in a closed loop, responses determine the arrivals
        a.toml:3:1: scenario[0].overflow: it needs a rate: a closed loop never overflows
        a.toml:3:1: scenario[0].max_in_flight: it needs a rate: a user has one request in flight
        a.toml:1:1: scenario[0].max_in_flight: it needs a rate: a user has one request in flight
        a.toml:3:1: scenario[0].users: it must be at least 1
        a.toml:4:1: scenario[0].duration: it contradicts stages of users
        a.toml:4:1: scenario[0].iterations_per_user: it contradicts iterations
        a.toml:4:1: scenario[0].requests: it contradicts iterations
        a.toml:4:1: scenario[0].think: it contradicts a pace
        a.toml:4:1: scenario[0].users_max: it is below the number of users, or 0
        a.toml:3:1: scenario[0].graceful_ramp_down: it needs stages of users, as 50..200@30s
        a.toml:3:1: scenario[0].speed: it belongs to a recording
        a.toml:3:1: scenario[0].function: it belongs to a script
        a.toml:4:1: scenario[0].users: it belongs to a closed loop; a rate makes the loop open
        a.toml:3:1: scenario[0].duration: it must be longer than 0
        a.toml:3:1: scenario[0].requests: it must be at least 1
    "#]],
    );
    let top = ["spin = true", "abort = true"].map(|top| format!("{top}\n{url}"));
    errors(
        "a.toml",
        &top,
        &expect![[r#"
        a.toml:1:1: spin: it needs a rate: a closed loop has no due times to wait for
        a.toml:1:1: abort: it needs an objective
    "#]],
    );
}

#[test]
fn readers_are_bounded() {
    let too_long = std::io::Read::take(std::io::repeat(b' '), BYTES_MAX + 10);
    let too_long = SpecFile::read("a.toml", too_long).unwrap_err().to_string();
    expect!["a.toml: a spec has at most 16 MiB"].assert_eq(&too_long);
    for (name, deep) in [
        ("a.toml", format!("x = {}", "[".repeat(100_000))),
        ("a.toml", format!("x{} = 1", ".a".repeat(100_000))),
        ("a.json", "[".repeat(100_000)),
        ("a.json", "{\"a\":".repeat(100_000)),
    ] {
        assert!(SpecFile::read(name, deep.as_bytes()).is_err(), "{name}");
    }
    let many: String = (0..=SCENARIOS_MAX)
        .map(|i| format!("[[scenario]]\nname = \"{i}\"\nurl = \"http://h/\"\n"))
        .collect();
    expect!["a.toml:1:3: scenario: 101 scenarios are more than 100"]
        .assert_eq(&error("a.toml", &many));
    assert!(error("a.toml", "\u{1}").starts_with("a.toml"));
    let not_text = SpecFile::read("a.toml", &b"\xff"[..]).unwrap_err();
    expect!["a.toml: it is not UTF-8"].assert_eq(&not_text.to_string());
}

#[test]
fn the_language_is_known_by_suffix_or_content() {
    assert_eq!(Syntax::of("a.JSON", ""), Syntax::Json);
    assert_eq!(Syntax::of("a.toml", "{"), Syntax::Toml);
    assert_eq!(Syntax::of("-", " \n{\"a\": 1}"), Syntax::Json);
    assert_eq!(Syntax::of("-", "[[scenario]]"), Syntax::Toml);
}

#[test]
fn header_lines_are_as_in_curl() {
    let headers = |lines: &str| {
        let text = format!("[[scenario]]\nurl = \"http://h/\"\nheaders = [{lines}]\n");
        let spec = SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
        spec.scenarios[0].request.headers.clone()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers(r#""X: 1", "X-Empty;", "X-Gone:""#), [pair("X", "1"), pair("X-Empty", "")]);
    // The defaults are left out by an empty value, and sent empty by a blank one.
    assert_eq!(headers(r#""User-Agent:""#), [pair("User-Agent", "")]);
    assert_eq!(headers(r#""user-agent ;""#), [pair("user-agent", " ")]);
    for line in ["X: 1", "X-Empty;", "User-Agent:", "User-Agent;"] {
        let value: value::HeaderValue = line.parse().unwrap();
        let decided = value.decided().unwrap();
        assert_eq!(value::HeaderValue::of(&decided).to_string(), line);
    }
    assert!(["", ";", ":", "X"].iter().all(|line| line.parse::<value::HeaderValue>().is_err()));
}
