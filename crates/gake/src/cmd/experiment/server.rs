//! What an experiment loads: the lab or the shadow proxy in a process of its own, or the user's
//! server.
//!
//! Another process has its own descriptors, and the generator can tell who has the cores.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gake_core::plan::{TableShares, tables_for};
use gake_files::table_size;
use gake_run::spec::{RequestSource, RunSpec};
use gake_run::{SingleAnswer, send_once};
use gake_wire::HttpRequest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use gake_session::Failure;

/// How long the lab may take for a small answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer.
const ANSWER_MAX: usize = 16 << 20;

/// How long a lab has to close its database.
const ENDING: Duration = Duration::from_secs(2);

/// A table of this size has a descriptor for each process of the machine.
const MANY: usize = 1_024;

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The lab, whose figures can be sampled.
    Lab,
    /// The shadow proxy.
    Proxy,
    /// The user's own, whose settings are not known.
    Own,
}

/// A server to load. One with a process of its own ends when it is dropped, and when this process
/// ends in whatever way.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    /// None for the user's server.
    process: Option<Child>,
    /// `http://127.0.0.1:PORT` of the lab, or the whole URL of the user's.
    url: String,
    /// The command that starts the same server.
    command: String,
    /// Whether it closes a real database at its end.
    has_database: bool,
    /// What is sampled beside the user's own.
    watched: Vec<String>,
}

