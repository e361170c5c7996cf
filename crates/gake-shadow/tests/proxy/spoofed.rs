//! Spoofed headers (markers, ambiguous names, hosts), and loops.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use gake_shadow::config::{Backend as BackendConfig, HostPolicy, MarkerSecret, parse_marker};
use gake_shadow::{Category, Proxy, ProxyStartError};

use crate::backend::{Backend, ReceivedRequest, ok, read_request};
use crate::client::{Client, get, send_raw};
use crate::{config, start, stop, until, until_count};

/// The headers that a lenient server reads as the marker.
fn markers(seen: &ReceivedRequest) -> Vec<(String, String)> {
    let lax = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let all = seen.headers.iter().filter(|(name, _)| lax(name) == "x-gake-shadow");
    all.cloned().collect()
}

#[test]
fn a_client_cannot_pass_for_a_copy() {
    let ours = ("x-gake-shadow".to_owned(), "1".to_owned());
    for underscores in [false, true] {
        for lines in [
            "X-Gake-Shadow: 1",
            "x-gake-shadow: 0\r\nX-GAKE-SHADOW: yes",
            "X_Gake_Shadow: 1\r\nX-Gake_Shadow: 1",
            "X.Gake.Shadow: 1\r\nX~Gake!Shadow: 1",
            "X-Gake-Shadow: 1\r\nConnection: X-Gake-Shadow",
            "Connection: X-Gake-Shadow, X_Gake_Shadow",
            "X-Gake-Shadow:\t1;t=1700000000;hmac=00",
        ] {
            let (master, shadow) = (Backend::hello(), Backend::hello());
            let mut config = config(&master, &[&shadow]);
            config.underscores_in_headers = underscores;
            let proxy = start(config);
            let head = format!("Host: h\r\nConnection: close\r\n{lines}\r\n");
            send_raw(proxy.addr(), format!("GET / HTTP/1.1\r\n{head}\r\n"));
            let chunked = "Transfer-Encoding: chunked\r\nTrailer: X-Gake-Shadow, X_Gake_Shadow";
            let behind = "X-Gake-Shadow: 1\r\nX_Gake_Shadow: 1\r\nHost: other";
            send_raw(
                proxy.addr(),
                format!(
                    "POST / HTTP/1.1\r\n{head}{chunked}\r\n\r\n2\r\nhi\r\n0\r\n{behind}\r\n\r\n"
                ),
            );
            until_count(&proxy, 0, Category::Ok, 2);
            let (originals, copies) = (master.requests(), shadow.requests());
            assert_eq!((originals.len(), copies.len()), (2, 2), "{lines}");
            for seen in &originals {
                assert_eq!(markers(seen), [], "{lines}");
            }
            for seen in &copies {
                assert_eq!(markers(seen), std::slice::from_ref(&ours), "{lines}");
            }
            for seen in originals.iter().chain(&copies) {
                assert!(!seen.text().to_lowercase().contains("gake"), "{lines}: {}", seen.text());
                assert!(!seen.text().contains("other"), "{lines}: {}", seen.text());
            }
            stop(proxy);
        }
    }
}

#[test]
fn each_shadow_gets_only_its_own_marker() {
    let (master, shadows) = (Backend::hello(), [Backend::hello(), Backend::hello()]);
    let mut config = config(&master, &[&shadows[0], &shadows[1]]);
    config.shadows[0].marker = parse_marker("X-Copy: yes").unwrap();
    config.shadows[1].marker = None;
    let proxy = start(config);
    send_raw(
        proxy.addr(),
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nx_copy: no\r\nX-Gake-Shadow: 1\r\n\r\n",
    );
    (0..2).for_each(|shadow| until_count(&proxy, shadow, Category::Ok, 1));
    let marker = |backend: &Backend| {
        let seen = backend.requests().remove(0);
        assert_eq!(markers(&seen), []);
        assert!(seen.all("x_copy").is_empty());
        seen.get("x-copy").to_owned()
    };
    assert_eq!([&master, &shadows[0], &shadows[1]].map(marker), ["", "yes", ""]);
    stop(proxy);
}

#[test]
fn a_signed_marker_has_time_and_signature() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[&shadow]);
    config.marker_secret = Some(MarkerSecret::new("a secret that services share").unwrap());
    let proxy = start(config);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let before = now();
    let mut client = Client::new(proxy.addr());
    for target in ["/a?b", "/a?b", "/c"] {
        client.get(target);
    }
    until_count(&proxy, 0, Category::Ok, 3);
    let mut tags = Vec::new();
    for seen in shadow.requests() {
        let marker = seen.get("x-gake-shadow").to_owned();
        let fields: Vec<&str> = marker.split(';').collect();
        let [value, time, tag] = fields[..] else { panic!("{marker}") };
        let time: u64 = time.strip_prefix("t=").unwrap().parse().unwrap();
        assert!(value == "1" && (before..=now()).contains(&time), "{marker}");
        let tag = tag.strip_prefix("hmac=").unwrap().to_owned();
        assert!(tag.len() == 64 && tag.bytes().all(|byte| byte.is_ascii_hexdigit()), "{marker}");
        tags.push((seen.line, tag));
    }
    tags.sort();
    assert_ne!(tags[0].1, tags[2].1, "the target is signed");
    assert!(master.requests().iter().all(|seen| markers(seen).is_empty()));
    stop(proxy);
}

