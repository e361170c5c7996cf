//! Tests on heads.

use super::*;
use crate::config::{Backend, Config};

const HEAD_BYTES: usize = 8 << 10;

fn read_by(
    forwarded: ForwardedPolicy,
    head_bytes: usize,
    request: &[u8],
) -> (Result<ClientRequest, Rejection>, String) {
    let config = Config::new(Backend::new("m", "http://h").unwrap());
    let (inbound, loops) = (InboundFilter::new(&config), LoopDetector::new());
    let rules = RequestRules { inbound: &inbound, loops: &loops, forwarded, head_bytes };
    let mut origin = ClientOrigin::new("192.0.2.1:5".parse().unwrap(), 8080, false);
    let via = std::str::from_utf8(loops.via()).unwrap().to_owned();
    (read(request, rules, &mut origin), via)
}

fn read_one(request: &str) -> Result<ClientRequest, Rejection> {
    read_by(ForwardedPolicy::Append, HEAD_BYTES, request.as_bytes()).0
}

/// The status of the response to a rejected request.
fn status(request: &str) -> Option<u16> {
    let rejection = read_one(request).err()?;
    Some(rejection.into_refusal().into_text().0.as_u16())
}

/// The head for backends.
fn passed_by(forwarded: ForwardedPolicy, request: &str) -> String {
    let (request, via) = read_by(forwarded, HEAD_BYTES, request.as_bytes());
    let head = String::from_utf8(request.unwrap().head.bytes().to_vec()).unwrap();
    head.replace(&format!("via: {via}\r\n"), "via: us\r\n")
}

fn passed(request: &str) -> String {
    passed_by(ForwardedPolicy::Append, request)
}

/// A POST with these lines.
fn post(lines: &str) -> String {
    format!("POST /a?b HTTP/1.1\r\nHost: h\r\n{lines}\r\n")
}

const ADDED: &str = "x-forwarded-for: 192.0.2.1\r\nx-forwarded-proto: http\r\n\
                     x-forwarded-port: 8080\r\nx-real-ip: 192.0.2.1\r\n\
                     x-forwarded-host: h\r\n\
                     forwarded: for=192.0.2.1;host=\"h\";proto=http\r\nvia: us\r\n\r\n";

#[test]
fn a_head_is_rewritten_without_hop_by_hop_headers() {
    let request = "GET /a/../b?c=%2F HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nX-TWICE:  2 \r\n\
                   Keep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: y\r\n\
                   X-Gake-Shadow: 1\r\nConnection: Keep-Alive\r\n\r\n";
    let expected = "GET /a/../b?c=%2F HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nX-TWICE: 2\r\n";
    assert_eq!(passed(request), format!("{expected}{ADDED}"));
    // Backends get HTTP/1.1 in any case.
    let old = "GET / HTTP/1.0\r\nHost: h\r\n\r\n";
    assert_eq!(passed(old), format!("GET / HTTP/1.1\r\nHost: h\r\n{ADDED}"));
    // The coding in lower case, and no expectation.
    let chunked = post("Expect: 100-Continue\r\nTransfer-Encoding: chunKed\r\n");
    let start = "POST /a?b HTTP/1.1\r\nHost: h\r\n";
    assert_eq!(passed(&chunked), format!("{start}Transfer-Encoding: chunked\r\n{ADDED}"));
    // Bare LF, and a pipelined request.
    let bare = "HEAD / HTTP/1.1\nHost: h\n\nGET /next HTTP/1.1\r\n";
    assert_eq!(passed(bare), format!("HEAD / HTTP/1.1\r\nHost: h\r\n{ADDED}"));
    let hop = post(
        "Connection: close, X-Private, host\r\nX-PRIVATE: 1\r\nX-Other: 2\r\nTE: trailers, deflate\r\n\
         Connection: x-other, te\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nX-Kept: 3\r\nX.Y: 1\r\n",
    );
    assert_eq!(passed(&hop), format!("{start}TE: trailers\r\nX-Kept: 3\r\n{ADDED}"));
    assert_eq!(read_one(&hop).unwrap().odd_names, 1);
    // `Connection` can nominate a forwarding header.
    let named = post("X-Forwarded-For: 10.0.0.1\r\nConnection: x-forwarded-for\r\n");
    assert_eq!(passed(&named), format!("{start}{ADDED}"));
}

