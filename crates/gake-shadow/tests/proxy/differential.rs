//! The two ways of a request through the proxy: as bytes, and in parts where a hook has a say.
//! Generated requests take both, and what reaches master, shadow and client is equal. What no proxy
//! may change is what reaches a master behind nginx.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use gake_shadow::Proxy;
use gake_shadow::config::{Config, Forwarded, Host, Sampling};
use gake_shadow::exchange::MirroredExchange;
use gake_shadow::hooks::{HookSet, Selection};

use crate::backend::{Backend, Seen, end_of_chunks, read_request};
use crate::client::Client;
use crate::nginx::nginx;
use crate::{config, start, stop};

/// Requests each way, unless `GAKE_DIFFERENTIAL` says how many.
const REQUESTS: usize = 10_000;
/// How many of them also go through nginx.
const THROUGH_NGINX: usize = 2_000;

/// What `GAKE_DIFFERENTIAL` says, for a long comparison.
fn wanted() -> Option<usize> {
    std::env::var("GAKE_DIFFERENTIAL").ok().map(|number| number.parse().unwrap())
}

/// A small generator: the same requests on every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}

/// What may stand in a head.
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

/// Where the master answers in one way each.
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
    let mut draw = Draw(1);
    let request = |_| {
        let (method, path) = (draw.one(&METHODS), draw.one(&PATHS));
        let mut lines = String::new();
        for _ in 0..draw.below(7) {
            lines += draw.one(&LINES);
            lines += "\r\n";
        }
        let (framing, body) = match draw.below(14) {
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
        let prefix = draw.one(&["", "", "", "", "http://abs.test", "/"]);
        // One in HTTP/1.0 gets no chunks, and an answer without a length would end the connection.
        let is_old = ["/length", "/long", "/204", "/304"].iter().any(|old| path.starts_with(old));
        let version = match draw.below(4) {
            0 if is_old && !framing.starts_with("T") => "1.0\r\nConnection: keep-alive",
            _ => "1.1",
        };
        format!("{method} {prefix}{path} HTTP/{version}\r\nHost: shop.test:81\r\n{lines}\r\n{body}")
    };
    (0..wanted().unwrap_or(REQUESTS)).map(request).collect()
}

fn answer(seen: &Seen) -> Vec<u8> {
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

/// A backend that answers so, and keeps what came.
fn backend() -> (Backend, Arc<Mutex<Vec<Seen>>>) {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let backend = Backend::raw(move |mut stream, _| {
        let mut buffer = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer) {
            kept.lock().unwrap().push(request.clone());
            if stream.write_all(&answer(&request)).is_err() || request.line.contains("/close") {
                return;
            }
        }
    });
    (backend, seen)
}

/// The head's lines in order of their names, without those that differ from run to run, and the
/// body.
type Answer = (Vec<String>, Vec<u8>);

/// Reads an answer in the framing that its head says.
fn read_answer(client: &mut Client, buffer: &mut Vec<u8>, is_head: bool) -> Answer {
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
        return read_answer(client, buffer, is_head);
    }
    let says = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    };
    let body = if is_head || matches!(&head[9..12], "204" | "304") {
        Vec::new()
    } else if says("transfer-encoding").is_some() {
        let end = loop {
            match end_of_chunks(buffer) {
                Some(end) => break end,
                None => fill(buffer),
            }
        };
        buffer.drain(..end).collect()
    } else {
        let length = says("content-length").unwrap().parse().unwrap();
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

/// What came of requests.
struct Came {
    /// In order.
    at_master: Vec<Seen>,
    /// In order.
    answers: Vec<Answer>,
    /// Sorted.
    at_shadow: Vec<Seen>,
    /// What a listener is told, sorted.
    told: Vec<String>,
}

fn send(
    requests: &[String],
    change: impl FnOnce(&mut Config),
    through: impl FnOnce(Proxy) -> Proxy,
) -> Came {
    let ((master, at_master), (shadow, at_shadow)) = (backend(), backend());
    let mut config = config(&master, &[&shadow]);
    config.shadows[0].queue = requests.len();
    change(&mut config);
    let mut proxy = through(Proxy::new(config).unwrap());
    let exchanges = proxy.exchanges(requests.len());
    // Read while they come: those that wait are bounded in bytes, too.
    let listener =
        std::thread::spawn(move || std::iter::from_fn(|| exchanges.next()).collect::<Vec<_>>());
    let proxy = proxy.start().unwrap();
    let (mut client, mut buffer) = (Client::new(proxy.addr()), Vec::new());
    let mut answers = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        if number % 100 == 0 {
            (client, buffer) = (Client::new(proxy.addr()), Vec::new());
        }
        client.write(request);
        answers.push(read_answer(&mut client, &mut buffer, request.starts_with("HEAD")));
        assert!(buffer.is_empty(), "{request}");
    }
    let port = proxy.addr().port().to_string();
    stop(proxy);
    let alike = |name: &str, value: &str| match (name, value) {
        ("via", value) if value.starts_with("1.1 gake (") => "us".to_owned(),
        ("x-forwarded-port", value) if value == port => "ours".to_owned(),
        (_, value) => value.to_owned(),
    };
    let alike_all = |seen: &Mutex<Vec<Seen>>| {
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        for seen in &mut seen {
            seen.headers.iter_mut().for_each(|(name, value)| *value = alike(name, value));
            seen.headers.sort();
        }
        seen
    };
    let mut at_shadow = alike_all(&at_shadow);
    at_shadow.sort_by(|a, b| (&a.line, &a.headers, &a.body).cmp(&(&b.line, &b.headers, &b.body)));
    let exchanges = listener.join().unwrap();
    let mut told: Vec<String> = exchanges.iter().map(|exchange| say(exchange, &alike)).collect();
    told.sort();
    Came { at_master: alike_all(&at_master), answers, at_shadow, told }
}

