//! `gake serve` as its users start it.

#![allow(clippy::unwrap_used)] // the helpers are tests too

#[path = "common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Peer, gake, number_after, ran, run};
use rustix::process::{Pid, Signal, kill_process};

/// A lab in a process of its own.
struct Served {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// `127.0.0.1:PORT`.
    address: String,
}

impl Served {
    fn start(flags: &[&str]) -> Self {
        let port: &[&str] =
            if flags.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let mut child = command(&[port, flags].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        let address = url.trim_end().strip_prefix("http://").unwrap().to_owned();
        Self { child, stdout, address }
    }

    fn get(&self, target: &str) -> String {
        ask(TcpStream::connect(&self.address).unwrap(), target)
    }

    /// Stops it and returns its final standard output, and all of standard error.
    fn end(mut self, signal: Signal) -> (String, String) {
        let begun = Instant::now();
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let (mut counts, mut notes) = (String::new(), String::new());
        self.stdout.read_to_string(&mut counts).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        (counts, notes)
    }
}

fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.arg("serve").args(flags);
    command
}

fn ask(mut stream: impl Read + Write, target: &str) -> String {
    write!(stream, "GET {target} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Runs a command that must fail with one sentence on standard error.
fn refused(flags: &[&str], code: i32) -> String {
    let Output { status, stdout, stderr } = command(flags).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{flags:?}: {stderr}");
    assert!(stdout.is_empty(), "{flags:?}");
    assert!(stderr.starts_with("error: "), "{flags:?}: {stderr}");
    stderr
}

#[test]
fn its_own_certificate_is_the_one_to_trust() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--tls", "self", "--tls-out", path];
    let lab = Peer::start(&mut gake(&[&["serve", "--quiet"], &flags[..]].concat()));
    assert!(lab.url.starts_with("https://127.0.0.1:"), "{}", lab.url);
    let url = format!("{}/fast", lab.url.replace("127.0.0.1", "localhost"));
    for (http, spoken) in [("2", "HTTP/2"), ("auto", "HTTP/2"), ("1.1", "HTTP/1.1")] {
        let line = ["-n", "20", "-c", "2", "--http", http, "--cacert", path, url.as_str()];
        let json = run(&line);
        assert_eq!(json.count("requests.ok"), 20, "{spoken}: {json:?}");
    }
    // Other clients do not trust it.
    let strangers = ran(&["run", "-n", "2", "-c", "1", "-o", "json", &url]);
    assert_eq!(strangers.code, Some(1), "{strangers:?}");
    assert!(lab.end().contains("(/fast 60)"));
    assert!(file.path().exists());
    // Its own place for the certificate is empty again at the end.
    let lab = Peer::start(&mut gake(&["serve", "--quiet", "--tls", "self"]));
    let port = lab.url.rsplit(':').next().unwrap();
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::temp_dir().join(format!("gake-lab-{user}-{port}.pem"));
    assert!(own.exists(), "{own:?}");
    lab.end();
    assert!(!own.exists(), "{own:?}");
}

#[test]
fn a_share_of_the_requests_is_reset() {
    let resets = ["0", "0.25", "1"].map(|rate| {
        let lab = Peer::lab(&["--reset-rate", rate]);
        let url = format!("{}/fast", lab.url);
        let ran = ran(&["run", "--http2", "-n", "400", "-c", "1", "-o", "json", &url]);
        let reset = ran.json().count("faults.stream_reset");
        assert_eq!(number_after(&lab.end(), "cut"), reset, "{ran:?}");
        reset
    });
    assert_eq!((resets[0], resets[2]), (0, 400));
    // The draws are always the same; a fair sequence leaves these bounds once in 10^7 seeds.
    assert!((55..=145).contains(&resets[1]), "{resets:?}");
}

#[test]
fn counts_are_exact_at_the_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let lab = Served::start(&["--threads", "2", "--service", "const:1ms"]);
        for _ in 0..3 {
            assert!(lab.get("/fast").starts_with("HTTP/1.1 200 "));
        }
        assert!(lab.get("/status/503").starts_with("HTTP/1.1 503 "));
        let (counts, notes) = lab.end(signal);
        assert!(counts.contains("requests     4  (/fast 3, /status 1)\n"), "{counts}");
        assert!(counts.contains("responses    4  (200 3, 503 1)\n"), "{counts}");
        assert!(counts.contains("opened 4"), "{counts}");
        assert!(notes.contains("2 threads") && notes.contains("const:1ms"), "{notes}");
        assert_eq!(notes.lines().count(), 1, "{notes}");
    }
}

