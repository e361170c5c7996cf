//! HTTP/2 on the lab, and its figures in results.

use crate::support::*;

#[test]
fn a_bound_on_streams_is_named_with_its_number() {
    let lab = Peer::lab(&["--h2-max-streams", "2"]);
    let url = format!("{}/delay/20ms", lab.url.trim_end_matches('/'));
    let load = |streams: &str| {
        run(&[&[url.as_str()], &*words("--http2 -c 1 -n 200 --streams"), &[streams]].concat())
    };
    let json = load("10");
    assert_eq!(json.count("connections.peak"), 1, "one connection was asked for: {}", json.0);
    let reasons = json.at("verdict.reasons").to_string();
    assert!(!reasons.contains("Little"), "waiting for a stream is in flight: {reasons}");
    assert_eq!(json.text("connections.protocol"), "HTTP/2");
    assert!(json.count("connections.http2.streams") >= 200, "{}", json.0);
    // Two of ten users have a stream, and the others wait for each of theirs.
    assert!(json.count("connections.http2.stream_waits") > 100, "{}", json.0);
    let findings = json.at("verdict.findings").as_array().unwrap();
    let limit = findings.iter().find(|finding| finding["id"] == "stream_limit");
    let evidence = limit.unwrap_or_else(|| panic!("{}", json.at("verdict")))["evidence"].as_str();
    assert!(evidence.unwrap().contains("as the server allows, 2 each"), "{evidence:?}");
    // As many as the server allows: no request waits.
    let json = load("2");
    assert_eq!(json.count("connections.http2.stream_waits"), 0, "{}", json.0);
    assert!(!json.findings().contains(&"stream_limit"), "{}", json.at("verdict"));
}

#[test]
fn the_protocol_is_shown_where_it_is_http2() {
    let lab = Peer::lab(&["--goaway-every", "20"]);
    let url = lab.url.as_str();
    let text = |flags: &str| ran(&[&["run", url], &*words(flags)].concat()).done().stdout;
    let said = text("--http2 -c 1 -n 100 --streams 5");
    assert!(said.contains(", HTTP/2\n") && said.contains(" streams   "), "{said}");
    assert!(said.contains(" GOAWAYs"), "{said}");
    let said = text("--http2 -c 1 -n 100 --streams 5 -o markdown");
    assert!(said.contains(", HTTP/2\n"), "{said}");
    let plain = text("-c 1 -n 100");
    assert!(!plain.contains("HTTP/2") && !plain.contains("streams"), "{plain}");
    let json = run(&[url, "-c", "1", "-n", "10"]);
    assert_eq!(json.text("connections.protocol"), "HTTP/1.1");
    assert!(json.at("connections").get("http2").is_none(), "{}", json.0);
}

#[test]
fn the_time_in_which_bodies_wait_for_the_window_is_counted() {
    let lab = Peer::lab(&[]);
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    // Far more than the window of a connection that has just been opened.
    std::fs::write(&body, vec![b'x'; 4 << 20]).unwrap();
    let body = format!("@{}", body.display());
    let line = ["-X", "POST", "-d", "2s", "--http2", "-c", "1", "--data", &body];
    let json = run(&[&[lab.url.as_str()], &line[..]].concat());
    assert!(json.count("connections.http2.window_waits") > 0, "{}", json.0);
    let waited = json.number("connections.http2.window_wait_s");
    // One body at a time waits.
    assert!(waited > 0.0 && waited < 4.0, "{waited}");
}
