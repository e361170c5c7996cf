//! One experiment on three servers whose limits differ: what it finds is what is true of each.

use std::process::Command;

use serde_json::Value;

use crate::alone;
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
    let _alone = alone();
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
    // A goroutine for each request: no pool, and nobody to blame.
    let peer = Peer::start(&mut Command::new(go_program("go")));
    let port = format!("port:{}", peer.url.rsplit_once(':').unwrap().1);
    let step = forty_users(&format!("{}/?wait=200ms", peer.url), &port);
    assert_eq!(step["failed"], 0, "{step}");
    assert!(step["goodput"].as_f64().unwrap() <= 40.0 / 0.2 * 1.05, "{step}");
    // What other programs take of the machine is true in its own right.
    let others = ["run_delay", "shared_cores", "unexplained"];
    assert!(causes(&step).iter().all(|cause| others.contains(cause)), "{step}");
}