#[test]
fn a_request_that_hangs_does_not_delay_the_end() {
    let lab = Served::start(&["--quiet"]);
    let mut stream = TcpStream::connect(&lab.address).unwrap();
    write!(stream, "GET /hang HTTP/1.1\r\nHost: lab\r\n\r\n").unwrap();
    while !lab.get("/metrics").contains("in_flight 1\n") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (counts, notes) = lab.end(Signal::TERM);
    assert!(counts.contains("unfinished 1"), "{counts}");
    assert_eq!(notes, "");
}

#[test]
fn the_unix_socket_is_served_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lab.sock");
    let lab = Served::start(&["--unix-socket", path.to_str().unwrap()]);
    assert!(ask(UnixStream::connect(&path).unwrap(), "/fast").starts_with("HTTP/1.1 200 "));
    let (counts, notes) = lab.end(Signal::TERM);
    assert!(counts.contains("requests     1  (/fast 1)"), "{counts}");
    assert!(notes.contains("lab.sock"), "{notes}");
    assert!(!path.exists());
}

#[test]
fn an_address_that_others_can_reach_is_a_warning() {
    let lab = Served::start(&["--listen", "0.0.0.0:0"]);
    let (_, notes) = lab.end(Signal::TERM);
    assert!(notes.contains("warning: clients on other machines"), "{notes}");
}

#[test]
fn bad_flags_are_usage_errors() {
    for flags in [
        ["--listen", "nowhere"],
        ["--listen", "127.0.0.1:70000"],
        ["--threads", "0"],
        ["--threads", "many"],
        ["--cores", "5000"],
        ["--accept-count", "-1"],
        ["--max-connections", "0"],
        ["--connection-timeout", "0s"],
        ["--connection-timeout", "48h"],
        ["--service", "gauss:1s"],
        ["--service", "exp:"],
        ["--stall", "3s"],
        ["--stall", "1s+0s"],
    ] {
        refused(&flags, 2);
    }
}

#[test]
fn a_refusal_by_the_system_is_an_error() {
    let lab = Served::start(&[]);
    let said = refused(&["--listen", &lab.address], 1);
    assert!(said.contains(&lab.address) && said.lines().count() == 1, "{said}");
    let said = refused(&["--listen", ":0", "--unix-socket", "/nowhere/lab.sock"], 1);
    assert!(said.contains("/nowhere/lab.sock") && said.lines().count() == 1, "{said}");
    lab.end(Signal::TERM);
}

#[test]
fn users_stay_in_a_file_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.db");
    let db = format!("sqlite:{}", file.display());
    let flags = ["--db", db.as_str(), "--quiet"];
    let count = |served: &Served| served.get("/users/count");
    let served = Served::start(&flags);
    let (url, source) = (
        format!("http://{}/users", served.address),
        format!("http://{}/users/count#count", served.address),
    );
    let rows = format!("sql:sqlite:{}:SELECT COUNT(*) FROM gake_users", file.display());
    for source in [source, rows] {
        let json =
            run(&[url.as_str(), "-n", "150", "-c", "8", "--data", "{}", "--reconcile", &source]);
        assert_eq!(json.count("requests.ok"), 150, "{}", json.0);
        assert_eq!(json.at("objectives")[0]["value"].as_f64(), Some(150.0), "{}", json.0);
    }
    served.end(Signal::TERM);
    let served = Served::start(&flags);
    assert!(count(&served).ends_with("{\"count\":300}\n"), "{}", count(&served));
    served.end(Signal::TERM);
    // Memory is shared by the connections of the pool, and is gone at the end.
    let served = Served::start(&["--db", "sqlite::memory:", "--quiet", "--db-max-idle", "0"]);
    assert!(count(&served).ends_with("{\"count\":0}\n"), "{}", count(&served));
    served.end(Signal::TERM);

    let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE gake_users (id INTEGER)").unwrap();
    let other = format!("sqlite:{}", folder.path().join("other.db").display());
    for (db, code, message) in [
        (other.as_str(), 1, "rename it or drop it"),
        ("sqlite:/no/such/folder/users.db", 1, "No such file or directory"),
        ("mysql://me:secret@127.0.0.1:1/d", 1, "127.0.0.1:1: no connection"),
        ("oracle://me:secret@h/d", 2, "sqlite:FILE"),
        ("mysql://me:secret@h", 2, "name the database"),
    ] {
        let error = refused(&["--db", db], code);
        assert!(error.contains(message) && !error.contains("secret"), "{error}");
    }
    let error = refused(&["--db", &db, "--db-server-max", "5"], 2);
    assert!(error.contains("max_connections"), "{error}");
}
