//! The master serves all clients whatever the shadow does, and the ledger adds up.

use rustix::process::Signal;

use crate::backends::{hanging_up, silent};
use crate::proxy::{Proxy, ask, entries};
use crate::support::*;

const REQUESTS: u64 = 2_000;

/// As the benchmark of the proxies before this one was made: a connection for each request.
fn ab(url: &str) {
    let flags = ["-q", "-n", "2000", "-c", "100"];
    let mut ab = command("ab");
    let ran = start(ab.args(flags).arg(format!("{url}/fast"))).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(number_after(&ran.stdout, "Complete requests:"), REQUESTS, "{ran:?}");
    assert_eq!(number_after(&ran.stdout, "Failed requests:"), 0, "{ran:?}");
    assert!(!ran.stdout.contains("Non-2xx"), "{ran:?}");
}

/// The number of requests that the master served.
fn served(peer: Peer) -> u64 {
    number_after(&peer.end(), "requests")
}

#[test]
fn ab_meets_no_error_and_every_copy_is_accounted_for() {
    let (master, shadow) = (Peer::lab(&[]), Peer::lab(&[]));
    let [production, sandbox] =
        [format!("production={}", master.url), format!("sandbox={}", shadow.url)];
    let proxy = Proxy::start(&["--master", &production, "--shadow", &sandbox]);
    ab(&proxy.url);
    let ledger = proxy.settled();
    assert_eq!(entries(&ledger), REQUESTS);
    assert_eq!(ledger["sampled_out"], 0, "{ledger}");
    let [ok, timeout, conn_err] =
        ["ok", "timeout", "conn_err"].map(|name| ledger[name].as_u64().unwrap());
    let ended = proxy.end(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("sandbox: 2000 received"), "{ended:?}");
    assert_eq!(served(master), REQUESTS);
    let copies = served(shadow);
    assert!(ok > 0 && (ok..=ok + timeout + conn_err).contains(&copies), "{copies}: {ledger}");
}

#[test]
fn a_shadow_that_does_not_respond_does_not_delay_clients() {
    for (shadow, end) in [
        (silent(), "timeout"),
        (hanging_up(), "conn_err"),
        ("http://127.0.0.1:1".to_owned(), "conn_err"),
    ] {
        let master = Peer::lab(&[]);
        let [production, sandbox] =
            [format!("production={}", master.url), format!("sandbox={shadow}")];
        let backends = ["--master", &production, "--shadow", &sandbox];
        let terms = ["--shadow-timeout", "300ms", "--breaker", "5"];
        let proxy = Proxy::start(&[backends, terms].concat());
        ab(&proxy.url);
        let ledger = proxy.settled();
        assert_eq!((entries(&ledger), &ledger["ok"]), (REQUESTS, &0.into()), "{ledger}");
        assert!(ledger[end].as_u64() >= Some(5), "{ledger}");
        assert_eq!(served(master), REQUESTS);
        assert_eq!(proxy.end(Signal::INT).code, Some(0));
    }
}

#[test]
fn copies_under_way_at_the_end_are_reported() {
    let master = Peer::lab(&[]);
    let [production, sandbox] =
        [format!("production={}", master.url), format!("sandbox={}", silent())];
    let backends = ["--master", &production, "--shadow", &sandbox];
    let proxy = Proxy::start(&[&backends[..], &["--drain", "100ms"]].concat());
    for _ in 0..10 {
        assert!(ask(&proxy.url, "GET", "/fast", "", "").contains(" 200 "));
    }
    assert!(ask(&proxy.url, "POST", "/echo", "", "hello").contains("hello"));
    let ledger = proxy.ledger();
    assert_eq!((entries(&ledger), &ledger["in_flight"]), (11, &10.into()), "{ledger}");
    let ended = proxy.end(Signal::INT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("sandbox: 11 received, 1 unsafe, 10 unfinished\n"), "{ended:?}");
}
