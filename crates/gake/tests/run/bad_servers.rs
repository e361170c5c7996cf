//! Servers that misbehave: each misbehaviour is counted as its own fault.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::*;

/// A scripted server's behaviour once it has read a request.
type Script = dyn Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// Serves every connection with a script, one request each, for as long as the test lives.
fn scripted(script: Arc<Script>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let script = Arc::clone(&script);
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut head = [0; 4096];
                // The client may be gone at any time; that is its right.
                if stream.read(&mut head).is_ok_and(|n| n > 0) {
                    let _ = script(&mut stream);
                }
            });
        }
    });
    address
}

/// A server that sends these bytes and closes.
fn says(bytes: &'static str) -> Arc<Script> {
    Arc::new(move |stream| stream.write_all(bytes.as_bytes()))
}

/// Three requests, all of which end with `fault`.
fn faults(fault: &str, script: Arc<Script>) -> Json {
    let address = scripted(script);
    let line = format!("run http://{address}/ -n 3 -c 1 -o json --timeout 1500ms");
    let ran = ran(&words(&line));
    let json = ran.json();
    assert_eq!(json.count(&format!("faults.{fault}")), 3, "{fault}: {}", json.0);
    assert_eq!(json.count("requests.failed"), 3);
    assert_eq!(json.count("requests.written"), 3);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("nothing succeeded: "), "{ran:?}");
    json
}

#[test]
fn what_is_not_http_is_malformed() {
    for answer in [
        "hello\r\n\r\n",
        "\0\u{1}\u{2}\u{3}\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    ] {
        faults("malformed", says(answer));
    }
}

#[test]
fn a_truncated_response_is_no_success() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        faults("closed_early", says(answer));
    }
}

#[test]
fn endless_headers_are_too_large() {
    faults(
        "too_large",
        Arc::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                stream.write_all(b"X-Filler: filler filler filler filler\r\n")?;
            }
        }),
    );
    faults(
        "too_large",
        Arc::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
            loop {
                stream.write_all(&[b'x'; 1000])?;
            }
        }),
    );
}

#[test]
fn one_byte_at_a_time_runs_into_the_time_out() {
    let json = faults(
        "timeout",
        Arc::new(|stream| {
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" {
                stream.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(200));
            }
            Ok(())
        }),
    );
    assert!(json.count("latency_ns.response.min") >= 1_500_000_000);
}

#[test]
fn one_byte_at_a_time_is_read_when_there_is_time() {
    let address = scripted(Arc::new(|stream| {
        stream.set_nodelay(true)?;
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" {
            stream.write_all(&[*byte])?;
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }));
    let json = run(&words(&format!("http://{address}/ -n 3 -c 3")));
    assert_eq!(json.count("requests.ok"), 3);
}

#[test]
fn a_body_without_end_runs_into_the_time_out() {
    let json = faults(
        "timeout",
        Arc::new(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            loop {
                stream.write_all(&[0; 1000])?;
                thread::sleep(Duration::from_millis(10));
            }
        }),
    );
    assert_eq!(json.at("fault_details")[0]["fault"], "timeout");
}

#[test]
fn a_body_beyond_its_length_closes_the_connection_and_is_counted() {
    let address = scripted(says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello"));
    let json = run(&words(&format!("http://{address}/ -n 5 -c 1")));
    assert_eq!(json.count("requests.ok"), 5);
    assert_eq!(json.count("connections.excess"), 5, "{}", json.0);
    assert_eq!(json.count("connections.opened"), 5);
}

#[test]
fn resets_closes_and_silence_of_the_lab_are_distinguished() {
    for (route, fault) in [
        ("/reset", "reset"),
        ("/reset?after=100", "reset"),
        ("/close", "closed_early"),
        ("/close?after=100", "closed_early"),
        ("/hang", "timeout"),
    ] {
        let lab = lab();
        let url = url(&lab, route);
        let ran = ran(&words(&format!("run {url} -n 30 -c 5 -o json --timeout 300ms")));
        let json = ran.json();
        assert_eq!(json.count(&format!("faults.{fault}")), 30, "{route}: {}", json.0);
        let stats = lab.shutdown();
        assert_eq!(json.count("requests.written"), stats.requests, "{route}");
    }
}

#[test]
fn the_time_out_says_where_it_was() {
    let lab = lab();
    for (route, flags, place) in [
        ("/hang", "--first-byte-timeout 200ms", "first byte"),
        ("/stream/100?every=100ms", "--timeout 400ms", "body"),
    ] {
        let url = url(&lab, route);
        let ran =
            ran(&[&["run", &url, "-o", "json", "-n", "2", "-c", "2"], &*words(flags)].concat());
        let json = ran.json();
        assert_eq!(json.count("faults.timeout"), 2, "{}", json.0);
        let detail = json.at("fault_details")[0]["detail"].as_str().unwrap();
        assert!(detail.contains(place), "{detail:?}");
    }
}

#[test]
fn a_closed_connection_is_replaced_without_a_fault() {
    // Each connection serves one request and is closed without a word about it.
    let address = scripted(says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    let json = run(&words(&format!("http://{address}/ -n 20 -c 2 --think 5ms")));
    assert_eq!(json.count("requests.ok"), 20, "{}", json.0);
    assert_eq!(json.count("connections.opened"), 20);
}
