//! Viewers that come late, hang, crowd and use the controls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gake_listen::REPLIES_MAX;

use super::*;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn serving(controls: Option<LiveControls>) -> LiveServer {
    let frame = PageFrame { before: "<before>".to_owned(), after: "<after>".to_owned() };
    let server = LiveServer::bind("127.0.0.1:0", frame, controls).unwrap();
    server.show("0".to_owned());
    server.start().unwrap();
    server
}

fn request(server: &LiveServer, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let host = server.address();
    let text = head.replace("HOST", &host.to_string()).replace('\n', "\r\n");
    stream.write_all(format!("{text}\r\n\r\n").as_bytes()).unwrap();
    stream
}

fn response(server: &LiveServer, head: &str) -> String {
    let mut text = String::new();
    request(server, head).read_to_string(&mut text).unwrap();
    text
}

/// The events of the run: name and data.
fn events(server: &LiveServer) -> impl Iterator<Item = (String, String)> + use<> {
    let stream = request(server, "GET /events HTTP/1.1\nHost: HOST");
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
fn late_viewers_get_everything_and_all_get_the_end() {
    let server = serving(None);
    let mut early = events(&server);
    assert_eq!(early.next().unwrap(), ("run".to_owned(), "0".to_owned()));
    server.show("[1]".to_owned());
    assert_eq!(early.next().unwrap().1, "[1]");
    server.show("[1,2]".to_owned());
    let mut late = events(&server);
    assert_eq!(late.next().unwrap().1, "[1,2]");
    let page = response(&server, "GET / HTTP/1.1\nHost: HOST");
    assert!(page.ends_with("\r\n\r\n<before>[1,2]<after>"), "{page}");
    server.finish("[1,2,3]".to_owned(), Duration::ZERO);
    let end = ("end".to_owned(), "[1,2,3]".to_owned());
    assert_eq!(late.next().as_ref(), Some(&end));
    assert_eq!(early.find(|event| event.0 == "end"), Some(end));
    assert!(early.next().is_none() && late.next().is_none());
}

#[test]
fn a_viewer_that_does_not_read_is_dropped() {
    let server = serving(None);
    let _hung = request(&server, "GET /events HTTP/1.1\nHost: HOST");
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
    assert!(!server.has_viewers());
}

#[test]
fn the_run_is_controlled_only_with_the_token() {
    let (pressed, percent) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (counter, set) = (Arc::clone(&pressed), Arc::clone(&percent));
    let stop = Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let rate: RateSetter = Box::new(move |percent| {
        set.lock().unwrap().push(percent);
        if percent < 900.0 { Ok(()) } else { Err("too much".to_owned()) }
    });
    let token = "secret".to_owned();
    let server = serving(Some(LiveControls { token, stop, rate: Some(rate) }));
    let set = |server: &LiveServer, query: &str| {
        let head = format!("POST /rate{query} HTTP/1.1\nHost: HOST\nOrigin: http://HOST");
        response(server, &format!("{head}\nX-Gake-Token: secret"))
    };
    for request in [
        "POST /rate?percent=50 HTTP/1.1\nHost: HOST\nOrigin: http://HOST",
        "POST /rate?percent=50 HTTP/1.1\nHost: HOST\nOrigin: http://evil.test\nX-Gake-Token: secret",
        "GET /rate?percent=50 HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nX-Gake-Token: secret",
        "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST",
        "POST /stop HTTP/1.1\nHost: HOST\nX-Gake-Token: secret",
        "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://evil.test\nX-Gake-Token: secret",
        "GET /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nX-Gake-Token: secret",
        "POST /stop HTTP/1.1\nHost: evil.test\nOrigin: http://evil.test\nX-Gake-Token: secret",
    ] {
        let reply = response(&server, request);
        assert!(reply.starts_with("HTTP/1.1 4"), "{request}: {reply}");
    }
    assert_eq!(pressed.load(Ordering::SeqCst), 0);
    // Viewers that do not read hold all places, but none that controls need.
    let _crowd: Vec<_> =
        (0..REPLIES_MAX).map(|_| request(&server, "GET /events HTTP/1.1\nHost: HOST")).collect();
    wait_until("all follow", || server.site.board.viewers() == REPLIES_MAX);
    let crowded = response(&server, "GET /events HTTP/1.1\nHost: HOST");
    assert!(crowded.ends_with("\r\n\r\nretry: 5000\n: too many viewers\n\n"), "{crowded}");
    let stop = "POST /stop HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nX-Gake-Token: secret";
    assert!(response(&server, stop).starts_with("HTTP/1.1 202"));
    assert_eq!(pressed.load(Ordering::SeqCst), 1);
    for query in ["", "?percent=", "?percent=0", "?percent=1001", "?percent=-5", "?percent=1e2"] {
        assert!(set(&server, query).starts_with("HTTP/1.1 400"), "{query}");
    }
    assert!(percent.lock().unwrap().is_empty());
    assert!(set(&server, "?percent=150").starts_with("HTTP/1.1 202"));
    let refused = set(&server, "?percent=1000");
    assert!(refused.starts_with("HTTP/1.1 409") && refused.ends_with("too much\n"), "{refused}");
    assert_eq!(*percent.lock().unwrap(), [150.0, 1_000.0]);
    let without = response(&serving(None), stop);
    assert!(without.starts_with("HTTP/1.1 403"), "{without}");
}

#[test]
fn each_viewer_holds_at_most_one_text() {
    const VIEWERS: usize = 10;
    let server = serving(None);
    let hung = request(&server, "GET /events HTTP/1.1\nHost: HOST");
    let readers: Vec<_> = (1..VIEWERS)
        .map(|_| {
            let events = events(&server);
            std::thread::spawn(move || events.last())
        })
        .collect();
    wait_until("all follow", || server.site.board.viewers() == VIEWERS);
    let mut shown = Vec::new();
    for number in 0..60 {
        server.show(format!("{number}{}", "x".repeat(1 << 20)));
        shown.push(Arc::downgrade(&server.site.board.newest().data));
        // The newest, and the one that each is being sent.
        let held = shown.iter().filter(|text| text.strong_count() > 0).count();
        assert!(held <= VIEWERS + 1, "{held}");
    }
    drop(hung);
    server.finish("[end]".to_owned(), Duration::ZERO);
    let end = Some(("end".to_owned(), "[end]".to_owned()));
    assert!(readers.into_iter().all(|reader| reader.join().unwrap() == end));
}
