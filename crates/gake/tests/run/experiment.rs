//! `gake experiment`: steps against theory, in counts that a busy machine does not change.

use std::fs;
use std::path::Path;
use std::process::Command;

use gake_lab::{DatabaseConfig, DatabaseKind, LabConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet::{HERE, Nats, TOKEN, agents, end, with};
use crate::support::*;

/// Runs steps of an experiment for their JSON.
fn steps(line: &str, only: &str) -> Vec<Value> {
    let args = [&["experiment"], &*words(line), &["--only", only, "-q", "-o", "json"]].concat();
    let ran = ran(&args);
    // The machine may be too busy for a figure that is a time.
    assert!(matches!(ran.code, Some(0 | 3 | 99)), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["schema"], "gake.experiment/1");
    assert_eq!(json["as_expected"] == Value::Bool(true), ran.code == Some(0), "{json}");
    let steps = json["steps"].as_array().unwrap().clone();
    for step in &steps {
        let of = |name: &str| step[name].as_u64().unwrap();
        assert_eq!(of("sent"), of("ok") + of("failed") + of("unfinished"), "{step}");
    }
    steps
}

/// That a step's figures are as theory expects, all or some of them.
fn is_met(step: &Value, figures: &[&str]) {
    for figure in figures {
        let expectations = step["expectations"].as_array().unwrap();
        let found = expectations.iter().find(|one| one["what"] == *figure);
        assert_eq!(found.unwrap_or_else(|| panic!("{figure}: {step}"))["met"], true, "{step}");
    }
}

#[test]
fn without_a_name_they_are_listed() {
    let ran = ran(&["experiment"]).done();
    for name in ["spike", "pool", "gc", "leak", "overload"] {
        assert!(ran.stdout.lines().any(|line| line.starts_with(name)), "{ran:?}");
    }
}

#[test]
fn a_spike_is_served_in_waves() {
    let step = &steps("spike --quick", "100 users, 20 threads")[0];
    is_met(step, &["ok"]);
    assert_eq!(step["ok"], 100);
    // Five waves of half a second each. The users of one worker may begin somewhat after the first
    // wave; four waves would end 500 ms earlier.
    assert!(step["response_ns"]["max"].as_u64().unwrap() >= 2_400_000_000, "{step}");
}

/// An experiment in a process whose descriptor tables have this size.
fn with_descriptors(size: u32, line: &str) -> Value {
    let mut command = Command::new("sh");
    let limit = format!("ulimit -n {size} && exec \"$@\"");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_gake"), "experiment"]);
    let ran = start(command.args(words(line)).args(["-q", "-o", "json"])).wait();
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

#[test]
fn a_step_beyond_the_descriptors_is_left_out_with_a_warning() {
    let json = with_descriptors(100, "spike --quick --only 30");
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "30 users fit, and 300 do not: {json}");
    assert_eq!(steps[0]["ok"], 30, "{json}");
    let wanted = "\"300 users, 50 threads\" is left out: file descriptors, 100 in a table, allow this \
                machine 36 connections at once (raise `ulimit -Hn`)";
    let notes = json["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 3, "{json}");
    assert!(notes.iter().any(|note| note == wanted), "{json}");
}

#[test]
fn users_beyond_a_descriptor_table_have_several_on_both_ends() {
    let json = with_descriptors(300, "cliff --quick --only 1,000");
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{json}");
    for step in steps {
        let server = step["server"].as_str().unwrap();
        assert!(server.ends_with("--max-connections 1100"), "{step}");
        // Each user has its responses.
        assert!(step["ok"].as_u64().unwrap() >= 1_000, "{step}");
        assert_eq!(step["failed"], 0, "{step}");
    }
}

#[test]
fn a_pool_is_named_when_it_is_the_limit() {
    let step = &steps("pool --quick", "40 users, 10 threads")[0];
    is_met(step, &["cause"]);
    // Ten threads of 50 ms cannot serve more than 200 a second.
    assert!(step["goodput"].as_f64().unwrap() <= 210.0, "{step}");
}

#[test]
fn a_leak_ends_the_pool_and_is_named() {
    let step = &steps("leak --quick", "16 threads, one lost")[0];
    is_met(step, &["ok"]);
    // With few readings, on a busy machine, it looks like a pool that is full.
    let findings = step["findings"].as_array().unwrap();
    let is_named =
        |finding: &Value| finding["id"] == "target_leak" || finding["id"] == "target_pool";
    assert!(findings.iter().any(is_named), "{step}");
}

#[test]
fn a_database_that_refuses_connections_is_named_and_rows_equal_responses() {
    let steps = steps("users-db --quick", "1,000/s, idle 2, bound 151");
    // The rate that the service takes comes first.
    assert_eq!(steps[0]["name"], "calibration, 100 users");
    is_met(&steps[0], &["rate", "mean", "rows"]);
    let step = &steps[1];
    is_met(step, &["rows", "cause"]);
    // The database's own counts are there, the most of them at once and those it refused.
    let gauges = step["target"]["gauges"].as_array().unwrap();
    let most =
        |name: &str| gauges.iter().find(|gauge| gauge["name"] == name).unwrap()["max"].as_f64();
    assert!(most("db_open").unwrap() <= 151.0 && most("db_refused").unwrap() > 0.0, "{step}");
    assert!(step["problems"]["status 500"].as_u64().unwrap() > 0, "{step}");
    let body = step["failed_bodies"]["bodies"][0]["text"].as_str().unwrap();
    assert!(body.contains("Too many connections"), "{step}");
}

#[test]
fn slow_clients_take_every_thread() {
    let step = &steps("slow-client --quick", "10 slow clients, 10 threads")[0];
    is_met(step, &["ok", "cause"]);
    assert_eq!(step["ok"], 0);
}

#[test]
fn a_shadow_that_differs_stands_out_from_noise_and_a_dead_one_costs_nothing() {
    let step = &steps("shadow --quick", "a shadow that differs")[0];
    is_met(step, &["ok", "ledger", "found"]);
    assert!(step["server"].as_str().unwrap().contains("gake shadow --master"), "{step}");
    let step = &steps("shadow --quick", "a dead shadow")[0];
    is_met(step, &["ok", "ledger", "copies", "failed", "found"]);
}

/// The number of a kind of failure.
fn failed(step: &Value, what: &str) -> u64 {
    step["problems"][what].as_u64().unwrap_or(0)
}

#[test]
fn users_beyond_the_connections_and_the_backlog_do_not_get_in() {
    let step = &steps("spike --quick", "1,000 users, 819 connections")[0];
    // 819 connections and 100 + 1 in the backlog: the rest never connects, and more do not where the
    // machine is too busy to accept in time.
    assert!((1..=819).contains(&step["ok"].as_u64().unwrap()), "{step}");
    assert!(failed(step, "connect_timeout") >= 1_000 - 920, "{step}");
    let step = &steps("spike --quick", "everything at 1")[0];
    is_met(step, &["ok"]);
    assert!(failed(step, "connect_timeout") >= 6, "{step}");
}

#[test]
fn a_bounded_queue_refuses_what_is_too_much_and_its_pool_is_named() {
    let step = &steps("overload --quick", "a queue of 50")[0];
    is_met(step, &["cause"]);
    // 1.5 times the capacity for four seconds: a third is too much, less what the queue holds.
    assert!(failed(step, "status 503") >= 900, "{step}");
}

#[test]
fn a_busy_neighbour_of_the_same_pool_is_seen_in_the_light_ones_times() {
    let step = &steps("noisy-neighbour --quick", "beside")[0];
    is_met(step, &["cause"]);
    // Forty users on ten threads of 50 ms: each waits for at least three others.
    assert!(step["response_ns"]["p50"].as_u64().unwrap() > 150_000_000, "{step}");
}

#[test]
fn a_closed_loop_hides_pauses_and_a_queue() {
    let step = &steps("gc --quick", "closed loop")[0];
    // One request for each pause waits longer than half of it; more where the machine pauses.
    let p99 = step["response_ns"]["max"].as_u64().unwrap();
    assert!(p99 >= 150_000_000, "{step}");
    let step = &steps("capacity --quick", "closed loop, 24 users")[0];
    is_met(step, &["cause"]);
    // Eight threads of 20 ms cannot serve more than 400 a second.
    assert!(step["goodput"].as_f64().unwrap() <= 420.0, "{step}");
}

#[test]
fn a_capacity_is_counted_in_connections_too() {
    let step = &steps("capacity --quick", "400 connections, 200 places")[0];
    is_met(step, &["connected"]);
    let step = &steps("capacity --quick", "a connection each")[0];
    is_met(step, &["opened"]);
    let both = &steps("capacity --quick", "HTTP/");
    both.iter().for_each(|step| is_met(step, &["opened"]));
    // Four connections of 20 ms: one request at once each, or sixteen on the threads there are.
    let most = both.iter().map(|step| step["goodput"].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(most[0] <= 210.0 && most[1] <= 840.0, "{most:?}");
    assert!(most[1] > 1.5 * most[0], "{most:?}");
}

#[test]
fn objectives_are_left_out_of_a_quick_capacity_with_a_warning() {
    let ran = ran(&words("experiment capacity --quick -q -o json --only p95"));
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let note = json["notes"][0].as_str().unwrap();
    assert!(note.starts_with("left out: \"p95<100ms, ") && note.contains("--quick"), "{note}");
    assert!(json["steps"].as_array().unwrap().is_empty(), "{json}");
}

#[test]
fn of_another_server_nothing_is_expected() {
    let kind = DatabaseKind::Model("model:0s,0s".parse().unwrap());
    let lab = lab_with(LabConfig { database: Some(kind.into()), ..LabConfig::default() });
    let url = url(&lab, "/users");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.json");
    let args = ["experiment", "users-db", "--quick", "--target", &url, "--only", "10/s"];
    let ran = ran(&[&args[..], &["--json", file.to_str().unwrap()]].concat()).done();
    assert!(ran.stdout.contains("no theory"), "{ran:?}");
    let json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert!(json["as_expected"].is_null() && json["steps"][0]["as_expected"].is_null());
    assert_eq!(json["target"], url);
    let served = lab.shutdown();
    // The warm-up of the calibration is in no step.
    let ok: u64 =
        json["steps"].as_array().unwrap().iter().map(|step| step["ok"].as_u64().unwrap()).sum();
    assert!(0 < ok && ok < served.requests, "{ok} of {}", served.requests);
}

/// The report of an experiment on ten threads of one's own, each held for `service`.
fn on_ten_threads(line: &str, service: &str) -> Value {
    let lab = lab_with(LabConfig {
        threads: Some(10),
        queue: Some(50),
        service: service.parse().ok(),
        ..LabConfig::default()
    });
    let url = url(&lab, "/fast");
    let args = [&["experiment"], &*words(line), &words("--quick -q -o json --target"), &[&url]];
    let ran = ran(&args.concat());
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert!(json["as_expected"].is_null(), "{json}");
    json
}

#[test]
fn a_burst_is_of_the_capacity_of_ones_own_server() {
    let json = on_ten_threads("overload", "const:20ms");
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{json}");
    let capacity = steps[0]["goodput"].as_f64().unwrap();
    assert!(capacity <= 525.0, "{json}");
    assert_eq!(steps[1]["name"], "a burst of 1.5 times the capacity");
    // Two seconds of 0.8 times it, three of 1.5 and five of 0.8.
    let due = steps[1]["ok"].as_f64().unwrap() + steps[1]["failed"].as_f64().unwrap();
    assert!((due / capacity - 10.1).abs() < 0.3, "{json}");
    let notes = json["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("counts as the capacity"), "{json}");
    assert!(notes[1].as_str().unwrap().contains(" in the burst; ok "), "{json}");
}

#[test]
fn a_busy_neighbour_fills_ones_own_server() {
    let json = on_ten_threads("noisy-neighbour --only beside", "const:50ms");
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{json}");
    // Twice the users that filled ten threads are there before each request of the light tenant.
    assert!(steps[1]["response_ns"]["p50"].as_u64().unwrap() > 150_000_000, "{json}");
    let ok = steps[1]["ok"].as_f64().unwrap();
    let light = 0.2 * steps[0]["goodput"].as_f64().unwrap();
    assert!(ok > 0.0 && ok <= light * 3.0 * 1.1 + 1.0, "{json}");
}

#[test]
fn what_a_service_does_not_take_is_not_asked_of_it() {
    let kind = DatabaseKind::Model("model:0s,50ms".parse().unwrap());
    let database = DatabaseConfig { max_open: Some(2), ..kind.into() };
    let lab = lab_with(LabConfig { database: Some(database), ..LabConfig::default() });
    let url = url(&lab, "/users");
    let args = ["experiment", "users-db", "--quick", "--target", &url, "--only", "0/s"];
    let ran = ran(&[&args[..], &["-q", "-o", "json"]].concat()).done();
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let steps = json["steps"].as_array().unwrap();
    // Two connections of 50 ms take 40 rows a second, and four fifths of that are asked.
    assert!(steps[0]["goodput"].as_f64().unwrap() <= 42.0, "{json}");
    assert_eq!(steps.len(), 3, "{json}");
    assert_eq!(steps[1]["name"], "10/s");
    let rate = steps[2]["name"].as_str().unwrap();
    let number: f64 = rate.strip_suffix("/s").unwrap().parse().unwrap();
    assert!(number > 10.0 && number <= 33.0, "{json}");
    let note = json["notes"][0].as_str().unwrap();
    assert!(note.starts_with("100/s and 1,000/s cannot be reached here"), "{note}");
    assert!(note.ends_with(&format!("{rate} replaces it")), "{note}");
}

#[test]
fn agents_have_the_load_of_an_experiment() {
    let (nats, lab) = (Nats::start(), lab());
    let two = agents(&nats, &["a", "b"], HERE);
    let url = url(&lab, "/fast");
    let line = ["experiment", "cliff", "--quick", "--target", &url, "--only", "/fast, 20 users"];
    let line = [&line[..], &words("--agents 2 --agents-wait 60s -q -o json")].concat();
    let ran = start(&mut with(&nats, TOKEN, &line)).wait().done();
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let step = &json["steps"][0];
    assert_eq!(step["sent"], step["ok"], "{step}");
    assert_eq!(step["ok"].as_u64(), Some(lab.shutdown().requests), "{step}");
    let logs = start(&mut with(&nats, TOKEN, &["fleet", "logs"])).wait().stdout;
    assert!(logs.contains("slice 1 of 2") && logs.contains("slice 2 of 2"), "{logs}");
    end(two);
}

#[test]
fn agents_here_load_the_lab_of_an_experiment() {
    let step = &steps("pool --quick --local 2 --agents-wait 60s", "40 users, 10 threads")[0];
    is_met(step, &["cause"]);
    assert!(step["goodput"].as_f64().unwrap() <= 210.0, "{step}");
}

/// The processes that a process has started and that go on.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_there(pid: u32) -> bool {
    // One that has ended and is not waited for is gone too.
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn every_end_of_an_experiment_ends_its_server() {
    for signal in [Signal::INT, Signal::KILL] {
        let started = start(&mut gake(&["experiment", "pool"]));
        let mut servers = Vec::new();
        eventually("the server has started", || {
            servers = children(started.pid());
            !servers.is_empty()
        });
        started.signal(signal);
        let ran = started.wait();
        assert_eq!(ran.code, (signal == Signal::INT).then_some(130), "{ran:?}");
        eventually("the server has ended", || !servers.iter().any(|pid| is_there(*pid)));
    }
}
