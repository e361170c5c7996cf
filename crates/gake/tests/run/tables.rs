//! More connections than a process may have descriptors.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::fleet::{HERE, Nats, TOKEN, end, run_of, with};
use crate::support::*;

/// gake as a process that may have 256 descriptors.
fn bounded(args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_gake")]);
    command.args(args).stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// A server's response to a request on a connection of its own.
fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn a_thousand_users_of_a_process_with_256_descriptors_keep_their_connections() {
    let serve = ["serve", "--quiet", "--listen", "127.0.0.1:0", "--max-connections", "1001"];
    let lab = Peer::start(&mut bounded(&serve));
    let url = format!("{}/fast", lab.url);
    let line = "-c 1000 --think 10m -d 10m --connect-rate 5000 -o json";
    let run = start(&mut bounded(&[&["run", url.as_str()], &words(line)[..]].concat()));
    // One more asks how many there are.
    let address = lab.url.trim_start_matches("http://");
    eventually("every user has sent its request, and is there", || {
        let now = page(address, "/metrics");
        now.contains("requests_total{route=\"/fast\"} 1000\n")
            && now.contains("connections_open 1001\n")
    });
    run.signal(Signal::INT);
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("6 threads with a descriptor table each"), "{ran:?}");
    let json = ran.json();
    let counts = ["requests.ok", "requests.due", "connections.opened", "connections.peak"];
    assert_eq!(counts.map(|name| json.count(name)), [1_000; 4], "{}", json.0["faults"]);
    let end = lab.end();
    assert!(number_after(&end, "requests") == 1_000 && !end.contains("accept errors"), "{end}");
}

#[test]
fn an_agent_refuses_connections_that_it_has_no_descriptors_for() {
    let (nats, lab) = (Nats::start(), lab());
    let parent = std::process::id().to_string();
    let own = ["agent", "--name", "small", "--parent", &parent];
    let settings = with(&nats, TOKEN, &[]);
    let mut agent = bounded(&[&own, HERE].concat());
    agent.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let agent = start(&mut agent);
    let run = |flags: &str| start(&mut run_of(&nats, &url(&lab, "/fast"), flags)).wait();
    run("-c 300 -n 300 --agents 1").refused(
        1,
        "agent small refuses the run: 300 connections need more than its 256 descriptors: use \
         more agents",
    );
    assert_eq!(run("-c 150 -n 300 --agents 1").done().json().count("requests.ok"), 300);
    end(vec![agent]);
}
