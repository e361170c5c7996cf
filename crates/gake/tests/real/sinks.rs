//! Figures in other people's databases: what they say by query is what the run says.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::*;

/// A port that is free at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server in a folder of its own, ended when dropped.
pub struct Server {
    child: Child,
    folder: TempDir,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &str, args: &[&str], folder: &Path) -> Child {
    command(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The body of a 2xx response.
pub fn fetch(url: &str, form: &[&str]) -> Option<String> {
    let mut curl = command("curl");
    curl.args(["--silent", "--fail", "--max-time", "5", "--get", url]);
    for pair in form {
        curl.args(["--data-urlencode", pair]);
    }
    let answer = curl.output().unwrap();
    answer.status.success().then(|| String::from_utf8(answer.stdout).unwrap())
}

impl Server {
    pub fn influxdb() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let path = folder.path().display();
        let config = format!(
            "reporting-enabled = false\nbind-address = \"127.0.0.1:{}\"\n\
             [meta]\ndir = \"{path}/meta\"\n\
             [data]\ndir = \"{path}/data\"\nwal-dir = \"{path}/wal\"\n\
             [http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n",
            free_port()
        );
        fs::write(folder.path().join("influxdb.conf"), config).unwrap();
        let child = spawn("influxd", &["-config", "influxdb.conf"], folder.path());
        let server = Self { child, folder, port };
        server.await_influxdb();
        server
    }

    fn await_influxdb(&self) {
        let ping = format!("http://127.0.0.1:{}/ping", self.port);
        eventually("InfluxDB answers", || fetch(&ping, &[]).is_some());
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = spawn("influxd", &["-config", "influxdb.conf"], self.folder.path());
        self.await_influxdb();
    }

    /// The one number that a query of InfluxDB gives.
    fn number(&self, query: &str) -> f64 {
        let url = format!("http://127.0.0.1:{}/query", self.port);
        let form = ["db=gake".to_owned(), "epoch=ms".to_owned(), format!("q={query}")];
        let form: Vec<&str> = form.iter().map(String::as_str).collect();
        let answer: Value = serde_json::from_str(&fetch(&url, &form).unwrap()).unwrap();
        let value = &answer["results"][0]["series"][0]["values"][0][1];
        value.as_f64().unwrap_or_else(|| panic!("{query}: {answer}"))
    }

    pub fn prometheus() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        fs::write(folder.path().join("prometheus.yml"), "global: {}\n").unwrap();
        let listen = format!("--web.listen-address=127.0.0.1:{port}");
        let args = [
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--web.enable-remote-write-receiver",
            "--enable-feature=native-histograms",
            &listen,
        ];
        let child = spawn("prometheus", &args, folder.path());
        let ready = format!("http://127.0.0.1:{port}/-/ready");
        eventually("Prometheus is ready", || fetch(&ready, &[]).is_some());
        Self { child, folder, port }
    }

    /// A NATS whose clients need a token.
    fn nats(token: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let args = ["-a", "127.0.0.1", "-p", &port.to_string(), "--auth", token];
        let child = spawn("nats-server", &args, folder.path());
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        eventually("NATS listens", listens);
        Self { child, folder, port }
    }

    /// The newest value of a series; `None` while there is none.
    fn newest(&self, query: &str) -> Option<f64> {
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        let answer: Value =
            serde_json::from_str(&fetch(&url, &[&format!("query={query}")]).unwrap()).unwrap();
        let value = answer["data"]["result"][0]["value"][1].as_str()?;
        Some(value.parse().unwrap())
    }
}

