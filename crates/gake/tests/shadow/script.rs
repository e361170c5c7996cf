//! `--script`: a script's hooks, whose failures never affect the master.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing takes longer than this, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(100);

/// A backend that responds with its name and keeps the heads of its requests.
struct Backend {
    addr: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Backend {
    fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(stream.unwrap(), name, &kept));
            }
        });
        Self { addr, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, name: &str, heads: &Mutex<Vec<String>>) {
    while let Some(head) = head(&mut stream) {
        heads.lock().unwrap().push(head);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len());
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

/// Up to the blank line; the requests of these tests have no body.
fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// A proxy with a script, a master called `production` and a shadow called `sandbox`.
struct Proxy {
    child: Child,
    addr: SocketAddr,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

fn command(script: &str, folder: &tempfile::TempDir, args: &[&str]) -> Command {
    let path = folder.path().join("hooks.js");
    std::fs::write(&path, script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.args(["shadow", "--listen", "127.0.0.1:0", "--quiet", "--script"]).arg(path);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Proxy {
    fn start(script: &str, master: &Backend, shadow: &Backend, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command(script, &folder, args)
            .arg(format!("--master=production=http://{}", master.addr))
            .arg(format!("--shadow=sandbox=http://{}", shadow.addr))
            .spawn()
            .unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let (errors, kept) = (child.stderr.take().unwrap(), Arc::clone(&stderr));
        let reading = thread::spawn(move || {
            for line in BufReader::new(errors).lines() {
                *kept.lock().unwrap() += &(line.unwrap() + "\n");
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        let addr = url.trim().strip_prefix("http://").and_then(|addr| addr.parse().ok());
        let addr = addr.unwrap_or_else(|| panic!("{url:?}: {}", stderr.lock().unwrap()));
        Self { child, addr, stdout, stderr, reading, _folder: folder }
    }

    /// The body of the response.
    fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        body.to_owned()
    }

    /// The ledger, and standard error.
    fn stop(mut self) -> (String, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut ledger = String::new();
        self.stdout.read_to_string(&mut ledger).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.reading.join().unwrap();
        let printed = self.stderr.lock().unwrap().clone();
        (ledger, printed)
    }
}

#[test]
fn a_script_selects_changes_and_looks() {
    let (master, shadow) = (Backend::start("master"), Backend::start("shadow"));
    let script = "
        export const options = { munge: ['sandbox'], answerBody: 'text' };
        export function selectBackends(request) {
            return request.headers['x-try'] ? ['production', 'sandbox'] : ['production'];
        }
        export function mungeRequest(backend, request) {
            request.headers['x-for'] = backend;
            request.uri = request.uri.replace('v1', 'v2');
            return request;
        }
        export function backendsFinished({ request, backends }) {
            const { production, sandbox } = backends;
            console.log(request.uri, production.status, production.body, sandbox?.body);
        }";
    let proxy = Proxy::start(script, &master, &shadow, &["--script-timeout", "60s"]);
    assert_eq!(proxy.get("/v1/a", "x-try: yes\r\n"), "master");
    assert_eq!(proxy.get("/v1/b", ""), "master");
    // The last exchanges are reported before it ends.
    let (ledger, printed) = proxy.stop();
    assert!(printed.contains("/v1/a 200 master shadow\n"), "{printed}");
    assert!(printed.contains("/v1/b 200 master undefined\n"), "{printed}");
    assert!(ledger.contains("sandbox: 2 received, 1 unselected, 1 ok"), "{ledger}");
    assert!(!ledger.contains("hooks:") && !printed.contains("warning"), "{ledger}{printed}");
    let (masters, shadows) = (master.heads(), shadow.heads());
    assert_eq!((masters.len(), shadows.len()), (2, 1));
    assert!(masters[0].starts_with("GET /v1/a ") && !masters[0].contains("x-for:"), "{masters:?}");
    assert!(shadows[0].starts_with("GET /v2/a "), "{shadows:?}");
    assert!(shadows[0].contains("x-for: sandbox\r\n"), "{shadows:?}");
}

#[test]
fn a_script_that_never_ends_delays_the_master_by_its_limit_at_most() {
    let (master, shadow) = (Backend::start("master"), Backend::start("shadow"));
    let script = "export function selectBackends(request) { for (;;); }
        export function backendsFinished() { for (;;); }";
    let proxy = Proxy::start(script, &master, &shadow, &[]);
    let begun = Instant::now();
    for _ in 0..40 {
        assert_eq!(proxy.get("/", ""), "master");
    }
    // 20 limits of 50 ms, and a machine that may be busy; the script itself would take for ever.
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let (ledger, printed) = proxy.stop();
    assert!(ledger.contains("40 requests on 40 connections: 40 responses"), "{ledger}");
    assert!(ledger.contains("sandbox: 40 received, 40 select_failed"), "{ledger}");
    let late = ledger.lines().find(|line| line.contains("took too long")).unwrap_or_default();
    let times = late.strip_prefix("hooks: ").and_then(|rest| rest.split(' ').next());
    let times: u64 = times.and_then(|times| times.parse().ok()).unwrap_or(0);
    // The calls of backendsFinished, a second each, are added.
    assert!(times >= 20, "{ledger}");
    assert!(ledger.contains("times were not asked, after too many"), "{ledger}");
    assert!(printed.contains("selectBackends took longer than 50ms"), "{printed}");
}

#[test]
fn a_script_that_throws_is_logged_and_counted() {
    let (master, shadow) = (Backend::start("master"), Backend::start("shadow"));
    let script = "export const options = { munge: ['sandbox'] };
export function mungeRequest(backend, request) {
    return request.nothing.here;
}";
    let proxy = Proxy::start(script, &master, &shadow, &["--script-timeout", "60s"]);
    for _ in 0..3 {
        assert_eq!(proxy.get("/", ""), "master");
    }
    let (ledger, printed) = proxy.stop();
    assert!(ledger.contains("sandbox: 3 received, 3 munge_failed"), "{ledger}");
    assert!(ledger.contains("hooks: 3 times failed"), "{ledger}");
    assert_eq!(
        printed.matches("mungeRequest threw: hooks.js:3:").count(),
        1,
        "reported once: {printed}"
    );
    assert!(shadow.heads().is_empty(), "a copy that was to be changed is not sent as it was");
}

#[test]
fn a_script_with_a_mistake_is_refused_before_anybody_is_served() {
    for (script, printed) in [
        ("export function selectBackends( {", "hooks.js:1:"),
        ("export const nothing = 1", "exports none of selectBackends"),
        ("export const selectBackends = 'all'", "selectBackends is not a function"),
        (
            "export const options = { munge: ['sandbx'] }; export function mungeRequest() {}",
            "the backends are production, sandbox",
        ),
        ("import fs from 'fs'", "fs"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let backends = ["--master=production=http://127.0.0.1:9", "--shadow=sandbox=http://h"];
        let ran = command(script, &folder, &backends).output().unwrap();
        let errors = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{script}: {errors}");
        assert!(ran.stdout.is_empty() && errors.contains(printed), "{script}: {errors}");
    }
}
