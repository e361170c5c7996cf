//! One experiment on three servers whose limits differ: what it finds is what is true of each.

use std::process::Command;

use serde_json::Value;

use crate::database::MariaDb;
use crate::nginx::Nginx;
use crate::support::*;
use crate::tomcat::{Settings, tomcat};

/// Forty users on a server of one's own.
fn forty_users(url: &str, watch: &str) -> Value {
    let args = ["experiment", "pool", "--quick", "--only", "40 users", "-q", "-o", "json"];
    let ran = ran(&[&args[..], &["--target", url, "--watch", watch]].concat()).done();
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["steps"].as_array().unwrap().len(), 1, "{json}");
    json["steps"][0].clone()
}

/// The ids of what limits a step.
fn causes(step: &Value) -> Vec<&str> {
    let findings = step["findings"].as_array().unwrap().iter();
    let causes = findings.filter(|finding| finding["rank"] == "cause");
    causes.map(|finding| finding["id"].as_str().unwrap()).collect()
}

#[test]
fn the_same_experiment_finds_what_limits_each_server() {
    // Five threads, each held for 50 ms: 100/s, and a finding that says so.
    let settings = Settings { threads: 5, max_connections: 8_192, accept_count: 100, sleep_ms: 50 };
    let server = tomcat(settings);
    let step = forty_users(&server.peer.url, &server.watch);
    assert_eq!(step["failed"], 0, "{step}");
    assert!(step["goodput"].as_f64().unwrap() <= 105.0, "{step}");
    assert!(causes(&step).contains(&"target_pool"), "{step}");
    drop(server);
    // Twenty connections for forty users: the others are closed under their requests.
    let server = Nginx::start(20);
    let port = format!("port:{}", server.url.trim_end_matches('/').rsplit_once(':').unwrap().1);
    let step = forty_users(&server.url, &port);
    let mut findings = step["findings"].as_array().unwrap().iter();
    assert!(findings.any(|finding| finding["id"] == "server_closes"), "{step}");
    drop(server);
    // A goroutine for each request: no pool, and no cause to name.
    let peer = Peer::start(&mut Command::new(go_program("go")));
    let port = format!("port:{}", peer.url.rsplit_once(':').unwrap().1);
    let step = forty_users(&format!("{}/?wait=200ms", peer.url), &port);
    assert_eq!(step["failed"], 0, "{step}");
    assert!(step["goodput"].as_f64().unwrap() <= 40.0 / 0.2 * 1.05, "{step}");
    // What other programs take of the machine is true in its own right.
    let others = ["run_delay", "shared_cores", "unexplained"];
    assert!(causes(&step).iter().all(|cause| others.contains(cause)), "{step}");
}

/// The steps of an experiment on a server of one's own.
fn steps(line: &str, only: &str, url: &str, watch: &str) -> Vec<Value> {
    let args = [&["experiment"][..], &words(line), &["--only", only, "-q", "-o", "json"]].concat();
    let ran = ran(&[&args[..], &["--target", url, "--watch", watch]].concat());
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    json["steps"].as_array().unwrap().clone()
}

#[test]
fn a_spike_on_tomcat_comes_in_waves() {
    let settings =
        Settings { threads: 20, max_connections: 8_192, accept_count: 100, sleep_ms: 500 };
    let server = tomcat(settings);
    let steps = steps("spike --quick", "300 users", &server.peer.url, &server.watch);
    assert_eq!(steps.len(), 1);
    let step = &steps[0];
    // Eleven waves of twenty within six seconds, and the twelfth ends with them.
    assert!((220..=240).contains(&step["ok"].as_u64().unwrap()), "{step}");
    assert!(causes(step).contains(&"target_pool"), "{step}");
}

#[test]
fn the_pool_of_a_real_service_is_the_cure() {
    let database = MariaDb::start(20);
    let watch = database.watch();
    let all = |steps: &[Value], what: &str| -> u64 {
        steps.iter().map(|step| step[what].as_u64().unwrap()).sum()
    };
    let only = "calibration";
    // Go's own defaults: a hundred users open as many connections as they can.
    let service = database.service(0, 2, "SELECT 1");
    let url = format!("{}/users", service.url);
    let default = steps("users-db --quick", only, &url, &watch);
    assert!(all(&default, "failed") > 0, "{default:?}");
    assert!(causes(&default[0]).contains(&"db_connections_refused"), "{default:?}");
    let body = default[0]["failed_bodies"]["bodies"][0]["text"].as_str().unwrap();
    assert!(body.contains("Too many connections"), "{body}");
    drop(service);
    // The watch has a connection too.
    let service = database.service(15, 15, "SELECT 1");
    let url = format!("{}/users", service.url);
    let cured = steps("users-db --quick", only, &url, &watch);
    assert_eq!(all(&cured, "failed"), 0, "{cured:?}");
    // Rows of the warm-up are in no step.
    let (ok, rows) = (all(&default, "ok") + all(&cured, "ok"), rows(&url, &watch));
    assert!(rows >= ok, "{rows} rows of {ok} answers that were ok");
    for rate in [10, 100, 1_000] {
        a_rate_has_a_row_for_each_answer(&url, &watch, rate);
    }
}

/// Two seconds of a rate, and the rows that they add.
fn a_rate_has_a_row_for_each_answer(url: &str, watch: &str, rate: u32) {
    let source = format!("sql:{watch}:SELECT COUNT(*) FROM d.users");
    let line = format!("-r {rate} -d 2s --data {{}} -o json --reconcile");
    let json = ran(&[&["run", url][..], &words(&line), &[&source]].concat()).json();
    let ok = json.count("status.200");
    assert!(ok > u64::from(rate), "{rate}/s: {}", json.0);
    let rows = &json.at("objectives")[0];
    assert!(rows["met"] == true && rows["value"].as_f64() == Some(ok as f64), "{rate}/s: {rows}");
}

/// The rows of the service's table before one more is added.
fn rows(url: &str, watch: &str) -> u64 {
    let source = format!("sql:{watch}:SELECT COUNT(*) FROM d.users");
    let line = words("-n 1 --data {} -o json --reconcile");
    let json = ran(&[&["run", url][..], &line, &[&source]].concat()).done().json();
    let text = json.at("objectives")[0]["text"].as_str().unwrap();
    let before = text.split(" before, ").next().unwrap().rsplit(' ').next().unwrap();
    before.replace(',', "").parse().unwrap()
}
