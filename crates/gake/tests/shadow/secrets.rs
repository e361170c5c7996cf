//! No file of the proxy or a run has secrets, and only their owner can read them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

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

/// Has secrets in every place that a script can fill: URL, header, cookie, bodies of all kinds, tags,
/// thresholds, the console, and what it throws.
const SCRIPT: &str = r#"
import http from 'k6/http';
const secret = __ENV.SECRET;
export const options = {
  iterations: 3, tags: { url_of_run: `https://h/?token=${secret}` },
  thresholds: { [`http_reqs{url:${__ENV.BASE}/status/500?token=${secret}}`]: ['count>=3'] },
};
const wide = new Uint16Array([...`{"password":"${secret}"}`].map((c) => c.charCodeAt(0)));
export default function () {
  const url = `${__ENV.BASE}/status/500?token=${secret}`;
  const headers = { 'Authorization': `Bearer ${secret}`, 'X-Upstream': `Bearer ${secret}` };
  http.get(url, { headers, cookies: { sid: secret } });
  for (const body of [`{"password":"${secret}"}`, `user=me&password=${secret}`, { pin: secret },
    `<password><v>${secret}</v></password>`, `password:\n  ${secret}`, wide.buffer]) {
    http.post(`${__ENV.BASE}/echo?status=500`, body, { headers });
  }
  http.get(`http://me:${secret}@127.0.0.1:1/?api_key=${secret}`);
  http.get(`http://me:${secret}@127.0.0.1:1x/?api_key=${secret}`);
  console.log(`password=${secret}`, { token: secret });
  console.warn(`Authorization: Bearer ${secret}`);
  console.error(`https://me:${secret}@h/?token=${secret}`);
  throw new Error(`token: ${secret}`);
}"#;

/// Every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn no_channel_of_a_run_shows_a_secret() {
    let inputs = tempfile::tempdir().unwrap();
    let script = inputs.path().join("s.js");
    fs::write(&script, SCRIPT).unwrap();
    let (script, lab) = (script.to_str().unwrap(), lab());
    let base = format!("http://{}", lab.addr());
    let (secret, env) = (format!("SECRET={CANARY}"), format!("BASE={base}"));
    let url = format!("{base}/status/500?access_token={CANARY}");
    let (header, form) = (format!("X-Upstream: Bearer {CANARY}"), format!("pin={CANARY}"));
    let user = format!("me:{CANARY}");
    let runs: [&[&str]; 3] = [
        &[script, "-e", &secret, "-e", &env, "--web=127.0.0.1:0"],
        &[&url, "-n", "9", "-H", &header, "-F", &form, "--user", &user, "--log", "every.csv"],
        &[&url, "-n", "9", "--data", &format!("{{\"password\":\"{CANARY}\"}}")],
    ];
    let outputs = [
        "--body-errors",
        "--save",
        "--out",
        "r.hlog",
        "--html",
        "r.html",
        "-o",
        "text",
        "-o",
        "json=r.json",
        "-o",
        "markdown=r.md",
        "-o",
        "junit=r.xml",
        "-o",
        "openmetrics=r.om",
        "-o",
        "csv=r.csv",
        "--sink",
        "json=live.json",
        "--sink",
        "csv=live.csv",
    ];
    for run in runs {
        let written = tempfile::tempdir().unwrap();
        let args = [&["run"], run, &outputs[..]].concat();
        let ran = start(gake(&args).current_dir(written.path())).wait();
        assert!(ran.stdout.contains("500") || ran.stdout.contains("http_reqs"), "{ran:?}");
        assert!(!format!("{ran:?}").contains(CANARY), "{ran:?}");
        let files = files(written.path());
        assert!(files.iter().any(|path| path.ends_with("history.db")), "{files:?}");
        assert!(files.len() >= outputs.iter().filter(|arg| arg.contains('.')).count());
        for path in files {
            let bytes = fs::read(&path).unwrap();
            let shown = String::from_utf8_lossy(&bytes);
            let at = shown.find(CANARY).map(|at| &shown[at.saturating_sub(80)..at]);
            assert_eq!(at, None, "{}", path.display());
        }
    }
}

#[test]
fn errors_do_not_quote_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dsn");
    fs::write(&file, format!("mysql://me:{CANARY}@127.0.0.1:1/d\n")).unwrap();
    let file = format!("file:{}", file.display());
    let of = |text: &str| text.replace("SECRET", CANARY);
    for args in [
        "run http://me:SECRET@h:99999/?token=SECRET",
        "run demo -n 1 -H SECRET",
        "run demo -n 1 --sink SECRET",
        "run demo -n 1 --sink influxdb=SECRET",
        "run demo -n 1 --sink influxdb=http://me:SECRET@h/d?retry=SECRET",
        "run demo -n 1 --annotate grafana=SECRET",
        "run demo -n 1 --watch redis:SECRET",
        "run demo -n 1 --watch prometheus:https://h/m?token=SECRET#",
        "run demo -n 1 --reconcile SECRET",
        "run demo -n 1 --reconcile sql:oracle://me:SECRET@h:SELECT",
        "run demo -n 1 --watch FILE",
        "run demo -n 1 --reconcile FILE",
        "run demo -n 1 --sink FILE",
        "serve --db FILE",
        "serve --db oracle://me:SECRET@h/d",
        "watch mysql:SECRET",
        "as k6 run --secret-source SECRET x.js",
        "as k6 run --secret-source file=password=SECRET x.js",
    ] {
        let args = of(args).replace("FILE", &file);
        let words: Vec<_> = args.split(' ').collect();
        let ran = ran(&words);
        assert_ne!(ran.code, Some(0), "{args}: {ran:?}");
        assert!(!ran.stderr.contains(CANARY) && !ran.stdout.contains(CANARY), "{args}: {ran:?}");
    }
    ran(&["run", "demo", "-n", "1", "--watch", "env:NO_SUCH"]).refused(2, "no variable NO_SUCH");
    let mut command = gake(&["serve", "--listen", "0", "--db", "env:DSN"]);
    let ran = start(command.env("DSN", format!("postgres://me:{CANARY}@127.0.0.1:1/d"))).wait();
    assert!(ran.stderr.contains("127.0.0.1:1") && !ran.stderr.contains(CANARY), "{ran:?}");
}

#[test]
fn faults_and_lines_of_hooks_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hooks.js");
    let script = "
        export const options = { requestBody: 'text', munge: ['sandbox'] };
        export function mungeRequest(backend, request) {
            console.log(request.body); console.error(request.headers['x-any']);
            throw new Error(request.body);
        }";
    fs::write(&path, script).unwrap();
    let (master, shadow) = (lab(), lab());
    let (master, shadow) =
        (format!("m=http://{}", master.addr()), format!("sandbox=http://{}", shadow.addr()));
    let flags = ["--master", &master, "--shadow", &shadow, "--shadow-methods", "all"];
    let script = ["--script", path.to_str().unwrap(), "--script-timeout", "60s"];
    let proxy = Proxy::start(&[&flags[..], &script].concat());
    for body in [
        format!("{{\"a\":{{\"password\":\"{CANARY}\"}}}}"),
        format!("password=\n{CANARY}\n"),
        format!("-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"),
        format!("<password><v>{CANARY}</v></password>"),
    ] {
        ask(&proxy.url, "POST", "/echo", &format!("X-Any: Bearer {CANARY}\r\n"), &body);
    }
    proxy.settled();
    let ended = proxy.end(Signal::INT);
    assert!(ended.stderr.contains("mungeRequest threw"), "{ended:?}");
    assert!(!format!("{ended:?}").contains(CANARY), "{ended:?}");
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
