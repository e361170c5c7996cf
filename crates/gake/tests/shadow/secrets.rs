//! No file of the proxy or a run has secrets, and only their owner can read them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::process::Signal;

use crate::canaries::{HEADERS, PARAMETERS};
use crate::proxy::{Proxy, ask};
use crate::support::*;

/// In every secret that is sent.
const CANARY: &str = "zQcanary7Qz";

const CARD: &str = "4111 1111 1111 1111";

/// Says different things about the requests that it shows, so that there is something to compare.
fn echo() -> gake_lab::Lab {
    lab()
}

/// Requests with secrets in every part.
fn traffic(url: &str) {
    for name in PARAMETERS {
        ask(url, "GET", &format!("/echo?{name}={CANARY}&n=1"), "", "");
    }
    for name in HEADERS {
        ask(url, "GET", "/echo", &format!("{name}: {CANARY}\r\n"), "");
    }
    let referer = format!("Referer: https://h/?token={CANARY}\r\nCookie: a={CANARY}\r\n");
    ask(url, "GET", "/echo", &referer, "");
    for (kind, body) in [
        ("application/json", format!("{{\"a\":[{{\"password\":\"{CANARY}\"}}]}}")),
        ("application/json", format!("{{\"credentials\":{{\"user\":\"{CANARY}\"}}}}")),
        ("application/x-www-form-urlencoded", format!("user=me&password={CANARY}")),
        ("text/plain", format!("card {CARD} and secret: {CANARY}")),
    ] {
        ask(url, "POST", "/echo", &format!("Content-Type: {kind}\r\n"), &body);
    }
}

fn holds_nothing(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    for secret in [CANARY, CARD] {
        assert!(!text.contains(secret), "{secret} in {}", path.display());
    }
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{}", path.display());
}

#[test]
fn what_is_recorded_and_compared_holds_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let (master, shadow) = (echo(), echo());
    let flags = [
        "--master".to_owned(),
        format!("m=http://{}", master.addr()),
        "--shadow".to_owned(),
        format!("s=http://{}", shadow.addr()),
        "--shadow-methods".to_owned(),
        "all".to_owned(),
        "--record".to_owned(),
        text("r.gakerec"),
        "--diff-out".to_owned(),
        text("d.json"),
    ];
    let proxy = Proxy::start(&flags.each_ref().map(String::as_str));
    traffic(&proxy.url);
    proxy.settled();
    let ended = proxy.end(Signal::INT);
    assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
    for name in ["r.gakerec", "d.json"] {
        holds_nothing(&at(name));
    }
    assert!(fs::read(at("r.gakerec")).unwrap().windows(9).any(|part| part == b"redacted-"));

    // Conversion keeps this, and redacts other tools' recordings.
    ran(&["shadow", "convert", &text("r.gakerec"), &text("r.gor")]).done();
    holds_nothing(&at("r.gor"));
    let raw = format!("POST /a?token={CANARY} HTTP/1.1\r\nHost: h\r\nX-Api-Key: {CANARY}\r\n\r\n");
    fs::write(at("in.gor"), format!("1 a1 1000 0\n{raw}\n🐵🙈🙉\n")).unwrap();
    let line =
        format!("1.2.3.4 - - [10/Oct/2000:13:55:36 +0200] \"GET /a?pwd={CANARY} HTTP/1.1\" 200 5");
    fs::write(at("in.log"), format!("{line} \"https://h/?code={CANARY}\" \"agent\"\n")).unwrap();
    for (input, output) in [("in.gor", "out.gakerec"), ("in.log", "log.gor"), ("in.gor", "out.gor")]
    {
        ran(&["shadow", "convert", &text(input), &text(output)]).done();
        holds_nothing(&at(output));
    }
    let kept =
        ran(&["shadow", "convert", &text("in.gor"), &text("all.gor"), "--redact", "none"]).done();
    assert!(kept.stderr.contains("nothing is redacted"), "{kept:?}");
    assert!(fs::read_to_string(at("all.gor")).unwrap().contains(CANARY));
    let kept = ["shadow", "convert", &text("in.gor"), &text("some.gor"), "--keep", "token"];
    ran(&kept).done();
    let some = fs::read_to_string(at("some.gor")).unwrap();
    assert!(
        some.contains(&format!("token={CANARY}")) && some.contains("X-Api-Key: redacted-"),
        "{some}"
    );

    // And it is still traffic.
    let again = lab();
    let target = format!("http://{}", again.addr());
    let flags = [&text("r.gakerec"), "--target", &target, "--speed", "1000x", "-c", "1"];
    assert_eq!(run(&flags).count("requests.ok"), 27);
}

#[test]
fn what_a_run_writes_holds_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let lab = lab();
    let url = format!("http://{}/echo?access_token={CANARY}", lab.addr());
    let json = format!("json={}", text("r.json"));
    let header = format!("X-Vault-Token: {CANARY}");
    let done = ran(&[
        "run",
        &url,
        "-n",
        "20",
        "-H",
        &header,
        "--out",
        &text("r.hlog"),
        "--log",
        &text("l.csv"),
        "--html",
        &text("r.html"),
        "-o",
        &json,
        "-o",
        "text",
    ]);
    assert!(!format!("{done:?}").contains(CANARY), "{done:?}");
    for name in ["r.hlog", "l.csv"] {
        holds_nothing(&at(name));
    }
    for name in ["r.html", "r.json"] {
        assert!(!fs::read_to_string(at(name)).unwrap().contains(CANARY), "{name}");
    }
    assert!(fs::read_to_string(at("r.hlog")).unwrap().contains("access_token=redacted-"));
}

#[test]
fn no_output_goes_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "kept").unwrap();
    let master = lab();
    let backend = format!("m=http://{}", master.addr());
    for (flags, name) in [
        (&["shadow", "--listen", "0", "--master", &backend, "--record"][..], "a.gakerec"),
        (&["run", "demo", "-n", "1", "--out"], "a.hlog"),
        (&["run", "demo", "-n", "1", "--log"], "a.csv"),
        (&["run", "demo", "-n", "1", "--html"], "a.html"),
    ] {
        symlink(at("precious"), at(name)).unwrap();
        let path = at(name);
        let refused = ran(&[flags, &[path.to_str().unwrap()]].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("symbolic link"), "{refused:?}");
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "kept", "{name}");
    }
}
