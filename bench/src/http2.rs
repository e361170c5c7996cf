//! Client CPU per request over HTTP/2, against h2load: connections by streams, in plain and TLS,
//! on nginx, which writes each response by itself, and on nghttpd, which writes many at once.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::calls::{self, Call};
use super::peers::Tool;
use super::process::{Launch, Running};
use super::report::Report;
use super::stats::{median, range, rotated};
use super::{Bench, nginx};
use gake_testkit::Program;
use xtask::debian;

const NEEDS: &[Program] = &[
    Program { name: "nghttpd", package: "nghttp2-server" },
    Program { name: "openssl", package: "openssl" },
];

/// Connections, streams on each, and thousands of requests of a long run.
const SHAPES: [(u64, u64, u64); 4] = [(1, 1, 50), (1, 100, 400), (50, 1, 200), (50, 10, 400)];

/// A server in one of its protocols.
struct Server {
    name: &'static str,
    url: String,
}

/// CPU time of a request in microseconds: in all, and of the tool's own code.
#[derive(Clone, Copy)]
struct Sample {
    cpu_us: f64,
    user_us: f64,
    /// Whether the tool's own count of successes is the number asked for.
    is_whole: bool,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    debian::ensure("the HTTP/2 bench", NEEDS)?;
    report.heading("http2: closed loop, CPU per request against h2load, by connections × streams");
    let (_running, servers) = start(&bench.dir, bench.server_core)?;
    let mut rows = Vec::new();
    for server in &servers {
        for (connections, streams, thousands) in SHAPES {
            let requests = bench.pick(thousands * 1_000, thousands * 250, thousands * 50);
            let calls = calls::streams(&server.url, requests, connections, streams);
            let rounds = (0..bench.options.rounds)
                .map(|round| in_turn(bench, &calls, round, requests, report));
            let rounds: Vec<_> = rounds.collect();
            let shape = format!("{connections}×{streams}");
            rows.push(row(&format!("{} {shape}", server.name), &rounds));
            let cut = rounds.iter().flatten().flatten().filter(|sample| !sample.is_whole).count();
            if cut > 0 {
                report.line(format!("  {} {shape}: requests failed in {cut} runs", server.name));
            }
        }
    }
    let head =
        ["server, shape", "gake µs", "user", "h2load µs", "user", "CPU × h2load", "(min–max)"];
    report.table(&head, &rows);
    Ok(())
}

/// A sample of each call; none where it failed, which is said.
fn in_turn(
    bench: &Bench,
    calls: &[Call],
    round: usize,
    requests: u64,
    report: &mut Report,
) -> Vec<Option<Sample>> {
    let mut samples = vec![None; calls.len()];
    for (at, call) in rotated(calls, round) {
        match measure(bench, call, requests) {
            Ok(sample) => samples[at] = Some(sample),
            Err(error) => report.line(format!("  round {}: {error:#}", round + 1)),
        }
    }
    samples
}

fn measure(bench: &Bench, call: &Call, requests: u64) -> Result<Sample> {
    let ended = bench.run(call, Duration::from_secs(120))?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    let text = String::from_utf8_lossy(&ended.stdout);
    let done = match call.tool {
        Tool::Gake => serde_json::from_str::<Value>(&text)?["requests"]["ok"].as_u64(),
        _ => succeeded(&text),
    };
    Ok(Sample {
        cpu_us: each(ended.cpu()),
        user_us: each(ended.user),
        is_whole: done == Some(requests),
    })
}

/// What h2load says has succeeded.
fn succeeded(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("requests: "))?;
    let before = line.split(" succeeded").next()?;
    before.rsplit(' ').next()?.parse().ok()
}