#[test]
fn influxdb_has_the_figures_of_the_run_although_it_was_away() {
    let (rate, seconds, away) = if full() { (1_000, 30, 10) } else { (200, 8, 2) };
    let mut influxdb = Server::influxdb();
    let lab = lab();
    let sink = format!("influxdb=http://127.0.0.1:{}/gake?tags=env:test", influxdb.port);
    let load = format!("-r {rate} -d {seconds}s -o json --sink {sink}");
    let run = start(&mut gake(&[&["run", &url(&lab, "/fast")], &words(&load)[..]].concat()));
    let rows = "SELECT COUNT(sent) FROM gake_requests WHERE env = 'test'";
    eventually("the first second is there", || {
        let url = format!("http://127.0.0.1:{}/query", influxdb.port);
        fetch(&url, &["db=gake", &format!("q={rows}")]).is_some_and(|text| text.contains("values"))
    });
    influxdb.stop();
    thread::sleep(Duration::from_secs(away));
    influxdb.start_again();
    let done = run.wait().done();
    assert!(!done.stderr.contains("not delivered"), "{done:?}");
    let json = done.json();
    for field in ["sent", "ok", "failed", "unfinished"] {
        let sum = influxdb.number(&format!("SELECT SUM({field}) FROM gake_requests"));
        assert_eq!(sum as u64, json.count(&format!("requests.{field}")), "{field}");
    }
    // A row a second, also during the drain.
    let least = f64::from(seconds);
    assert!((least..=least + 6.0).contains(&influxdb.number(rows)));
    let count = "SELECT SUM(\"count\") FROM gake_latency WHERE metric = 'response'";
    assert_eq!(influxdb.number(count), f64::from(rate * seconds));
    let p99 = influxdb.number("SELECT p99 FROM gake_run_latency WHERE metric = 'response'");
    let reported = json.number("latency_ns.response.p99") / 1e6;
    assert!((p99 / reported - 1.0).abs() < 1e-6, "{p99} {reported}");
    // A point for each request, under k6's names.
    let raw = format!("influxdb=http://127.0.0.1:{}/gake?raw", influxdb.port);
    let url = url(&lab, "/fast");
    ran(&["run", &url, "-n", "500", "-c", "5", "--sink", &raw, "-q"]).done();
    assert_eq!(influxdb.number("SELECT COUNT(value) FROM http_reqs"), 500.0);
    assert_eq!(influxdb.number("SELECT SUM(value) FROM http_req_failed"), 0.0);
    let mean = influxdb.number("SELECT MEAN(value) FROM http_req_duration");
    assert!(mean > 0.0 && mean < 5_000.0, "{mean}");
    lab.shutdown();
}

#[test]
fn prometheus_has_them_by_remote_write_and_by_its_own_visits() {
    let prometheus = Server::prometheus();
    let lab = lab();
    let write = format!("prometheus-rw=http://127.0.0.1:{}/api/v1/write", prometheus.port);
    let page = free_port();
    let visited = format!("prometheus=127.0.0.1:{page}?linger=5s&tags=env:test");
    let args = ["-n", "700", "-c", "7", "--sink", &write, "--sink", &visited, "-o", "json"];
    let started = start(&mut gake(&[&["run", &url(&lab, "/fast")], &args[..]].concat()));
    let mut text = String::new();
    eventually("the page has the whole run", || {
        text = fetch(&format!("http://127.0.0.1:{page}/metrics"), &[]).unwrap_or_default();
        text.contains("gake_requests_total{env=\"test\",outcome=\"ok\"} 700\n")
    });
    for line in ["gake_response_seconds_count{env=\"test\"} 700", "# EOF"] {
        assert!(text.lines().any(|known| known == line), "{text}");
    }
    let json = started.wait().done().json();
    assert_eq!(prometheus.newest("gake_requests_total{outcome=\"ok\"}"), Some(700.0));
    assert_eq!(prometheus.newest("gake_response_seconds_bucket{le=\"+Inf\"}"), Some(700.0));
    let quantile = "gake_response_quantile_seconds{quantile=\"0.9\"}";
    let (p90, reported) =
        (prometheus.newest(quantile).unwrap(), json.number("latency_ns.response.p90") / 1e9);
    assert!((p90 / reported - 1.0).abs() < 1e-6, "{p90} {reported}");
    // Native histograms, and a script's metrics under k6's names.
    let native = format!("{write}?native&tags=env:native");
    let json = run(&[&url(&lab, "/fast"), "-n", "300", "-c", "3", "--sink", &native]);
    let of =
        |what: &str| prometheus.newest(&what.replace('H', "gake_response_seconds{env=\"native\"}"));
    // The last figures are of an instant behind the run.
    eventually("the histogram is whole", || of("histogram_count(H)") == Some(300.0));
    let (p90, reported) =
        (of("histogram_quantile(0.9, H)"), json.number("latency_ns.response.p90") / 1e9);
    assert!((p90.unwrap() / reported - 1.0).abs() < 0.05, "{p90:?} {reported}");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.js");
    fs::write(&script, SCRIPT).unwrap();
    for is_native in ["false", "true"] {
        let mut k6 = gake(&["as", "k6", "run", "-q", "-o", "experimental-prometheus-rw"]);
        k6.arg(&script).env("BASE", url(&lab, "")).env("K6_NO_USAGE_REPORT", "true");
        k6.env("K6_PROMETHEUS_RW_SERVER_URL", write.trim_start_matches("prometheus-rw="));
        k6.env("K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM", is_native);
        start(&mut k6).wait().done();
    }
    for (query, expected) in [
        ("k6_http_reqs_total{name=\"one\",status=\"200\"}", 10.0),
        ("k6_checks_rate{check=\"is 200\"}", 1.0),
        ("k6_my_time_p99", 1.5),
        ("histogram_count(k6_my_time_seconds)", 10.0),
        ("histogram_sum(k6_my_time_seconds)", 15.0),
        ("histogram_count(k6_http_req_duration_seconds)", 10.0),
    ] {
        assert_eq!(prometheus.newest(query), Some(expected), "{query}");
    }
    lab.shutdown();
}

