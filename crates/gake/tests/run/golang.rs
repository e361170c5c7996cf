//! A Go `net/http` server as a peer; it counts requests and connections itself.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::support::*;

/// The server.
fn server() -> PathBuf {
    go_program("go")
}

fn check(flags: &str, query: &str, connections: Option<u64>) {
    let peer = Peer::start(&mut Command::new(server()));
    let url = format!("{}/{query}", peer.url);
    let json = run(&[&[url.as_str()], &*words(flags)].concat());
    let end = peer.end();
    assert_eq!(number_after(&end, "requests"), json.written(), "{flags}: {}", json.0);
    assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{flags}: {}", json.0);
    let opened = json.count("connections.opened");
    assert_eq!(number_after(&end, "connections"), opened, "{flags}");
    assert!(connections.is_none_or(|connections| connections == opened), "{flags}: {opened}");
}

#[test]
fn counts_agree_with_and_without_keep_alive() {
    check("-n 200 -c 20", "", Some(20));
    check("-n 200 -c 20 --no-keepalive", "", Some(200));
    check("-n 500 -c 10 --data hello -X PUT", "", Some(10));
    check("-r 400 -d 500ms", "?wait=10ms", None);
    check("-r 400 -d 500ms --no-keepalive", "", Some(200));
    check("-d 500ms -c 8 -t 2", "", Some(8));
}

#[test]
fn counts_agree_after_an_interrupt() {
    for signal in [Signal::INT, Signal::TERM] {
        let peer = Peer::start(&mut Command::new(server()));
        let url = format!("{}/?wait=30ms", peer.url);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.hlog");
        let out = file.to_str().unwrap();
        let args = ["run", &url, "-r", "200", "-d", "60s", "-o", "json", "-v", "--out", out];
        let run = start(&mut gake(&args));
        // It watches for signals before it writes its first second.
        eventually("a second is written", || {
            std::fs::read_to_string(&file).is_ok_and(|text| text.contains("Tag="))
        });
        run.signal(signal);
        let ran = run.wait();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let json = ran.json();
        assert_eq!(number_after(&peer.end(), "requests"), json.count("requests.written"));
    }
}
