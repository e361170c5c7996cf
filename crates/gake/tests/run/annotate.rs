//! Annotations of a run in Grafana.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use crate::support::*;

/// A Grafana that requires a token and accepts annotations.
fn grafana() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some((line, body)) = request(&mut stream) {
                    if line.starts_with("POST /api/annotations ") {
                        sender.send(serde_json::from_slice(&body).unwrap()).unwrap();
                    }
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
                    stream.get_mut().write_all(answer).unwrap();
                }
            });
        }
    });
    (address, receiver)
}

/// The first line and the body of a request; of one that posts, the token is checked.
fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let header = |name: &str| {
        let found = lines
            .iter()
            .find_map(|line| line.split_once(": ").filter(|h| h.0.eq_ignore_ascii_case(name)));
        found.map(|header| header.1.to_owned())
    };
    let first = lines[0].clone();
    if first.starts_with("POST ") {
        assert_eq!(header("Authorization").as_deref(), Some("Bearer secret"));
    }
    let mut body = vec![0; header("Content-Length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    Some((first, body))
}

#[test]
fn grafana_gets_annotations_of_start_stages_and_run() {
    let lab = lab();
    let (address, annotations) = grafana();
    let to = format!("grafana={address}/?tags=env:test");
    let url = url(&lab, "/fast");
    let args = ["run", &url, "--stages", "20@1s,40@1s", "--annotate", &to, "-o", "json"];
    let mut command = gake(&args);
    let ran = start(command.env("GRAFANA_TOKEN", "secret")).wait().done();
    assert!(!ran.stderr.contains("missing"), "{ran:?}");
    let posted: Vec<Value> = annotations.try_iter().collect();
    let of = |kind: &str| {
        let is_of = |one: &&Value| one["tags"].as_array().unwrap().iter().any(|tag| tag == kind);
        posted.iter().filter(is_of).collect::<Vec<_>>()
    };
    assert_eq!([of("begin").len(), of("stage").len(), of("run").len()], [1, 2, 1], "{posted:?}");
    assert_eq!(of("env:test").len(), posted.len());
    let time = |one: &Value, name: &str| one[name].as_u64().unwrap();
    let [first, second] = of("stage")[..] else { panic!("{posted:?}") };
    assert_eq!(time(second, "time") - time(first, "time"), 1_000);
    let run = of("run")[0];
    assert_eq!(time(run, "time"), time(of("begin")[0], "time"));
    assert!(time(run, "timeEnd") - time(run, "time") >= 2_000, "{run}");
    assert!(run["text"].as_str().unwrap().contains("60 sent = 60 ok"), "{run}");
    lab.shutdown();
}
