//! The response of each route.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod common;

use std::time::{Duration, Instant};

use common::{Client, get, start};
use gake_lab::{DatabaseConfig, DatabaseKind, DatabaseModel, HELP, LabConfig};
use serde_json::Value;

#[test]
fn fast_always_returns_the_same_short_text() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for _ in 0..3 {
        let response = client.get("/fast");
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(response.text(), "Hello from the lab.\n");
    }
    assert_eq!(lab.stats().connections.opened, 1);
}

#[test]
fn pipelined_requests_are_served_in_order_without_delay() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.send(
        b"GET /status/201 HTTP/1.1\r\n\r\nGET /fast HTTP/1.1\r\n\r\nGET /hang HTTP/1.1\r\n\r\n",
    );
    assert_eq!(client.read_response(false).status, 201);
    assert_eq!(client.read_response(false).status, 200);
}

#[test]
fn the_help_page_lists_the_routes() {
    let lab = start(LabConfig::default());
    let response = get(&lab, "/");
    assert_eq!((response.status, response.text()), (200, HELP));
    for target in ["/nothing", "/fast/er", "//", "/hang/on"] {
        assert_eq!(get(&lab, target).status, 404, "{target}");
    }
    let stats = lab.shutdown();
    assert_eq!(stats.routes["other"], 4);
    assert_eq!(stats.responses[&404], 4);
}

#[test]
fn delays_are_never_shorter_than_asked() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for (target, ms) in [
        ("/delay/20ms", 20),
        ("/delay/0.03s", 30),
        ("/delay/15", 15),
        ("/delay/0", 0),
        ("/slow?min=10ms&max=12ms", 10),
        ("/slow?min=5&max=5", 5),
        ("/slow", 100),
    ] {
        let begun = Instant::now();
        assert_eq!(client.get(target).status, 200, "{target}");
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(ms), "{target} took {took:?}");
        assert!(took < Duration::from_secs(5), "{target} took {took:?}");
    }
    let service = lab.shutdown().service;
    assert_eq!(service.count, 6, "a zero delay holds no worker");
    assert!(service.sum_s >= 0.180, "{service:?}");
}

#[test]
fn echo_gives_the_request_back() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.send(
        b"PUT /echo?a=1&b=%20 HTTP/1.1\r\nHost: lab\r\nX-Two: 1\r\nX-Two: 2\r\n\
          Content-Length: 4\r\n\r\nbody",
    );
    let echo: Value = serde_json::from_slice(&client.read_response(false).body).unwrap();
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["path"], "/echo");
    assert_eq!(echo["query"], "a=1&b=%20");
    assert_eq!(echo["version"], "HTTP/1.1");
    assert_eq!(echo["headers"]["host"], "lab");
    assert_eq!(echo["headers"]["x-two"], serde_json::json!(["1", "2"]));
    assert_eq!(echo["body"], "body");
    assert_eq!(echo["body_bytes"], 4);
    assert_eq!(echo["truncated"], false);
    assert_eq!(echo["connection"], 1);

    let binary = client.post("/echo", b"\xff\x00\xfe");
    let echo: Value = serde_json::from_slice(&binary.body).unwrap();
    assert_eq!(echo["body_base64"], "/wD+");
    assert_eq!(echo.get("body"), None);

    client.send(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let echo: Value = serde_json::from_slice(&client.read_response(false).body).unwrap();
    assert_eq!(echo["body"], "abcde");
}

