//! The live page: what viewers get during a run and at its end, and who may stop it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::support::*;

/// A run with a live page.
struct Shown {
    child: Ended,
    address: String,
    token: String,
    stderr: JoinHandle<String>,
}

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Shown {
    /// Starts it, and reads where the page is.
    fn start(args: &[&str]) -> Self {
        let all = [&["run", "-o", "json", "--web=127.0.0.1:0"], args].concat();
        let mut command = gake(&all);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.by_ref().lines();
        let url =
            lines.find_map(|line| line.unwrap().strip_prefix("live page: ").map(str::to_owned));
        let url = url.unwrap();
        let (address, fragment) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = fragment.strip_prefix("#token=").unwrap_or_default().to_owned();
        let address = address.to_owned();
        let rest = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { child: Ended(child), address, token, stderr: rest }
    }

    /// Sends a request, once the page is served.
    fn ask(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("{request} HTTP/1.1\r\nHost: {}\r\n", self.address);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut stream = self.ask(&format!("GET {path}"));
        stream.write_all(b"\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Events to the end: name and data. After each, `each` sees those so far.
    fn events(&self, mut each: impl FnMut(&[(String, String)])) -> Vec<(String, String)> {
        let mut stream = self.ask("GET /events");
        stream.write_all(b"\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let mut events = Vec::new();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("event: ") {
                let data = lines.next().unwrap();
                events.push((name.to_owned(), data.strip_prefix("data: ").unwrap().to_owned()));
                each(&events);
            }
        }
        events
    }

    fn stop(&self, token: &str) -> String {
        self.post("/stop", token)
    }

    fn post(&self, path: &str, token: &str) -> String {
        let mut stream = self.ask(&format!("POST {path}"));
        let rest = format!("Origin: http://{}\r\nX-Gake-Token: {token}\r\n\r\n", self.address);
        stream.write_all(rest.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn end(mut self) -> Ran {
        let mut stdout = String::new();
        self.child.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.0.wait().unwrap().code();
        Ran { code, stdout, stderr: self.stderr.join().unwrap(), took: PATIENCE }
    }
}

/// Arrivals that each second asked for.
fn asked(data: &str) -> Vec<f64> {
    let data: Value = serde_json::from_str(data).unwrap();
    let asked = data["series"]["asked"].as_array().unwrap();
    asked.iter().filter_map(Value::as_f64).collect()
}

fn sent(data: &str) -> u64 {
    let data: Value = serde_json::from_str(data).unwrap();
    data["figures"]["sent"].as_u64().unwrap()
}

#[test]
fn viewers_see_the_run_grow_and_then_its_report() {
    let lab = lab();
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("report.html");
    let path = html.to_str().unwrap();
    let load = ["-r", "200", "-d", "90s", "--threads", "1", "--web-control", "--html", path];
    let run = Shown::start(&[&[url(&lab, "/fast").as_str()], &load[..]].concat());
    let (mut is_changed, mut is_stopped) = (false, false);
    let events = run.events(|so_far| {
        let last = &so_far[so_far.len() - 1].1;
        // However busy the machine is: until it was seen to grow, and then to have the new rate.
        if !is_changed && sent(last) > sent(&so_far[0].1) {
            is_changed = true;
            assert!(run.post("/rate?percent=300", "0").starts_with("HTTP/1.1 403 "));
            let answer = run.post("/rate?percent=300", &run.token);
            assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
        }
        if !is_stopped && asked(last).last() == Some(&600.0) {
            is_stopped = true;
            run.stop(&run.token);
        }
    });
    // The page of a viewer that came before the end.
    let first = &events[0].1;
    assert!(
        first.contains("\"live\":{\"length_s\":90.0,\"control\":true,\"rate_percent\":100.0}"),
        "{first}"
    );
    let growing = events.iter().filter(|(name, _)| name == "run");
    let counts: Vec<u64> = growing.map(|event| sent(&event.1)).collect();
    assert!(counts.is_sorted() && counts.last() > counts.first(), "{counts:?}");
    let (name, last) = events.last().unwrap();
    assert_eq!(name, "end");
    let ran = run.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let json = ran.json();
    assert_eq!(sent(last), json.count("requests.sent"));
    // The change is reported, and every arrival of the changed schedule was sent or dropped.
    let text = json.at("events")[0]["text"].as_str().unwrap();
    assert_eq!(text, "the rate was set to 300 % of the plan by hand: 600/s");
    let stages = json.at("plan.load.stages").as_array().unwrap();
    let rates: Vec<_> = stages.iter().map(|stage| stage["to"].as_f64().unwrap()).collect();
    assert_eq!(rates, [200.0, 600.0]);
    let due = json.number("rate.asked") * json.number("measured_s");
    assert!((json.count("requests.due") as f64 - due).abs() <= 2.0, "{due}");
    // The final data equal the report's, byte for byte.
    assert!(fs::read_to_string(&html).unwrap().contains(last.as_str()));
    lab.shutdown();
}

#[test]
fn the_page_holds_what_there_is_and_asks_only_its_own_server() {
    let lab = lab();
    let run = Shown::start(&[&url(&lab, "/fast"), "-r", "50", "-d", "90s", "--web-control"]);
    let mut page = String::new();
    eventually("the page is served", || {
        page = run.get("/");
        page.contains("<html")
    });
    assert!(page.contains("default-src 'none'; connect-src 'self';"), "{page}");
    assert!(page.contains("\"live\":{"), "{page}");
    assert_eq!(run.get("/etc/passwd"), "the page is at /\n");
    // No viewer follows: that does not delay the end.
    run.stop(&run.token);
    let ran = run.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(ran.json().count("requests.sent"), lab.shutdown().requests);
}

#[test]
fn the_page_stops_the_run_with_the_token() {
    let lab = lab();
    let run = Shown::start(&[&url(&lab, "/fast"), "-r", "100", "-d", "90s", "--web-control"]);
    assert_eq!(run.token.len(), 32);
    eventually("requests come", || lab.stats().requests > 10);
    assert!(run.stop("0").starts_with("HTTP/1.1 403 "));
    assert!(run.stop(&run.token).starts_with("HTTP/1.1 202 "));
    let ran = run.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.text("ended.by"), "interrupted");
    assert_eq!(json.count("requests.sent"), lab.shutdown().requests);
}

#[test]
fn a_page_that_cannot_be_served_is_refused_before_the_first_request() {
    let lab = lab();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let web = format!("--web={}", taken.local_addr().unwrap());
    let refused = ran(&["run", &url(&lab, "/fast"), "-n", "1", "-q", &web]);
    refused.refused(1, "in use");
    ran(&["run", &url(&lab, "/fast"), "-n", "1", "--web=h:port"]).refused(2, "is not an address");
    assert_eq!(lab.shutdown().requests, 0);
}