#[test]
fn forwarding_headers_are_appended_replaced_or_kept() {
    let before = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\n\
                  X-Forwarded-Proto: https\r\nX-Forwarded-Port: 99\r\nX-Real-IP: 10.0.0.1\r\n\
                  X-Forwarded-Host: o\r\nX-Forwarded-Prefix: /p\r\nTrue-Client-IP: 1\r\n\
                  Forwarded: for=10.0.0.1\r\n";
    let start = "POST /a?b HTTP/1.1\r\nHost: h\r\n";
    assert_eq!(
        passed(&post(before)),
        format!(
            "{start}X-Forwarded-Proto: https\r\nX-Forwarded-Port: 99\r\n\
             X-Real-IP: 10.0.0.1\r\nX-Forwarded-Host: o\r\nX-Forwarded-Prefix: /p\r\n\
             True-Client-IP: 1\r\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 192.0.2.1\r\n\
             Forwarded: for=10.0.0.1, for=192.0.2.1;host=\"h\";proto=http\r\nvia: us\r\n\r\n"
        )
    );
    assert_eq!(passed_by(ForwardedPolicy::Replace, &post(before)), format!("{start}{ADDED}"));
    let off = passed_by(ForwardedPolicy::Off, &post(before));
    assert_eq!(off, format!("{start}{before}via: us\r\n\r\n"));
}

