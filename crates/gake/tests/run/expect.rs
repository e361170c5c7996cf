//! `--expect-body`: a status says little about a response.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;

use crate::support::*;

/// A server that responds with a 200 and these bodies in turn, each with its content coding, on one
/// connection after the other.
fn serving(answers: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut answers = answers.iter().cycle();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            while stream.read(&mut head).is_ok_and(|read| read > 0) {
                let (coding, body) = answers.next().unwrap();
                let coding = match *coding {
                    "" => String::new(),
                    coding => format!("Content-Encoding: {coding}\r\n"),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\n{coding}Content-Length: {length}\r\n\r\n");
                if stream.write_all(&[head.as_bytes(), body].concat()).is_err() {
                    break;
                }
            }
        }
    });
    url
}

/// The output of a program of this machine for an input.
fn piped(program: &str, flags: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    child.stdin.take().unwrap().write_all(input).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{program}: {out:?}");
    out.stdout
}

#[test]
fn a_response_with_another_body_fails() {
    let bodies = [r#"{"ok":true,"items":[{"id":7}]}"#, r#"{"ok":false,"error":"full"}"#];
    let url = serving(bodies.map(|body| ("", body.as_bytes().to_vec())).to_vec());
    for check in [r#""ok":\s*true"#, "json:ok=true", "json:items[0].id=7"] {
        let line = ["-n", "10", "-c", "1", "--body-errors", "--expect-body", check];
        let json = run(&[&[url.as_str()], &line[..]].concat());
        assert_eq!((json.count("requests.ok"), json.count("requests.failed")), (5, 5), "{check}");
        assert_eq!(json.count("requests.wrong_bodies"), 5, "{check}");
        assert_eq!(json.count("status.200"), 10);
        assert!(json.findings().contains(&"wrong_bodies"), "{}", json.at("verdict"));
        let first = &json.at("failed_bodies.bodies")[0];
        assert_eq!((first["status"].as_u64(), first["count"].as_u64()), (Some(200), Some(5)));
        assert_eq!(first["text"], bodies[1]);
    }
    let never = ran(&["run", &url, "-n", "4", "-c", "1", "--expect-body", "^never$"]);
    assert_eq!(never.code, Some(1), "{never:?}");
    assert!(never.stdout.contains("4 responses with an unexpected body"), "{never:?}");
    assert!(never.stdout.contains("nothing succeeded: no body matched --expect-body"), "{never:?}");
}

#[test]
fn bodies_of_http2_are_looked_at_too() {
    let lab = lab();
    for (path, check, ok) in [("/fast", "^Hello", 20), ("/fast", "^never$", 0)] {
        let url = url(&lab, path);
        let line = ["--http2", "-n", "20", "-c", "2", "--streams", "5", "--expect-body", check];
        let json = ran(&[&["run", &url, "-o", "json"], &line[..]].concat()).json();
        assert_eq!(json.count("requests.ok"), ok, "{}", json.0);
        assert_eq!(json.count("requests.wrong_bodies"), 20 - ok, "{}", json.0);
    }
    let url = url(&lab, "/status/503");
    let json =
        ran(&["run", &url, "-o", "json", "--http2", "-n", "3", "-c", "1", "--body-errors"]).json();
    let first = &json.at("failed_bodies.bodies")[0];
    assert_eq!((first["status"].as_u64(), first["count"].as_u64()), (Some(503), Some(3)));
}

#[test]
fn coded_bodies_are_decoded_before_they_are_looked_at() {
    let text = "hello ".repeat(20_000) + "the end";
    let text = text.as_bytes();
    let coded = [
        ("gzip", piped("gzip", &["-c"], text)),
        ("zstd", piped("zstd", &["-q", "-c"], text)),
        ("", text.to_vec()),
    ];
    let url = serving(coded.to_vec());
    let line = ["-n", "30", "-c", "1", "--expect-body", "^hello hello .*the end$"];
    let json = run(&[&[url.as_str()], &line[..]].concat());
    assert_eq!((json.count("requests.ok"), json.count("requests.failed")), (30, 0), "{}", json.0);
    let hash = String::from_utf8(piped("sha256sum", &[], text)).unwrap();
    let check = format!("sha256:{}", hash.split_whitespace().next().unwrap());
    let json = run(&[url.as_str(), "-n", "30", "-c", "1", "--expect-body", &check]);
    assert_eq!(json.count("requests.ok"), 30, "{}", json.0);
    // A body whose declared coding is wrong meets no expectation.
    let url = serving(vec![("gzip", text.to_vec())]);
    let json =
        ran(&["run", &url, "-n", "5", "-c", "1", "--expect-body", "hello", "-o", "json"]).json();
    assert_eq!(json.count("requests.wrong_bodies"), 5, "{}", json.0);
}

#[test]
fn a_spec_holds_the_check_and_a_bad_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml").display().to_string();
    let url = serving(vec![("", b"fine".to_vec())]);
    let flags = ["-n", "5", "-c", "1", "--expect-body", "^fine$", "--print-spec"];
    let printed = ran(&[&["run", url.as_str()], &flags[..]].concat()).done();
    assert!(printed.stdout.contains("expect_body = \"^fine$\""), "{printed:?}");
    std::fs::write(&file, &printed.stdout).unwrap();
    let json = ran(&["run", "--spec", &file, "-o", "json"]).json();
    assert_eq!((json.count("requests.ok"), json.count("requests.wrong_bodies")), (5, 0));
    for (check, told) in [
        ("(", "--expect-body: \"(\" is not a valid regular expression"),
        ("sha256:ff", "64 hexadecimal digits"),
        ("json:a", "json:PATH=VALUE"),
    ] {
        ran(&["run", &url, "--expect-body", check]).refused(2, told);
    }
}
