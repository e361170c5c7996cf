//! Text of files, servers and arguments never reaches a terminal or report unescaped.

#![expect(unsafe_code, reason = "openpty: what gake shows on a terminal")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::process::Stdio;

use crate::support::*;

/// [`HOSTILE`] as it stands in JSON.
fn json() -> String {
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A run file whose target, command, labels and machine are hostile.
fn run_file(folder: &tempfile::TempDir) -> String {
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, plain, hostile) = (at("t.json"), at("plain.hlog"), at("hostile.hlog"));
    let lab = lab();
    let line = |path: &str, label: &str| {
        format!("{{\"method\":\"GET\",\"url\":\"{}\",\"label\":\"{label}\"}}\n", url(&lab, path))
    };
    fs::write(&targets, line("/fast", &json()) + &line("/echo", "plain")).unwrap();
    let ran = ran(&["run", &targets, "-n", "20", "-c", "1", "--out", &plain, "-o", "json"]).done();
    holds_no_hazard(&ran.stdout);
    let labels: Vec<_> = ran.json().at("labels").as_array().unwrap().clone();
    assert!(labels.iter().any(|label| label["label"] == HOSTILE), "{labels:?}");
    let file = fs::read_to_string(&plain).unwrap();
    let file = file.replace(&lab.addr().to_string(), &json()).replace("gake run", &json());
    fs::write(&hostile, file.replace(&targets, &json())).unwrap();
    hostile
}

#[test]
fn labels_and_names_in_run_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = run_file(&folder);
    for format in ["text", "markdown", "csv-summary", "junit", "openmetrics", "json"] {
        let shown = ran(&["report", &path, "-o", format]).done();
        holds_no_hazard(&shown.stdout);
        holds_no_hazard(&shown.stderr);
        let file = folder.path().join("out");
        let output = format!("{format}={}", file.display());
        ran(&["report", &path, "-o", &output, "-o", "csv"]).done();
        holds_no_hazard(&fs::read_to_string(&file).unwrap());
        fs::remove_file(file).unwrap();
    }
    shows_escapes(&ran(&["report", &path]).done().stdout);
    let json = ran(&["report", &path, "-o", "json"]).done().json();
    let labels = json.at("labels").as_array().unwrap();
    assert!(labels.iter().any(|label| label["label"] == HOSTILE), "JSON says it as it was");
    let compared = ran(&["compare", &path, &path]);
    shows_escapes(&(compared.stdout + &compared.stderr));
}

#[test]
fn on_a_terminal_only_our_colours_are_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let path = run_file(&folder);
    let (near, far) = terminal();
    let child = gake(&["report", &path]).stdout(Stdio::from(far)).stderr(Stdio::null()).spawn();
    let mut text = Vec::new();
    // When the other end is closed, reading fails.
    let _ = { near }.read_to_end(&mut text);
    child.unwrap().wait().unwrap();
    let text = String::from_utf8(text).unwrap().replace("\r\n", "\n");
    assert!(text.contains("\u{1b}[1;"), "it is coloured: {text:?}");
    let mut plain = String::new();
    for part in text.split('\u{1b}') {
        let colour = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let colour =
            colour.filter(|(code, _)| code.chars().all(|c| c.is_ascii_digit() || c == ';'));
        plain += colour.map_or(part, |(_, rest)| rest);
    }
    shows_escapes(&plain);
    assert_eq!(text.matches('\u{1b}').count(), text.matches("\u{1b}[").count());
}

/// Both ends of a pseudo-terminal.
pub fn terminal() -> (File, File) {
    let (mut near, mut far) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both descriptors are written to, and nothing else is asked for.
    let opened = unsafe {
        libc::openpty(&raw mut near, &raw mut far, null, std::ptr::null(), std::ptr::null())
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptors are new and have no other owner.
    unsafe { (File::from_raw_fd(near), File::from_raw_fd(far)) }
}

#[test]
fn names_in_broken_files_and_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (toml, spec) = (at("s.toml"), at("s.json"));
    fs::write(&toml, format!("\"{}\" = 1\n", json().replace("\\r\\n", "\\n"))).unwrap();
    fs::write(&spec, format!("{{\"{}\": 1}}", json())).unwrap();
    let targets = at("targets.http");
    fs::write(&targets, format!("{HOSTILE} http://h/\n")).unwrap();
    let (hlog, labelled) = (at("broken.hlog"), at("l.json"));
    fs::write(&hlog, format!("{HOSTILE}\n")).unwrap();
    fs::write(&labelled, format!("{{\"method\":\"{}\",\"url\":\"http://h/\"}}\n", json())).unwrap();
    let named = at(&HOSTILE.replace('/', "_"));
    // A line break that the user typed is kept.
    let argument = HOSTILE.lines().next().unwrap();
    let lines: [&[&str]; 11] = [
        &["run", "--spec", &toml],
        &["run", "--spec", &spec],
        &["run", &targets],
        &["run", &labelled],
        &["report", &hlog],
        &["report", &named],
        &["shadow", "report", &hlog],
        &["compare", &hlog, &hlog],
        &[argument],
        &["run", "http://h/", "-d", argument],
        &["run", "http://127.0.0.1:9/", "--slo", argument],
    ];
    for line in lines {
        let refused = ran(line);
        assert!(refused.code == Some(1) || refused.code == Some(2), "{refused:?}");
        holds_no_hazard(&refused.stdout);
        holds_no_hazard(&refused.stderr);
        let spoofed = refused.stderr.lines().any(|line| line.starts_with("error: spoofed"));
        assert!(!spoofed, "{line:?}: {}", refused.stderr);
    }
}

#[test]
fn results_of_other_tools() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (results, out) = (at("r.json"), at("out"));
    let record = format!(
        "{{\"attack\":\"{0}\",\"seq\":0,\"code\":0,\"timestamp\":\"2026-01-01T00:00:00Z\",\
         \"latency\":5,\"bytes_out\":0,\"bytes_in\":0,\"error\":\"{0}\",\"body\":\"\",\
         \"method\":\"GET\",\"url\":\"http://h/\",\"headers\":{{}}}}\n",
        json()
    );
    fs::write(&results, record).unwrap();
    let report = ["as", "vegeta", "report"];
    shows_escapes(&ran(&[&report[..], &[&results]].concat()).done().stdout);
    for kind in ["text", "json"] {
        let type_flag = format!("-type={kind}");
        let to_file = [&type_flag, "-output", &out, &results];
        ran(&[&report[..], &to_file].concat()).done();
        shows_escapes(&fs::read_to_string(&out).unwrap());
    }
    shows_escapes(&(ran(&["report", &results]).stdout + "\\u001b]0;PWN\\u0007\\u009b2J"));
}

#[test]
fn what_servers_say_of_themselves() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 200 \u{9b}2J\u{202e}\r\nServer: \u{9b}2J\u{202e}x\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    for line in ["as ab -n 3", "as ab -w -n 3", "as hey -n 3 -c 1", "run -n 3 -c 1"] {
        let said = ran(&[&words(line)[..], &[&url]].concat());
        holds_no_hazard(&said.stdout);
        holds_no_hazard(&said.stderr);
    }
    let said = ran(&[&words("as ab -n 3")[..], &[&url]].concat());
    assert!(said.stdout.contains("\\u009b2J\\u202ex"), "{said:?}");
}