#[test]
fn ambiguous_requests_are_refused() {
    let get = |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\n{lines}\r\n");
    let host = "Host: h\r\n";
    assert_eq!(status(&get("/", host)), None);
    assert_eq!(status(&get("/", "")), Some(400));
    assert_eq!(status(&get("/", "Host: h\r\nHost: h\r\n")), Some(400));
    assert_eq!(status(&get("http://b/", host)), None);
    assert_eq!(status(&get("http://b/", "")), Some(400), "HTTP/1.1 requires Host");
    assert_eq!(status(&get("http://b/", "Host: h\r\nHost: h\r\n")), Some(400));
    assert_eq!(status(&get("http://b/", "Host: a b\r\n")), Some(400));
    for bad in ["a b", "a/b", "u@h", "h?x", "a,b", "<h>", "a%b", "h:1:2", "["] {
        assert_eq!(status(&get("/", &format!("Host: {bad}\r\n"))), Some(400), "{bad}");
    }
    for bad in ["gzip, chunked", "chunked, chunked"] {
        assert_eq!(status(&post(&format!("Transfer-Encoding: {bad}\r\n"))), Some(501), "{bad}");
    }
    assert_eq!(status(&get("*", host)), Some(400));
    assert_eq!(status(&get("h:80", host)), Some(400));
    assert_eq!(status(&get("ftp://h/x", host)), Some(400));
    assert_eq!(status(&get("http://u@h/x", host)), Some(400));
    assert_eq!(status("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"), Some(501));
    assert_eq!(status("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), None);
}

#[test]
fn a_path_is_unchanged_and_a_url_becomes_one() {
    let read = |target: &str| {
        let request = read_one(&format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n")).unwrap();
        let host = request.head.values("host").next().unwrap_or_default();
        (request.head.target().to_owned(), String::from_utf8(host.to_vec()).unwrap())
    };
    for path in ["//a/../b?x=%2f", "/%00?", "/a;b=c?d=e&&f", "/?", "/{a}|b"] {
        assert_eq!(read(path), (path.to_owned(), "other".to_owned()));
    }
    let url = |path: &str, host: &str| (path.to_owned(), host.to_owned());
    assert_eq!(read("http://shop:81//x/?y"), url("//x/?y", "shop:81"));
    // An empty path before a fragment.
    assert_eq!(read("http://shop#"), url("/", "shop"));
    let old = read_one("GET http://shop/ HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(old.head.values("host").collect::<Vec<_>>(), [b"shop"]);
    assert!(!read_one("GET / HTTP/1.0\r\n\r\n").unwrap().head.has_host());
}

#[test]
fn the_framing_is_unambiguous() {
    let framing = |lines: &str| read_one(&post(lines)).map(|head| (head.body, head.closes)).ok();
    assert_eq!(framing(""), Some((Framing::Length(0), false)));
    assert_eq!(framing("Content-Length: 5\r\n"), Some((Framing::Length(5), false)));
    for same in ["Content-Length: 5\r\ncontent-length: 5\r\n", "Content-Length: 0005\r\n"] {
        let head = read_one(&post(same)).unwrap().head;
        assert_eq!(head.values("content-length").collect::<Vec<_>>(), [b"5"], "{same}");
    }
    for both in [
        "Content-Length: 5\r\nTransfer-Encoding: chunKed\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: x\r\n",
    ] {
        assert_eq!(framing(both), Some((Framing::Chunked, true)), "{both}");
        assert!(!read_one(&post(both)).unwrap().head.has("content-length"), "{both}");
    }
    for bad in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        "X: \u{0}\r\n",
        " folded\r\n",
        "X : 1\r\n",
    ] {
        let read = read_one(&post(bad));
        assert!(matches!(read, Err(Rejection::Malformed(StatusCode::BAD_REQUEST))), "{bad}");
    }
    assert_eq!(status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(400));
}

#[test]
fn a_connection_closes_if_any_line_says_so() {
    let closes = |lines: &str| read_one(&post(lines)).unwrap().closes;
    assert!(!closes("Connection: x-hop\r\n"));
    assert!(closes("Connection: x, Close\r\nConnection: keep-alive\r\n"));
    let old = |lines: &str| read_one(&format!("GET / HTTP/1.0\r\n{lines}\r\n")).unwrap().closes;
    assert!(old("") && !old("Connection: Keep-Alive\r\n"));
    assert!(old("Connection: close\r\nConnection: keep-alive\r\n"));
}

#[test]
fn protocols_are_switched_except_to_http2() {
    let upgrade = |line: &str, lines: &str| {
        read_one(&format!("{line}\r\nHost: h\r\n{lines}\r\n")).unwrap().upgrade
    };
    let meant = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n";
    assert_eq!(upgrade("GET / HTTP/1.1", meant).as_deref(), Some(&b"websocket"[..]));
    assert_eq!(upgrade("HEAD / HTTP/1.1", meant), None);
    assert_eq!(upgrade("GET / HTTP/1.0", meant), None);
    for lines in [
        "Upgrade: websocket\r\n",
        "Connection: upgrade\r\n",
        "Upgrade: h2c\r\nConnection: upgrade\r\n",
        "Upgrade: websocket, H2C\r\nConnection: upgrade\r\n",
    ] {
        assert_eq!(upgrade("GET / HTTP/1.1", lines), None, "{lines}");
    }
}

#[test]
fn large_requests_are_distinguished_from_invalid_ones() {
    let large = Some(431);
    assert_eq!(status(&post(&"X: y\r\n".repeat(101))), large);
    assert_eq!(status(&post(&format!("X: {}\r\n", "y".repeat(9000)))), large);
    assert_eq!(status(&format!("GET /{}", "a".repeat(9000))), large);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
    let (long, _) = read_by(ForwardedPolicy::Off, 80_000, long.as_bytes());
    assert!(matches!(long, Err(Rejection::Malformed(StatusCode::URI_TOO_LONG))));
    for bad in ["GET / HTTP/2.0\r\n\r\n", "\x16\x03\x01\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n"] {
        assert_eq!(status(bad), Some(400), "{bad}");
    }
}

#[test]
fn a_looping_request_is_refused() {
    let config = Config::new(Backend::new("m", "http://h").unwrap());
    let (inbound, loops) = (InboundFilter::new(&config), LoopDetector::new());
    let forwarded = ForwardedPolicy::Off;
    let rules =
        RequestRules { inbound: &inbound, loops: &loops, forwarded, head_bytes: HEAD_BYTES };
    let mut origin = ClientOrigin::new("192.0.2.1:5".parse().unwrap(), 8080, false);
    let ours = std::str::from_utf8(loops.via()).unwrap();
    for (via, passes) in [("1.1 other", true), (ours, false)] {
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 a, {via}\r\n\r\n");
        assert_eq!(read(request.as_bytes(), rules, &mut origin).is_ok(), passes);
    }
}
