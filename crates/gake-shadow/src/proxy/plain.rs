//! Plain requests: those that pass through as bytes.
//!
//! A request is plain when nothing in its head needs a decision: a usual method; no body, one of a
//! given length, or one in chunks without announced trailers; a path of unreserved characters; one
//! valid `Host`; names that no server confuses; no expectation but `100-continue`; no switch to
//! HTTP/2 in clear. Every other request takes the way with maps of headers, which has the rules
//! ([`guard`](super::guard)). What is written here is what that way writes for the same request.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use httparse::{Header, Status};

use super::answer_bytes::{is, list, write_line};
use super::client::Client;
use super::forwarded::{Origin, Said, is_about_the_way};
use super::guard::is_host;
use super::headers;
use super::inbound::Inbound;
use super::loops::Loops;
use super::request_head::digits;
use super::service::{self, Head};
use super::target::Target;
use crate::collect::Collector;
use crate::config::Forwarded;
use crate::mirror::PlainCopy;
use crate::mirror::copy::Copy;

/// Header lines of a plain request.
const HEADERS: usize = 64;
/// Bytes of its head.
const HEAD_BYTES: usize = 8 << 10;

/// Digits of a plain request's length, at most.
const LENGTH_DIGITS: usize = 18;

/// A plain request as backends get it.
pub(super) struct Plain {
    pub(super) method: Method,
    /// The path and query, as a part of the head.
    target: std::ops::Range<usize>,
    /// The head, with its empty line.
    pub(super) head: Bytes,
    /// Bytes of what came that it was made of.
    pub(super) length: usize,
    /// The body that follows.
    pub(super) body: Framing,
    /// The client waits for an interim answer before it sends the body.
    pub(super) expects: bool,
    /// The protocol that the client wants to switch to; not in the head.
    pub(super) upgrade: Option<Bytes>,
    /// The client speaks HTTP/1.0.
    pub(super) is_old: bool,
    /// The client wants the connection to end.
    pub(super) closes: bool,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this number of bytes.
    Length(u64),
    Chunked,
}

impl Plain {
    /// Whether a body follows, were it one of no bytes in chunks.
    pub(super) fn has_body(&self) -> bool {
        self.body != Framing::Length(0)
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &str {
        let target = std::str::from_utf8(&self.head[self.target.clone()]).unwrap_or_default();
        target.split('?').next().unwrap_or_default()
    }

    /// The head as a backend gets it.
    pub(super) fn head_for(&self, target: &Target) -> Bytes {
        let head = if target.changes_nothing() { None } else { self.edited_for(target) };
        let head = head.unwrap_or_else(|| self.head.clone());
        let Some(protocol) = &self.upgrade else { return head };
        let mut head = head.strip_suffix(b"\r\n").unwrap_or(&head).to_vec();
        write_line(&mut head, b"upgrade", protocol);
        head.extend_from_slice(b"connection: upgrade\r\n\r\n");
        head.into()
    }

    fn edited_for(&self, target: &Target) -> Option<Bytes> {
        let mut parts = self.parts()?;
        headers::for_backend(&mut parts.headers, target);
        let target = parts.uri.to_string();
        Some(headers::request_head(&parts.method, &target, &parts.headers).into())
    }

    /// What is known of its exchange, when somebody listens.
    pub(super) fn collector(&self, client: &Client) -> Option<Arc<Collector>> {
        if client.worker.shared.feed.is_empty() {
            return None;
        }
        service::collector(client, &self.parts()?)
    }

    fn parts(&self) -> Option<Head> {
        let (method, head) = (self.method.clone(), self.head.clone());
        let Copy { method, uri, headers, .. } =
            Copy::of_plain(&PlainCopy { method, head, body: None })?;
        Some(Head { method, uri, headers })
    }
}

/// What of a client's request is left out or added.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) inbound: &'a Inbound,
    pub(super) loops: &'a Loops,
    pub(super) forwarded: Forwarded,
    /// Bytes of a head, at most.
    pub(super) head_bytes: usize,
}