#[test]
fn echo_caps_what_it_gives_back_and_says_so() {
    let lab = start(LabConfig::default());
    let response = Client::connect(lab.addr()).post("/echo", &vec![b'a'; 3 << 20]);
    let echo: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(echo["body"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(echo["body_bytes"], 3 << 20);
    assert_eq!(echo["truncated"], true);
}

#[test]
fn an_unexpected_body_is_read_and_the_connection_kept() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    assert_eq!(client.post("/fast", &vec![b'a'; 1 << 20]).status, 200);
    assert_eq!(client.get("/fast").status, 200);
    let stats = lab.shutdown();
    assert_eq!(stats.connections.opened, 1);
    assert!(stats.bytes_in > 1 << 20);
}

#[test]
fn statuses_as_asked() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for code in [200, 201, 204, 301, 304, 404, 418, 500, 503, 599, 799] {
        let response = client.get(&format!("/status/{code}"));
        assert_eq!(response.status, code);
        assert_eq!(response.body.is_empty(), matches!(code, 204 | 304), "{code}");
    }
    assert_eq!(lab.shutdown().responses.len(), 11);
}

#[test]
fn bytes_and_streams_have_the_length_asked() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for n in [0usize, 1, 65_536, 65_537, 3_000_000] {
        let response = client.get(&format!("/bytes/{n}"));
        assert_eq!(response.header("content-length"), Some(n.to_string().as_str()));
        assert_eq!(response.body.len(), n);
    }
    let begun = Instant::now();
    let response = client.get("/stream/4?every=10ms");
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    assert_eq!(response.text(), "chunk 0\nchunk 1\nchunk 2\nchunk 3\n");
    let response = client.get("/events?n=2");
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.text(), "data: event 0\n\ndata: event 1\n\n");
    assert_eq!(client.get("/stream/0").body.len(), 0);
    assert_eq!(client.get("/stream/1000").text().lines().count(), 1000);
}

#[test]
fn chunks_come_as_they_are_made() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    client.send_get("/stream/2?every=1h");
    while client.read_line() != "8" {}
    assert_eq!(client.read_line(), "chunk 0");
    drop(client);
    common::eventually("the abort counts", || lab.stats().aborted == 1);
}

#[test]
fn errors_at_the_rate_asked() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    let never = (0..50).filter(|_| client.get("/error?rate=0").status != 200).count();
    let always = (0..50).filter(|_| client.get("/error?rate=1&code=429").status == 429).count();
    let half = (0..400).filter(|_| client.get("/error?rate=0.5").status == 503).count();
    assert_eq!((never, always), (0, 50));
    assert!((120..280).contains(&half), "{half}");
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    for target in ["/fast", "/bytes/100000", "/", "/status/404", "/echo"] {
        let response = client.head(target);
        assert!(response.header("content-length").is_some_and(|n| n != "0"), "{target}");
    }
    client.head("/stream/5");
    assert_eq!(client.get("/fast").status, 200, "the connection is in step");
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.responses_total()), (7, 7));
}

#[test]
fn bad_parameters_get_one_sentence() {
    let lab = start(LabConfig::default());
    let mut client = Client::connect(lab.addr());
    let targets = [
        "/delay",
        "/delay/",
        "/delay/soon",
        "/delay/-1s",
        "/delay/99h",
        "/slow?min=2s&max=1s",
        "/slow?min=%ff",
        "/status",
        "/status/abc",
        "/status/100",
        "/status/1000",
        "/status/+200",
        "/bytes/-1",
        "/bytes/99999999999999999999999",
        "/stream/x",
        "/stream/3?every=x",
        "/error?rate=2",
        "/error?rate=nan",
        "/error?code=7",
        "/reset?after=x",
        "/close?after=",
    ];
    for target in targets {
        let response = client.get(target);
        assert_eq!(response.status, 400, "{target}");
        assert_eq!(response.text().lines().count(), 1, "{target}: {}", response.text());
        assert!(response.text().len() > 15, "{target}: {}", response.text());
    }
    assert_eq!(client.get("/stall?for=x").status, 400);
    assert_eq!(lab.shutdown().responses[&400], targets.len() as u64);
}

