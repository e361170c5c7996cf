//! What an experiment loads: the lab in a process of its own, or the user's server.
//!
//! Another process has its own descriptors, and the generator can tell who has the cores.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gake_run::spec::{RequestSource, RunSpec};

use serde_json::Value;

use crate::exit::Failure;

/// How long the lab may take for a small answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server to load. The lab ends when it is dropped, and when this process ends in whatever way.
#[derive(Debug)]
pub struct Server {
    /// The lab's process; none for the user's server.
    process: Option<Child>,
    /// `http://127.0.0.1:PORT` of the lab, or the whole URL of the user's.
    url: String,
    /// The command that starts the same lab.
    command: String,
}

impl Server {
    /// Starts a lab with these flags of `gake serve`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn lab(flags: &str) -> Result<Self, Failure> {
        Self::start(flags, &[], flags.to_owned())
    }

    /// The same on a real database, whose password nobody is shown.
    ///
    /// # Errors
    /// When it does not start.
    pub fn lab_on(flags: &str, db: &str, shown: &str) -> Result<Self, Failure> {
        Self::start(flags, &["--db", db], format!("--db {shown} {flags}"))
    }

    fn start(flags: &str, more: &[&str], shown: String) -> Result<Self, Failure> {
        let cannot = |what: String| Failure::could_not(format!("the lab does not start: {what}"));
        let program = std::env::current_exe().map_err(|error| cannot(error.to_string()))?;
        let parent = std::process::id().to_string();
        let mut process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--quiet", "--parent", &parent])
            .args(flags.split_whitespace())
            .args(more)
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
        let command = format!("gake serve {shown}").trim_end().to_owned();
        let mut server = Self { process: Some(process), url, command };
        if server.url.is_empty() {
            return Err(cannot(server.complaint()));
        }
        Ok(server)
    }

    /// The user's own.
    pub fn own(url: &str) -> Self {
        Self { process: None, url: url.to_owned(), command: String::new() }
    }

    /// Whether theory knows its settings.
    pub fn is_lab(&self) -> bool {
        self.process.is_some()
    }

    /// The command that starts the same lab; empty for the user's own.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its address, `HOST:PORT`, when it is a lab.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap_or(&self.url)
    }

    /// What is requested: a path of the lab, or the user's URL.
    pub fn source(&self, path: &str) -> RequestSource {
        let path = if self.is_lab() { path } else { "" };
        RequestSource::Url(format!("{}{path}", self.url))
    }

    /// Has the lab's own figures sampled during a run. The sampler holds one connection.
    pub fn watch(&self, spec: &mut RunSpec) {
        if self.is_lab() {
            spec.watch.push(format!("prometheus:{}/metrics", self.url));
        }
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

    /// The body of what it answers under `path`.
    fn get(&self, path: &str) -> Result<String, Failure> {
        let cannot = |what: String| Failure::could_not(format!("{}{path}: {what}", self.url));
        let mut stream =
            TcpStream::connect(self.address()).map_err(|error| cannot(error.to_string()))?;
        let mut answer = String::new();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.read_to_string(&mut answer))
            .map_err(|error| cannot(error.to_string()))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok(body.to_owned())
    }

    /// What a lab that has ended said on standard error.
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
        if let Some(process) = &mut self.process {
            // It has ended already when this fails.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
