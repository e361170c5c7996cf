//! Text of clients, backends and comparison files never reaches a terminal unescaped.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use rustix::process::Signal;

use crate::proxy::{Proxy, ask};
use crate::support::*;

/// Throws what a client sent, in every way.
const SCRIPT: &str = "
export const options = { requestBody: 'text', munge: ['sandbox'] };
export function mungeRequest(backend, request) {
    const evil = request.body;
    switch (request.headers['x-kind']) {
        case 'error': throw new Error(evil);
        case 'text': throw evil;
        case 'promise': return Promise.reject(new Error(evil));
        case 'object': throw { toString() { return evil; } };
        case 'name': { const error = new Error('x'); error.name = evil; throw error; }
        case 'stack': { const error = new Error('y'); error.stack = evil + '\\n' + evil; throw error; }
        case 'member': return null[evil];
        case 'call': return ({})[evil]();
        case 'json': return JSON.parse(evil);
        case 'pattern': return new RegExp('[' + evil);
        case 'uri': return { uri: evil };
        case 'method': return { method: evil };
        case 'header': return { headers: { [evil]: '1' } };
        case 'field': return { [evil]: evil };
        default: console.log(evil.split('\\n')[0]); console.error(evil);
    }
}";

#[test]
fn errors_of_hooks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hooks.js");
    fs::write(&path, SCRIPT).unwrap();
    let (master, shadow) = (lab(), lab());
    let (master, shadow) =
        (format!("m=http://{}", master.addr()), format!("sandbox=http://{}", shadow.addr()));
    let flags = ["--master", &master, "--shadow", &shadow, "--shadow-methods", "all"];
    let script = ["--script", path.to_str().unwrap(), "--script-timeout", "60s"];
    let proxy = Proxy::start(&[&flags[..], &script].concat());
    let kinds = [
        "error", "text", "promise", "object", "name", "stack", "member", "call", "json", "pattern",
        "uri", "method", "header", "field", "log",
    ];
    for kind in kinds {
        ask(&proxy.url, "POST", "/echo", &format!("X-Kind: {kind}\r\n"), HOSTILE);
    }
    proxy.settled();
    let ended = proxy.end(Signal::INT);
    shows_escapes(&ended.stderr);
    holds_no_hazard(&ended.stdout);
    let escaped = ended.stderr.matches("]0;PWN").count();
    assert!(escaped > 10, "most of them say it: {}", ended.stderr);
}

/// A backend that sends a text as a header's name and value.
fn backend(header: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let body = body.clone();
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Say: {header}\r\n\
                         Content-Length: {length}\r\n\r\n{body}"
                    );
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    url
}

#[test]
fn a_comparison_at_its_end_and_as_a_file() {
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let master = backend("plain", "{\"a\":\"x\"}".to_owned());
    let shadow = backend(
        "\u{9b}2J\u{202e}\u{90}q\u{9c}",
        format!("{{\"a\":{quoted},{quoted}:{quoted},\"raw\":\"\u{9b}2J\u{202e}\u{7f}\"}}"),
    );
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = at("diff.json");
    let (master, shadow) = (format!("m={master}"), format!("sandbox={shadow}"));
    let flags = ["--master", &master, "--shadow", &shadow, "--diff", "--diff-out", &file];
    let proxy = Proxy::start(&flags);
    for number in 0..20 {
        ask(&proxy.url, "GET", &format!("/items/{number}"), "", "");
    }
    proxy.settled();
    let ended = proxy.end(Signal::INT);
    shows_escapes(&ended.stdout);
    assert!(ended.stdout.contains("\\u009b2J\\u202e\\u0090q\\u009c"), "{}", ended.stdout);
    holds_no_hazard(&ended.stderr);

    // As the proxy wrote it, and with names that only a hostile file has.
    let text = fs::read_to_string(&file).unwrap();
    let inner = &quoted[1..quoted.len() - 1];
    let (hostile, out) = (at("hostile.json"), at("out"));
    fs::write(&hostile, text.replace("sandbox", inner).replace("/items", inner)).unwrap();
    for path in [&file, &hostile] {
        for format in ["text", "json"] {
            let shown = ran(&["shadow", "report", path, "-o", format]);
            shows_escapes(&shown.stdout);
            holds_no_hazard(&shown.stderr);
            let to = format!("{format}={out}");
            ran(&["shadow", "report", path, "-o", &to, "-o", "json"]);
            shows_escapes(&fs::read_to_string(&out).unwrap());
            fs::remove_file(&out).unwrap();
        }
    }
    let json = ran(&["shadow", "report", &hostile, "-o", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["shadow"], HOSTILE, "JSON says it as it was");
}
