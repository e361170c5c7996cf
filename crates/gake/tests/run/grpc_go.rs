//! gRPC on the Go implementation, with its reflection; it counts calls and messages itself.

use std::process::Command;

use crate::parts::parts;
use crate::support::*;

#[test]
fn every_kind_of_call_is_counted_the_same_by_go() {
    let peer = Peer::start(&mut Command::new(go_program("grpc")));
    let base = peer.url.replace("http", "grpc");
    let service = format!("{base}/grpc.testing.TestService");
    let call = |method: &str, line: &str, data: &[&str]| {
        let url = format!("{service}/{method}");
        let data: Vec<_> = data.iter().flat_map(|one| ["--data", one]).collect();
        ran(&[&["run", "-o", "json", &url], &*words(line), &data].concat())
    };
    let ok = |method: &str, line: &str, data: &[&str]| {
        let json = call(method, line, data).done().json();
        assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{}", json.0);
        json
    };
    let (mut calls, mut received, mut sent) = (0, 0, 0);
    // It allows 20 streams a connection.
    let unary = [r#"{"responseSize":5}"#];
    for line in ["-n 300 -c 3 --streams 10", "-n 200 -c 1 --streams 50", "-r 200 -d 1s -c 2"] {
        let count = ok("UnaryCall", line, &unary).count("requests.ok");
        (calls, received, sent) = (calls + count, received + count, sent + count);
    }
    assert_eq!(calls, 700);
    let failed = call("UnaryCall", "-n 20 -c 2", &[r#"{"responseStatus":{"code":7}}"#]).json();
    assert_eq!(failed.count("faults.grpc_status"), 20, "{}", failed.0);
    assert_eq!(failed.at("fault_details")[0]["detail"], "7 PERMISSION_DENIED");
    (calls, received) = (calls + 20, received + 20);
    // Three replies, 5 ms apart.
    let three = r#"{"responseParameters":[{"size":1},{"size":2,"intervalUs":5000},{"size":3,"intervalUs":5000}]}"#;
    let json = ok("StreamingOutputCall", "-n 20 -c 2 --streams 2", &[three]);
    let [first, gap, events] = parts(&json);
    assert_eq!((first.samples, gap.samples, events.sum), (20, 40, 60.0), "{}", json.0);
    assert!(json.number("latency_ns.response.min") >= 9.99e6, "{}", json.0);
    (calls, received, sent) = (calls + 20, received + 20, sent + 60);
    let payload = r#"{"payload":{"body":"aGVsbG8="}}"#;
    let check = "-n 20 -c 2 --expect-body json:aggregatedPayloadSize=15";
    ok("StreamingInputCall", check, &[payload; 3]);
    (calls, received, sent) = (calls + 20, received + 60, sent + 20);
    let json = ok("FullDuplexCall", "-n 20 -c 2", &[three, "{}", three]);
    assert_eq!(parts(&json)[2].sum, 120.0, "{}", json.0);
    (calls, received, sent) = (calls + 20, received + 60, sent + 120);
    let url = format!("{base}/grpc.health.v1.Health/Check");
    assert_eq!(run(&["-n", "5", "-c", "1", &url]).count("requests.ok"), 5);
    (calls, received, sent) = (calls + 5, received + 5, sent + 5);
    // What takes too long ends as the deadline says; nothing is sent of it.
    let slow = r#"{"responseParameters":[{"intervalUs":5000000}]}"#;
    let json = call("StreamingOutputCall", "-n 2 -c 1 --timeout 200ms", &[slow]).json();
    let faults = json.count("faults.timeout") + json.count("faults.grpc_status");
    assert_eq!(faults, 2, "{}", json.0);
    (calls, received) = (calls + 2, received + 2);
    let end = peer.end();
    let counts = ["calls", "received", "sent"].map(|name| number_after(&end, name));
    assert_eq!(counts, [calls, received, sent], "{end}");
}
