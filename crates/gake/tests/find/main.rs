//! `gake find` as its users start it. What it finds is tested on virtual servers; here are the
//! command line, the ends and the bounds, none of which depends on a timing.

#![allow(clippy::unwrap_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod common;

use std::fs;

use common::{eventually, gake, start};
use gake_lab::{Lab, LabConfig};
use serde_json::Value;

fn find(args: &[&str]) -> common::Ran {
    start(&mut gake(&[&["find"], args].concat())).wait()
}

#[test]
fn a_target_that_only_fails_has_no_capacity() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let url = format!("http://{}/status/503", lab.addr());
    let html = tempfile::NamedTempFile::new().unwrap();
    let page = html.path().to_str().unwrap();
    let slo = ["--slo", "p99<1s", "--slo", "errors<1%"];
    let ran = find(&[&[url.as_str()], &slo[..], &["-o", "json", "--html", page]].concat());
    assert_eq!(ran.code, Some(99), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["answer"]["found"], "infeasible");
    assert_eq!(form["answer"]["ended"], "infeasible");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("\"kind\":\"find\"") && page.contains("\"infeasible\""));
    // Without objectives, the unloaded latency is measured first.
    let ran = find(&[&url]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no request of a single user succeeded: status 5"), "{ran:?}");
    lab.shutdown();
}

#[test]
fn the_highest_rate_and_the_budget_are_kept_for_messages_too() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let url = format!("ws://{}/ws", lab.addr());
    let refused = find(&[url.as_str(), "--slo", "p50<20s", "--dimension", "connect-rate"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    // An objective that no noise of the machine can miss.
    let flags = ["--slo", "p50<20s", "--max-rate", "64", "--budget", "16s", "-o", "json"];
    let ran = find(&[&[url.as_str(), "--ws-message", "x"], &flags[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["schema"], "gake.find/1");
    assert_eq!(form["answer"]["found"], "at_least", "{form}");
    assert!(form["answer"]["spent_s"].as_f64().unwrap() < 40.0);
    let steps = form["steps"].as_array().unwrap();
    assert!(steps.len() >= 5);
    for step in steps {
        assert_eq!(step["load"], "rate");
        assert!(step["asked"].as_f64().unwrap() <= 64.0, "{step}");
    }
    lab.shutdown();
}

#[test]
fn a_target_with_an_objective_of_its_own_must_respond_in_time_too() {
    // It sleeps, so its CPU does not reveal its limit of 200/s.
    let config = LabConfig {
        threads: Some(4),
        service: Some("const:20ms".parse().unwrap()),
        ..LabConfig::default()
    };
    let lab = Lab::start(config).unwrap();
    let (url, port) = (format!("http://{}/fast", lab.addr()), lab.addr().port());
    let watch = format!("port:{port}");
    let flags = ["--watch", &watch, "--slo", "rss<1TB", "--budget", "15s", "-o", "json"];
    let ran = find(&[&[url.as_str()], &flags[..]].concat());
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    let objectives = form["objectives"].as_array().unwrap();
    assert_eq!((objectives.len(), &objectives[0]), (3, &"rss<1TB".into()), "{form}");
    assert!(form["answer"]["capacity"].as_f64().is_none_or(|rate| rate < 220.0), "{form}");
    lab.shutdown();
}

#[test]
fn an_objective_on_the_target_has_its_value_at_each_step() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let (url, port) = (format!("http://{}/fast", lab.addr()), lab.addr().port());
    let watch = format!("port:{port}");
    // The lab is in the process of this test, whose other threads sleep.
    let slo = ["--slo", "cpu<20%", "--slo", "p50<400ms"];
    let flags = ["--watch", &watch, "--budget", "20s", "-o", "json", "-o"];
    let text = tempfile::NamedTempFile::new().unwrap();
    let into = format!("text={}", text.path().display());
    let ran = find(&[&[url.as_str()], &slo[..], &flags, &[&into]].concat());
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    // A rate, however small, uses less.
    assert_ne!(form["answer"]["found"], "infeasible", "{form}");
    let steps = form["steps"].as_array().unwrap().iter();
    // A step too short for a sample in between has no levels of the target.
    let judged = steps.filter(|step| step["purpose"] != "ladder");
    let judged: Vec<_> =
        judged.filter_map(|step| Some((step, step["levels"]["cpu"].as_f64()?))).collect();
    assert!(!judged.is_empty(), "{form}");
    for (step, cpu) in judged {
        let of_allowed = step["of_allowed"][0].as_f64().unwrap();
        assert!((cpu / 0.2 - of_allowed).abs() < 1e-6, "{step}");
    }
    let text = fs::read_to_string(text.path()).unwrap();
    let has_cpu = |line: &str| line.starts_with("step") && line.contains(" cpu ");
    assert!(text.lines().any(has_cpu), "{text}");
    lab.shutdown();
}

#[test]
fn a_service_of_seconds_is_found_within_a_minute() {
    let config = LabConfig {
        threads: Some(50),
        service: Some("const:2s".parse().unwrap()),
        ..LabConfig::default()
    };
    let lab = Lab::start(config).unwrap();
    let url = format!("http://{}/fast", lab.addr());
    let ran = find(&[&url, "--slo", "p99<6s", "--budget", "50s", "-o", "json"]);
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    // 50 at once, 2 s each: 25 a second, and no more, whatever the machine does.
    let answer = &form["answer"];
    let level = answer["low"].as_f64().or(answer["capacity"].as_f64()).unwrap();
    assert!((2.0..=27.0).contains(&level), "{form}");
    lab.shutdown();
}

#[test]
fn a_folder_that_is_lost_during_the_search_costs_its_files_and_not_the_search() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let url = format!("http://{}/fast", lab.addr());
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("steps");
    // Two agents do it; it is the same search.
    let flags = "--slo p50<20s --max-rate 64 --budget 40s -o json --local 2 --agents-wait 60s";
    let flags = common::words(flags);
    let out = ["find", &url, "--out", folder.to_str().unwrap()];
    let search = start(&mut gake(&[&out[..], &flags].concat()));
    eventually("the first step has its file", || {
        fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some())
    });
    // A step may begin in between and make it again.
    eventually("a file is in the folder's place", || {
        let _ = fs::remove_dir_all(&folder);
        fs::write(&folder, "in the way").is_ok()
    });
    let ran = search.wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["answer"]["found"], "at_least", "{form}");
    let steps = form["steps"].as_array().unwrap();
    assert!(steps.len() >= 5);
    let ok: u64 = steps.iter().map(|step| step["ok"].as_u64().unwrap()).sum();
    assert!(ok > 0 && ok <= lab.stats().requests, "{form}");
    assert!(ran.stderr.contains(&format!("warning: {}", folder.display())), "{ran:?}");
    assert!(ran.stderr.contains("more steps were lost too"), "{ran:?}");
    assert_eq!(fs::read_to_string(&folder).unwrap(), "in the way");

    // Before anything is sent it is an error.
    let before = lab.stats().requests;
    let ran = find(&[&out[1..], &flags].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("cannot be created"), "{ran:?}");
    assert_eq!(lab.shutdown().requests, before);
}