fn row(name: &str, rounds: &[Vec<Option<Sample>>]) -> Vec<String> {
    let of = |at: usize, value: fn(&Sample) -> f64| -> String {
        let values: Vec<_> =
            rounds.iter().filter_map(|round| round[at].as_ref().map(value)).collect();
        format!("{:.2}", median(&values))
    };
    let pairs = rounds.iter().filter_map(|round| Some((round[0]?, round[1]?)));
    let ratios: Vec<_> = pairs.map(|(gake, h2load)| gake.cpu_us / h2load.cpu_us).collect();
    let (least, most) = range(&ratios);
    vec![
        name.to_owned(),
        of(0, |sample| sample.cpu_us),
        of(0, |sample| sample.user_us),
        of(1, |sample| sample.cpu_us),
        of(1, |sample| sample.user_us),
        format!("{:.2}", median(&ratios)),
        format!("({least:.2}–{most:.2})"),
    ]
}

/// Starts the servers, each pinned to a core.
fn start(dir: &Path, core: usize) -> Result<(Vec<Running>, Vec<Server>)> {
    let (certificate, key) = certificate(dir)?;
    let [plain, secure, own_plain, own_secure] = free_ports()?;
    let (crt, private) = (certificate.display(), key.display());
    let answer = r#"location / { return 200 "ok\n"; }"#;
    let servers = format!(
        "server {{ listen 127.0.0.1:{plain} http2 backlog=4096; {answer} }}
    server {{ listen 127.0.0.1:{secure} ssl http2 backlog=4096; ssl_certificate {crt}; \
         ssl_certificate_key {private}; {answer} }}"
    );
    let mut running =
        vec![nginx::launch(dir, Some(core), &nginx::configuration(dir, None, &servers))?];
    let files = dir.join("files");
    fs::create_dir_all(&files)?;
    fs::write(files.join("index.html"), "ok\n")?;
    let text = |path: &Path| path.display().to_string();
    let common = ["-a".to_owned(), "127.0.0.1".to_owned(), "-d".to_owned(), text(&files)];
    for (port, last) in [
        (own_plain, vec!["--no-tls".to_owned(), own_plain.to_string()]),
        (own_secure, vec![own_secure.to_string(), text(&key), text(&certificate)]),
    ] {
        let program = gake_testkit::find("nghttpd").context("nghttpd is not installed")?;
        let args: Vec<_> = common.iter().cloned().chain(last).collect();
        let limit = Duration::from_secs(24 * 3600);
        running.push(
            Launch { program: &program, args: &args, stdin: None, core: Some(core), limit }
                .start()
                .with_context(|| format!("nghttpd at {port}"))?,
        );
    }
    [plain, secure, own_plain, own_secure].into_iter().try_for_each(until_listening)?;
    let server = |name, url: String| Server { name, url };
    let servers = vec![
        server("nginx", format!("http://127.0.0.1:{plain}/")),
        server("nginx TLS", format!("https://127.0.0.1:{secure}/")),
        server("nghttpd", format!("http://127.0.0.1:{own_plain}/")),
        server("nghttpd TLS", format!("https://127.0.0.1:{own_secure}/")),
    ];
    Ok((running, servers))
}

/// Ports that are free at once.
fn free_ports() -> Result<[u16; 4]> {
    let bind = || std::net::TcpListener::bind("127.0.0.1:0");
    let held = [bind()?, bind()?, bind()?, bind()?];
    let mut ports = [0; 4];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

pub(super) fn until_listening(port: u16) -> Result<()> {
    for _ in 0..250 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("nothing listens at port {port}")
}

/// A certificate for 127.0.0.1, and its key, in files.
fn certificate(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let (certificate, key) = (dir.join("bench.pem"), dir.join("bench.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .context("openssl could not be started")?;
    if !made.status.success() {
        bail!("openssl: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    Ok((certificate, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successes_are_read() {
        let text = "finished in 1s\nrequests: 9 total, 9 started, 9 done, 7 succeeded, 2 failed\n";
        assert_eq!(succeeded(text), Some(7));
        assert_eq!(succeeded("nothing"), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let sample = |cpu_us| Some(Sample { cpu_us, user_us: 1.0, is_whole: true });
        let rounds = vec![
            vec![sample(1.0), sample(2.0)],
            vec![sample(3.0), sample(4.0)],
            vec![sample(9.0), None],
        ];
        let row = row("s", &rounds);
        assert_eq!(row[5..], ["0.62".to_owned(), "(0.50–0.75)".to_owned()]);
        assert_eq!(row[1], "3.00");
    }
}