const SCRIPT: &str = r"
import http from 'k6/http';
import { check } from 'k6';
import { Trend } from 'k6/metrics';
const time = new Trend('my_time', true);
export const options = { iterations: 10 };
export default function () {
  const answer = http.get(`${__ENV.BASE}/fast`, { tags: { name: 'one' } });
  check(answer, { 'is 200': (one) => one.status === 200 });
  time.add(1500);
}
";

#[test]
fn statsd_counts_every_request() {
    let statsd = UdpSocket::bind("127.0.0.1:0").unwrap();
    statsd.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let lab = lab();
    let sink = format!("statsd={}", statsd.local_addr().unwrap());
    ran(&["run", &url(&lab, "/fast"), "-n", "300", "-c", "3", "--sink", &sink, "-q"]).done();
    let mut datagram = [0; 2_048];
    let mut ok = 0;
    while let Ok(len) = statsd.recv(&mut datagram) {
        let lines = std::str::from_utf8(&datagram[..len]).unwrap().lines();
        let counts = lines.filter_map(|line| line.strip_prefix("gake.requests.ok:"));
        ok += counts.map(|rest| rest.trim_end_matches("|c").parse::<u64>().unwrap()).sum::<u64>();
    }
    assert_eq!(ok, 300);
    lab.shutdown();
}

#[test]
fn a_file_has_a_line_a_row_and_can_be_compressed() {
    let lab = lab();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv, zst) = (at("a.json"), at("a.csv.gz"), at("b.json.zst"));
    let sinks = [format!("json={json}"), format!("csv={csv}"), format!("json={zst}")];
    let sinks = sinks.iter().flat_map(|sink| ["--sink", sink]).collect::<Vec<_>>();
    let args = [&["-n", "200", "-c", "2", "-q"], &sinks[..]].concat();
    ran(&[&["run", &url(&lab, "/fast")], &args[..]].concat()).done();
    let rows: Vec<Value> = fs::read_to_string(&json)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| rows.iter().filter(|row| row["measurement"] == name).collect::<Vec<_>>();
    let sum: u64 =
        of("gake_requests").iter().map(|row| row["fields"]["ok"].as_u64().unwrap()).sum();
    assert_eq!((sum, of("gake_run_requests")[0]["fields"]["ok"].as_u64()), (200, Some(200)));
    assert_eq!(of("gake_events").len(), 2);
    let unpacked = command("zstd").args(["-dcq", &zst]).output().unwrap();
    assert_eq!(String::from_utf8(unpacked.stdout).unwrap(), fs::read_to_string(&json).unwrap());
    let zcat = Command::new("gzip").args(["-dc", &csv]).output().unwrap();
    let text = String::from_utf8(zcat.stdout).unwrap();
    assert!(text.starts_with("time,measurement,tags,field,value\n"), "{text}");
    assert!(text.lines().any(|line| line.ends_with(",gake_run_requests,,ok,200")), "{text}");
    lab.shutdown();
}

