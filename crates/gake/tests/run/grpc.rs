//! gRPC: calls as requests, whose status comes in the trailers.

use gake_lab::LabConfig;

use crate::parts::parts;
use crate::support::*;

/// The definition of the lab's echo, as far as it is needed.
const ECHO: &str = r#"
    syntax = "proto3";
    package gake.lab.v1;
    message EchoRequest { string text = 1; uint32 delay_ms = 2; uint32 status = 3; uint32 count = 4; }
    message EchoReply { string text = 1; }
    service Echo {
      rpc Say(EchoRequest) returns (EchoReply);
      rpc Repeat(EchoRequest) returns (stream EchoReply);
      rpc Collect(stream EchoRequest) returns (EchoReply);
      rpc Chat(stream EchoRequest) returns (stream EchoReply);
      rpc Sing(EchoRequest) returns (EchoReply);
    }
"#;

fn grpc(lab: &gake_lab::Lab, method: &str) -> String {
    format!("grpc://{}/gake.lab.v1.Echo/{method}", lab.addr())
}

fn definitions() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("echo.proto");
    std::fs::write(&path, ECHO).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

/// The detail of the first fault.
fn detail(json: &Json) -> String {
    let details = json.at("fault_details").as_array().unwrap();
    details[0]["detail"].as_str().unwrap().to_owned()
}

