//! Hostile clients: requests are refused, or normalised so that all backends see the same.

use std::time::Duration;

use gake_shadow::Category;

use crate::backend::{Backend, ok};
use crate::client::{Client, get, send_and_shutdown, send_raw};
use crate::{Generator, config, start, stop, until_count};

/// Requests that must not reach a backend, with the allowed statuses.
fn refused() -> Vec<(String, &'static [&'static str])> {
    let with = |line: &str| format!("GET /evil HTTP/1.1\r\nHost: h\r\n{line}\r\n\r\n");
    let post = |rest: &str| format!("POST /evil HTTP/1.1\r\nHost: h\r\n{rest}");
    let bad: &[&str] = &["400"];
    vec![
        (with("Content-Length: 5\r\nContent-Length: 6"), bad),
        (with("Content-Length: +5"), bad),
        (with("Content-Length: 5, 6"), bad),
        (with("Content-Length: -1"), bad),
        (with("Content-Length: 0x5"), bad),
        (with("Content-Length: 99999999999999999999"), bad),
        (with("X: a\r\n b"), bad),
        (with("X: a\r\n\tb"), bad),
        (with(" X: leading blank"), bad),
        (with("X : blank before colon"), bad),
        (with("X: nul\0"), bad),
        (with("X: lone cr\rY: z"), bad),
        (with("X\0: nul"), bad),
        (with("no colon"), bad),
        (with("Host: other"), bad),
        ("GET /evil HTTP/1.1\r\n\r\n".to_owned(), bad),
        ("GET /evil HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), bad),
        ("GET /evil HTTP/1.1\r\nHost: a/b\r\n\r\n".to_owned(), bad),
        ("GET /evil path HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), bad),
        ("GET /evil HTTP/2.0\r\nHost: h\r\n\r\n".to_owned(), bad),
        ("G\0T /evil HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), bad),
        ("CONNECT evil:443 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), &["501"]),
        (with("Transfer-Encoding: gzip, chunked"), &["501"]),
        (with("Transfer-Encoding: chunked, chunked"), &["501"]),
        (with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), &["501", "400"]),
        (with("Transfer-Encoding: identity"), bad),
        (with("Transfer-Encoding: chunked, identity"), bad),
        (with("Transfer-Encoding: \x0bchunked"), bad),
        ("POST /evil HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), bad),
        (with(&format!("X: {}", "a".repeat(100_000))), &["431"]),
        (with(&"X: a\r\n".repeat(200)), &["431"]),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(100_000)), &["414", "431"]),
        (post("Expect: 100-continue\r\nContent-Length: 1, 2\r\n\r\n"), bad),
        ("\x16\x03\x01\x02\x00\x01\x00\x01".to_owned(), &["400", ""]),
        ("GET * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &["400", ""]),
    ]
}

#[test]
pub fn ambiguous_requests_reach_no_backend() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    for (request, statuses) in refused() {
        let response = send_raw(proxy.addr(), &request);
        let status = response.get(9..12).unwrap_or_default();
        let short: String = request.chars().take(80).collect();
        assert!(statuses.contains(&status), "{short:?}: {response:?}");
        // No further request is served on the connection.
        let behind =
            send_raw(proxy.addr(), format!("{request}GET /second HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(behind.matches("HTTP/1.1 ").count() <= 1, "{short:?}: {behind:?}");
    }
    assert_eq!((master.requests(), shadow.requests()), (vec![], vec![]));
    assert_eq!(get(proxy.addr(), "/").body, "hello", "it lives");
    stop(proxy);
}

#[test]
pub fn bad_chunks_never_become_a_complete_request() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    let bodies = [
        "x\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX y\r\n\r\n",
        "5\r\nhello\r\n0\r\n\rX",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\nX: 1\n\r\n",
        "0\r\n\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
        "5\r\nhel",
    ];
    for body in bodies {
        let head = "POST /evil HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let response = send_and_shutdown(proxy.addr(), format!("{head}{body}"));
        assert!(
            response.is_empty() || response.starts_with("HTTP/1.1 400"),
            "{body:?}: {response:?}"
        );
    }
    until_count(&proxy, 0, Category::Aborted, bodies.len() as u64);
    assert_eq!((master.requests(), shadow.requests()), (vec![], vec![]));
    stop(proxy);
}

#[test]
pub fn unusual_requests_are_normalised() {
    let master = Backend::responding(|seen| ok(&seen.text()));
    let shadow = Backend::hello();
    let proxy = start(config(&master, &[&shadow]));
    let odd = [
        // Chunks take precedence, and the length is removed.
        "POST /te HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\nx\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /te2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunKed\r\nContent-Length: 30\r\n\r\n\
         1\r\nx\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
        // Bare LF, a leading empty line, equal lengths, a nominated length.
        "\r\nGET /lf HTTP/1.1\nHost: h\nConnection: close\n\n",
        "POST /twice HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\
         Connection: close\r\n\r\nx",
        "POST /hop HTTP/1.1\r\nHost: h\r\nConnection: close, content-length, host\r\n\
         Content-Length: 1\r\n\r\nx",
        "GET http://abs.test/url HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    ];
    for request in odd {
        let response = send_raw(proxy.addr(), request);
        assert!(response.starts_with("HTTP/1.1 200"), "{request:?}: {response:?}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{request:?}: {response:?}");
    }
    until_count(&proxy, 0, Category::Ok, odd.len() as u64);
    let seen = master.requests();
    let paths: Vec<&str> = seen.iter().map(|seen| &seen.line[..seen.line.len() - 9]).collect();
    assert_eq!(paths, ["POST /te", "POST /te2", "GET /lf", "POST /twice", "POST /hop", "GET /url"]);
    for one in &seen[..2] {
        assert_eq!((one.get("transfer-encoding"), one.get("content-length")), ("chunked", ""));
        assert_eq!(one.text(), "1\r\nx\r\n0\r\n\r\n");
    }
    assert_eq!((seen[3].all("content-length"), seen[3].text()), (vec!["1"], "x".to_owned()));
    assert_eq!((seen[4].get("host"), seen[4].text()), ("h", "x".to_owned()));
    assert_eq!(seen[5].get("host"), "abs.test");
    // Two threads send copies, in any order.
    let copies = shadow.requests();
    assert_eq!(copies.len(), seen.len());
    for seen in seen {
        let mut copy = copies.iter().find(|copy| copy.line == seen.line).unwrap().clone();
        copy.headers.retain(|(name, _)| name != "x-gake-shadow");
        assert_eq!(copy, seen);
    }
    stop(proxy);
}

#[test]
pub fn a_length_of_many_digits_frames_one_body() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    let mut client = Client::new(proxy.addr());
    for digits in [2, 18, 19, 20, 30] {
        client.write(format!(
            "POST /{digits} HTTP/1.1\r\nHost: h\r\nContent-Length: {:0digits$}\r\n\r\nhello",
            5
        ));
        assert_eq!(client.response(false).body, "hello", "{digits}");
    }
    until_count(&proxy, 0, Category::Ok, 5);
    for seen in [master.requests(), shadow.requests()].concat() {
        assert_eq!((seen.get("content-length"), seen.get("transfer-encoding")), ("5", ""));
        assert_eq!(seen.text(), "hello");
    }
    assert_eq!((master.requests().len(), master.leftovers()), (5, 0));
    stop(proxy);
}

#[test]
pub fn slow_clients_are_closed() {
    let master = Backend::hello();
    let mut config = config(&master, &[]);
    config.timeouts.head = Duration::from_millis(300);
    config.timeouts.client = Duration::from_millis(300);
    let proxy = start(config);
    // The timeout is for the complete head, however it trickles in.
    let mut slow = Client::new(proxy.addr());
    let mut dripped = 0;
    while dripped < 10_000 && std::io::Write::write_all(&mut slow.0, b"G").is_ok() {
        dripped += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(dripped < 10_000, "never closed");
    let mut stuck = Client::new(proxy.addr());
    stuck.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
    assert_eq!(stuck.response(false).status, 408);
    assert_eq!(get(proxy.addr(), "/").status, 200);
    assert_eq!(stop(proxy).stats.client_timeouts, 1);
}

#[test]
pub fn a_client_that_does_not_read_is_closed() {
    let master = Backend::responding(|_| {
        let mut response = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".to_vec();
        response.resize(response.len() + 100_000_000, b'x');
        response
    });
    let mut config = config(&master, &[]);
    config.timeouts.idle = Duration::from_millis(300);
    let proxy = start(config);
    let mut stalled = Client::new(proxy.addr());
    stalled.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    crate::until("closed", || {
        let stats = proxy.control().stats();
        stats.requests == 1 && stats.open == 0
    });
    assert_eq!(stop(proxy).stats.client_timeouts, 1);
}

#[test]
pub fn a_client_that_leaves_before_the_master_connects_reaches_no_shadow() {
    let (master, shadow) = (Backend::full(), Backend::hello());
    // Of its own four clients, one connects.
    crate::until("the backlog is full", || dials(master.addr) == 3);
    let proxy = start(config(&master, &[&shadow]));
    let mut client = Client::new(proxy.addr());
    client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    // A FIN before the master is asked would count as an earlier disconnect.
    crate::until("the proxy dials", || dials(master.addr) == 4);
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "");
    until_count(&proxy, 0, Category::Aborted, 1);
    assert!(shadow.requests().is_empty());
    stop(proxy);
}

/// Connections to `address` in SYN-SENT.
fn dials(address: std::net::SocketAddr) -> usize {
    let port = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_dial = |line: &&str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        // 02 is SYN-SENT.
        [_, _, remote, state, ..] => remote.ends_with(&port) && state == "02",
        _ => false,
    };
    table.lines().filter(is_dial).count()
}

#[test]
pub fn clients_over_the_limit_wait_in_the_backlog() {
    let master = Backend::hello();
    let mut config = config(&master, &[]);
    (config.threads, config.limits.connections) = (1, 2);
    let proxy = start(config);
    let mut inside = [Client::new(proxy.addr()), Client::new(proxy.addr())];
    for client in &mut inside {
        assert_eq!(client.get("/").status, 200);
    }
    let mut outside = Client::new(proxy.addr());
    outside.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(proxy.control().stats().open, 2);
    drop(inside);
    assert_eq!(outside.response(false).status, 200);
    stop(proxy);
}

#[test]
pub fn a_shadow_gets_only_complete_requests_that_the_master_got() {
    const SEEDS: [&str; 6] = [
        "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /t HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "PUT /q HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET http://x/y HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\nX: 1\r\n\r\n",
        "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ];
    const PIECES: [&str; 16] = [
        "\r\n",
        "\n",
        "\r",
        "\0",
        ":",
        " ",
        "\t",
        "0",
        "-",
        ",",
        "chunked",
        "Content-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Host: x\r\n",
        "GET / HTTP/1.1\r\n",
        "\u{e9}",
    ];
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.shadows[0].queue = 100_000;
    let proxy = start(config);
    let mut generator = Generator(1);
    for _ in 0..1500 {
        let mut bytes = SEEDS[generator.below(SEEDS.len())].as_bytes().to_vec();
        bytes.extend_from_slice(SEEDS[generator.below(SEEDS.len())].as_bytes());
        for _ in 0..generator.below(4) {
            let at = generator.below(bytes.len());
            match generator.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] ^= 1 << generator.below(8),
                _ => drop(bytes.splice(at..at, PIECES[generator.below(PIECES.len())].bytes())),
            }
        }
        send_and_shutdown(proxy.addr(), bytes);
    }
    stop(proxy);
    let (mut seen, copies) = (master.requests(), shadow.requests());
    // A request without a host gets the backend's.
    let own_hosts = [master.addr, shadow.addr].map(|addr| addr.to_string());
    let own = |(name, value): &(String, String)| name == "host" && own_hosts.contains(value);
    seen.iter_mut().for_each(|seen| seen.headers.retain(|header| !own(header)));
    assert_eq!(shadow.leftovers(), 0, "an incomplete copy");
    assert!(copies.len() > 500, "{} copies are too few", copies.len());
    for mut copy in copies {
        copy.headers.retain(|header| header.0 != "x-gake-shadow" && !own(header));
        assert!(seen.contains(&copy), "{copy:?}");
    }
}
