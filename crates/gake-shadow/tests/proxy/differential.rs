//! Differential tests: generated requests take the direct path and the frame path, and master, shadow
//! and client must see the same. What no proxy may change is compared with nginx.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use gake_shadow::Proxy;
use gake_shadow::config::{Config, ForwardedPolicy, HostPolicy, Sampling};
use gake_shadow::exchange::MirroredExchange;
use gake_shadow::hooks::{HookSet, Selection};

use crate::backend::{Backend, ReceivedRequest, end_of_chunks, read_request};
use crate::client::Client;
use crate::nginx::nginx;
use crate::{Generator, config, start, stop};

/// Requests per path; overridden by `GAKE_DIFFERENTIAL`.
const REQUESTS: usize = 10_000;
/// Requests through nginx.
const THROUGH_NGINX: usize = 2_000;

/// `GAKE_DIFFERENTIAL`, for a long comparison.
fn wanted() -> Option<usize> {
    std::env::var("GAKE_DIFFERENTIAL").ok().map(|number| number.parse().unwrap())
}

/// Header lines of the requests.
const LINES: [&str; 25] = [
    "Accept: */*",
    "accept-encoding: gzip, br",
    "User-Agent: a \t b",
    "Cookie: a=1; b=2",
    "X-Twice: 1",
    "X-Twice: 2",
    "X-Empty:",
    "X-Text: \u{e9}",
    "Connection: keep-alive",
    "Connection: x-hop",
    "X-Hop: 1",
    "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic eA==",
    "TE: trailers",
    "Via: 1.0 before",
    "X-Forwarded-For: 10.0.0.1",
    "X-Forwarded-For: 10.0.0.2, 10.0.0.3",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: other",
    "X-Real-IP: 10.0.0.1",
    "Forwarded: for=10.0.0.1",
    "True-Client-IP: 10.0.0.1",
    "X_Odd: 1",
    "X-Gake-Shadow: 1",
];

const METHODS: [&str; 7] = ["GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE", "POST"];

/// Paths, each with another kind of response.
const PATHS: [&str; 14] = [
    "/length",
    "/long?a=b&&c=%2f",
    "/empty",
    "/chunked",
    "/trailers",
    "/close",
    "/204",
    "/304",
    "/reason",
    "/hops",
    "/twice",
    "/both",
    "/interim",
    "/strange",
];

fn requests() -> Vec<String> {
    let mut generator = Generator(1);
    let request = |_| {
        let (method, path) = (generator.one(&METHODS), generator.one(&PATHS));
        let mut lines = String::new();
        for _ in 0..generator.below(7) {
            lines += generator.one(&LINES);
            lines += "\r\n";
        }
        let (framing, body) = match generator.below(14) {
            0 => ("Content-Length: 5\r\n", "hello"),
            8 => ("Content-Length: 5\r\n", "\r\nabc"),
            9 => ("Content-Length: 4\r\n", "\n\n\n\n"),
            1 => ("Content-Length: 5\r\n", "0\r\n\r\n"),
            2 => ("Content-Length: 0\r\n", ""),
            3 => ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            10 => ("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"),
            11 => (
                "Transfer-Encoding: chunked\r\nExpect: 100-Continue\r\n",
                "3;a=b\r\n\r\n0\r\n00a \r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
            ),
            12 => ("Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"),
            _ => ("", ""),
        };
        lines += framing;
        let prefix = generator.one(&["", "", "", "", "http://abs.test", "/"]);
        // HTTP/1.0 only with responses that have a length: others would close the connection.
        let is_old = ["/length", "/long", "/204", "/304"].iter().any(|old| path.starts_with(old));
        let version = match generator.below(4) {
            0 if is_old && !framing.starts_with("T") => "1.0\r\nConnection: keep-alive",
            _ => "1.1",
        };
        format!("{method} {prefix}{path} HTTP/{version}\r\nHost: shop.test:81\r\n{lines}\r\n{body}")
    };
    (0..wanted().unwrap_or(REQUESTS)).map(request).collect()
}

fn response(seen: &ReceivedRequest) -> Vec<u8> {
    let path = PATHS.iter().find(|path| seen.line.contains(**path)).unwrap();
    let is_head = seen.line.starts_with("HEAD");
    let long = "z".repeat(70_000);
    let (head, body) = match *path {
        "/length" => {
            ("200 OK\r\nContent-Length: 5\r\nDate: now\r\nSet-Cookie: a\r\nSet-Cookie: b", "hello")
        }
        "/empty" => ("200 OK\r\nContent-Length: 0\r\nTrailer: x", ""),
        "/chunked" => ("200 OK\r\nTransfer-Encoding: Chunked", "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"),
        "/trailers" => (
            "200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Host",
            "3;x=y\r\nabc\r\n0\r\nX-Sum: 7\r\nHost: h\r\nX-Other: 8\r\n\r\n",
        ),
        "/close" => ("200 OK\r\nConnection: close", "to the end"),
        "/204" => ("204 No Content\r\nX-A: 1", ""),
        "/304" => ("304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 99", ""),
        "/reason" => ("299 Odd Thing\r\nContent-Length: 1", "x"),
        "/hops" => (
            "404 Not Found\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\
             Via: 1.0 x\r\nProxy-Authenticate: a\r\nUpgrade: b\r\nContent-Length: 2",
            "no",
        ),
        "/twice" => ("200 \r\nContent-Length: 2\r\nContent-Length: 2", "ok"),
        "/both" => {
            ("200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n")
        }
        "/interim" => ("200 OK\r\nContent-Length: 1", "y"),
        "/strange" => ("200 OK\r\nTransfer-Encoding: gzip, chunked", "0\r\n\r\n"),
        _ => ("200 OK\r\nContent-Length: 70000", &*long),
    };
    let interim = if *path == "/interim" { "HTTP/1.1 103 Early\r\nX: y\r\n\r\n" } else { "" };
    let body = if is_head { "" } else { body };
    format!("{interim}HTTP/1.1 {head}\r\n\r\n{body}").into_bytes()
}