/// Reads the request that `bytes` begin with; `None` when it is not plain, or not whole.
pub(super) fn read(bytes: &[u8], rules: Rules<'_>, origin: &mut Origin) -> Option<Plain> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let bounded = &bytes[..bytes.len().min(HEAD_BYTES).min(rules.head_bytes)];
    let Ok(Status::Complete(length)) = request.parse(bounded) else { return None };
    let is_old = request.version? == 0;
    let method = match request.method? {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "OPTIONS" => Method::OPTIONS,
        "DELETE" => Method::DELETE,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        _ => return None,
    };
    let target = request.path.filter(|target| is_plain_target(target.as_bytes()))?;
    let mut head = Vec::with_capacity(length + origin.room());
    head.extend_from_slice(method.as_str().as_bytes());
    head.push(b' ');
    let start = head.len();
    head.extend_from_slice(target.as_bytes());
    let target = start..head.len();
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let ends = write_headers(&mut head, request.headers, rules, origin)?;
    let Ends { body, expects, upgrade, options } = ends;
    let is_special = expects || body == Framing::Chunked || upgrade.is_some();
    // Only GET switches protocols: whoever reads the answer to HEAD must know that it has no body.
    let is_odd_switch = upgrade.is_some() && method != Method::GET;
    if (is_old && is_special) || is_odd_switch {
        return None;
    }
    let closes = options.closes || (is_old && !options.keeps);
    let head = head.into();
    Some(Plain { method, target, head, length, body, expects, upgrade, is_old, closes })
}

/// Where a request and its connection end.
struct Ends {
    body: Framing,
    expects: bool,
    upgrade: Option<Bytes>,
    options: Options,
}

impl Ends {
    /// Itself, unless the protocol is to be switched in a way that is not plain.
    fn checked(self) -> Option<Self> {
        let Self { body, expects, upgrade, options } = &self;
        let is_whole = *body == Framing::Length(0) && !expects && !options.closes;
        let is_sound = upgrade.is_some() == options.upgrades && (upgrade.is_none() || is_whole);
        is_sound.then_some(self)
    }
}

/// What a client says of its connection.
#[derive(Default)]
struct Options {
    /// It ends.
    closes: bool,
    /// It stays.
    keeps: bool,
    /// It becomes one of another protocol.
    upgrades: bool,
}

impl Options {
    /// Takes note of a line of `Connection`; `None` when it names anything else.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        for option in list(line) {
            match option.len() {
                5 if is(option, "close") => self.closes = true,
                7 if is(option, "upgrade") => self.upgrades = true,
                10 if is(option, "keep-alive") => self.keeps = true,
                _ => return None,
            }
        }
        Some(())
    }
}

/// The protocol to switch to; not cleartext HTTP/2: nobody would check what is in its tunnel.
fn protocol(value: &[u8]) -> Option<Bytes> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-./".contains(byte);
    let is_plain = !value.is_empty() && value.iter().all(plain);
    let is_http2 = value.windows(3).any(|part| is(part, "h2c"));
    (is_plain && !is_http2).then(|| Bytes::copy_from_slice(value))
}