#[test]
fn every_call_has_its_status() {
    let lab = lab();
    let (_folder, proto) = definitions();
    let url = grpc(&lab, "Say");
    let text = r#"{"text":"hello"}"#;
    let line = ["-n", "200", "-c", "2", "--streams", "4", "--proto", &proto, "--data", text, &url];
    let json = run(&line);
    assert_eq!((json.count("requests.ok"), json.count("status.200")), (200, 200), "{json:?}");
    assert_eq!(json.text("connections.protocol"), "HTTP/2");
    assert_eq!(json.count("connections.opened"), 2, "{json:?}");
    // Each message of the reply is checked as JSON.
    for (method, check, wrong) in [
        ("Say", "json:text=hello", 0),
        ("Repeat", "^.\"text\":\"hello", 0),
        ("Say", "json:text=x", 3),
    ] {
        let data = r#"{"text":"hello","count":2}"#;
        let line = ["run", "-o", "json", "-n", "3", "-c", "1", "--proto", &proto, "--data", data];
        let json =
            ran(&[&line[..], &["--expect-body", check, &grpc(&lab, method)]].concat()).json();
        assert_eq!((json.count("requests.ok"), json.count("requests.failed")), (3 - wrong, wrong));
    }
    // Failures of calls are faults by name: in a head that is all, and in trailers.
    let failing = |method: &str, data: &str, flags: &[&str]| {
        let line = ["run", "-o", "json", "-n", "3", "-c", "1", "--proto", &proto, "--data", data];
        let ran = ran(&[&line[..], flags, &[&grpc(&lab, method)]].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        (ran.json().count("faults.grpc_status"), detail(&ran.json()))
    };
    let not_found = (3, "5 NOT_FOUND".to_owned());
    assert_eq!(failing("Say", r#"{"status":5}"#, &[]), not_found);
    assert_eq!(failing("Repeat", r#"{"status":5,"count":2}"#, &[]), not_found);
    assert_eq!(failing("Sing", "{}", &[]).1, "12 UNIMPLEMENTED");
    let served = lab.stats();
    assert_eq!((served.requests, served.responses[&200]), (218, 218), "{served:?}");
}

#[test]
fn streams_of_messages_go_both_ways() {
    let lab = lab();
    let (folder, proto) = definitions();
    let chat = grpc(&lab, "Chat");
    let flags = ["-n", "20", "-c", "2", "--proto", &proto];
    let three = ["--data", r#"{"text":"a"}"#, "--data", "{}", "--data", r#"{"text":"c"}"#];
    let json = run(&[&flags[..], &three, &["--slo", "stream_first:p95<1h", &chat]].concat());
    assert_eq!(json.count("requests.ok"), 20, "{json:?}");
    assert_eq!(json.at("objectives")[0]["met"], true, "{json:?}");
    let [first, gap, events] = parts(&json);
    assert_eq!((first.samples, gap.samples, events.sum), (20, 40, 60.0), "{json:?}");
    // The third message decides, so all of them came.
    let lines = folder.path().join("messages.jsonl");
    std::fs::write(&lines, "{}\n{}\n{\"status\":5}\n").unwrap();
    let lines = format!("@{}", lines.display());
    for method in ["Collect", "Chat"] {
        let url = grpc(&lab, method);
        let line = [&["run", "-o", "json"], &flags[..], &["--data", &lines, &url]].concat();
        let json = ran(&line).json();
        assert_eq!(json.count("faults.grpc_status"), 20, "{json:?}");
        assert_eq!(detail(&json), "5 NOT_FOUND");
    }
}

#[test]
fn reflection_replaces_files_over_tls_too() {
    let lab = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let url = format!("grpcs://{}/gake.lab.v1.Echo/Repeat", lab.addr());
    let line = ["-n", "6", "-c", "2", "-k", "--data", r#"{"text":"x","count":3}"#, &url];
    let json = run(&line);
    assert_eq!(json.count("requests.ok"), 6, "{json:?}");
    let health = format!("grpcs://{}/grpc.health.v1.Health/Check", lab.addr());
    assert_eq!(run(&["-n", "2", "-c", "1", "-k", &health]).count("requests.ok"), 2);
}

#[test]
fn a_server_that_sheds_calls_says_so() {
    let lab = lab_with(LabConfig { threads: Some(1), queue: Some(0), ..LabConfig::default() });
    let (_folder, proto) = definitions();
    let data = r#"{"delay_ms":20}"#;
    let url = grpc(&lab, "Say");
    let line = ["run", "-o", "json", "-n", "6", "-c", "1", "--streams", "3", "--proto", &proto];
    let ran = ran(&[&line[..], &["--data", data, &url]].concat());
    let json = ran.json();
    assert_eq!(json.count("requests.ok") + json.count("faults.grpc_status"), 6, "{json:?}");
    assert!(json.count("faults.grpc_status") >= 1, "{json:?}");
    assert_eq!(detail(&json), "8 RESOURCE_EXHAUSTED");
}

#[test]
fn what_cannot_be_called_is_refused() {
    let lab = lab();
    let (_folder, proto) = definitions();
    let say = grpc(&lab, "Say");
    for (line, said) in [
        (
            vec!["--proto", &proto, "--data", r#"{"txt":"x"}"#, &say],
            "is not a gake.lab.v1.EchoRequest",
        ),
        (vec!["--proto", &proto, &grpc(&lab, "Shout")], "it has Say, Repeat, Collect, Chat, Sing"),
        (vec!["--proto", &proto, "--data", "[{}, 7]", &grpc(&lab, "Collect")], "message 2"),
        (vec!["--proto", &proto, "--data", "{}", "--data", "{}", &say], "trailing characters"),
        (vec!["--data", "{}", "--data", "@x", &say], "give one file, with all messages in it"),
        (vec!["--data", "{}", "--data", "{}", "http://127.0.0.1:1/"], "more than once"),
        (vec!["--proto", "/nowhere/x.proto", &say], "x.proto"),
        (vec![&grpc(&lab, "Shout")], "it has Say, Repeat, Collect, Chat"),
        (vec!["--http", "1.1", &say], "gRPC needs HTTP/2"),
        (vec!["-X", "PUT", &say], "always a POST"),
        (vec!["--ws-message", "hi", &say], "ws://"),
        (vec!["--proto", &proto, "http://127.0.0.1:1/"], "grpc://"),
        (vec!["grpc://127.0.0.1:1/"], "package.Service/Method"),
    ] {
        ran(&[vec!["run", "-n", "1"], line].concat()).refused(2, said);
    }
    let absent = ran(&["run", "-n", "1", "grpc://127.0.0.1:1/a.B/C"]);
    absent.refused(1, "the server's reflection: connect_refused");
    ran(&["as", "hey", "-n", "1", "-c", "1", &say]).refused(2, "is a gRPC method");
}
