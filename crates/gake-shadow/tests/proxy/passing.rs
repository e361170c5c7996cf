//! What passes through the proxy, and how it arrives.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gake_shadow::Category;
use gake_shadow::config::{ForwardedPolicy, HostPolicy};

use crate::backend::{Backend, ReceivedRequest, ok, read_request};
use crate::client::{Client, get, post, send_raw};
use crate::{config, ledger, start, stop, until_count};

/// A copy without its marker.
fn unmarked(mut seen: ReceivedRequest) -> ReceivedRequest {
    assert_eq!(seen.get("x-gake-shadow"), "1");
    seen.headers.retain(|(name, _)| name != "x-gake-shadow");
    seen
}

fn same_headers(mut seen: ReceivedRequest) -> ReceivedRequest {
    seen.headers.sort();
    seen
}

#[test]
pub fn a_request_arrives_unchanged_at_both_backends() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    let response = send_raw(
        proxy.addr(),
        "GET //a/../b?x=%2f&&y HTTP/1.1\r\nHost: shop.test:81\r\nX-Twice: 1\r\nX-Twice: 2\r\n\
         Cookie: a=1\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: deflate\r\n\
         Proxy-Connection: x\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n",
    );
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(
        response.contains("via: 1.1 gake\r\n") && response.ends_with("\r\n\r\nhello"),
        "{response}"
    );
    until_count(&proxy, 0, Category::Ok, 1);
    let seen = master.requests().remove(0);
    assert_eq!(seen.line, "GET //a/../b?x=%2f&&y HTTP/1.1");
    for (name, values) in [
        ("host", &["shop.test:81"][..]),
        ("x-twice", &["1", "2"]),
        ("cookie", &["a=1"]),
        ("x-forwarded-for", &["10.0.0.1, 127.0.0.1"]),
        ("x-forwarded-proto", &["http"]),
        ("x-forwarded-host", &["shop.test:81"]),
        ("forwarded", &["for=127.0.0.1;host=\"shop.test:81\";proto=http"]),
        ("x-forwarded-port", &[&proxy.addr().port().to_string()]),
        ("x-real-ip", &["127.0.0.1"]),
    ] {
        assert_eq!(seen.all(name), values, "{name}");
    }
    assert!(seen.get("via").starts_with("1.1 gake ("), "{seen:?}");
    assert_eq!(seen.headers.len(), 11, "{seen:?}");
    assert_eq!(same_headers(unmarked(shadow.requests().remove(0))), same_headers(seen));
    stop(proxy);
}

/// A master that records heads as text, and responds with names in mixed case.
fn keeping_heads() -> (Backend, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heads);
    let master = Backend::raw(move |mut stream, _| {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while stream.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
            if head.ends_with(b"\r\n\r\n") {
                kept.lock().unwrap().push(String::from_utf8(std::mem::take(&mut head)).unwrap());
                let response = "HTTP/1.1 200 OK\r\nX-A: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\n\
                              CONTENT-LENGTH: 0\r\n\r\n";
                let _ = stream.write_all(response.as_bytes());
            }
        }
    });
    (master, heads)
}