/// Writes the headers and the empty line.
fn write_headers(
    head: &mut Vec<u8>,
    headers: &[Header<'_>],
    rules: Rules<'_>,
    origin: &mut Origin,
) -> Option<Ends> {
    let (mut options, mut upgrade) = (Options::default(), None);
    let (mut host, mut body, mut expects) = (None, None, false);
    let how = rules.forwarded;
    let mut said = Said::default();
    for header in headers {
        let (name, value) = (header.name, header.value);
        match place(name.as_bytes())? {
            Place::Connection => options.take(value)?,
            Place::Upgrade => {
                if upgrade.replace(protocol(value)?).is_some() {
                    return None;
                }
            }
            Place::Hop => {}
            Place::Host => {
                if host.replace(value).is_some() || value.is_empty() || !is_host(value) {
                    return None;
                }
                write_line(head, name.as_bytes(), value);
            }
            Place::Length => {
                let has_zeros = value.len() > 1 && value.starts_with(b"0");
                let is_plain = value.len() <= LENGTH_DIGITS && !has_zeros;
                let length = digits(value).filter(|_| is_plain)?;
                if body.replace(Framing::Length(length)).is_some() {
                    return None;
                }
                write_line(head, name.as_bytes(), value);
            }
            Place::Coding => {
                if body.replace(Framing::Chunked).is_some() || !is(value, "chunked") {
                    return None;
                }
                // As everybody knows it, whatever its case was.
                write_line(head, name.as_bytes(), b"chunked");
            }
            // Kept by us.
            Place::Expect if !expects && is(value, "100-continue") => expects = true,
            Place::Expect => return None,
            Place::Via if rules.loops.is_ours_in(value) => return None,
            Place::Other if rules.inbound.is_marked(name) => {}
            Place::Via | Place::Other => {
                let about = how != Forwarded::Off && is_about_the_way(name);
                match (about, how) {
                    (true, Forwarded::Replace) => {}
                    (true, _) => {
                        if said.take(name, value)? {
                            write_line(head, name.as_bytes(), value);
                        }
                    }
                    (false, _) => write_line(head, name.as_bytes(), value),
                }
            }
        }
    }
    let body = body.unwrap_or(Framing::Length(0));
    let host = host?;
    if how != Forwarded::Off {
        origin.write(head, host, &said);
    }
    write_line(head, b"via", rules.loops.via());
    head.extend_from_slice(b"\r\n");
    Ends { body, expects, upgrade, options }.checked()
}

/// What a header is to us.
enum Place {
    Connection,
    Upgrade,
    /// Belongs to the client's hop.
    Hop,
    Host,
    Length,
    Coding,
    Expect,
    Via,
    Other,
}

/// What a header is by its name; `None` when the request is not plain for it.
fn place(name: &[u8]) -> Option<Place> {
    if !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
        return None;
    }
    Some(match name.len() {
        2 if is(name, "te") => return None,
        3 if is(name, "via") => Place::Via,
        4 if is(name, "host") => Place::Host,
        6 if is(name, "expect") => Place::Expect,
        7 if is(name, "upgrade") => Place::Upgrade,
        7 if is(name, "trailer") => return None,
        10 if is(name, "connection") => Place::Connection,
        10 if is(name, "keep-alive") => Place::Hop,
        14 if is(name, "content-length") => Place::Length,
        14 if is(name, "http2-settings") => return None,
        16 if is(name, "proxy-connection") => Place::Hop,
        17 if is(name, "transfer-encoding") => Place::Coding,
        19 if is(name, "proxy-authorization") => Place::Hop,
        _ => Place::Other,
    })
}