#[test]
fn ambiguous_names_are_removed_by_default() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\
                   Transfer_Encoding: chunked\r\nContent.Length: 9\r\nX_User: root\r\n\r\nhi";
    for (kept, odd) in [(false, 3), (true, 0)] {
        let (master, shadow) = (Backend::hello(), Backend::hello());
        let mut config = config(&master, &[&shadow]);
        config.underscores_in_headers = kept;
        let proxy = start(config);
        send_raw(proxy.addr(), request);
        until_count(&proxy, 0, Category::Ok, 1);
        for seen in master.requests().iter().chain(&shadow.requests()) {
            let names = ["transfer_encoding", "content.length", "x_user"];
            assert_eq!(names.map(|name| seen.all(name).len()), [usize::from(kept); 3]);
            assert_eq!(seen.text(), "hi");
        }
        assert_eq!(stop(proxy).stats.odd_names, odd);
    }
}

#[test]
fn a_backend_always_gets_a_host() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    send_raw(proxy.addr(), "GET / HTTP/1.0\r\n\r\n");
    until_count(&proxy, 0, Category::Ok, 1);
    for backend in [&master, &shadow] {
        let seen = backend.requests().remove(0);
        assert_eq!(seen.line, "GET / HTTP/1.1");
        assert_eq!(seen.get("host"), backend.addr.to_string());
        assert_eq!(seen.get("x-forwarded-host"), "");
    }
    stop(proxy);
    let mut config = config(&master, &[]);
    config.master.host = HostPolicy::Literal("shop.test".parse().unwrap());
    let proxy = start(config);
    send_raw(proxy.addr(), "GET / HTTP/1.0\r\n\r\n");
    assert_eq!(master.requests()[1].get("host"), "shop.test");
    stop(proxy);
}

#[test]
fn an_absolute_target_does_not_hide_two_hosts() {
    let master = Backend::hello();
    let proxy = start(config(&master, &[]));
    for (hosts, status) in [
        ("Host: a\r\nHost: b\r\n", "400"),
        ("Host: b\r\nHost: b\r\n", "400"),
        ("", "400"),
        ("Host: a/b\r\n", "400"),
        ("Host: a\r\n", "200"),
    ] {
        let response = send_raw(
            proxy.addr(),
            format!("GET http://b/ HTTP/1.1\r\nConnection: close\r\n{hosts}\r\n"),
        );
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{hosts:?}: {response}");
    }
    assert_eq!(master.requests().iter().map(|seen| seen.get("host")).collect::<Vec<_>>(), ["b"]);
    stop(proxy);
}

#[test]
fn keep_alive_is_promised_to_http10_clients_only_if_kept() {
    let master = Backend::responding(|seen| match seen.line.split(' ').nth(1).unwrap() {
        "/known" => ok("hello"),
        "/none" => b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(),
        _ => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec()
        }
    });
    let proxy = start(config(&master, &[]));
    let ask = |path: &str, connection: &str| {
        format!("GET {path} HTTP/1.0\r\nHost: h\r\nConnection: {connection}\r\n\r\n")
    };
    for path in ["/known", "/none"] {
        let both = send_raw(proxy.addr(), ask(path, "keep-alive") + &ask(path, "close"));
        assert_eq!(both.matches("HTTP/1.0 ").count(), 2, "{both}");
        assert_eq!(both.matches("connection: keep-alive\r\n").count(), 1, "{both}");
    }
    let one = send_raw(proxy.addr(), ask("/unknown", "keep-alive") + &ask("/unknown", "close"));
    assert_eq!(one.matches("HTTP/1.0 ").count(), 1, "{one}");
    assert!(!one.contains("connection:"), "{one}");
    assert!(one.ends_with("\r\n\r\nhello"), "{one}");
    let bad = send_raw(proxy.addr(), ask("*", "keep-alive") + &ask("/known", "close"));
    assert!(bad.starts_with("HTTP/1.0 400") && !bad.contains("connection:"), "{bad}");
    assert_eq!(bad.matches("HTTP/1.0 ").count(), 1, "{bad}");
    stop(proxy);
}

#[test]
fn a_proxy_is_not_its_own_backend() {
    // A free port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let shadow = Backend::hello();
    for (listen, url) in [
        (free, format!("http://{free}")),
        (free, format!("http://localhost:{}", free.port())),
        (free, format!("http://0.0.0.0:{}", free.port())),
        (([0, 0, 0, 0], free.port()).into(), format!("http://127.0.0.5:{}", free.port())),
    ] {
        let own = BackendConfig::new("own", &url).unwrap();
        let mut as_master = config(&shadow, &[]);
        as_master.master = own.clone();
        let mut as_shadow = config(&shadow, &[&shadow]);
        as_shadow.shadows[0].backend = own;
        for mut config in [as_master, as_shadow] {
            config.listen = listen;
            match Proxy::new(config).unwrap().start().err() {
                Some(ProxyStartError::Loop { name, addr }) => {
                    assert_eq!((&*name, addr), ("own", listen))
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_looping_request_is_refused() {
    // A backend that forwards everything to the proxy.
    let back: Arc<OnceLock<std::net::SocketAddr>> = Arc::default();
    let to = Arc::clone(&back);
    let master = Backend::raw(move |mut stream, _| {
        let mut buffer = Vec::new();
        while let Some(seen) = read_request(&mut stream, &mut buffer) {
            let mut again = TcpStream::connect(*to.wait()).unwrap();
            let lines: String =
                seen.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            again.write_all(format!("{}\r\n{lines}\r\n", seen.line).as_bytes()).unwrap();
            if std::io::copy(&mut again, &mut stream).is_err() {
                return;
            }
        }
    });
    let proxy = start(config(&master, &[]));
    back.set(proxy.addr()).unwrap();
    let response = get(proxy.addr(), "/");
    assert_eq!(response.status, 508, "{response:?}");
    until("both are counted", || proxy.control().stats().requests == 2);
    let stats = stop(proxy).stats;
    assert_eq!((stats.requests, stats.refused), (2, 1));
}