#[test]
pub fn names_of_a_request_keep_their_case() {
    let (master, heads) = keeping_heads();
    let proxy = start(config(&master, &[]));
    let lines =
        ["HOST: h", "X-A: 1", "X-TWICE: 1", "x-twice: 2", "X-Forwarded-FOR: 10.0.0.1, 127.0.0.1"];
    let sent = lines.join("\r\n").replace(", 127.0.0.1", "");
    send_raw(proxy.addr(), format!("GET / HTTP/1.1\r\n{sent}\r\nConnection: close\r\n\r\n"));
    let head = heads.lock().unwrap().remove(0);
    for line in lines {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
    stop(proxy);
}

#[test]
pub fn names_of_a_response_keep_their_case() {
    let (master, _) = keeping_heads();
    let proxy = start(config(&master, &[]));
    let response = send_raw(proxy.addr(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    for line in ["X-A: 1", "Set-Cookie: a", "set-cookie: b", "CONTENT-LENGTH: 0"] {
        assert!(response.contains(&format!("\r\n{line}\r\n")), "{line}: {response}");
    }
    stop(proxy);
}

#[test]
pub fn host_and_forwarding_follow_the_settings() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.master.host = HostPolicy::Backend;
    config.shadows[0].backend.host = HostPolicy::Literal("other.test".parse().unwrap());
    config.forwarded = ForwardedPolicy::Off;
    let proxy = start(config);
    assert_eq!(get(proxy.addr(), "/").status, 200);
    until_count(&proxy, 0, Category::Ok, 1);
    assert_eq!(master.requests()[0].get("host"), master.addr.to_string());
    assert_eq!(shadow.requests()[0].get("host"), "other.test");
    assert_eq!(master.requests()[0].get("x-forwarded-for"), "");
    stop(proxy);
}

#[test]
pub fn responses_without_a_body_keep_the_connection() {
    let master = Backend::responding(|seen| match seen.line.split(' ').nth(1).unwrap() {
        "/204" => b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n".to_vec(),
        "/304" => {
            b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 99\r\n\r\n".to_vec()
        }
        "/302" => b"HTTP/1.1 302 Found\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/odd" => b"HTTP/1.1 299 Odd Thing\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ if seen.line.starts_with("HEAD") => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n".to_vec()
        }
        _ => ok("hello"),
    });
    let proxy = start(config(&master, &[]));
    let mut client = Client::new(proxy.addr());
    assert_eq!(client.get("/204").status, 204);
    let unmodified = client.get("/304");
    assert!(unmodified.status == 304 && unmodified.head.contains("etag: \"x\""));
    client.write("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.response(true);
    assert!(head.head.contains("content-length: 12345"), "{head:?}");
    let found = client.get("/302");
    assert!(
        found.status == 302 && found.head.contains("location: /hello"),
        "redirects are not followed"
    );
    assert!(
        client.get("/odd").head.starts_with("http/1.1 299 odd thing"),
        "the reason is unchanged"
    );
    assert_eq!(client.get("/").body, "hello");
    assert_eq!(master.requests().len(), 6);
    assert_eq!(master.connections(), 1, "one client needs one connection to the master");
    stop(proxy);
}

#[test]
pub fn bodies_stream_both_ways_and_large_ones_are_not_copied() {
    let master = Backend::responding(|seen| ok(&format!("got {}", seen.body.len())));
    let shadow = Backend::responding(|seen| ok(&format!("got {}", seen.body.len())));
    let mut config = config(&master, &[&shadow]);
    config.limits.shadow_body = 100_000;
    let proxy = start(config);
    assert_eq!(post(proxy.addr(), "/small", &"x".repeat(100_000)).body, "got 100000");
    assert_eq!(post(proxy.addr(), "/large", &"x".repeat(5_000_000)).body, "got 5000000");
    until_count(&proxy, 0, Category::Ok, 1);
    until_count(&proxy, 0, Category::Oversize, 1);
    let copies = shadow.requests();
    assert_eq!((copies.len(), copies[0].body.len()), (1, 100_000));
    stop(proxy);
}

#[test]
pub fn chunks_and_trailers_arrive_even_on_a_get() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                  3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
    let master = Backend::responding(move |_| response.into());
    let shadow = Backend::hello();
    let proxy = start(config(&master, &[&shadow]));
    let response = send_raw(
        proxy.addr(),
        "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: close, TE\r\nTrailer: X-T\r\n\
         Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nhi\r\n0\r\nX-T: 1\r\n\r\n",
    );
    assert!(response.contains("\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n"), "{response}");
    until_count(&proxy, 0, Category::Ok, 1);
    let seen = master.requests().remove(0);
    assert_eq!(seen.text(), "2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n");
    assert_eq!(seen.get("te"), "trailers");
    assert_eq!(shadow.requests()[0].text(), seen.text());
    stop(proxy);
}

#[test]
pub fn the_proxy_itself_sends_100_continue() {
    let master = Backend::responding(|seen| ok(&seen.text()));
    let proxy = start(config(&master, &[]));
    let mut client = Client::new(proxy.addr());
    client.write("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.response(false).status, 100);
    client.write("ok");
    assert_eq!(client.response(false).body, "ok");
    assert_eq!(master.requests()[0].get("expect"), "");
    let chunked = "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write(format!("PUT / HTTP/1.1\r\nHost: h\r\n{chunked}"));
    assert_eq!(client.response(false).status, 100);
    // Byte by byte, with a pipelined request.
    let (body, next) = ("2;x\r\nhi\r\n0\r\n\r\n", "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
    for byte in body[..body.len() - 1].bytes() {
        client.write([byte]);
    }
    client.write(format!("\n{next}"));
    let chunks = client.response(false).body;
    let data: String = chunks.chars().filter(char::is_ascii_alphabetic).collect();
    assert!(data == "hi" && chunks.ends_with("\r\n0\r\n\r\n"), "{chunks:?}");
    assert_eq!(client.response(false).body, "");
    assert_eq!(master.requests()[2].line, "GET /next HTTP/1.1");
    stop(proxy);
    // No 100 Continue without a master.
    let proxy = start(config(&Backend::refusing(), &[]));
    let request = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert!(send_raw(proxy.addr(), request).starts_with("HTTP/1.1 502"));
    stop(proxy);
}

#[test]
pub fn an_http10_client_gets_no_chunks() {
    let master = Backend::responding(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec()
    });
    let proxy = start(config(&master, &[]));
    let response = send_raw(proxy.addr(), "GET / HTTP/1.0\r\n\r\n");
    assert!(
        response.starts_with("HTTP/1.0 200 OK\r\n") && response.ends_with("\r\n\r\nhello"),
        "{response}"
    );
    assert!(!response.contains("chunked"), "{response}");
    stop(proxy);
}

#[test]
pub fn a_body_of_empty_lines_is_a_body() {
    let master = Backend::responding(|request| ok(&format!("{:?}", request.text())));
    let proxy = start(config(&master, &[]));
    let mut client = Client::new(proxy.addr());
    // Pipelined with the next request, and in separate writes.
    for pieces in [&["\r\nabcGET /x HTTP/1.1\r\nHost: h\r\n\r\n"][..], &["\n", "\nabc"]] {
        client.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
        for piece in pieces {
            std::thread::sleep(Duration::from_millis(20));
            client.write(piece);
        }
        let body = client.response(false).body;
        assert!(body.contains("abc") && body.contains("\\n"), "{body}");
        if pieces.len() == 1 {
            assert_eq!(client.response(false).body, "\"\"");
        }
    }
    stop(proxy);
}

#[test]
pub fn an_early_response_reaches_a_client_that_still_sends() {
    let master = Backend::raw(|mut stream, _| {
        let mut some = [0; 1000];
        let _ = stream.read(&mut some);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
        // Until the proxy stops sending.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let shadow = Backend::hello();
    let proxy = start(config(&master, &[&shadow]));
    let mut client = Client::new(proxy.addr());
    client.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nhello");
    let response = client.response(false);
    assert_eq!((response.status, response.body.as_str()), (413, "no"));
    drop(client);
    until_count(&proxy, 0, Category::Aborted, 1);
    stop(proxy);
}

#[test]
pub fn a_websocket_goes_to_the_master_only() {
    let master = Backend::raw(|mut stream, _| {
        let mut buffer = Vec::new();
        let asked = read_request(&mut stream, &mut buffer).unwrap();
        assert_eq!((asked.get("upgrade"), asked.get("connection")), ("websocket", "upgrade"));
        stream
            .write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                  Connection: Upgrade\r\n\r\nearly",
            )
            .unwrap();
        let mut piece = [0; 5];
        stream.read_exact(&mut piece).unwrap();
        stream.write_all(&piece).unwrap();
    });
    let shadow = Backend::hello();
    let proxy = start(config(&master, &[&shadow]));
    let mut client = Client::new(proxy.addr());
    client.write(
        "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    let switched = client.response(false);
    assert_eq!(switched.status, 101);
    assert!(switched.head.contains("upgrade: websocket"), "{switched:?}");
    client.write("bytes");
    assert_eq!(client.rest(), "earlybytes");
    // A tunnel lasts until both of its ends are closed.
    drop(client);
    assert_eq!(ledger(&proxy, 0).count(Category::Upgrade), 1);
    assert!(shadow.requests().is_empty());
    assert_eq!(stop(proxy).stats.upgrades, 1);
}

#[test]
pub fn http2_in_cleartext_is_not_tunnelled() {
    let master = Backend::hello();
    let proxy = start(config(&master, &[]));
    let response = send_raw(
        proxy.addr(),
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade, HTTP2-Settings\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
    );
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let seen = master.requests().remove(0);
    assert_eq!((seen.get("upgrade"), seen.get("http2-settings")), ("", ""));
    stop(proxy);
}

#[test]
pub fn an_http10_client_does_not_switch_protocols() {
    let master = Backend::responding(|seen| {
        if seen.get("upgrade").is_empty() {
            return ok("hello");
        }
        b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".to_vec()
    });
    let proxy = start(config(&master, &[]));
    let response = send_raw(
        proxy.addr(),
        "GET /ws HTTP/1.0\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert!(response.starts_with("HTTP/1.0 200") && response.ends_with("hello"), "{response}");
    assert_eq!(stop(proxy).stats.upgrades, 0);
}

#[test]
pub fn only_what_policy_allows_is_copied() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.shadows[0].methods = vec!["GET".parse().unwrap()];
    let proxy = start(config);
    assert_eq!(post(proxy.addr(), "/", "x").status, 200);
    assert_eq!(get(proxy.addr(), "/a").status, 200);
    // The kill switch also discards queued copies.
    until_count(&proxy, 0, Category::Ok, 1);
    proxy.control().set_percentage("s0", 0.0, Duration::ZERO).unwrap();
    assert_eq!(get(proxy.addr(), "/b").status, 200);
    proxy.control().kill(None).unwrap();
    assert_eq!(get(proxy.addr(), "/c").status, 200);
    let summary = stop(proxy);
    let counts = [Category::Unsafe, Category::Ok, Category::SampledOut, Category::Killed]
        .map(|category| summary.ledgers[0].count(category));
    assert_eq!(counts, [1; 4], "{}", summary.ledgers[0]);
    assert_eq!(shadow.requests().len(), 1);
}

#[test]
fn repeated_responses_of_a_shadow_are_counted_by_their_own_heads() {
    let answer = |seen: &ReceivedRequest| match seen.line.split(' ').collect::<Vec<_>>()[..] {
        ["HEAD", ..] => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec(),
        [_, "/gone", _] => b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_vec(),
        [_, "/parts", _] => {
            b"HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec()
        }
        _ => ok("hello"),
    };
    let (master, shadow) = (Backend::hello(), Backend::responding(answer));
    let mut config = config(&master, &[&shadow]);
    // One connection, on which every head but the first of its kind is known.
    (config.threads, config.shadows[0].connections) = (1, 1);
    let proxy = start(config);
    for _ in 0..4 {
        for path in ["/", "/gone", "/parts"] {
            assert_eq!(get(proxy.addr(), path).body, "hello");
        }
    }
    // A known head, but without a body.
    for _ in 0..2 {
        send_raw(proxy.addr(), "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    }
    until_count(&proxy, 0, Category::Ok, 14);
    let ledger = &stop(proxy).ledgers[0];
    assert_eq!((ledger.classes, ledger.bytes_in), ([0, 0, 6, 0, 4, 4], 4 * (5 + 2 + 3)));
    assert_eq!(shadow.connections(), 1, "each response was read to its end");
}