#[test]
fn metrics_and_config_describe_the_lab_and_do_not_count() {
    let lab = start(LabConfig {
        threads: Some(3),
        service: Some("exp:1ms".parse().unwrap()),
        connection_timeout: Some(Duration::from_secs(20)),
        ..LabConfig::default()
    });
    let mut client = Client::connect(lab.addr());
    for _ in 0..2 {
        client.get("/fast");
    }
    let metrics = client.get("/metrics");
    for line in [
        "gake_lab_requests_total{route=\"/fast\"} 2",
        "gake_lab_responses_total{status=\"200\"} 2",
        "gake_lab_in_flight 0",
        "gake_lab_queue 0",
        "gake_lab_threads 3",
        "gake_lab_threads_busy 0",
        "gake_lab_connections_open 1",
        "gake_lab_service_seconds_count 2",
        "gake_lab_control_requests_total 1",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "{line} is not in {}", metrics.text());
    }
    let config: Value = serde_json::from_slice(&client.get("/config").body).unwrap();
    assert_eq!(config["listen"], lab.addr().to_string());
    assert_eq!(config["threads"], 3);
    assert_eq!(config["cores"], 2);
    assert_eq!(config["service"]["distribution"], "exp:1ms");
    assert_eq!(config["connection_timeout"], "20s");
    assert_eq!(config["max_connections"], Value::Null);
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.control_requests), (2, 2));
}

#[test]
fn the_users_service_has_a_row_for_each_post() {
    let model = DatabaseKind::Model("model:0s,0s".parse().unwrap());
    let lab = start(LabConfig { database: Some(model.into()), ..LabConfig::default() });
    let mut client = Client::connect(lab.addr());
    let json = |response: common::Response| -> (u16, Value) {
        (response.status, serde_json::from_slice(&response.body).unwrap())
    };
    let ada = br#"{"name":"Ada","mail":"ada@example.com"}"#;
    let made = json(client.post("/users", ada));
    assert_eq!((made.0, &made.1["id"], &made.1["name"]), (200, &1.into(), &"Ada".into()));
    client.post("/users", b"");
    assert_eq!(json(client.get("/users/1")), made);
    assert_eq!(json(client.get("/users/count")).1["count"], 2);
    assert_eq!(json(client.get("/users/3")).0, 404);
    assert_eq!(json(client.get("/users/x")).0, 400);
    assert_eq!(json(client.post("/users", b"no JSON")).0, 400);
    client.send(b"DELETE /users HTTP/1.1\r\n\r\n");
    assert_eq!(client.read_response(false).status, 200);
    assert_eq!(json(client.get("/users/count")).1["count"], 0);
}

#[test]
fn a_database_refuses_what_is_over_its_bound_and_a_bounded_pool_waits() {
    let model: DatabaseModel = "model:100ms,100ms".parse().unwrap();
    let at_once = |database: DatabaseConfig| {
        let lab = start(LabConfig { database: Some(database), ..LabConfig::default() });
        let mut clients: Vec<Client> = (0..5).map(|_| Client::connect(lab.addr())).collect();
        clients.iter_mut().for_each(|client| client.send_get("/users/count"));
        let responses: Vec<_> = clients.iter_mut().map(|c| c.read_response(false)).collect();
        let refused: Vec<_> = responses.iter().filter(|response| response.status == 500).collect();
        assert!(refused.iter().all(|a| a.text().contains("Too many connections")));
        let metrics = get(&lab, "/metrics").text().to_owned();
        (refused.len(), metrics)
    };
    let model = DatabaseModel { server_max: Some(2), ..model };
    let bound = DatabaseConfig::from(DatabaseKind::Model(model));
    let (refused, metrics) = at_once(bound.clone());
    assert_eq!(refused, 3);
    let counted = "errors_total{error=\"max_connections\"} 3";
    assert!(metrics.contains(counted), "{metrics}");
    let (refused, metrics) = at_once(DatabaseConfig { max_open: Some(2), ..bound });
    assert_eq!(refused, 0);
    assert!(metrics.contains("mysql_global_status_connections 2\n"), "{metrics}");
}
