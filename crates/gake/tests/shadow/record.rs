//! A replay sends exactly the recorded requests.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;

use crate::backends::{asked, shop};
use crate::proxy::{Proxy, ask};
use crate::support::*;

/// Requests of several kinds, one after the other.
fn traffic(proxy: &str) {
    for number in 0..40 {
        ask(proxy, "GET", &format!("/users/{number}?q=%2f//..&n={number}"), "X-Tag: a\r\n", "");
        let tags = "X-Tag: one\r\nX-Tag: two\r\nAuthorization: Bearer sesame\r\n";
        ask(proxy, "POST", "/orders", tags, &format!("order {number}"));
        ask(proxy, "DELETE", &format!("//orders/{number}"), "", "");
    }
}

#[test]
fn a_replay_sends_what_was_recorded_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.gakerec");
    let path = path.to_str().unwrap();
    let master = shop("production", &[]);
    let production = format!("production={}", master.url);
    let proxy = Proxy::start(&["--master", &production, "--record", path]);
    traffic(&proxy.url);
    let ended = proxy.end(Signal::INT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("120 requests recorded"), "{ended:?}");
    let recorded = asked(master);
    assert_eq!(recorded.len(), 120);
    let bytes = fs::read(path).unwrap();
    assert!(!bytes.windows(6).any(|six| six == b"sesame"));

    // Over one connection they arrive in the order in which they were sent.
    let again = shop("again", &[]);
    let json = run(&[path, "--target", &again.url, "--speed", "2x", "-c", "1"]);
    assert_eq!((json.count("requests.due"), json.count("requests.ok")), (120, 120));
    assert_eq!(asked(again), recorded);

    // A proxy that is killed leaves a recording that is cut; all but its last request are whole.
    fs::write(path, &bytes[..bytes.len() - 3]).unwrap();
    let again = shop("again", &[]);
    let flags = ["--target", &again.url, "--speed", "2x", "-c", "1", "-o", "json"];
    let cut = ran(&[&["run", path], &flags[..]].concat()).done();
    assert_eq!(cut.json().count("requests.sent"), 119);
    assert!(cut.stderr.contains("truncated"), "{cut:?}");
    assert_eq!(asked(again), recorded[..119]);
}

/// A backend that keeps the bytes of every head it is sent.
fn keeping() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let keeps = Arc::clone(&keeps);
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        keeps.lock().unwrap().append(&mut head);
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                    }
                }
            });
        }
    });
    (url, kept)
}

#[test]
fn header_bytes_outside_utf_8_are_replayed_as_they_were() {
    let odd: Vec<u8> = (0x80..=0xff).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.gakerec");
    let path = path.to_str().unwrap();
    let (master, _) = keeping();
    let master = format!("production={master}");
    let proxy = Proxy::start(&["--master", &master, "--record", path]);
    let address = proxy.url.trim_start_matches("http://");
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = [b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Odd: a", &odd[..], b"z"];
    client.write_all(&[&head.concat()[..], b"\r\nX-Odd: \xc3\xa9\xff\r\n\r\n"].concat()).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(proxy.end(Signal::INT).code, Some(0));

    let holds = |kept: &Mutex<Vec<u8>>, value: &[u8]| {
        let kept = kept.lock().unwrap();
        let line = [b": ", value, b"\r\n"].concat();
        let found = kept.windows(line.len()).filter(|part| *part == line).count();
        assert_eq!(found, 1, "{}", kept.escape_ascii());
    };
    // Also by way of the other format.
    let gor = folder.path().join("traffic.gor");
    let gor = gor.to_str().unwrap();
    ran(&["shadow", "convert", path, gor]).done();
    for recording in [path, gor] {
        let (target, kept) = keeping();
        let json = run(&[recording, "--target", &target, "-c", "1"]);
        assert_eq!(json.count("requests.ok"), 1);
        holds(&kept, &[b"a", &odd[..], b"z"].concat());
        holds(&kept, b"\xc3\xa9\xff");
    }
}
