//! Viewers that come late, hang, crowd and press buttons.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;

/// Far longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn serving(stop: Option<StopButton>) -> LiveServer {
    let frame = PageFrame { before: "<before>".to_owned(), after: "<after>".to_owned() };
    let server = LiveServer::bind("127.0.0.1:0", frame, stop).unwrap();
    server.show("0".to_owned());
    server.start().unwrap();
    server
}

fn asked(server: &LiveServer, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let host = server.address();
    let text = request.replace("HOST", &host.to_string()).replace('\n', "\r\n");
    stream.write_all(format!("{text}\r\n\r\n").as_bytes()).unwrap();
    stream
}

fn answered(server: &LiveServer, request: &str) -> String {
    let mut text = String::new();
    asked(server, request).read_to_string(&mut text).unwrap();
    text
}

/// Follows the run: the event's name and data, one after the other.
fn events(server: &LiveServer) -> impl Iterator<Item = (String, String)> + use<> {
    let stream = asked(server, "GET /events HTTP/1.1\nHost: HOST");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    std::iter::from_fn(move || {
        let name = lines.find_map(|line| line.strip_prefix("event: ").map(str::to_owned))?;
        Some((name, lines.next()?.strip_prefix("data: ")?.to_owned()))
    })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_comes_late_gets_everything_and_everybody_gets_the_end() {
    let server = serving(None);
    let mut early = events(&server);
    assert_eq!(early.next().unwrap(), ("run".to_owned(), "0".to_owned()));
    server.show("[1]".to_owned());
    assert_eq!(early.next().unwrap().1, "[1]");
    server.show("[1,2]".to_owned());
    let mut late = events(&server);
    assert_eq!(late.next().unwrap().1, "[1,2]");
    let page = answered(&server, "GET / HTTP/1.1\nHost: HOST");
    assert!(page.ends_with("\r\n\r\n<before>[1,2]<after>"), "{page}");
    server.finish("[1,2,3]".to_owned(), Duration::ZERO);
    let end = ("end".to_owned(), "[1,2,3]".to_owned());
    assert_eq!(late.next().as_ref(), Some(&end));
    assert_eq!(early.find(|event| event.0 == "end"), Some(end));
    assert!(early.next().is_none() && late.next().is_none());
}

#[test]
fn a_viewer_that_does_not_read_is_dropped_and_delays_nobody() {
    let server = serving(None);
    let _hung = asked(&server, "GET /events HTTP/1.1\nHost: HOST");
    wait_until("it follows", || server.has_viewers());
    // More than the buffers of a connection hold.
    let large = "x".repeat(32 << 20);
    server.show(large);
    let mut reader = events(&server);
    assert_eq!(reader.next().unwrap().1.len(), 32 << 20);
    server.show("small".to_owned());
    assert_eq!(reader.next().unwrap().1, "small");
    drop(reader);
    let begun = Instant::now();
    server.finish("end".to_owned(), Duration::ZERO);
    assert!(begun.elapsed() < LINGER + Duration::from_secs(20), "{:?}", begun.elapsed());
    wait_until("it is dropped", || !server.has_viewers());
}

#[test]
fn too_many_visitors_are_turned_away_and_places_become_free_again() {
    let server = serving(None);
    let crowd: Vec<_> =
        (0..VISITORS_MAX).map(|_| asked(&server, "GET /events HTTP/1.1\nHost: HOST")).collect();
    wait_until("all follow", || server.site.board.viewers() == VISITORS_MAX);
    let mut turned = asked(&server, "GET / HTTP/1.1\nHost: HOST");
    // It is closed, perhaps before its request was read.
    assert_eq!(turned.read(&mut [0; 16]).unwrap_or(0), 0);
    drop(crowd);
    wait_until("they are gone", || {
        // Who has gone is noticed when something is sent.
        server.show("1".to_owned());
        !server.has_viewers()
    });
    assert!(answered(&server, "GET / HTTP/1.1\nHost: HOST").contains("<before>1<after>"));
}

#[test]
fn the_run_is_stopped_only_with_the_token() {
    let pressed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pressed);
    let press = Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let server = serving(Some(StopButton { token: "secret".to_owned(), press }));
    for request in [
        "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST",
        "POST /stop HTTP/1.1\nHost: HOST\nX-Gake-Token: secret",
        "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://evil.test\nX-Gake-Token: secret",
        "GET /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nX-Gake-Token: secret",
        "POST /stop HTTP/1.1\nHost: evil.test\nOrigin: http://evil.test\nX-Gake-Token: secret",
    ] {
        let answer = answered(&server, request);
        assert!(answer.starts_with("HTTP/1.1 4"), "{request}: {answer}");
    }
    assert_eq!(pressed.load(Ordering::SeqCst), 0);
    let request = "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nX-Gake-Token: secret";
    assert!(answered(&server, request).starts_with("HTTP/1.1 202"));
    assert_eq!(pressed.load(Ordering::SeqCst), 1);
    let without = answered(&serving(None), request);
    assert!(without.starts_with("HTTP/1.1 403"), "{without}");
}
