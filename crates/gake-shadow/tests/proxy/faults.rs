//! Failing masters, aborted uploads, and shutdown.

use std::io::{Read, Write};
use std::time::Duration;

use expect_test::expect;
use gake_shadow::Category;

use crate::backend::{Backend, ok, read_request};
use crate::client::{Client, get, send_raw};
use crate::{LONG, config, start, stop, until_count};

/// The proxy's response in place of the master's.
fn error_page(master: &Backend, first_byte: Duration) -> String {
    let mut config = config(master, &[]);
    config.timeouts.first_byte = first_byte;
    let proxy = start(config);
    let response = get(proxy.addr(), "/");
    assert!(response.body.contains(&response.status.to_string()), "{response:?}");
    assert_eq!(stop(proxy).stats.master_faults, 1);
    response.body
}

#[test]
pub fn a_master_that_fails_is_a_502_and_a_slow_one_a_504() {
    let mut pages = error_page(&Backend::refusing(), LONG);
    for bytes in [
        "",
        "HTTP/1.1 2",
        "SSH-2.0-x\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ] {
        let master = Backend::raw(move |mut stream, _| {
            read_request(&mut stream, &mut Vec::new());
            let _ = stream.write_all(bytes.as_bytes());
        });
        pages += &error_page(&master, LONG);
    }
    // Neither an interim response nor an incomplete head is a response.
    for bytes in [&b""[..], b"HTTP/1.1 103 Early\r\n\r\n", b"HTTP/1.1 200 OK\r\nX"] {
        let master = Backend::raw(move |mut stream, _| {
            read_request(&mut stream, &mut Vec::new());
            let _ = stream.write_all(bytes);
            drop(stream.read_to_end(&mut Vec::new()));
        });
        pages += &error_page(&master, Duration::from_millis(100));
    }
    expect![[r#"
        gake: 502 Bad Gateway backend "master": it refused the connection
        gake: 502 Bad Gateway backend "master": it closed the connection before responding
        gake: 502 Bad Gateway backend "master": it closed the connection before responding
        gake: 502 Bad Gateway backend "master": malformed: not an HTTP/1.1 response
        gake: 502 Bad Gateway backend "master": malformed: an unsupported response
        gake: 504 Gateway Timeout backend "master": it did not respond in time
        gake: 504 Gateway Timeout backend "master": it did not respond in time
        gake: 504 Gateway Timeout backend "master": it did not respond in time
    "#]]
    .assert_eq(&pages);
}

#[test]
pub fn a_response_that_ends_early_does_so_for_the_client() {
    let master = Backend::raw(|mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    });
    let proxy = start(config(&master, &[]));
    let response = send_raw(proxy.addr(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(response.ends_with("hello") && response.contains("Content-Length: 10"), "{response}");
    assert_eq!(stop(proxy).stats.broken_responses, 1);
}

#[test]
pub fn a_response_that_ends_early_is_an_error_to_an_http10_client() {
    let master = Backend::raw(|mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    });
    let proxy = start(config(&master, &[]));
    let mut client = Client::new(proxy.addr());
    client.write("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    let mut response = Vec::new();
    let end = Read::read_to_end(&mut client.0, &mut response);
    let kind = end.map_err(|error| error.kind());
    assert_eq!(kind, Err(std::io::ErrorKind::ConnectionReset), "{response:?}");
    assert_eq!(stop(proxy).stats.broken_responses, 1);
}

#[test]
pub fn a_response_cut_by_shutdown_is_an_error_to_an_http10_client() {
    let master = Backend::raw(|mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        // Never sends the rest.
        let _ = stream.read(&mut [0]);
    });
    let proxy = start(config(&master, &[]));
    let mut client = Client::new(proxy.addr());
    client.write("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    let (mut response, mut part) = (Vec::new(), [0; 1024]);
    while !response.ends_with(b"hello") {
        let read = client.0.read(&mut part).unwrap();
        assert_ne!(read, 0, "{response:?}");
        response.extend_from_slice(&part[..read]);
    }
    drop(proxy.stop(Duration::ZERO));
    let end = client.0.read(&mut part).map_err(|error| error.kind());
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
pub fn a_connection_closed_by_the_master_is_retried() {
    // Each connection serves one request, and closes at the second.
    let master = Backend::raw(move |mut stream, _| {
        let mut buffer = Vec::new();
        if read_request(&mut stream, &mut buffer).is_some() {
            stream.write_all(&ok("hello")).unwrap();
        }
        read_request(&mut stream, &mut buffer);
    });
    let shadow = Backend::hello();
    for shadows in [&[][..], &[&shadow]] {
        let proxy = start(config(&master, shadows));
        let mut client = Client::new(proxy.addr());
        for _ in 0..5 {
            assert_eq!(client.get("/").body, "hello");
        }
        assert_eq!(stop(proxy).stats.stale_reconnects, 4);
    }
}

#[test]
pub fn an_aborted_upload_is_not_copied() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    for head in
        ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
    {
        let mut client = Client::new(proxy.addr());
        client.write(format!("POST / HTTP/1.1\r\nHost: h\r\n{head}"));
        drop(client);
    }
    until_count(&proxy, 0, Category::Aborted, 2);
    assert!(master.requests().is_empty() && shadow.requests().is_empty());
    stop(proxy);
}

#[test]
pub fn a_draining_proxy_finishes_running_requests() {
    let master = Backend::responding(|_| {
        std::thread::sleep(Duration::from_millis(300));
        ok("hello")
    });
    let proxy = start(config(&master, &[]));
    let addr = proxy.addr();
    let asking = std::thread::spawn(move || get(addr, "/").body);
    crate::until("asked", || proxy.control().stats().requests == 1);
    let idle = Client::new(addr);
    stop(proxy);
    assert_eq!(asking.join().unwrap(), "hello");
    assert!(std::net::TcpStream::connect(addr).is_err(), "no new clients");
    drop(idle);
}
