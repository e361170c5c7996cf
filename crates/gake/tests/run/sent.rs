//! The bytes of requests: method, headers, body, targets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::*;

/// A server that keeps what it reads: one request a connection, head and body.
fn keeper() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut request = String::new();
            while stream.read_line(&mut request).unwrap() > 2 {}
            if request.is_empty() {
                // A connection that was opened and not needed: the machine was slow.
                continue;
            }
            let length = request.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            request.push_str(&String::from_utf8(body).unwrap());
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

/// One request of `gake run` with these arguments, as bytes.
fn sent(args: &[&str]) -> String {
    let (address, requests) = keeper();
    let url = format!("http://{address}/path?q=1");
    let json = run(&[&[url.as_str(), "-n", "1"], args].concat());
    assert_eq!(json.count("status.204"), 1);
    requests.recv().unwrap()
}

#[test]
fn method_headers_and_body_are_as_asked() {
    let request = sent(&[]);
    assert!(request.starts_with("GET /path?q=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.to_ascii_lowercase().contains("\r\nhost: 127.0.0.1:"), "{request}");
    let request =
        sent(&["-X", "PUT", "-H", "X-Case: Kept", "-H", "Accept: a/b", "--data", "hello"]);
    assert!(request.starts_with("PUT /path?q=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nX-Case: Kept\r\n") && request.contains("\r\nAccept: a/b\r\n"));
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    assert!(sent(&["--data", "x"]).starts_with("POST "));
    assert!(sent(&["-H", "Host: elsewhere"]).contains("\r\nHost: elsewhere\r\n"));
    assert!(
        sent(&["--user", "aladdin:opensesame"])
            .contains("\r\nAuthorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l\r\n")
    );
}

#[test]
fn a_body_comes_from_a_file_or_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("body.json");
    fs::write(&path, "{\"a\":1}").unwrap();
    let request = sent(&["--data", &format!("@{}", path.display())]);
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");

    let (address, requests) = keeper();
    let url = format!("http://{address}/");
    let mut command = gake(&["run", &url, "-n", "1", "--data", "@-", "-o", "json"]);
    let mut run = start(command.stdin(Stdio::piped()));
    run.write("from a pipe");
    assert_eq!(run.wait().done().json().count("requests.ok"), 1);
    assert!(requests.recv().unwrap().ends_with("\r\n\r\nfrom a pipe"));
}

#[test]
fn a_url_is_enough_for_a_run() {
    let lab = lab();
    let ran = ran(&[&format!("{}/fast", lab.addr()), "-n", "30", "-o", "json"]).done();
    assert_eq!(ran.json().count("requests.ok"), 30);
    assert!(ran.stderr.contains("http is assumed"), "{ran:?}");
    assert_eq!(lab.shutdown().requests, 30);
}

#[test]
fn targets_share_the_load_by_their_weights() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("targets.http");
    let lab = lab();
    let base = url(&lab, "");
    let text = format!(
        "# gake: weight=3 label=cheap\nGET {base}/fast\n\n\
         # gake: weight=2\nPOST {base}/echo\nX-A: b\n\n\
         GET {base}/status/404\n"
    );
    fs::write(&path, text).unwrap();
    for flags in ["-r 600 -d 1s -t 2", "-n 600 -c 7 -t 2"] {
        let json = run(&[&[path.to_str().unwrap()], &*words(flags)].concat());
        let labels = json.at("labels").as_array().unwrap();
        let seen: Vec<_> = labels
            .iter()
            .map(|label| {
                (label["label"].as_str().unwrap(), label["requests"]["sent"].as_u64().unwrap())
            })
            .collect();
        let expected = [("cheap", 300), ("POST /echo", 200), ("GET /status/404", 100)];
        assert_eq!(seen, expected, "{flags}");
        assert_eq!((json.count("status.200"), json.count("status.404")), (500, 100));
    }
    let stats = lab.shutdown();
    let routes = [("/fast", 600), ("/echo", 400), ("/status", 200)];
    assert!(routes.iter().all(|(route, count)| stats.routes[route] == *count), "{stats}");
}

#[test]
fn targets_come_from_standard_input_in_both_formats() {
    let lab = lab();
    let base = url(&lab, "");
    for text in [
        format!("GET {base}/fast\n\nGET {base}/status/201\n"),
        format!(
            "{{\"method\":\"GET\",\"url\":\"{base}/fast\"}}\n\
             {{\"method\":\"POST\",\"url\":\"{base}/status/201\",\"body\":\"aGVsbG8=\"}}\n"
        ),
    ] {
        let mut command = gake(&words("run - --targets -n 100 -c 4 -o json"));
        let mut run = start(command.stdin(Stdio::piped()));
        run.write(&text);
        let json = run.wait().done().json();
        assert_eq!((json.count("status.200"), json.count("status.201")), (50, 50), "{}", json.0);
    }
}
