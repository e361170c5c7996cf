//! The shadow proxy beside nginx's ways of doing it: how much of the direct throughput is left,
//! and how many microseconds it adds.
//!
//! Everything runs on all cores, as the figures of other proxies were taken: two backends of one
//! nginx, the proxies, and the load. Delta is not measured: its source is not available.

mod bad;
mod cpu;
mod isolation;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::nginx;
use super::peers::Tool;
use super::process::{Ended, Launch, Running};
use super::report::Report;
use super::stats::{median, rotated};
use super::{Bench, Pace};

/// The ways a request may take.
const WAYS: [&str; 5] =
    ["nginx direct", "nginx as a proxy", "gake, 0 % sampled", "nginx mirror", "gake shadow"];
const DIRECT: usize = 0;
const MIRROR: usize = 3;
const GAKE: usize = 4;

/// Of the load at which the time that is added is taken.
const RATE: u64 = 500;

/// The longest that anything runs.
const LIMIT: Duration = Duration::from_secs(3600);

/// What ab or wrk said.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    rate: f64,
    /// Requests with a response.
    requests: f64,
    p99_ms: f64,
    errors: u64,
}

/// What was found of one way, round by round.
#[derive(Default)]
struct Found {
    ab: Vec<Said>,
    wrk: Vec<Said>,
    /// CPU time of the proxy for a request of wrk, in microseconds.
    cpu_us: Vec<f64>,
    p50_us: Vec<f64>,
}

/// The servers, each on a port.
struct Servers {
    ports: [u16; WAYS.len()],
    /// The process that is the way, with its children; none of the direct one.
    pids: [Option<libc::pid_t>; WAYS.len()],
    /// Ended in this order; the output of the first is reported.
    running: Vec<Running>,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let ab_times = bench.pick(10, 3, 2);
    let seconds = bench.pick(3, 3, 1);
    report.heading(format!(
        "shadow: a 3-byte answer, everything on all cores; {ab_times} times ab -n 1000 -c 100; \
         wrk -c 100 and gake run -r {RATE} for {seconds} s, {} times",
        bench.options.rounds
    ));
    let servers = Servers::start(bench)?;
    let mut found: Vec<Found> = WAYS.iter().map(|_| Found::default()).collect();
    for round in 0..ab_times {
        for (at, way) in rotated(&WAYS, round) {
            tell(
                report,
                way,
                ab(bench, servers.ports[at], 1_000).map(|said| found[at].ab.push(said)),
            );
        }
    }
    for round in 0..bench.options.rounds {
        for (at, way) in rotated(&WAYS, round) {
            let port = servers.ports[at];
            let before = cpu::of(servers.pids[at]);
            let said = wrk(bench, port, seconds).map(|said| {
                let cpu = cpu::of(servers.pids[at]).saturating_sub(before);
                if said.requests > 0.0 {
                    found[at].cpu_us.push(cpu.as_secs_f64() * 1e6 / said.requests);
                }
                found[at].wrk.push(said);
            });
            tell(report, way, said);
            tell(report, way, p50_us(bench, port, seconds).map(|p50| found[at].p50_us.push(p50)));
        }
    }
    let head = [
        "way",
        "ab/s",
        "of direct",
        "errors",
        "wrk/s",
        "of direct",
        "× mirror",
        "p99 ms",
        "CPU µs",
        "errors",
        "adds µs",
    ];
    let rows: Vec<_> = (0..WAYS.len()).map(|at| row(&found, at)).collect();
    report.table(&head, &rows);
    report.line("  CPU: of the proxy for a request of wrk, without the backends and the load");
    let long: Result<Vec<Said>> =
        (0..ab_times).map(|_| ab(bench, servers.ports[GAKE], 10_000)).collect();
    match long {
        Ok(said) => report.line(format!(
            "  gake shadow, {ab_times} times ab -n 10000 -c 100: {} errors",
            said.iter().map(|said| said.errors).sum::<u64>()
        )),
        Err(error) => report.line(format!("  gake shadow, ab -n 10000 -c 100: {error:#}")),
    }
    for line in servers.end()?.lines().skip(1) {
        report.line(format!("  gake shadow: {line}"));
    }
    report
        .line("  Delta: not measured, its source is not at hand; it was 0.04 of direct with wrk,");
    report.line("  0.305 with ab, on another machine with two cores");
    if bench.options.pace == Pace::Goals { Ok(()) } else { isolation::run(bench, report) }
}

fn tell(report: &mut Report, way: &str, result: Result<()>) {
    if let Err(error) = result {
        report.line(format!("  {way}: {error:#}"));
    }
}