#[test]
fn a_sink_that_is_down_costs_its_figures_and_not_the_run() {
    let lab = lab();
    let (_held, down) = refusing();
    let sink = format!("influxdb=http://me:secret@{down}/gake?retry=500ms");
    let url = url(&lab, "/fast");
    let args = ["run", &url, "-n", "100", "-c", "2", "--sink", &sink, "-o", "json"];
    let ran_without = ran(&args).done();
    assert_eq!(ran_without.json().count("requests.ok"), 100);
    let errors = &ran_without.stderr;
    assert!(errors.contains("connect refused"), "{errors}");
    assert!(errors.contains("figures were not delivered"), "{errors}");
    assert!(!errors.contains("secret"), "{errors}");
    let before = lab.stats().requests;
    let refused = ran(&[&args[..], &["--sink-required"]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("connect refused"), "{refused:?}");
    assert_eq!(lab.stats().requests, before);
    lab.shutdown();
}

#[test]
fn a_bad_sink_is_refused_before_anything_is_sent() {
    for (sink, what) in [
        ("influxdb", "is not a sink: KIND=ADDRESS"),
        ("influxdb=http://127.0.0.1:8086", "is not a URL such as"),
        ("statsd=localhost", "is not an address such as"),
        ("otlp=http://127.0.0.1:4318?raw", "otlp has no option"),
    ] {
        ran(&["run", "http://127.0.0.1:1/", "-n", "1", "--sink", sink]).refused(2, what);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let sink = format!("prometheus={}", taken.local_addr().unwrap());
    let ran = ran(&["run", "http://127.0.0.1:1/", "-n", "1", "--sink", &sink]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("in use"), "{ran:?}");
}

/// The messages on a subject, until the run's verdict has come.
fn subscribed(server: &Server, token: &str, subject: &str) -> thread::JoinHandle<Vec<Value>> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let hello = format!("CONNECT {{\"verbose\":false,\"auth_token\":\"{token}\"}}\r\n");
    write!(stream, "{hello}SUB {subject} 1\r\nPING\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "PONG"), "it is subscribed");
    thread::spawn(move || {
        let messages = lines.filter(|line| line.starts_with('{'));
        let mut seen: Vec<Value> = Vec::new();
        for message in messages {
            seen.push(serde_json::from_str(&message).unwrap());
            if message.contains("gake_run_verdict") {
                break;
            }
        }
        seen
    })
}

#[test]
fn a_subject_of_nats_gets_every_second_of_the_run() {
    let server = Server::nats("t0ken");
    let seen = subscribed(&server, "t0ken", "load.figures");
    let lab = lab();
    let url = url(&lab, "/fast");
    let sink =
        |token: &str| format!("nats=nats://{token}@127.0.0.1:{}?subject=load.figures", server.port);
    let refused = ran(&["run", &url, "-n", "1", "--sink", &sink("wrong"), "--sink-required"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("Authorization"), "{refused:?}");
    assert!(!refused.stderr.contains("wrong"), "{refused:?}");
    let json = run(&[&url, "-r", "100", "-d", "3s", "--sink", &sink("t0ken")]);
    let rows = seen.join().unwrap();
    let of_all = rows.iter().filter(|row| row["measurement"] == "gake_requests");
    let ok: u64 = of_all.map(|row| row["fields"]["ok"].as_u64().unwrap()).sum();
    assert_eq!(ok, json.count("requests.ok"), "{rows:?}");
}