/// A backend with these responses that records its requests.
fn backend() -> (Backend, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let seen: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let backend = Backend::raw(move |mut stream, _| {
        let mut buffer = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer) {
            kept.lock().unwrap().push(request.clone());
            if stream.write_all(&response(&request)).is_err() || request.line.contains("/close") {
                return;
            }
        }
    });
    (backend, seen)
}

/// The sorted lines of the head without `Date`, and the body.
type Response = (Vec<String>, Vec<u8>);

/// Reads a response by its framing.
fn read_response(client: &mut Client, buffer: &mut Vec<u8>, is_head: bool) -> Response {
    let mut fill = |buffer: &mut Vec<u8>| {
        let mut piece = [0; 65536];
        let read = client.0.read(&mut piece).unwrap();
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(buffer));
        buffer.extend_from_slice(&piece[..read]);
    };
    let end = loop {
        match buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => break end,
            None => fill(buffer),
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    if head.starts_with("HTTP/1.1 100 ") {
        return read_response(client, buffer, is_head);
    }
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    };
    let body = if is_head || matches!(&head[9..12], "204" | "304") {
        Vec::new()
    } else if header("transfer-encoding").is_some() {
        let end = loop {
            match end_of_chunks(buffer) {
                Some(end) => break end,
                None => fill(buffer),
            }
        };
        buffer.drain(..end).collect()
    } else {
        let length = header("content-length").unwrap().parse().unwrap();
        while buffer.len() < length {
            fill(buffer);
        }
        buffer.drain(..length).collect()
    };
    let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
    lines.retain(|line| !line.starts_with("date: "));
    lines[1..].sort();
    (lines, body)
}

struct RunResult {
    at_master: Vec<ReceivedRequest>,
    responses: Vec<Response>,
    /// Sorted.
    at_shadow: Vec<ReceivedRequest>,
    /// Exchanges of a listener, sorted.
    exchanges: Vec<String>,
}

fn send(
    requests: &[String],
    change: impl FnOnce(&mut Config),
    through: impl FnOnce(Proxy) -> Proxy,
) -> RunResult {
    let ((master, at_master), (shadow, at_shadow)) = (backend(), backend());
    let mut config = config(&master, &[&shadow]);
    config.shadows[0].queue = requests.len();
    change(&mut config);
    let mut proxy = through(Proxy::new(config).unwrap());
    let exchanges = proxy.exchanges(requests.len());
    // Read concurrently, because the queue is bounded.
    let listener =
        std::thread::spawn(move || std::iter::from_fn(|| exchanges.next()).collect::<Vec<_>>());
    let proxy = proxy.start().unwrap();
    let (mut client, mut buffer) = (Client::new(proxy.addr()), Vec::new());
    let mut responses = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        if number % 100 == 0 {
            (client, buffer) = (Client::new(proxy.addr()), Vec::new());
        }
        client.write(request);
        responses.push(read_response(&mut client, &mut buffer, request.starts_with("HEAD")));
        assert!(buffer.is_empty(), "{request}");
    }
    let port = proxy.addr().port().to_string();
    stop(proxy);
    let normalized = |name: &str, value: &str| match (name, value) {
        ("via", value) if value.starts_with("1.1 gake (") => "us".to_owned(),
        ("x-forwarded-port", value) if value == port => "ours".to_owned(),
        (_, value) => value.to_owned(),
    };
    let normalize_all = |seen: &Mutex<Vec<ReceivedRequest>>| {
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        for seen in &mut seen {
            seen.headers.iter_mut().for_each(|(name, value)| *value = normalized(name, value));
            seen.headers.sort();
        }
        seen
    };
    let mut at_shadow = normalize_all(&at_shadow);
    at_shadow.sort_by(|a, b| (&a.line, &a.headers, &a.body).cmp(&(&b.line, &b.headers, &b.body)));
    let exchanges = listener.join().unwrap();
    let mut exchanges: Vec<String> =
        exchanges.iter().map(|exchange| describe(exchange, &normalized)).collect();
    exchanges.sort();
    RunResult { at_master: normalize_all(&at_master), responses, at_shadow, exchanges }
}

