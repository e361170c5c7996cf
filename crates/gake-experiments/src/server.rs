//! The servers of an experiment: the lab or the shadow proxy in a process of its own, or the
//! user's.
//!
//! A separate process has its own descriptors and its own CPU figures.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gake_core::plan::{TableShares, tables_for};
use gake_files::table_size;
use gake_run::send_once;
use gake_session::Failure;
use gake_wire::HttpRequest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The timeout of the lab for a small response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the largest response.
const RESPONSE_MAX: usize = 16 << 20;

/// How long a lab may take to close its database.
const ENDING: Duration = Duration::from_secs(2);

/// A descriptor table of this size suffices for every process of the machine.
const MANY: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    /// The lab, which has metrics.
    Lab,
    Proxy,
    /// The user's own, with unknown settings.
    Target,
}

/// A server to load. A process of its own is stopped on drop, and when this process ends in any
/// way.
#[derive(Debug)]
pub struct ExperimentServer {
    kind: ServerKind,
    /// `None` for the user's server.
    process: Option<Child>,
    /// `http://127.0.0.1:PORT` for the lab or proxy, or the whole URL of the user's.
    pub url: String,
    /// The command that starts the same server; empty for the user's own.
    pub command: String,
    /// Whether it must close a real database at its end.
    has_database: bool,
}

impl ExperimentServer {
    /// Starts a lab with these flags of `gake serve`.
    pub fn lab(flags: &str) -> Result<Self, Failure> {
        Self::start(ServerKind::Lab, flags, &["serve"], format!("gake serve {flags}"))
    }

    /// Starts a lab on a real database, which is displayed as `shown`, without its password.
    pub fn lab_on(flags: &str, database: &str, shown: &str) -> Result<Self, Failure> {
        let args = ["serve", "--db", database];
        let mut lab =
            Self::start(ServerKind::Lab, flags, &args, format!("gake serve --db {shown} {flags}"))?;
        lab.has_database = true;
        Ok(lab)
    }

    /// Starts a shadow proxy. `command` is displayed.
    pub fn proxy(flags: &str, args: &[&str], command: String) -> Result<Self, Failure> {
        Self::start(ServerKind::Proxy, flags, &[&["shadow"], args].concat(), command)
    }