#[test]
fn the_demo_needs_nothing_else() {
    let ran = find(&["demo", "--max-rate", "32", "--budget", "25s", "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(form["steps"].as_array().unwrap().iter().all(|step| step["ok"] != 0), "{form}");
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_is_sent() {
    for (flags, printed) in [
        (&["--slo", "rate>=5/s"][..], "upper bounds"),
        (&["--slo", "max<1s"], "p99.9"),
        (&["--slo", "errors<0%"], "errors<0.1%"),
        (&["--precision", "0"], "percentage"),
        (&["--dimension", "speed"], "connect-rate"),
    ] {
        let ran = find(&[&["http://127.0.0.1:9/"], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?} {ran:?}");
        assert!(ran.stderr.contains(printed), "{flags:?} {ran:?}");
    }
}

#[test]
fn a_target_that_refuses_connections_is_reported_at_once() {
    // Port 1 has no listener.
    for flags in [&[][..], &["--slo", "p99<1s"]] {
        let ran = find(&[&["http://127.0.0.1:1/"], flags].concat());
        ran.refused(1, "http://127.0.0.1:1/: connection refused");
        // The budget is two minutes.
        assert!(ran.took.as_secs() < 30, "{ran:?}");
    }
}

#[test]
fn an_interrupt_gives_the_result_so_far() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let url = format!("http://{}/fast", lab.addr());
    let started = start(&mut gake(&["find", &url, "--slo", "p50<20s", "--max-rate", "64"]));
    std::thread::sleep(std::time::Duration::from_secs(3));
    started.signal(rustix::process::Signal::INT);
    let ran = started.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stdout.contains("interrupted"), "{ran:?}");
    lab.shutdown();
}

/// A journey of two requests and a pause, against the server in `BASE_URL`.
const JOURNEY: &str = "\
import http from 'k6/http';
import { check, sleep } from 'k6';
export const options = { thresholds: {
    checks: ['rate>0.9'],
    'http_req_duration{name:home}': ['p(50)<20000', 'max<30000'],
} };
export default function () {
    const home = http.get(`${__ENV.BASE_URL}/fast`, { tags: { name: 'home' } });
    const other = http.get(`${__ENV.BASE_URL}${__ENV.OTHER}`, { tags: { name: 'other' } });
    check(other, { 'is 200': (r) => r.status === 200 });
    sleep(0.01);
}
";

/// A search on a machine whose cores were taken away says so (exit code 3) and proves nothing: it
/// is made again, a few times.
fn search_script(other: &str, flags: &[&str]) -> (common::Ran, u64) {
    let search = || search_script_once(other, flags);
    let decided = (0..3).map(|_| search()).find(|(ran, _)| ran.code != Some(3));
    decided.unwrap_or_else(search)
}

fn search_script_once(other: &str, flags: &[&str]) -> (common::Ran, u64) {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let script = tempfile::Builder::new().suffix(".js").tempfile().unwrap();
    fs::write(script.path(), JOURNEY).unwrap();
    let path = script.path().to_str().unwrap();
    let mut command = gake(&[&["find", path], flags].concat());
    command.env("BASE_URL", format!("http://{}", lab.addr())).env("OTHER", other);
    let ran = start(&mut command).wait();
    (ran, lab.shutdown().requests)
}

#[test]
fn the_iterations_of_a_script_are_searched() {
    let flags = ["--max-rate", "32", "--budget", "25s", "-o", "json"];
    let (ran, served) = search_script("/fast", &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["answer"]["found"], "at_least", "{form}");
    // Its thresholds are the objectives, except the maximum, which one sample decides.
    let clauses = form["objectives"].to_string();
    assert!(clauses.contains("checks") && clauses.contains("{name:home}"), "{clauses}");
    assert!(ran.stderr.contains("max<30000ms is left out"), "{ran:?}");
    let steps = form["steps"].as_array().unwrap();
    let iterations: u64 = steps.iter().map(|step| step["due"].as_u64().unwrap()).sum();
    assert!(iterations > 0 && served >= 2 * iterations, "{served} of {iterations}");
}

#[test]
fn a_script_whose_checks_fail_has_no_capacity() {
    let flags = ["--slo", "checks>99%", "--budget", "60s", "-o", "json"];
    let (ran, _) = search_script("/status/503", &flags);
    assert_eq!(ran.code, Some(99), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["answer"]["found"], "infeasible", "{form}");
}

#[test]
fn what_a_script_decides_itself_is_no_flag() {
    for (flags, expected) in [
        (&["-H", "a: b"][..], "defines its own requests"),
        (&["--dimension", "connections"], "--dimension rate or users"),
        (&["--slo", "login:errors<1%"], "no labels"),
    ] {
        let (ran, served) = search_script("/fast", flags);
        assert_eq!((ran.code, served), (Some(2), 0), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
}

/// A journey that logs where `setup` ran.
const COUNTED: &str = "\
import http from 'k6/http';
import { check } from 'k6';
export const options = { thresholds: { checks: ['rate>0.9'] } };
const get = (path) => http.get(`${__ENV.BASE_URL}${path}`);
export function setup() { get('/bytes/1'); return { path: '/fast' }; }
export function teardown(data) { if (data.path === '/fast') get('/bytes/1'); }
export default function (data) {
    check(get(data.path), { 'is 200': (r) => r.status === 200 });
}
";

#[test]
fn the_capacity_of_a_journey_is_searched_on_agents() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (path, steps) = (folder.path().join("journey.js"), folder.path().join("steps"));
    let agents = ["--local", "2", "--agents-wait", "60s"];
    let find = |more: &[&str]| {
        let line = ["find", path.to_str().unwrap()];
        let mut line = gake(&[&line[..], &agents[..], more].concat());
        line.env("BASE_URL", format!("http://{}", lab.addr()));
        line
    };
    fs::write(&path, COUNTED.replace("thresholds:", "executionSegment: '0:1/2', thresholds:"))
        .unwrap();
    start(&mut find(&[])).wait().refused(2, "executionSegment selects a segment");
    assert_eq!(lab.stats().requests, 0, "nothing was set up");
    fs::write(&path, COUNTED).unwrap();
    let out = ["--out", steps.to_str().unwrap()];
    let flags = ["--max-rate", "32", "--budget", "30s", "-o", "json"];
    let ran = start(&mut find(&[&out[..], &flags[..]].concat())).wait();
    // If the generator did not get its cores, the result proves nothing.
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    if ran.code == Some(0) {
        assert_eq!(form["answer"]["found"], "at_least", "{form}");
    }
    let files: Vec<_> = fs::read_dir(&steps).unwrap().map(|file| file.unwrap().path()).collect();
    let sent = |file: &std::path::PathBuf| {
        let run = start(&mut gake(&["report", file.to_str().unwrap(), "-o", "json"])).wait().json();
        run.count("requests.sent") + run.count("warmup.sent")
    };
    let sent: u64 = files.iter().map(sent).sum();
    let served = lab.shutdown();
    let route = |name: &str| served.routes.get(name).copied();
    assert!(sent > 0 && form["steps"].as_array().unwrap().len() <= files.len(), "{form}");
    assert_eq!(route("/fast"), Some(sent), "each iteration of each step once: {ran:?}");
    assert_eq!(route("/bytes"), Some(2 * files.len() as u64), "set up and torn down once a step");
}

#[test]
fn handshakes_of_tls_are_searched() {
    let lab = LabConfig { tls: true, ..LabConfig::default() };
    let lab = Lab::start(lab).unwrap();
    let url = format!("https://{}/fast", lab.addr());
    let flags = ["--dimension", "tls-handshakes", "--slo", "p50<20s", "--max-rate", "40", "-k"];
    let ran = find(&[&[url.as_str()], &flags[..], &["--budget", "5s", "-o", "json"]].concat());
    // The capacity found in so short a time depends on the machine; the requests do not.
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(form["dimension"], "tls-handshakes");
    assert!(ran.stderr.contains("the most TLS handshakes a second"), "{ran:?}");
    // Each request has a connection, and with it a handshake, of its own. One more connection comes
    // before the search, without a handshake: it checks for a listener.
    let served = lab.shutdown();
    assert!(served.requests > 0, "{form}");
    assert_eq!(served.connections.opened - served.malformed, served.requests, "{served:?}");
    assert!(served.malformed <= 1, "{served:?}");
    let plain = ["http://127.0.0.1:9/", "--dimension", "tls-handshakes"];
    find(&plain).refused(2, "needs https://");
}

#[test]
fn streams_are_searched_on_the_connections_that_are_asked_for() {
    let lab = Lab::start(LabConfig { threads: Some(4), ..LabConfig::default() }).unwrap();
    let url = format!("http://{}/delay/20ms", lab.addr());
    // Four at once take 20 ms, so each of sixteen takes at least 80 ms.
    let flags = ["--http2", "--dimension", "streams", "--slo", "p50<60ms", "--budget", "20s"];
    let search = || find(&[&[url.as_str()], &flags[..], &["-c", "2", "-o", "json"]].concat());
    let decided = (0..3).map(|_| search()).find(|ran| ran.code != Some(3));
    let ran = decided.unwrap_or_else(search);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let form: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&form["dimension"], &form["answer"]["found"]),
        (&"streams".into(), &"capacity".into())
    );
    let capacity = form["answer"]["capacity"].as_f64().unwrap();
    assert!((1.0..16.0).contains(&capacity), "{form}");
    let served = lab.shutdown();
    // Each step opens its own connections.
    let steps = form["steps"].as_array().unwrap().len() as u64;
    assert!(served.connections.opened <= 2 * steps, "{served:?}");
    let args = [&url, "--dimension", "streams", "--slo", "p50<1s"];
    find(&args).refused(2, "--dimension streams needs --http2");
    find(&[&args[..], &["--http2", "--streams", "5"]].concat()).refused(2, "leave it out");
}
