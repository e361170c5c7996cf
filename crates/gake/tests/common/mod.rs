//! Runs gake with a time limit and returns its outcome.

// Not every test file uses every helper, and all of it is test code.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gake_lab::{Lab, LabConfig};
pub use gake_testkit::{command, locked, once};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// No run of a test takes longer than this, whatever else the machine does.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// The Go program in `tests/peers/NAME`: as `cargo xtask test` has built it, else built now.
pub fn go_program(name: &str) -> PathBuf {
    if let Some(peers) = std::env::var_os("GAKE_PEERS") {
        return PathBuf::from(peers).join(name);
    }
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let binary = tools.join("peers").join(name);
    // It is there when the system's is too old.
    let fetched = tools.join("go/bin/go");
    let mut go = if fetched.is_file() { Command::new(fetched) } else { command("go") };
    go.args(["build", "-o"])
        .arg(&binary)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name))
        .envs([("GOFLAGS", "-buildvcs=false"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")]);
    // Go rebuilds only what has changed.
    let built = locked(&tools.join("peers.lock"), || go.output().unwrap());
    assert!(built.status.success(), "is Go too old? `cargo xtask servers` fetches one: {built:?}");
    binary
}

/// A running gake.
pub struct Started {
    child: Child,
    stdout: Output,
    stderr: Output,
    begun: Instant,
}

/// The outcome of a gake process.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// gake with arguments and an empty standard input.
pub fn gake(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    // The settings of the user who runs the tests are not read.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Starts a command with both outputs watched.
pub fn start(command: &mut Command) -> Started {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = Output::of(child.stdout.take().unwrap());
    let stderr = Output::of(child.stderr.take().unwrap());
    Started { child, stdout, stderr, begun: Instant::now() }
}

/// The output of a running process.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let read = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut part = [0; 8 << 10];
            loop {
                match stream.read(&mut part).unwrap() {
                    0 => break,
                    length => read.lock().unwrap().extend(&part[..length]),
                }
            }
        });
        Self { bytes, reader }
    }

    /// The whole output, once the process has ended.
    fn whole(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}

impl Started {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes.lock().unwrap()).into_owned()
    }

    pub fn write(&mut self, text: &str) {
        self.child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until it ends.
    pub fn wait(self) -> Ran {
        self.wait_for(PATIENCE)
    }

    /// Waits until it ends, within `limit`.
    pub fn wait_for(mut self, limit: Duration) -> Ran {
        let begun = Instant::now();
        let mut hung = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > limit && !hung {
                hung = true;
                self.child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        };
        let took = self.begun.elapsed();
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        let ran = Ran { code: status.code(), stdout, stderr, took };
        assert!(!hung, "it went on for more than {limit:?}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }
}

impl Ran {
    /// The result as JSON, with its identities checked.
    pub fn json(&self) -> Json {
        let value = serde_json::from_str(&self.stdout);
        let json = Json(value.unwrap_or_else(|error| panic!("{error}: {self:?}")));
        json.check();
        json
    }

    /// Asserts exit code 0, or 3 if the verdict says that the machine was too busy.
    pub fn done(self) -> Self {
        // CSV has no verdict.
        let says_so = self.stdout.contains("invalid") || self.stdout.starts_with("second,");
        let invalid = self.code == Some(3) && says_so;
        assert!(self.code == Some(0) || invalid, "{self:?}");
        self
    }

    /// Asserts the exit code, an empty standard output, and one error that contains `what`.
    pub fn refused(&self, code: i32, what: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let errors = self.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{self:?}");
        assert!(self.stderr.contains(what), "{what:?} is not in {self:?}");
    }
}

/// A summary.
#[derive(Debug)]
pub struct Json(pub Value);

impl Json {
    /// The number at a path such as `requests.sent`.
    pub fn number(&self, path: &str) -> f64 {
        let value = self.at(path);
        value.as_f64().unwrap_or_else(|| panic!("{path} is {value} in {}", self.0))
    }

    /// The same, 0 when it is not there.
    pub fn count(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or(0)
    }

    pub fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.0, |value, part| &value[part])
    }

    pub fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// The ids of the findings.
    pub fn findings(&self) -> Vec<&str> {
        let findings = self.at("verdict.findings").as_array().unwrap();
        findings.iter().map(|finding| finding["id"].as_str().unwrap()).collect()
    }

    /// Requests written completely, warm-up included: the number that a server can have counted.
    pub fn written(&self) -> u64 {
        self.count("requests.written") + self.count("warmup.written")
    }

    fn check(&self) {
        assert_eq!(self.text("schema"), "gake.run/1");
        for part in ["requests", "warmup"] {
            let [due, sent, ok, failed, unfinished, dropped, unsent, written] =
                ["due", "sent", "ok", "failed", "unfinished", "dropped", "unsent", "written"]
                    .map(|name| self.0[part][name].as_u64().unwrap());
            assert_eq!(due, sent + unsent + dropped, "{}", self.0[part]);
            assert_eq!(sent, ok + failed + unfinished, "{}", self.0[part]);
            assert!(written <= sent, "{}", self.0[part]);
        }
        let sum = |map: &str| -> u64 {
            self.0[map].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
        };
        let ended =
            ["ok", "failed", "unsent"].map(|name| self.0["requests"][name].as_u64().unwrap());
        assert_eq!(sum("status") + sum("faults"), ended.iter().sum::<u64>(), "{}", self.0);
        for name in ["due", "sent", "ok", "failed", "unfinished", "dropped", "unsent", "written"] {
            let series = self.0["series"].as_array().unwrap().iter();
            let seconds: u64 = series.map(|point| point["requests"][name].as_u64().unwrap()).sum();
            assert_eq!(Some(seconds), self.0["requests"][name].as_u64(), "{name}: {}", self.0);
        }
    }
}