impl Server {
    /// Starts a lab with these flags of `gake serve`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn lab(flags: &str) -> Result<Self, Failure> {
        Self::start_lab(flags, &[], flags)
    }

    /// The same on a real database, whose password nobody is shown.
    ///
    /// # Errors
    /// When it does not start.
    pub fn lab_on(flags: &str, db: &str, shown: &str) -> Result<Self, Failure> {
        let shown = format!("--db {shown} {flags}");
        let mut lab = Self::start_lab(flags, &["--db", db], &shown)?;
        lab.has_database = true;
        Ok(lab)
    }

    fn start_lab(flags: &str, more: &[&str], shown: &str) -> Result<Self, Failure> {
        let args: Vec<_> = ["serve"].into_iter().chain(flags.split_whitespace()).collect();
        let command = format!("gake serve {shown}").trim_end().to_owned();
        Self::start(Kind::Lab, &[&args, more].concat(), command)
    }

    /// Starts a shadow proxy with these arguments. `command` is what people are shown.
    ///
    /// # Errors
    /// When it does not start.
    pub fn proxy(args: &[&str], command: String) -> Result<Self, Failure> {
        Self::start(Kind::Proxy, &[&["shadow"], args].concat(), command)
    }

    /// Starts this program on a free port.
    fn start(kind: Kind, args: &[&str], command: String) -> Result<Self, Failure> {
        let name = if kind == Kind::Lab { "the lab" } else { "the proxy" };
        let cannot = |what: String| Failure::could_not(format!("{name} does not start: {what}"));
        let program = std::env::current_exe().map_err(|error| cannot(error.to_string()))?;
        let parent = std::process::id().to_string();
        let mut process = Command::new(program)
            .args(args)
            .args(["--listen", "127.0.0.1:0", "--quiet", "--parent", &parent])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the experiment: a server that is gone before its clients would make
            // their last requests fail.
            .process_group(0)
            .spawn()
            .map_err(|error| cannot(error.to_string()))?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            // An end without a line is seen below.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let url = line.trim_end().to_owned();
        let mut server = Self {
            kind,
            process: Some(process),
            url,
            command,
            has_database: false,
            watched: Vec::new(),
        };
        if server.url.is_empty() {
            return Err(cannot(server.complaint()));
        }
        Ok(server)
    }

    /// The user's own, with what is to be sampled beside it.
    pub fn own(url: &str, watched: Vec<String>) -> Self {
        let (url, command) = (url.to_owned(), String::new());
        Self { kind: Kind::Own, process: None, url, command, has_database: false, watched }
    }

    /// Whether theory knows its settings.
    pub fn is_known(&self) -> bool {
        self.kind != Kind::Own
    }

    /// `http://127.0.0.1:PORT` of the lab or proxy, or the whole URL of the user's server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The command that starts the same server; empty for the user's own.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its address, `HOST:PORT`, when it is no server of the user's.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap_or(&self.url)
    }

    /// Whether it tells figures of its own.
    pub fn has_figures(&self) -> bool {
        self.kind == Kind::Lab
    }

    /// Where plain TCP reaches it, and what is requested there: `path`, or that of the user's URL.
    ///
    /// # Errors
    /// When it is not reached by plain HTTP.
    pub fn place(&self, path: &str) -> Result<(String, String), Failure> {
        if self.is_known() {
            return Ok((self.address().to_owned(), path.to_owned()));
        }
        let plain = || Failure::usage("--target: slow clients need an http:// URL");
        let url: http::Uri = self.url.parse().map_err(|_| plain())?;
        let (Some("http"), Some(host)) = (url.scheme_str(), url.host()) else {
            return Err(plain());
        };
        let address = format!("{host}:{}", url.port_u16().unwrap_or(80));
        Ok((address, url.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
    }

    /// What is requested: a path of the lab, or the user's URL.
    pub fn source(&self, path: &str) -> RequestSource {
        let path = if self.is_known() { path } else { "" };
        RequestSource::Url(format!("{}{path}", self.url))
    }

    /// Has the lab's own figures sampled during a run, or what the user names beside another
    /// server. The lab's sampler holds one connection.
    pub fn watch(&self, spec: &mut RunSpec) {
        spec.watch.extend_from_slice(&self.watched);
        if self.kind == Kind::Lab {
            spec.watch.push(format!("prometheus:{}/metrics", self.url));
        }
    }

    /// Has the process of the lab sampled too, and its sockets.
    pub fn watch_process(&self, spec: &mut RunSpec) {
        let (Kind::Lab, Some(process)) = (self.kind, &self.process) else { return };
        // The sockets of threads with a descriptor table each are found by their port alone, for
        // which every process of the machine is opened at once.
        spec.watch.push(match self.url.rsplit_once(':') {
            Some((_, port)) if self.has_tables() && table_size() >= MANY => format!("port:{port}"),
            _ => format!("pid:{}", process.id()),
        });
    }

    /// Whether the lab may have several descriptor tables.
    fn has_tables(&self) -> bool {
        let mut words = self.command.split_whitespace();
        words.find(|word| *word == "--max-connections");
        let most = words.next().and_then(|number| number.parse::<usize>().ok());
        let tables = most.and_then(|most| tables_for(most, table_size(), TableShares::Random));
        tables.is_some_and(|tables| tables > 1)
    }

    /// A number in the JSON that the lab answers under `path`.
    ///
    /// # Errors
    /// When it does not answer so.
    pub fn number(&self, path: &str, field: &str) -> Result<u64, Failure> {
        let body = self.get(path)?;
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        value[field].as_u64().ok_or_else(|| {
            Failure::could_not(format!("{}{path}: it has no {field}: {body}", self.url))
        })
    }

    /// A figure of the lab's metrics page; 0 when it is not there.
    ///
    /// # Errors
    /// When the lab does not answer.
    pub fn figure(&self, name: &str) -> Result<f64, Failure> {
        let page = self.get("/metrics")?;
        let mut values =
            page.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(values.next_back().unwrap_or(0.0))
    }

    /// Posts JSON to the lab.
    ///
    /// # Errors
    /// When it does not take it.
    pub fn post(&self, path: &str, json: &str) -> Result<(), Failure> {
        let request = HttpRequest {
            body: Some(json.as_bytes().into()),
            ..HttpRequest::new("POST", format!("{}{path}", self.url))
        };
        let answer = sent(&request)?;
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&answer.body);
        Err(Failure::could_not(format!("{}{path}: {} {why}", self.url, answer.status)))
    }

    /// The body of what it answers under `path`.
    fn get(&self, path: &str) -> Result<String, Failure> {
        get(self.address(), path)
    }

    /// The first line on standard error that has `mark` in it, from there on.
    ///
    /// # Errors
    /// When there is none.
    pub fn said(&mut self, mark: &str) -> Result<String, Failure> {
        let errors = self.process.as_mut().and_then(|process| process.stderr.as_mut());
        let lines = errors.map(|errors| BufReader::new(errors).lines());
        let mut lines = lines.into_iter().flatten().map_while(Result::ok);
        lines
            .find_map(|line| Some(line[line.find(mark)?..].to_owned()))
            .ok_or_else(|| Failure::could_not(format!("{}: it does not say {mark}", self.command)))
    }

    /// Ends the process as a signal does, and waits until it has written what it writes.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn end(&mut self) -> Result<(), Failure> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let cannot = |error: io::Error| Failure::could_not(format!("a server: {error}"));
        kill_process(Pid::from_child(process), Signal::TERM).map_err(|e| cannot(e.into()))?;
        process.wait().map_err(cannot)?;
        Ok(())
    }

    /// What a server that has ended said on standard error.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut errors) = self.process.as_mut().and_then(|process| process.stderr.take()) {
            let _ = errors.read_to_string(&mut text);
        }
        text.trim().trim_start_matches("error: ").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(process) = &mut self.process else { return };
        if self.has_database {
            // It has ended already when this fails.
            let _ = kill_process(Pid::from_child(process), Signal::TERM);
            let until = Instant::now() + ENDING;
            while matches!(process.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// The body of what is answered under `path`.
///
/// # Errors
/// When there is no answer.
pub fn get(address: &str, path: &str) -> Result<String, Failure> {
    let answer = sent(&HttpRequest::new("GET", format!("http://{address}{path}")))?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

fn sent(request: &HttpRequest) -> Result<SingleAnswer, Failure> {
    send_once(request, ANSWER_MAX, PATIENCE)
        .map_err(|error| Failure::could_not(format!("{}: {error}", request.url)))
}
