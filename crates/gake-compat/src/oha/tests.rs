//! Command lines of oha and their specs.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::Stage;
use gake_core::schedule::Process;
use gake_core::spec::{BodySpec, HttpVersion, RequestSource, ScenarioSpec};

use super::requests::Requests;
use super::*;
use crate::testing::{assert_comes_back, words};

fn read(line: &str) -> Result<CommandLine<OhaOptions>, String> {
    OhaOptions::read(&words(line))
}

fn options(line: &str) -> OhaOptions {
    match read(line) {
        Ok(CommandLine::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn sent(line: &str) -> Result<Requests, Failure> {
    let options = options(line);
    requests::sent(&options.parsed, &options.target)
}

/// URL and body of each request.
fn requests(sent: &Requests) -> Vec<(&str, &[u8])> {
    let RequestSource::Requests(all) = &sent.source else { panic!("{sent:?}") };
    all.iter()
        .map(|request| match &request.body {
            Some(BodySpec::Bytes(bytes)) => (request.url.as_str(), &**bytes),
            _ => (request.url.as_str(), &[][..]),
        })
        .collect()
}

#[test]
fn the_defaults_are_ohas() {
    let spec = options("http://h/").spec().unwrap();
    let scenario = &spec.scenarios[0];
    assert_eq!((&scenario.load, scenario.requests), (&Load::closed(50), Some(200)));
    assert_eq!(scenario.duration, None);
    assert_eq!(spec.connection.connect_timeout, Duration::from_secs(5));
    assert!(spec.connection.timeout > Duration::from_secs(365 * 86_400));
    assert!(!spec.tls.insecure && spec.connection.keepalive);
    assert_eq!(spec.connection.max_redirects, 0);
    let sent = sent("http://h/").unwrap();
    assert_eq!(requests(&sent), [("http://h/", &b""[..])]);
    assert_eq!(sent.defaults.method.as_deref(), Some("GET"));
    let expected = [
        ("accept", "*/*"),
        ("accept-encoding", "gzip, compress, deflate, br"),
        ("user-agent", "oha/1.16.0"),
    ];
    let headers = sent.defaults.headers.iter();
    assert!(headers.map(|(n, v)| (n.as_str(), v.as_str())).eq(expected));
}

#[test]
fn load_flags_mean_what_they_mean_to_oha() {
    let scenario =
        |line: &str| -> ScenarioSpec { options(line).spec().unwrap().scenarios.remove(0) };
    assert_eq!(scenario("-n 10k -c3 http://h/").requests, Some(10_000));
    let timed = scenario("-z 1m http://h/");
    assert_eq!((timed.requests, timed.duration), (None, Some(Duration::from_secs(60))));
    // Requests in flight at the end are aborted unless oha waits for them.
    assert_eq!(timed.graceful_stop, Duration::ZERO);
    assert!(scenario("-z 1s -w http://h/").graceful_stop > Duration::from_secs(86_400));
    assert_eq!(scenario("-q 2.5 http://h/").load, Load::rate(2.5, Duration::MAX));
    assert_eq!(scenario("-q 0 http://h/").load, Load::closed(50));
    let bursts = Load::Open {
        stages: vec![Stage::step(20.0, Duration::MAX)],
        process: Process::Bursts { size: 10, jitter: 0 },
    };
    assert_eq!(scenario("--burst-delay 500ms --burst-rate 10 http://h/").load, bursts);
    assert!(options("-q 5 --latency-correction http://h/").corrected());
    assert!(!options("--latency-correction http://h/").corrected());
}

#[test]
fn requests_have_the_given_parts() {
    let sent = sent(
        "-m PUT -d x -T a/b -A c/d -a u:p --host v -H User-Agent:me -H X:1 -H x:2 \
         --disable-compression http://h/",
    );
    let sent = sent.unwrap();
    assert_eq!(requests(&sent), [("http://h/", &b"x"[..])]);
    assert_eq!(sent.defaults.method.as_deref(), Some("PUT"));
    let headers = sent.defaults.headers.iter();
    let lines: Vec<_> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        lines,
        [
            "accept: c/d",
            "content-type: a/b",
            "host: v",
            "authorization: Basic dTpw",
            "User-Agent: me",
            "x: 2"
        ]
    );
}

#[test]
fn files_of_lines_are_requests_in_turn() {
    let dir = std::env::temp_dir();
    let path = |name: &str| dir.join(format!("gake-oha-{name}-{}", std::process::id()));
    let (urls, bodies) = (path("urls"), path("bodies"));
    std::fs::write(&urls, "http://h/a\n\nhttp://h/b\n").unwrap();
    std::fs::write(&bodies, "one\ntwo\n").unwrap();
    let line = format!("--urls-from-file -Z {} {}", bodies.display(), urls.display());
    let sent = sent(&line);
    std::fs::remove_file(urls).unwrap();
    std::fs::remove_file(bodies).unwrap();
    let sent = sent.unwrap();
    let expected = [
        ("http://h/a", &b"one"[..]),
        ("http://h/b", b"one"),
        ("http://h/a", b"two"),
        ("http://h/b", b"two"),
    ];
    assert_eq!(requests(&sent), expected);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (line, expected) in [
        ("--aws-sigv4 a http://h/", "--aws-sigv4 cannot be honoured"),
        ("--zz http://h/", "--zz"),
        ("-n 5 -z 1s http://h/", "-n and -z exclude each other"),
        ("-d a -F b=c http://h/", "-d and --form exclude each other"),
        ("-q 1 --burst-delay 1s --burst-rate 2 http://h/", "-q and --burst-delay"),
        ("-w http://h/", "needs -z"),
        ("--burst-rate 2 http://h/", "--burst-rate needs --burst-delay"),
        ("--cert a http://h/", "--cert needs --key"),
        ("--output-format xml http://h/", "text, json, csv or quiet"),
        ("-u parsec http://h/", "ns, us, ms, s, m or h"),
        ("--connect-to a:80:b:1 --connect-to a:80:c:1 http://h/", "--connect-to is given twice"),
        ("--connect-to [::1]:80:b:1 --connect-to [::1]:80:c:1 http://h/", "given twice"),
        ("", "the URL is missing"),
        ("http://a/ http://b/", "\"http://b/\" is one URL too many"),
    ] {
        let error = read(line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert!(read("--connect-to a:80:b:1 --connect-to a:81:b:1 http://h/").is_ok());
    for (line, expected) in [
        ("-n 0 http://h/", "at least 1"),
        ("-t 5 http://h/", "a unit is missing"),
        ("-q -1 http://h/", "a number a second"),
        ("--http-version 0.9 http://h/", "--http-version cannot be honoured"),
    ] {
        let error = options(line).spec().unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
    for (line, expected) in [
        ("-a foo http://h/", "user:password"),
        ("-H foo http://h/", "Name: value"),
        ("h:80", "it begins with http://"),
        ("--urls-from-file /does/not/exist", "/does/not/exist cannot be read"),
    ] {
        let error = sent(line).unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn http2_has_c_connections_of_p_users() {
    for line in ["--http2 -c 5 -p 4 http://h/", "--http-version 2 -c 5 -p 4 http://h/"] {
        let spec = options(line).spec().unwrap();
        let scenario = &spec.scenarios[0];
        assert_eq!(spec.connection.http, HttpVersion::Http2);
        assert_eq!((scenario.load.users(), scenario.connections), (Some(20), 5));
        assert_eq!(scenario.streams(&spec.connection), 4);
    }
    let plain = options("-c 5 -p 4 http://h/").spec().unwrap();
    assert_eq!((plain.scenarios[0].load.users(), plain.connection.streams), (Some(5), None));
}

#[test]
fn a_spec_of_oha_comes_back() {
    for line in [
        "http://h/",
        "-z 5s -q 10 --latency-correction -d x http://h/",
        "--burst-delay 500ms --burst-rate 10 -n 7 --http-version 1.0 --ipv4 http://h/",
        "--http2 -c 5 -p 4 http://h/",
    ] {
        assert_comes_back(&options(line).spec().unwrap());
    }
}
