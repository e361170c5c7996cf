//! Requests that differ: lists of URLs, patterns, rows of a file, forms.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::*;

/// Heads and bodies.
type Kept = Arc<Mutex<Vec<(String, String)>>>;

/// A server that keeps the head and body of each request, in the order in which they came.
fn keeping() -> (String, Kept) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Kept::default();
    let keep = Arc::clone(&kept);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).unwrap() == 0 {
                    break;
                }
            }
            // A connection may be opened and not used.
            if head.is_empty() {
                continue;
            }
            let length = head.to_ascii_lowercase();
            let length = length
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.lines().next().unwrap().parse::<usize>().unwrap());
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            keep.lock().unwrap().push((head, String::from_utf8(body).unwrap()));
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            stream.get_mut().write_all(answer).unwrap();
        }
    });
    (url, kept)
}

#[test]
fn a_plain_list_of_urls_is_a_targets_file() {
    let lab = lab();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("urls.txt");
    let [a, b, c] = ["/fast", "/status/201", "/status/202"].map(|route| url(&lab, route));
    std::fs::write(&path, format!("# three\n{a}\n{b}\n\n{c}\nX-Own: 1\n")).unwrap();
    let json = run(&[path.to_str().unwrap(), "-n", "30", "-c", "2", "--think", "1ms"]);
    for status in ["200", "201", "202"] {
        assert_eq!(json.count(&format!("status.{status}")), 10, "{}", json.at("status"));
    }
}

#[test]
fn urls_are_made_of_a_pattern() {
    let lab = lab();
    let pattern = url(&lab, "/status/20[0-2]");
    let sent = |seed: &str| {
        let json = run(&[
            "--rand-url",
            &pattern,
            "-n",
            "300",
            "-c",
            "3",
            "--think",
            "1ms",
            "--seed",
            seed,
        ]);
        assert_eq!(json.count("requests.ok"), 300, "{}", json.0);
        assert!(json.text("plan.target").contains("/status/20[0-2] (10,000 different requests)"));
        ["200", "201", "202"].map(|status| json.count(&format!("status.{status}")))
    };
    let counts = sent("1");
    assert!(counts.iter().all(|count| (50..150).contains(count)), "{counts:?}");
    assert_eq!(counts, sent("1"), "the same seed sends the same");
    assert_ne!(counts, sent("2"));
}

#[test]
fn rows_of_a_file_fill_in_url_headers_and_body() {
    let (base, kept) = keeping();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users.csv");
    std::fs::write(&path, "id,name\n1,Ann\n2,\"B, C\"\n").unwrap();
    let url = format!("{base}/users/${{id}}");
    let json = run(&[
        &url,
        "--data-file",
        path.to_str().unwrap(),
        "-H",
        "X-Name: ${name}",
        "--data",
        "{\"id\":${id}}",
        "-n",
        "3",
        "-c",
        "1",
    ]);
    assert_eq!(json.count("requests.ok"), 3, "{}", json.0);
    let kept = kept.lock().unwrap();
    for ((head, body), (id, name)) in kept.iter().zip([(1, "Ann"), (2, "B, C"), (1, "Ann")]) {
        assert!(head.starts_with(&format!("POST /users/{id} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(&format!("X-Name: {name}\r\n")), "{head}");
        assert_eq!(body, &format!("{{\"id\":{id}}}"));
    }
    assert_eq!(kept.len(), 3);
    let file = path.to_str().unwrap();
    for (url, what) in [
        (format!("{base}/${{no}}"), "there is no column \"no\"; the columns are id, name"),
        (format!("{base}/"), "no ${name} is used"),
    ] {
        ran(&["run", &url, "--data-file", file, "-n", "1"]).refused(2, what);
    }
    ran(&["run", &url, "--data-file", "/no/such", "-n", "1"]).refused(1, "/no/such");
}

#[test]
fn a_form_is_sent_as_curl_sends_it() {
    let (base, kept) = keeping();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.txt");
    std::fs::write(&path, "of the file").unwrap();
    let file = format!("f=@{};type=text/plain", path.to_str().unwrap());
    let json = run(&[&base, "-F", "name=Ann", "-F", &file, "-n", "1", "-c", "1"]);
    assert_eq!(json.count("requests.ok"), 1, "{}", json.0);
    let kept = kept.lock().unwrap();
    let (head, body) = &kept[0];
    assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
    let (_, boundary) = head.split_once("Content-Type: multipart/form-data; boundary=").unwrap();
    let boundary = boundary.lines().next().unwrap();
    assert_eq!(
        body,
        &format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAnn\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\
             Content-Type: text/plain\r\n\r\nof the file\r\n--{boundary}--\r\n"
        )
    );
}