fn row(found: &[Found], at: usize) -> Vec<String> {
    let rates = |said: &[Said]| said.iter().map(|said| said.rate).collect::<Vec<_>>();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let errors = |said: &[Said]| said.iter().map(|said| said.errors).sum::<u64>().to_string();
    let (own, direct, mirror) = (&found[at], &found[DIRECT], &found[MIRROR]);
    let ab = mean(&rates(&own.ab));
    let wrk = median(&rates(&own.wrk));
    let p99s: Vec<f64> = own.wrk.iter().map(|said| said.p99_ms).collect();
    vec![
        WAYS[at].to_owned(),
        format!("{ab:.0}"),
        format!("{:.3}", ab / mean(&rates(&direct.ab))),
        errors(&own.ab),
        format!("{wrk:.0}"),
        format!("{:.3}", wrk / median(&rates(&direct.wrk))),
        format!("{:.2}", wrk / median(&rates(&mirror.wrk))),
        format!("{:.2}", median(&p99s)),
        if at == DIRECT { "-".to_owned() } else { format!("{:.1}", median(&own.cpu_us)) },
        errors(&own.wrk),
        format!("{:.0}", median(&own.p50_us) - median(&direct.p50_us)),
    ]
}

impl Servers {
    fn start(bench: &Bench) -> Result<Self> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let [direct, shadow, proxy, dry, mirror, gake] = free_ports()?;
        let backend = |port| {
            format!(
                "server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 \"ok\\n\"; }} }}\n"
            )
        };
        let backends = backend(direct) + &backend(shadow);
        let proxies = proxies(direct, shadow, proxy, mirror);
        let mut running = Vec::new();
        for (name, servers) in [("proxies", proxies), ("backends", backends)] {
            let dir = bench.dir.join(name);
            fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
            running.push(nginx::launch(
                &dir,
                None,
                &nginx::configuration(&dir, Some(workers), &servers),
            )?);
        }
        let nginx = Some(running[0].pid());
        for (listen, percentage) in [(dry, 0), (gake, 100)] {
            let args = [
                "shadow".to_owned(),
                "--quiet".to_owned(),
                format!("--listen=127.0.0.1:{listen}"),
                format!("--master=production=http://127.0.0.1:{direct}"),
                format!("--shadow=sandbox=http://127.0.0.1:{shadow}"),
                format!("--percentage={percentage}"),
            ];
            running.insert(0, start(bench, Tool::Gake, &args, LIMIT)?);
        }
        for port in [direct, shadow, proxy, dry, mirror, gake] {
            await_port(port)?;
        }
        let (full, dry_pid) = (Some(running[0].pid()), Some(running[1].pid()));
        let pids = [None, nginx, dry_pid, nginx, full];
        Ok(Self { ports: [direct, proxy, dry, mirror, gake], pids, running })
    }

    /// Ends them; what gake said at its end.
    fn end(self) -> Result<String> {
        let mut said = String::new();
        for (at, running) in self.running.into_iter().enumerate() {
            running.terminate();
            let ended = running.wait()?;
            if at == 0 {
                said = String::from_utf8_lossy(&ended.stdout).into_owned();
            }
        }
        Ok(said)
    }
}

