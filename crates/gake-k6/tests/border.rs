//! Values that cross the border between script and engine: the seeds of the fuzz target `border`.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // the helpers are tests too

#[path = "../../../fuzz/fuzz_targets/border/harness.rs"]
mod harness;

use std::path::Path;

use gake_k6::user::script_user::CallEnd;
use harness::{Crossed, cross};

#[test]
fn every_seed_is_taken_or_refused() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/border");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let expression = std::fs::read_to_string(seed.unwrap().path()).unwrap();
        let crossed = cross(&expression);
        let is_of_setup = matches!(crossed, Crossed::Ended(CallEnd::NoData(_)));
        assert!(!is_of_setup, "{expression}: only setup's data is judged");
        count += 1;
    }
    assert!(count > 10, "{count} seeds");
    assert_eq!(cross("1"), Crossed::Ended(CallEnd::Returned(None)));
    assert!(matches!(cross("throw 1"), Crossed::Ended(CallEnd::Thrown(_))));
}

/// Runs statements; returns the message of what they throw.
fn thrown(statements: &str) -> String {
    match cross(&format!("(() => {{ {statements} }})()")) {
        Crossed::Ended(CallEnd::Thrown(thrown)) => thrown.message,
        other => panic!("{statements}: {other:?}"),
    }
}

#[test]
fn what_is_held_for_a_script_is_within_its_heap() {
    // A heap of 64 MiB.
    let full = |statements: &str| {
        let message = thrown(statements);
        assert!(message.contains("out of memory"), "{statements}: {message}");
    };
    // Few large steps: the harness ends an iteration that takes long.
    full("const x = 'x'.repeat(4e6); for (let i = 0; ; i++) exec.vu.tags['t' + i] = x;");
    full(
        "const x = 'x'.repeat(4e6); for (let i = 0; ; i++) exec.vu.metrics.metadata['t' + i] = x;",
    );
    full(
        "const x = 'x'.repeat(4e6), jars = []; for (let i = 0; ; i++) {
          jars.push(new http.CookieJar()); jars[i].set('http://h/', 'c', x); }",
    );
    full(
        "const x = 'x'.repeat(4e6); http.batch(Array(50).fill(['POST', 'http://127.0.0.1:1/', x]))",
    );
    full("const x = 'x'.repeat(4e6); for (;;) http.asyncRequest('POST', 'http://127.0.0.1:1/', x)");
    let tasks = thrown("for (;;) setTimeout(() => {}, 1);");
    assert!(tasks.contains("too many timers"), "{tasks}");
}

#[test]
fn a_cleared_timer_is_no_task() {
    let cleared = "for (let i = 0; i < 1e4; i++) clearTimeout(setTimeout(() => { throw 1 }, 1e9));";
    let end = cross(&format!("(() => {{ {cleared} }})()"));
    assert_eq!(end, Crossed::Ended(CallEnd::Returned(None)));
}
