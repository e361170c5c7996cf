//! WebSockets: messages as requests, in sessions that stay open.

use gake_lab::LabConfig;

use crate::support::*;

fn ws(lab: &gake_lab::Lab, route: &str) -> String {
    format!("ws://{}{route}", lab.addr())
}

#[test]
fn each_user_has_a_session_and_every_message_a_reply() {
    let lab = lab();
    let url = ws(&lab, "/ws");
    let line = ["-n", "200", "-c", "4", "--ws-message", "id=7", "--ws-expect", "^id=\\d$", &url];
    let json = run(&line);
    assert_eq!((json.count("requests.ok"), json.count("status.101")), (200, 200), "{json:?}");
    assert_eq!(json.count("connections.websocket.sessions"), 4, "{json:?}");
    assert_eq!(json.text("connections.protocol"), "WebSocket");
    // Without a message gake sends pings, and the server responds with pongs.
    let pings = run(&["-n", "50", "-c", "2", &url]);
    assert_eq!(pings.count("requests.ok"), 50, "{pings:?}");
    let served = lab.stats();
    assert_eq!((served.requests, served.connections.opened), (250, 6), "{served:?}");
    let answer = ["-n", "2", "-c", "2", "--ws-message", "a", "--ws-expect", "b"];
    let other = ran(&[&["run", "-o", "json", "--timeout", "300ms"], &answer[..], &[&url]].concat());
    assert_eq!((other.code, other.json().count("faults.timeout")), (Some(1), 2), "{other:?}");
    let written = ["-n", "100", "-c", "1", "--ws-message", "x", "--ws-send-only", &url];
    assert_eq!(run(&written).count("requests.written"), 100);
}

#[test]
fn a_rate_is_of_messages_and_latency_counts_from_when_they_are_due() {
    let lab = lab();
    let url = ws(&lab, "/ws?delay=50ms");
    // One session echoes 20 messages a second; the last of 20 that are due in half a second waits for the others.
    let json = run(&["-r", "40", "-d", "500ms", "-c", "1", "--ws-message", "x", &url]);
    assert_eq!(json.count("requests.ok"), 20, "{json:?}");
    assert!(json.number("latency_ns.response.max") >= 0.5e9, "{json:?}");
    assert!(json.number("latency_ns.service.min") >= 0.049e9, "{json:?}");
}

#[test]
fn many_sessions_lose_no_message() {
    let lab = lab();
    let users = if full() { 10_000 } else { 500 };
    let users_flag = users.to_string();
    let line = ["-c", &users_flag, "--think", "1s", "-d", "3s", "--ws-message", "hello"];
    let json = run(&[&line[..], &["--ws-expect", "^hello$", &ws(&lab, "/ws")]].concat());
    let counts = ["requests.ok", "requests.sent"].map(|name| json.count(name));
    assert_eq!(counts, [lab.stats().requests; 2], "{}", json.0);
    assert!(counts[0] >= users, "{}", json.0);
    assert_eq!(json.count("connections.websocket.sessions"), users, "{}", json.0);
}

#[test]
fn large_messages_go_through_tls_and_come_back_whole() {
    let lab = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let url = format!("wss://{}/ws", lab.addr());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![b'm'; 300_000]).unwrap();
    let message = format!("@{}", file.path().display());
    let line = ["-n", "12", "-c", "3", "-k", "--ws-message", &message];
    let json = run(&[&line[..], &["--expect-body", "^m{300000}$", &url]].concat());
    assert_eq!(json.count("requests.ok"), 12, "{json:?}");
}

#[test]
fn who_opens_no_session_fails_by_its_status() {
    let lab = lab();
    let ran = ran(&["run", "-n", "3", "-c", "1", "-o", "json", &ws(&lab, "/fast")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!((ran.json().count("requests.failed"), ran.json().count("status.200")), (3, 3));
}

#[test]
fn hey_speaks_no_websocket() {
    ran(&["as", "hey", "-n", "1", "-c", "1", "ws://127.0.0.1:1/"]).refused(2, "is a WebSocket");
}
