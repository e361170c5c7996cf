//! A new version with known differences, found; two instances of the old one, found alike.

use rustix::process::Signal;
use serde_json::Value;

use crate::backends::shop;
use crate::proxy::{Proxy, ask, entries};
use crate::support::*;

/// Requests to each endpoint.
const EACH: u64 = 250;

const KINDS: [&str; 4] = ["users", "orders", "search", "items"];

/// How long every response takes, and how much slower an endpoint may be: a machine that is busy
/// with other things makes neither 5 ms into 10 in half of the requests to one backend alone.
const WORK: [&str; 2] = ["-work", "5ms"];
const SLOWER: [&str; 2] = ["--latency-tolerance", "100"];

/// Four clients ask all endpoints in turn.
fn traffic(proxy: &str) {
    std::thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || {
                for number in (1..=EACH).filter(|number| number % 4 == client) {
                    for kind in KINDS {
                        ask(proxy, "GET", &format!("/{kind}/{number}"), "", "");
                    }
                }
            });
        }
    });
}

/// Compares a shadow with the shop, beside a second instance of the shop. The exit codes of proxy
/// and report must be the same; it is returned with the report.
fn compared(shadow: &Peer) -> (Option<i32>, Value) {
    let twin = shop("twin", &WORK);
    beside(shadow, &format!("second={}", twin.url))
}

/// The same with a source of noise.
fn beside(shadow: &Peer, noise: &str) -> (Option<i32>, Value) {
    let master = shop("production", &WORK);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diff.json");
    let path = path.to_str().unwrap();
    let [production, sandbox] = [("production", &master), ("sandbox", shadow)]
        .map(|(name, peer)| format!("{name}={}", peer.url));
    let backends = ["--master", &production, "--shadow", &sandbox, "--noise", noise];
    let proxy = Proxy::start(&[&backends[..], &SLOWER, &["--diff-out", path]].concat());
    traffic(&proxy.url);
    let ledger = proxy.settled();
    assert_eq!((entries(&ledger), &ledger["ok"]), (4 * EACH, &(4 * EACH).into()), "{ledger}");
    let ended = proxy.end(Signal::INT);
    let report = ran(&[&["shadow", "report", path, "-o", "json"], &SLOWER[..]].concat());
    assert_eq!(ended.code, report.code, "{ended:?} {report:?}");
    (report.code, serde_json::from_str::<Value>(&report.stdout).unwrap()[0].take())
}

/// The endpoints and fields of a verdict, with the number of responses that differed.
fn found(report: &Value, verdict: &str) -> Vec<(String, u64)> {
    let differences = report["differences"].as_array().unwrap().iter();
    let mut found: Vec<_> = differences
        .filter(|difference| difference["verdict"] == verdict)
        .map(|difference| {
            let [endpoint, path] =
                ["endpoint", "path"].map(|key| difference[key].as_str().unwrap());
            (format!("{endpoint} {path}"), difference["shadow"].as_u64().unwrap())
        })
        .collect();
    found.sort();
    found
}

fn slower(report: &Value) -> Vec<&str> {
    let endpoints = report["endpoints"].as_array().unwrap().iter();
    let slower = endpoints.filter(|endpoint| endpoint["latency"]["pace"] == "slower");
    slower.map(|endpoint| endpoint["name"].as_str().unwrap()).collect()
}

#[test]
fn known_differences_are_found_and_no_others() {
    let (code, report) = compared(&shop("sandbox", &[&WORK[..], &["-new"]].concat()));
    assert_eq!(code, Some(99), "{report:#}");
    let real = [("GET /orders/{id} status", EACH / 25), ("GET /users/{id} $.plan", EACH)];
    assert_eq!(found(&report, "real"), real.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(slower(&report), ["GET /search/{id}"], "{report:#}");
    assert_eq!((&report["exchanges"], &report["paired"]), (&1000.into(), &1000.into()));
    assert_eq!(found(&report, "unproven"), []);
    // Times, random ids, a header, an experiment: for each endpoint.
    assert_eq!(found(&report, "noise").len(), 4 * KINDS.len(), "{report:#}");
}

/// What each instance decides for itself and keeps, one that is asked twice does not tell.
#[test]
fn a_master_asked_twice_measures_noise() {
    let (code, report) = beside(&shop("sandbox", &[&WORK[..], &["-new"]].concat()), "master");
    assert_eq!(code, Some(99), "{report:#}");
    let (variants, real): (Vec<_>, Vec<_>) =
        found(&report, "real").into_iter().partition(|(name, _)| name.ends_with(" $.variant"));
    let known = [("GET /orders/{id} status", EACH / 25), ("GET /users/{id} $.plan", EACH)];
    assert_eq!(real, known.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(variants.len(), KINDS.len(), "{report:#}");
    assert_eq!(found(&report, "noise").len(), 3 * KINDS.len(), "{report:#}");
}

#[test]
fn two_instances_of_one_version_are_alike() {
    let (code, report) = compared(&shop("sandbox", &WORK));
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!((found(&report, "real"), found(&report, "unproven")), (vec![], vec![]));
    assert_eq!(slower(&report), [""; 0]);
    assert_eq!(found(&report, "noise").len(), 4 * KINDS.len(), "{report:#}");
}