/// Whether a target is a path, and a query perhaps, of characters that mean the same to everybody.
fn is_plain_target(target: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:@?".contains(byte);
    target.first() == Some(&b'/') && target.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Backend, Config};

    /// What backends get for a request, when it is plain.
    fn passed_by(forwarded: Forwarded, request: &str) -> Option<String> {
        let config = Config::new(Backend::new("m", "http://h").unwrap());
        let (inbound, loops) = (Inbound::new(&config), Loops::new());
        let rules = Rules { inbound: &inbound, loops: &loops, forwarded, head_bytes: HEAD_BYTES };
        let mut origin = Origin::new("192.0.2.1:5".parse().unwrap(), 8080, false);
        let plain = read(request.as_bytes(), rules, &mut origin)?;
        let head = String::from_utf8(plain.head.to_vec()).unwrap();
        let via = format!("via: {}\r\n", std::str::from_utf8(loops.via()).unwrap());
        Some(head.replace(&via, "via: us\r\n"))
    }

    fn passed(request: &str) -> Option<String> {
        passed_by(Forwarded::Append, request)
    }

    const ADDED: &str = "x-forwarded-for: 192.0.2.1\r\nx-forwarded-proto: http\r\n\
                         x-forwarded-port: 8080\r\nx-real-ip: 192.0.2.1\r\n\
                         x-forwarded-host: h\r\n\
                         forwarded: for=192.0.2.1;host=\"h\";proto=http\r\nvia: us\r\n\r\n";

    #[test]
    fn a_plain_request_is_written_once_and_nothing_of_its_hop_stays() {
        let request = "GET /a/../b?c=%2F HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nX-TWICE:  2 \r\n\
                       Keep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: y\r\n\
                       X-Gake-Shadow: 1\r\nConnection: Keep-Alive\r\n\r\n";
        let expected = "GET /a/../b?c=%2F HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nX-TWICE: 2\r\n";
        assert_eq!(passed(request).unwrap(), format!("{expected}{ADDED}"));
        // Whatever the client speaks, backends are spoken to in 1.1.
        let old = "GET / HTTP/1.0\r\nHost: h\r\n\r\n";
        assert_eq!(passed(old).unwrap(), format!("GET / HTTP/1.1\r\nHost: h\r\n{ADDED}"));
        // A coding is written as everybody knows it, and an expectation is kept by us.
        let chunked = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nTransfer-Encoding: chunKed\r\n\r\n";
        assert_eq!(
            passed(chunked).unwrap(),
            format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n{ADDED}")
        );
        // Line feeds alone, and what follows.
        let bare = "HEAD / HTTP/1.1\nHost: h\n\nGET /next HTTP/1.1\r\n";
        assert_eq!(passed(bare).unwrap(), format!("HEAD / HTTP/1.1\r\nHost: h\r\n{ADDED}"));
    }

    #[test]
    fn who_was_before_us_is_kept_replaced_or_left_alone() {
        let before = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\n\
                      X-Forwarded-Proto: https\r\nX-Forwarded-Port: 99\r\nX-Real-IP: 10.0.0.1\r\n\
                      X-Forwarded-Host: o\r\nX-Forwarded-Prefix: /p\r\nTrue-Client-IP: 1\r\n";
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{before}\r\n");
        let start = "GET / HTTP/1.1\r\nHost: h\r\n";
        assert_eq!(
            passed(&request).unwrap(),
            format!(
                "{start}X-Forwarded-Proto: https\r\nX-Forwarded-Port: 99\r\n\
                 X-Real-IP: 10.0.0.1\r\nX-Forwarded-Host: o\r\nX-Forwarded-Prefix: /p\r\n\
                 True-Client-IP: 1\r\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 192.0.2.1\r\n\
                 forwarded: for=192.0.2.1;host=\"h\";proto=http\r\nvia: us\r\n\r\n"
            )
        );
        let replaced = passed_by(Forwarded::Replace, &request).unwrap();
        assert_eq!(replaced, format!("{start}{ADDED}"));
        let off = passed_by(Forwarded::Off, &request).unwrap();
        assert_eq!(off, format!("{start}{}via: us\r\n\r\n", before));
    }

    #[test]
    fn what_needs_a_decision_is_not_plain() {
        let get = |lines: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        assert!(passed(&get("")).is_some());
        for lines in [
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length:\r\n",
            "Content-Length: 1000000000000000000\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTrailer: x\r\n",
            "Transfer_Encoding: chunked\r\n",
            "X.Y: 1\r\n",
            "TE: trailers\r\n",
            "Trailer: x\r\n",
            "Expect: 100-continue\r\nExpect: 100-continue\r\n",
            "Expect: 200-ok\r\n",
            "Upgrade: websocket\r\n",
            "Upgrade: h2c\r\nConnection: upgrade\r\n",
            "Upgrade: websocket, H2C\r\nConnection: upgrade\r\n",
            "Upgrade: a\r\nUpgrade: b\r\nConnection: upgrade\r\n",
            "Upgrade: websocket\r\nConnection: upgrade, close\r\n",
            "Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 1\r\n",
            "HTTP2-Settings: x\r\n",
            "Connection: keep-alive, x\r\n",
            "Connection: upgrade\r\n",
            "Host: h\r\n",
            "Forwarded: for=1\r\n",
            "X: \u{0}\r\n",
            " folded\r\n",
            "X : 1\r\n",
        ] {
            assert_eq!(passed(&get(lines)), None, "{lines:?}");
        }
        for request in [
            "GET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\n",
            "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /# HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
            "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n",
            "get / HTTP/1.1\r\nHost: h\r\n\r\n",
            "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
        ] {
            assert_eq!(passed(request), None, "{request:?}");
        }
    }

    #[test]
    fn a_request_that_was_here_is_not_plain() {
        let config = Config::new(Backend::new("m", "http://h").unwrap());
        let (inbound, loops) = (Inbound::new(&config), Loops::new());
        let rules = Rules {
            inbound: &inbound,
            loops: &loops,
            forwarded: Forwarded::Off,
            head_bytes: HEAD_BYTES,
        };
        let mut origin = Origin::new("192.0.2.1:5".parse().unwrap(), 8080, false);
        let ours = std::str::from_utf8(loops.via()).unwrap();
        for (via, plain) in [("1.1 other", true), (ours, false)] {
            let request = format!("GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 a, {via}\r\n\r\n");
            assert_eq!(read(request.as_bytes(), rules, &mut origin).is_some(), plain);
        }
    }
}
