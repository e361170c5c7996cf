//! What is recorded is what is replayed.

use std::fs;

use rustix::process::Signal;

use crate::backends::{asked, shop};
use crate::proxy::{Proxy, ask};
use crate::support::*;

/// Requests of several kinds, one after the other.
fn traffic(proxy: &str) {
    for number in 0..40 {
        ask(proxy, "GET", &format!("/users/{number}?q=%2f//..&n={number}"), "X-Tag: a\r\n", "");
        let tags = "X-Tag: one\r\nX-Tag: two\r\nAuthorization: Bearer sesame\r\n";
        ask(proxy, "POST", "/orders", tags, &format!("order {number}"));
        ask(proxy, "DELETE", &format!("//orders/{number}"), "", "");
    }
}

#[test]
fn a_replay_sends_what_was_recorded_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.gakerec");
    let path = path.to_str().unwrap();
    let master = shop("production", &[]);
    let production = format!("production={}", master.url);
    let proxy = Proxy::start(&["--master", &production, "--record", path]);
    traffic(&proxy.url);
    let ended = proxy.end(Signal::INT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("120 requests recorded"), "{ended:?}");
    let recorded = asked(master);
    assert_eq!(recorded.len(), 120);
    let bytes = fs::read(path).unwrap();
    assert!(!bytes.windows(6).any(|six| six == b"sesame"));

    // Over one connection they arrive in the order in which they were sent.
    let again = shop("again", &[]);
    let json = run(&[path, "--target", &again.url, "--speed", "2x", "-c", "1"]);
    assert_eq!((json.count("requests.due"), json.count("requests.ok")), (120, 120));
    assert_eq!(asked(again), recorded);

    // A proxy that is killed leaves a recording that is cut; all but its last request are whole.
    fs::write(path, &bytes[..bytes.len() - 3]).unwrap();
    let again = shop("again", &[]);
    let flags = ["--target", &again.url, "--speed", "2x", "-c", "1", "-o", "json"];
    let cut = ran(&[&["run", path], &flags[..]].concat()).done();
    assert_eq!(cut.json().count("requests.sent"), 119);
    assert!(cut.stderr.contains("cut"), "{cut:?}");
    assert_eq!(asked(again), recorded[..119]);
}
