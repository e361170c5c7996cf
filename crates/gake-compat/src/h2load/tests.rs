//! Command lines of h2load and their specs.

use std::time::Duration;

use gake_core::Load;
use gake_core::spec::{HttpVersion, RequestSource, RunSpec};

use super::options::{Extent, H2loadOptions, Protocols};
use super::progress::opening;
use super::spec;
use crate::flags::CommandLine;
use crate::testing::{assert_comes_back, words};

fn read(line: &str) -> Result<H2loadOptions, String> {
    match H2loadOptions::read(&words(line))? {
        CommandLine::Run(options) => Ok(*options),
        other => panic!("{other:?}"),
    }
}

fn of(line: &str) -> RunSpec {
    spec(&read(line).unwrap())
}

#[test]
fn defaults_are_h2loads() {
    let options = read("http://h/").unwrap();
    assert_eq!((options.clients, options.streams, options.threads), (1, 1, 1));
    assert_eq!(options.extent, Extent::Requests(1));
    assert_eq!(options.windows, ((1 << 30) - 1, (1 << 30) - 1));
    assert_eq!(options.protocols, Protocols::Http2);
    assert_eq!(read("https://h/").unwrap().protocols, Protocols::Either);
    assert!(options.headers.contains(&("user-agent".into(), "h2load nghttp2/1.52.0".into())));
}

#[test]
fn clients_are_connections_with_streams() {
    let spec = of("-n 1000 -c 50 -m 10 -t 2 -w 16 -W 20 http://h/");
    let scenario = &spec.scenarios[0];
    assert_eq!((scenario.connections, scenario.max_in_flight, spec.threads), (50, 500, Some(2)));
    assert_eq!((scenario.load.clone(), scenario.requests), (Load::closed(500), Some(1_000)));
    let connection = &spec.connection;
    assert_eq!((connection.http, connection.streams), (HttpVersion::Http2, Some(10)));
    let windows = (connection.stream_window, connection.connection_window);
    assert_eq!(windows, (Some((1 << 16) - 1), Some((1 << 20) - 1)));
}

#[test]
fn http3_is_asked_for_in_two_ways() {
    for line in ["--h3 -m 10 https://h/", "--alpn-list h3 -m 10 https://h/"] {
        let connection = of(line).connection;
        assert_eq!((connection.http, connection.streams), (HttpVersion::Http3, Some(10)), "{line}");
    }
}

#[test]
fn a_rate_is_per_client() {
    let spec = of("--rps 20 -c 5 -D 3 --warm-up-time 500ms http://h/");
    let Load::Open { stages, .. } = &spec.scenarios[0].load else { panic!("{spec:?}") };
    assert_eq!((stages[0].from, stages[0].duration), (100.0, Duration::from_secs(3)));
    assert_eq!((spec.warmup, spec.scenarios[0].duration), (Duration::from_millis(500), None));
}

#[test]
fn sni_names_the_server_in_tls_only() {
    let options = read("--sni s.test https://[::1]:8443/a?b").unwrap();
    assert_eq!(options.uris, ["https://s.test:8443/a?b"]);
    assert_eq!(options.connect_to.as_deref(), Some("[::1]:8443"));
    assert!(options.headers.contains(&("host".into(), "[::1]:8443".into())));
    let given = read("--sni s.test --connect-to c -H host:o https://h/").unwrap();
    assert_eq!(given.connect_to.as_deref(), Some("c"));
    assert!(given.headers.contains(&("host".into(), "o".into())));
    assert_eq!(read("--sni s.test http://h/").unwrap().uris, ["http://h/"]);
    assert!(read("--sni :: https://h/").is_err());
}

#[test]
fn specs_come_back() {
    for line in [
        "http://h/",
        "-n 9 -c 2 -m 3 -T 5 -N 300ms http://h/a /b",
        "--h1 -c 2 -D 1m http://h/",
        "--rps 5 -n 40 -B unix:/run/x http://h/",
        "-H :method:PUT -H :authority:x -H A:b --connect-to [::1]:81 https://h/",
    ] {
        assert_comes_back(&of(line));
    }
}

#[test]
fn pseudo_headers_are_the_method_and_the_host() {
    let spec = of("-H :method:PUT -H :authority:x.test --connect-to 127.0.0.1 http://h/");
    let request = &spec.scenarios[0].request;
    assert_eq!(request.method.as_deref(), Some("PUT"));
    assert_eq!(request.headers[0], ("host".to_owned(), "x.test".to_owned()));
    assert_eq!(spec.connection.connect_to, ["::127.0.0.1:"]);
}

#[test]
fn a_script_is_a_recording() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0.0\thttp://h:1/a\n250.5\thttp://x/b\n\n").unwrap();
    let path = file.path().to_str().unwrap();
    let options = read(&format!("-c 3 --timing-script-file {path}")).unwrap();
    assert_eq!(options.uris, ["http://h:1/a", "http://h:1/b"]);
    assert_eq!(options.extent, Extent::Requests(6));
    assert_eq!(options.script.as_ref().unwrap().offsets, [0, 250_500_000]);
    let spec = spec(&options);
    assert!(
        matches!(&spec.scenarios[0].source, RequestSource::Recording(r) if r.to == "http://h:1")
    );
    let first = read(&format!("-n 1 --timing-script-file {path}")).unwrap();
    assert_eq!((first.uris.len(), first.extent), (1, Extent::Requests(1)));
    std::fs::write(file.path(), "x\thttp://h/\n").unwrap();
    let error = read(&format!("--timing-script-file {path}")).unwrap_err();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn threads_share_clients_and_requests() {
    let text = opening(&read("-n 11 -c 3 -t 2 http://h/").unwrap());
    assert_eq!(
        text,
        "starting benchmark...\n\
         spawning thread #0: 2 total client(s). 6 total requests\n\
         spawning thread #1: 1 total client(s). 5 total requests\n"
    );
}

#[test]
fn what_cannot_be_honoured_is_named() {
    for (line, expected) in [
        ("", "no URI given"),
        ("h/", "invalid URI"),
        ("-c 0 http://h/", "-c \"0\""),
        ("-n 3 -c 5 http://h/", "-n, -c:"),
        ("-n 9 -c 2 -t 3 http://h/", "-c, -t:"),
        ("-m 2 --h1 http://h/", "does not pipeline"),
        ("-w 31 http://h/", "from 1 to 30"),
        ("-W 15 http://h/", "from 16 to 30"),
        ("-f 32K http://h/", "-f cannot be honoured"),
        ("--header-table-size 8K http://h/", "--header-table-size cannot be honoured"),
        ("-r 5 http://h/", "-r cannot be honoured"),
        ("-p h3 http://h/", "write h2c or http/1.1"),
        ("--npn-list h2,h3 https://h/", "does not speak"),
        ("--h3 http://h/", "HTTP/3 needs an https: URI"),
        ("--h1 --h3 https://h/", "exclude each other"),
        ("--warm-up-time 1 http://h/", "it needs -D"),
        ("-D 1d http://h/", "write for example 10s"),
        ("-T 1 -D 3 http://h/", "-T, -D: they are mutually exclusive"),
        ("-H :path:/x http://h/", "the URI says it"),
        ("--zz http://h/", "--zz"),
    ] {
        let error = read(line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert!(read("-f 16K --header-table-size 4096 http://h/").is_ok());
}