/// nginx's two ways; both keep connections to the backends.
fn proxies(direct: u16, shadow: u16, proxy: u16, mirror: u16) -> String {
    let pass =
        "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;";
    format!(
        r"upstream direct {{ server 127.0.0.1:{direct}; keepalive 128; }}
    upstream shadow {{ server 127.0.0.1:{shadow}; keepalive 128; }}
    server {{
        listen 127.0.0.1:{proxy} backlog=4096;
        location / {{ {pass} proxy_pass http://direct; }}
    }}
    server {{
        listen 127.0.0.1:{mirror} backlog=4096;
        location / {{ mirror /copy; {pass} proxy_pass http://direct; }}
        location = /copy {{ internal; {pass} proxy_pass http://shadow$request_uri; }}
    }}"
    )
}

/// Ports that were free a moment ago, all different.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn await_port(port: u16) -> Result<()> {
    for _ in 0..250 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("nothing listens on port {port} after 5 s")
}

fn start(bench: &Bench, tool: Tool, args: &[String], limit: Duration) -> Result<Running> {
    let program: &Path =
        bench.peers.path(tool).with_context(|| format!("{} is not here", tool.name()))?;
    Launch { program, args, stdin: None, core: None, limit }.start()
}

fn load(bench: &Bench, tool: Tool, line: &str, codes: &[i32]) -> Result<Ended> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    start(bench, tool, &args, Duration::from_secs(60))?.wait()?.accept(tool.name(), codes)
}

fn ab(bench: &Bench, port: u16, requests: u64) -> Result<Said> {
    let line = format!("-q -n {requests} -c 100 http://127.0.0.1:{port}/");
    let ended = load(bench, Tool::Ab, &line, &[0])?;
    ab_said(&String::from_utf8_lossy(&ended.stdout), requests).context("ab printed no rate")
}

fn wrk(bench: &Bench, port: u16, seconds: u64) -> Result<Said> {
    let line = format!("-t 2 -c 100 -d {seconds}s --latency http://127.0.0.1:{port}/");
    let ended = load(bench, Tool::Wrk, &line, &[0])?;
    wrk_said(&String::from_utf8_lossy(&ended.stdout)).context("wrk printed no rate")
}

/// The median that gake measures at a low rate, in microseconds.
fn p50_us(bench: &Bench, port: u16, seconds: u64) -> Result<f64> {
    let args = format!("http://127.0.0.1:{port}/ -r {RATE} -d {seconds}s");
    number(&gake_run(bench, &args)?, "/latency_ns/service/p50").map(|p50| p50 / 1e3)
}

/// What a run of gake, on one thread, says in JSON.
fn gake_run(bench: &Bench, args: &str) -> Result<Value> {
    let line = format!("run {args} --threads 1 -o json");
    let ended = load(bench, Tool::Gake, &line, &[0, 3, 99])?;
    serde_json::from_slice(&ended.stdout).context("gake printed no JSON")
}

fn number(json: &Value, path: &str) -> Result<f64> {
    let value = json.pointer(path).and_then(Value::as_f64);
    value.with_context(|| format!("gake's JSON lacks {path}"))
}

/// The first number after `name`; nothing when the line is not there.
fn after(text: &str, name: &str) -> Option<f64> {
    let rest = text.split_once(name)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn ab_said(text: &str, requests: u64) -> Option<Said> {
    let count = |name| after(text, name).unwrap_or(0.0) as u64;
    let missing = requests.saturating_sub(count("Complete requests:"));
    Some(Said {
        rate: after(text, "Requests per second:")?,
        requests: count("Complete requests:") as f64,
        p99_ms: f64::NAN,
        errors: missing + count("Failed requests:") + count("Non-2xx responses:"),
    })
}

fn wrk_said(text: &str) -> Option<Said> {
    let sockets = text.lines().find_map(|line| line.trim().strip_prefix("Socket errors:"));
    let broken: f64 = sockets.map_or(0.0, |line| {
        ["connect", "read", "write", "timeout"].iter().filter_map(|name| after(line, name)).sum()
    });
    let p99 = text.lines().find_map(|line| line.trim().strip_prefix("99%"))?.trim();
    let (scale, number) = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)]
        .iter()
        .find_map(|(unit, scale)| Some((scale, p99.strip_suffix(unit)?)))?;
    let total = text.lines().find_map(|line| line.split_once(" requests in "))?.0;
    Some(Said {
        rate: after(text, "Requests/sec:")?,
        requests: total.trim().parse().ok()?,
        p99_ms: number.parse::<f64>().ok()? * scale,
        errors: broken as u64 + after(text, "Non-2xx or 3xx responses:").unwrap_or(0.0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ab_says_is_read() {
        let text = "Complete requests:      998\nFailed requests:        3\n\
                    Non-2xx responses:      4\nRequests per second:    4625.50 [#/sec] (mean)\n";
        let said = ab_said(text, 1_000).unwrap();
        assert_eq!((said.rate, said.errors), (4625.5, 9));
        assert!(ab_said("nothing", 1).is_none());
    }

    #[test]
    fn what_wrk_says_is_read() {
        let text = "     50%  500.00us\n     99%   12.90ms\n  Socket errors: connect 1, read 2, \
                    write 3, timeout 4\n  Non-2xx or 3xx responses: 5\n  35001 requests in 2.00s, 5.00MB \
                    read\nRequests/sec:  17500.25\n";
        let said = Said { rate: 17500.25, requests: 35001.0, p99_ms: 12.9, errors: 15 };
        assert_eq!(wrk_said(text).unwrap(), said);
        let quiet = "     99%    1.50s \n  4 requests in 2.00s, 1KB read\nRequests/sec: 2.00\n";
        let said = Said { rate: 2.0, requests: 4.0, p99_ms: 1500.0, errors: 0 };
        assert_eq!(wrk_said(quiet).unwrap(), said);
    }
}