/// An exchange in words, without what differs from run to run.
fn say(exchange: &MirroredExchange, alike: &impl Fn(&str, &str) -> String) -> String {
    let lines = |headers: &http::HeaderMap| {
        let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            format!("{name}: {}", alike(name.as_str(), &String::from_utf8_lossy(value.as_bytes())))
        };
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines
    };
    let request = &exchange.request;
    let mut said = format!(
        "{} {} {:?} {:?}",
        request.method,
        request.uri,
        lines(&request.headers),
        request.body
    );
    for outcome in &exchange.backends {
        said += &match &outcome.result {
            Ok(answer) => format!(
                " | {} {} {:?} {:?}",
                outcome.name,
                answer.status,
                lines(&answer.headers),
                answer.body
            ),
            Err(failure) => format!(" | {} {failure}", outcome.name),
        };
    }
    said
}

/// Sends requests both ways.
fn compare(requests: &[String], change: impl Fn(&mut Config)) {
    let hooks = || HookSet::new().on_select_backends(|_| Selection::All);
    let as_bytes = send(requests, &change, |proxy| proxy);
    let as_maps = send(requests, &change, |proxy| proxy.hooks(hooks()));
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(as_bytes.at_master[number], as_maps.at_master[number], "{request}");
        assert_eq!(as_bytes.answers[number], as_maps.answers[number], "{request}");
    }
    assert_eq!(as_bytes.at_shadow.len(), as_maps.at_shadow.len());
    for (bytes, maps) in as_bytes.at_shadow.iter().zip(&as_maps.at_shadow) {
        assert_eq!(bytes, maps);
    }
    for (bytes, maps) in as_bytes.told.iter().zip(&as_maps.told) {
        assert_eq!(bytes, maps);
    }
    assert_eq!((as_bytes.told.len(), as_maps.told.len()), (requests.len(), requests.len()));
}

/// Headers that belong to no hop.
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

/// What of a request every proxy passes on: line, host without a port, headers, data of the body.
fn essence(seen: &Seen) -> (String, String, Vec<(String, String)>, Vec<u8>) {
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
fn what_is_for_the_master_reaches_it_as_behind_nginx() {
    let number = |(number, request): (usize, &String)| {
        request.replacen("Host:", &format!("X-Number: {number}\r\nHost:"), 1)
    };
    let requests = requests();
    // Who is told to go on may leave before the answer; nginx holds back a 103 for what follows.
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
            // An answer has begun: the master has seen it.
            assert!(client.0.read(&mut [0; 16]).unwrap() > 0, "{request}");
        }
    }
    stop(proxy);
    let seen =
        |seen: &Mutex<Vec<Seen>>| seen.lock().unwrap().iter().map(essence).collect::<Vec<_>>();
    let (ours, other) = (seen(&at_ours), seen(&at_other));
    for (ours, other) in ours.iter().zip(&other) {
        assert_eq!(ours, other);
    }
    assert_eq!((ours.len(), other.len()), (requests.len(), requests.len()));
}

#[test]
fn bytes_and_parts_say_the_same() {
    let requests = requests();
    compare(&requests, |_| {});
    compare(&requests[..200], |config| {
        config.master.host = Host::Literal("master.test".parse().unwrap());
        config.master.edits.remove = vec![http::header::COOKIE];
        config.shadows[0].backend.edits.set =
            vec![(http::header::USER_AGENT, "copy".parse().unwrap())];
        config.threads = 1;
        config.shadows[0].percentage = 50.0;
        config.shadows[0].sample = Sampling::Header(http::header::USER_AGENT);
        config.forwarded = Forwarded::Replace;
    });
}
