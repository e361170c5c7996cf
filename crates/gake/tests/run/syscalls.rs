//! The system calls of a request on an open connection, as strace sees them.

use std::collections::BTreeMap;
use std::fs;

use crate::support::*;

const REQUESTS: u64 = 1_000;

/// Calls that are not a request's: handing over, reading the clock's files, memory. A longer run
/// makes more of them.
const OTHERS: u64 = REQUESTS / 5;

/// The worker, as strace names its thread.
const WORKER: &str = "<gake-0>";

/// The worker's calls by name, in a run of `requests` on one connection. What other threads
/// do beside it, such as sampling the machine each second, depends on how long the run takes.
fn calls(target: &str, requests: u64) -> BTreeMap<String, u64> {
    let folder = tempfile::tempdir().unwrap();
    let traced = folder.path().join("calls");
    let mut strace = command("strace");
    strace.args(["-f", "--decode-pids=comm", "-o"]).arg(&traced).arg(env!("CARGO_BIN_EXE_gake"));
    strace.args(["run", target, "-c", "1", "-t", "1", "-o", "json", "-n", &requests.to_string()]);
    let json = start(&mut strace).wait().done().json();
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (requests, 1));
    let mut calls = BTreeMap::new();
    for line in fs::read_to_string(&traced).unwrap().lines() {
        let Some((_, call)) = line.split_once(WORKER) else { continue };
        // The end of a call that another thread's came between, or of the thread, has no name here.
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if !name.starts_with(['<', '+', '-']) {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

#[test]
fn a_request_is_one_send_one_receive_and_one_wait() {
    let lab = lab();
    let target = url(&lab, "/fast");
    let (once, twice) = (calls(&target, REQUESTS), calls(&target, 2 * REQUESTS));
    let more = |name: &str| {
        let of = |calls: &BTreeMap<String, u64>| calls.get(name).copied().unwrap_or(0);
        of(&twice).saturating_sub(of(&once))
    };
    // What the run itself sends and receives is the same in both, or a few more.
    for name in ["sendto", "recvfrom"] {
        let each = more(name);
        assert!((REQUESTS..REQUESTS + OTHERS).contains(&each), "{each} {name}: {once:?} {twice:?}");
    }
    let waits = more("epoll_wait") + more("epoll_pwait") + more("epoll_pwait2");
    assert!(waits <= REQUESTS + OTHERS, "{waits} waits: {once:?} {twice:?}");
    // No lock, no clock, no memory: nothing else is called for each request.
    let own = ["sendto", "recvfrom", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
    for name in twice.keys().filter(|name| !own.contains(&name.as_str())) {
        assert!(more(name) < OTHERS, "{} {name}: {once:?} {twice:?}", more(name));
    }
}