    /// Starts this program on a free port.
    fn start(
        kind: ServerKind,
        flags: &str,
        args: &[&str],
        command: String,
    ) -> Result<Self, Failure> {
        let name = if kind == ServerKind::Lab { "the lab" } else { "the proxy" };
        let cannot = |why: String| Failure::could_not(format!("{name} does not start: {why}"));
        let program = std::env::current_exe().map_err(|error| cannot(error.to_string()))?;
        let mut process = Command::new(program)
            .args(args)
            .args(flags.split_whitespace())
            .args(["--listen", "127.0.0.1:0", "--quiet"])
            .args(["--parent", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the experiment: a server that ends before its clients would make their
            // last requests fail.
            .process_group(0)
            .spawn()
            .map_err(|error| cannot(error.to_string()))?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            // An end without a line is detected below.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let (url, command) = (line.trim_end().to_owned(), command.trim_end().to_owned());
        let mut server = Self { kind, process: Some(process), url, command, has_database: false };
        if !server.url.is_empty() {
            return Ok(server);
        }
        let mut why = String::new();
        if let Some(mut errors) = server.process.as_mut().and_then(|process| process.stderr.take())
        {
            let _ = errors.read_to_string(&mut why);
        }
        Err(cannot(why.trim().trim_start_matches("error: ").to_owned()))
    }

    /// The user's own server.
    pub fn target(url: &str) -> Self {
        let (url, command) = (url.to_owned(), String::new());
        Self { kind: ServerKind::Target, process: None, url, command, has_database: false }
    }

    /// Whether it is the user's own, whose settings theory does not know.
    pub fn is_target(&self) -> bool {
        self.kind == ServerKind::Target
    }

    /// `HOST:PORT` of a lab or proxy.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap_or(&self.url)
    }

    /// The URL of `path`; for the user's server, its own URL.
    pub fn url_of(&self, path: &str) -> String {
        let path = if self.kind == ServerKind::Target { "" } else { path };
        format!("{}{path}", self.url)
    }

    /// The address for plain TCP and the request target: `path`, or that of the user's URL.
    pub fn plain(&self, path: &str) -> Result<(String, String), Failure> {
        if self.kind != ServerKind::Target {
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

    /// Its metrics as a source to sample, if it has any. The sampler holds one connection.
    pub fn figures(&self) -> Option<String> {
        (self.kind == ServerKind::Lab).then(|| format!("prometheus:{}/metrics", self.url))
    }

    /// The lab's process and its sockets as a source to sample.
    pub fn process(&self) -> Option<String> {
        let process = self.process.as_ref().filter(|_| self.kind == ServerKind::Lab)?;
        // With a descriptor table per thread, sockets can be found only by port, for which every
        // process of the machine is opened at the same time.
        Some(match self.url.rsplit_once(':') {
            Some((_, port)) if self.has_tables() && table_size() >= MANY => format!("port:{port}"),
            _ => format!("pid:{}", process.id()),
        })
    }

    /// Whether the lab may have several descriptor tables.
    fn has_tables(&self) -> bool {
        let mut words = self.command.split_whitespace();
        words.find(|word| *word == "--max-connections");
        let most = words.next().and_then(|number| number.parse::<usize>().ok());
        let tables = most.and_then(|most| tables_for(most, table_size(), TableShares::Random));
        tables.is_some_and(|tables| tables > 1)
    }

    /// The number of users of the lab's service.
    pub fn users(&self) -> Result<u64, Failure> {
        let body = get(self.address(), "/users/count")?;
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        value["count"].as_u64().ok_or_else(|| {
            Failure::could_not(format!("{}/users/count: it has no count: {body}", self.url))
        })
    }

    /// A metric of the lab; 0 if it is absent.
    pub fn figure(&self, name: &str) -> Result<f64, Failure> {
        let page = get(self.address(), "/metrics")?;
        let mut values =
            page.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(values.next_back().unwrap_or(0.0))
    }

    /// Posts JSON to the lab.
    pub fn post(&self, path: &str, json: &str) -> Result<(), Failure> {
        let url = format!("{}{path}", self.url);
        let body = Some(json.as_bytes().into());
        let (status, text) = sent(&HttpRequest { body, ..HttpRequest::new("POST", url.clone()) })?;
        match status {
            200..300 => Ok(()),
            _ => Err(Failure::could_not(format!("{url}: {status} {text}"))),
        }
    }

    /// The first line on standard error that contains `mark`, from there on.
    pub fn logged(&mut self, mark: &str) -> Result<String, Failure> {
        let errors = self.process.as_mut().and_then(|process| process.stderr.as_mut());
        let lines = errors.map(|errors| BufReader::new(errors).lines());
        let mut lines = lines.into_iter().flatten().map_while(Result::ok);
        lines
            .find_map(|line| Some(line[line.find(mark)?..].to_owned()))
            .ok_or_else(|| Failure::could_not(format!("{}: it does not log {mark}", self.command)))
    }

    /// Stops the process with a signal and waits until it has written its files.
    pub fn end(&mut self) -> Result<(), Failure> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let killed = kill_process(Pid::from_child(process), Signal::TERM);
        let ended = killed.map_err(Into::into).and_then(|()| process.wait());
        ended.map(drop).map_err(|error| Failure::could_not(format!("a server: {error}")))
    }

    /// Stops the process; a real database is closed first.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if self.has_database {
            // Fails only if it has ended already.
            let _ = kill_process(Pid::from_child(&process), Signal::TERM);
            let until = Instant::now() + ENDING;
            while matches!(process.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for ExperimentServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The body of a response.
pub fn get(address: &str, path: &str) -> Result<String, Failure> {
    sent(&HttpRequest::new("GET", format!("http://{address}{path}"))).map(|(_, body)| body)
}

fn sent(request: &HttpRequest) -> Result<(u16, String), Failure> {
    let response = send_once(request, None, RESPONSE_MAX, PATIENCE)
        .map_err(|error| Failure::could_not(format!("{}: {error}", request.url)))?;
    Ok((response.status, String::from_utf8_lossy(&response.body).into_owned()))
}
