//! The admin service: public to read, changes with the token.

use std::io::Read;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gake_shadow::Category;

use crate::backend::Backend;
use crate::client::{Client, Response, get};
use crate::{config, start, stop, until, until_count};

fn ask(addr: SocketAddr, method: &str, path: &str, line: &str) -> Response {
    let mut client = Client::new(addr);
    client.write(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{line}\r\n"));
    client.response(false)
}

#[test]
fn changes_need_the_token() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.admin = Some("127.0.0.1:0".parse().unwrap());
    config.admin_token = Some("secret".to_owned());
    let proxy = start(config);
    let admin = proxy.admin_addr().unwrap();
    let token = "Authorization: Bearer secret\r\n";
    for line in [
        "",
        "Authorization: Bearer secre\r\n",
        "Authorization: Bearer secret2\r\n",
        "Authorization: secret\r\n",
    ] {
        for path in ["/kill", "/resume", "/percentage?shadow=s0&value=1"] {
            assert_eq!(ask(admin, "POST", path, line).status, 401, "{path} {line}");
        }
    }
    assert!(!proxy.control().shadows()[0].killed);
    assert_eq!(ask(admin, "POST", "/kill", token).status, 200);
    assert_eq!(get(proxy.addr(), "/").status, 200);
    assert_eq!(ask(admin, "POST", "/resume?shadow=s0", token).status, 200);
    assert_eq!(get(proxy.addr(), "/").status, 200, "only the shadow's own switch is off");
    assert_eq!(ask(admin, "POST", "/resume", token).status, 200);
    assert_eq!(get(proxy.addr(), "/").status, 200);
    until_count(&proxy, 0, Category::Ok, 1);
    assert_eq!(ask(admin, "POST", "/percentage?shadow=s0&value=25", token).status, 200);
    assert!((proxy.control().shadows()[0].percentage - 25.0).abs() < 1e-9);
    assert_eq!(ask(admin, "POST", "/percentage?shadow=s0&value=75&over=300ms", token).status, 200);
    until("the ramp's end", || (proxy.control().shadows()[0].percentage - 75.0).abs() < 1e-9);
    for (path, status) in [
        ("/percentage?shadow=s0&value=101", 400),
        ("/percentage?shadow=s0&value=NaN", 400),
        ("/percentage?shadow=unknown&value=1", 404),
        ("/percentage?value=1", 400),
        ("/percentage?shadow=s0&value=1&over=x", 400),
        ("/kill?shadow=unknown", 404),
        ("/kill?x=y", 400),
        ("/status", 405),
        ("/nothing", 404),
    ] {
        assert_eq!(ask(admin, "POST", path, token).status, status, "{path}");
    }
    stop(proxy);
}

#[test]
fn reading_needs_no_token() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.admin = Some("127.0.0.1:0".parse().unwrap());
    let proxy = start(config);
    let admin = proxy.admin_addr().unwrap();
    assert_eq!(get(proxy.addr(), "/").status, 200);
    until_count(&proxy, 0, Category::Ok, 1);
    let ledger = ask(admin, "GET", "/ledger", "").body;
    assert!(ledger.contains("\"ok\": 1") && ledger.contains("\"balance\": 0"), "{ledger}");
    let status = ask(admin, "GET", "/status", "").body;
    assert!(
        status.contains("\"requests\": 1") && status.contains("\"breaker_open\": false"),
        "{status}"
    );
    let metrics = ask(admin, "GET", "/metrics", "").body;
    for line in [
        "gake_shadow_proxy_requests_total 1\n",
        "gake_shadow_proxy_master_answers_total{class=\"2xx\"} 1\n",
        "gake_shadow_proxy_shadow_requests_total{shadow=\"s0\",outcome=\"ok\"} 1\n",
        "gake_shadow_proxy_shadow_percentage{shadow=\"s0\"} 100\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    assert_eq!(
        ask(admin, "POST", "/kill", "Authorization: Bearer \r\n").status,
        401,
        "changes are disabled without a token"
    );
    stop(proxy);
}

#[test]
fn only_local_hosts_are_accepted() {
    let master = Backend::hello();
    let mut config = config(&master, &[]);
    config.admin = Some("127.0.0.1:0".parse().unwrap());
    let proxy = start(config);
    let admin = proxy.admin_addr().unwrap();
    let status = |head: &[u8]| {
        let mut client = Client::new(admin);
        client.write([head, b"\r\n"].concat());
        client.response(false).status
    };
    for known in [
        &b"GET /status HTTP/1.1\r\nHost: localhost\r\n"[..],
        b"GET /status HTTP/1.1\r\nHost: 127.0.0.1:9901\r\n",
        b"GET /status HTTP/1.0\r\nHost: [::1]\r\n",
    ] {
        assert_eq!(status(known), 200, "{}", known.escape_ascii());
    }
    for refused in [
        &b"GET /status HTTP/1.1\r\nHost: evil.test\r\n"[..],
        b"GET /status HTTP/1.1\r\nHost: evil\xff.test\r\n",
        b"GET /status HTTP/1.1\r\nHost: localhost\xe9\r\n",
        b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n",
        b"GET /status HTTP/1.1\r\nHost: evil.test\r\nHost: localhost\r\n",
        b"GET /status HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n",
        b"GET http://evil.test/status HTTP/1.1\r\nHost: localhost\r\n",
        b"GET http://localhost/status HTTP/1.1\r\nHost: evil.test\r\n",
        b"GET http://localhost/status HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /status HTTP/1.1\r\nHost: \r\n",
        b"GET /status HTTP/1.1\r\n",
        b"GET /status HTTP/1.0\r\n",
    ] {
        assert!(matches!(status(refused), 400 | 403), "{}", refused.escape_ascii());
    }
    stop(proxy);
}

#[test]
fn incomplete_requests_do_not_block_the_kill_switch() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.admin = Some("127.0.0.1:0".parse().unwrap());
    config.admin_token = Some("secret".to_owned());
    let proxy = start(config);
    let admin = proxy.admin_addr().unwrap();
    let half = || {
        let mut client = Client::new(admin);
        client.write("POST /kill HTTP/1.1\r\nHost: localhost\r\nX");
        client
    };
    let begun = Instant::now();
    let mut crowd: Vec<Client> = Vec::new();
    for _ in 0..5 {
        crowd.extend((0..64).map(|_| half()));
        assert_eq!(ask(admin, "GET", "/status", "").status, 200);
        let token = "Authorization: Bearer secret\r\n";
        assert_eq!(ask(admin, "POST", "/kill", token).status, 200);
    }
    // Waiting for them would take seconds per round; the limit allows for a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(proxy.control().shadows()[0].killed);
    // All of them are closed.
    for client in &mut crowd {
        assert!(!matches!(client.0.read(&mut [0]), Ok(1..)), "a response to an incomplete request");
    }
    stop(proxy);
}