/// Runs gake to its end.
pub fn ran(args: &[&str]) -> Ran {
    start(&mut gake(args)).wait()
}

/// Runs `gake run` for its JSON.
pub fn run(args: &[&str]) -> Json {
    ran(&[&["run", "-o", "json"], args].concat()).done().json()
}

/// What others write: it names a terminal's window, empties it, turns the reading direction round,
/// takes no room, and then looks like a message of ours.
pub const HOSTILE: &str = "\u{1b}]0;PWN\u{7}\u{9b}2J\u{90}q\u{9c}\u{7f}\u{202e}\u{200b}\u{2066}\u{feff}\u{ad}\r\nerror: spoofed";

/// That a text shows [`HOSTILE`] as escapes: nothing in it that a terminal obeys or a reader does
/// not see, and no line that only looks like ours.
pub fn shows_escapes(text: &str) {
    holds_no_hazard(text);
    assert!(text.contains("\\u001b]0;PWN\\u0007\\u009b2J"), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: spoofed")), "{text}");
}

/// That there is nothing in a text that a terminal obeys or a reader does not see.
pub fn holds_no_hazard(text: &str) {
    let hazard = |c: &char| match *c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    };
    // As a line's end a carriage return is obeyed as one.
    let found: Vec<char> = text.replace("\r\n", "\n").chars().filter(hazard).collect();
    assert!(found.is_empty(), "{found:?} in {text:?}");
}

/// Whether every figure is to be that of the full size: minutes, on a quiet machine.
pub fn full() -> bool {
    std::env::var_os("GAKE_FULL").is_some()
}

/// The arguments in one line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A lab in this process.
pub fn lab() -> Lab {
    lab_with(LabConfig::default())
}

pub fn lab_with(config: LabConfig) -> Lab {
    Lab::start(LabConfig { cores: 2, ..config }).unwrap()
}

/// The URL of a route.
pub fn url(lab: &Lab, route: &str) -> String {
    format!("http://{}{route}", lab.addr())
}

/// An address of this machine that refuses connections: bound, so that no other test gets the port,
/// and never listened on. It refuses for as long as it is kept.
pub fn refusing() -> (TcpListener, SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let held = TcpListener::from(socket);
    let address = held.local_addr().unwrap();
    (held, address)
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never came true: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A server in a process of its own, whose first line on standard output is its URL. Ended when
/// it is dropped.
pub struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub url: String,
}

impl Peer {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        assert!(url.starts_with("http"), "{url:?}");
        Self { child, stdout, url: url.trim_end().to_owned() }
    }

    /// `gake serve` with flags.
    pub fn lab(flags: &[&str]) -> Self {
        Self::start(&mut gake(&[&["serve", "--quiet", "--listen", "127.0.0.1:0"], flags].concat()))
    }

    /// Its next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Stops it and returns its final output.
    pub fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        text
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // At the end of a test it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves the requests of a connection: `respond` makes the response to a head and a body.
pub fn serve_requests(stream: TcpStream, mut respond: impl FnMut(&str, Vec<u8>) -> String) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|bytes| bytes > 0) {
        if !head.ends_with("\r\n\r\n") {
            continue;
        }
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok()
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let response = respond(&head, body);
        if reader.get_mut().write_all(response.as_bytes()).is_err() {
            return;
        }
        head.clear();
    }
}

/// The number that follows `name` in a text, as in `opened 4,`.
pub fn number_after(text: &str, name: &str) -> u64 {
    let rest = text.split_once(name).unwrap_or_else(|| panic!("no {name:?} in {text}")).1;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number after {name:?} in {text}"))
}
