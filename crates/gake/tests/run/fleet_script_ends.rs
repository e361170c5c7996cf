//! Where scripts on agents end early: limits of agents, and an interrupt while waiting for agents.

use std::net::{TcpListener, TcpStream};
use std::path::Path;

use rustix::process::Signal;

use crate::fleet::{Nats, TOKEN, agents, end, with};
use crate::support::*;

/// What an agent needs to run scripts against this machine.
const SCRIPTS: &[&str] = &["--allow", "127.0.0.1", "--cores", "1", "--scripts"];

fn script(folder: &Path, text: &str) -> String {
    let path = folder.join("script.js");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_interrupt_ends_the_wait_for_agents() {
    let (nats, lab) = (Nats::start(), lab());
    let folder = tempfile::tempdir().unwrap();
    let path = script(
        folder.path(),
        "
import http from 'k6/http';
export function setup() { http.get(`${__ENV.BASE}/fast`) }
export function teardown() { http.get(`${__ENV.BASE}/fast`) }
export default function () { http.get(`${__ENV.BASE}/fast`) }
",
    );
    let base = format!("BASE=http://{}", lab.addr());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let api = port.to_string();
    let line = [
        "as",
        "k6",
        "run",
        &path,
        "-e",
        &base,
        "--agents",
        "1",
        "--agents-wait",
        "300s",
        "--address",
        &api,
    ];
    let run = start(&mut with(&nats, TOKEN, &line));
    eventually("its API answers", || TcpStream::connect(port).is_ok());
    run.signal(Signal::INT);
    let ran = run.wait();
    assert_eq!(ran.code, Some(105), "{ran:?}");
    assert!(ran.stderr.contains("interrupted while waiting for agents"), "{ran:?}");
    assert_eq!(lab.stats().requests, 0, "nothing was set up");
}

#[test]
fn an_agent_bounds_a_script() {
    let (nats, lab) = (Nats::start(), lab());
    let limits = ["--max-users", "2", "--max-connections", "1", "--max-duration", "3s"];
    let one = agents(&nats, &["one"], &[SCRIPTS, &limits].concat());
    let folder = tempfile::tempdir().unwrap();
    let path = script(
        folder.path(),
        "
import http from 'k6/http';
import { sleep } from 'k6';
export const options = { scenarios: { users: {
  executor: 'constant-vus', vus: +__ENV.USERS, duration: __ENV.TIME, gracefulStop: '300s',
} } };
export default function () {
  if (__VU === 1 && __ENV.GAKE_TOLD === 'yes') http.get(`${__ENV.BASE}/bytes/1`);
  sleep(300);
}
",
    );
    let base = format!("BASE=http://{}", lab.addr());
    let run = |flags: &str| {
        let line = ["as", "k6", "run", &path, "-e", &base, "-e", "GAKE_TOLD=yes", "--agents", "1"];
        let line = [&line[..], &["--agents-wait", "60s"], &words(flags)].concat();
        start(&mut with(&nats, TOKEN, &line)).wait()
    };
    let ran = run("-e USERS=3 -e TIME=2s");
    assert!(ran.stderr.contains("3 users exceed its limit of 2 (--max-users)"), "{ran:?}");
    let ran = run("-e USERS=2 -e TIME=4s");
    assert!(ran.stderr.contains("the run takes 4s, and its limit is 3s"), "{ran:?}");
    assert_eq!(lab.stats().requests, 0);
    // Fewer connections than users are no obstacle, and the graceful stop no way out.
    let ran = run("-e USERS=2 -e TIME=2s");
    assert!(ran.stderr.contains("the agent's --max-duration is over"), "{ran:?}");
    assert!(ran.took.as_secs() < 200, "{ran:?}");
    assert_eq!(lab.stats().routes["/bytes"], 1, "{ran:?}");
    end(one);
}