/// An exchange as text, without what differs between runs.
fn describe(exchange: &MirroredExchange, normalized: &impl Fn(&str, &str) -> String) -> String {
    let lines = |headers: &http::HeaderMap| {
        let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            format!(
                "{name}: {}",
                normalized(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))
            )
        };
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines
    };
    let request = &exchange.request;
    let mut text = format!(
        "{} {} {:?} {:?}",
        request.method,
        request.uri,
        lines(&request.headers),
        request.body
    );
    for outcome in &exchange.backends {
        text += &match &outcome.result {
            Ok(response) => format!(
                " | {} {} {:?} {:?}",
                outcome.name,
                response.status,
                lines(&response.headers),
                response.body
            ),
            Err(failure) => format!(" | {} {failure}", outcome.name),
        };
    }
    text
}

/// Sends requests on both paths.
fn compare(requests: &[String], change: impl Fn(&mut Config)) {
    let hooks = || HookSet::new().on_select_backends(|_| Selection::All);
    let as_bytes = send(requests, &change, |proxy| proxy);
    let as_frames = send(requests, &change, |proxy| proxy.hooks(hooks()));
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(as_bytes.at_master[number], as_frames.at_master[number], "{request}");
        assert_eq!(as_bytes.responses[number], as_frames.responses[number], "{request}");
    }
    assert_eq!(as_bytes.at_shadow.len(), as_frames.at_shadow.len());
    for (bytes, frames) in as_bytes.at_shadow.iter().zip(&as_frames.at_shadow) {
        assert_eq!(bytes, frames);
    }
    for (bytes, frames) in as_bytes.exchanges.iter().zip(&as_frames.exchanges) {
        assert_eq!(bytes, frames);
    }
    assert_eq!(
        (as_bytes.exchanges.len(), as_frames.exchanges.len()),
        (requests.len(), requests.len())
    );
}

/// End-to-end headers.
const END_TO_END: [&str; 8] = [
    "accept",
    "accept-encoding",
    "cookie",
    "user-agent",
    "x-empty",
    "x-number",
    "x-text",
    "x-twice",
];

/// What every proxy passes on: request line, host without port, headers, data of the body.
fn essence(seen: &ReceivedRequest) -> (String, String, Vec<(String, String)>, Vec<u8>) {
    let host = seen.get("host").split(':').next().unwrap_or_default().to_owned();
    let mut headers = seen.headers.clone();
    headers.retain(|(name, _)| END_TO_END.contains(&&**name));
    headers.sort();
    let mut data = seen.body.clone();
    if seen.get("transfer-encoding") == "chunked" {
        let mut chunks = &seen.body[..];
        data.clear();
        while let Some(end) = chunks.iter().position(|byte| *byte == b'\r') {
            let size = std::str::from_utf8(&chunks[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                break;
            }
            data.extend_from_slice(&chunks[end + 2..end + 2 + size]);
            chunks = &chunks[end + 4 + size..];
        }
    }
    (seen.line.clone(), host, headers, data)
}

#[test]
fn the_master_gets_the_same_as_behind_nginx() {
    let number = |(number, request): (usize, &String)| {
        request.replacen("Host:", &format!("X-Number: {number}\r\nHost:"), 1)
    };
    let requests = requests();
    // The client leaves after the first bytes, which may be a 100; nginx delays a 103.
    let is_known = |one: &String| !one.contains("Expect") && !one.contains("/interim");
    let requests = requests.iter().enumerate().map(number).filter(is_known);
    let requests: Vec<String> = requests.take(wanted().unwrap_or(THROUGH_NGINX)).collect();
    let ((ours, at_ours), (other, at_other)) = (backend(), backend());
    let nginx = nginx(
        "",
        &format!(
            "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;
         proxy_pass {};",
            other.url()
        ),
    );
    let proxy = start(config(&ours, &[]));
    for addr in [proxy.addr(), ([127, 0, 0, 1], nginx.ports[0]).into()] {
        for request in &requests {
            let mut client = Client::new(addr);
            client.write(request);
            // The response has begun, so the master has the request.
            assert!(client.0.read(&mut [0; 16]).unwrap() > 0, "{request}");
        }
    }
    stop(proxy);
    let seen = |seen: &Mutex<Vec<ReceivedRequest>>| {
        seen.lock().unwrap().iter().map(essence).collect::<Vec<_>>()
    };
    let (ours, other) = (seen(&at_ours), seen(&at_other));
    for (ours, other) in ours.iter().zip(&other) {
        assert_eq!(ours, other);
    }
    assert_eq!((ours.len(), other.len()), (requests.len(), requests.len()));
}

#[test]
fn both_paths_behave_the_same() {
    let requests = requests();
    compare(&requests, |_| {});
    compare(&requests[..200], |config| {
        config.master.host = HostPolicy::Literal("master.test".parse().unwrap());
        config.master.edits.remove = vec![http::header::COOKIE];
        config.shadows[0].backend.edits.set =
            vec![(http::header::USER_AGENT, "copy".parse().unwrap())];
        config.threads = 1;
        config.shadows[0].percentage = 50.0;
        config.shadows[0].sample = Sampling::Header(http::header::USER_AGENT);
        config.forwarded = ForwardedPolicy::Replace;
    });
}
