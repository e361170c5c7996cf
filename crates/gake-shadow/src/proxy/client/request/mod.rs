//! Parses, checks and rewrites the heads of clients' requests.
//!
//! Requests that two servers could read differently are refused or normalised. httparse rejects
//! obs-fold, invalid bytes in names and values, and blanks before a colon; the codec rejects bad
//! chunks; everything else is here. The framing follows RFC 9112, section 6.3. Bare LF is accepted, and
//! `Transfer-Encoding` takes precedence over `Content-Length`; since the head is rewritten, no backend
//! sees the ambiguity.

mod facts;
mod target;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{Method, StatusCode};
use httparse::{Header, Status};

use crate::config::ForwardedPolicy;
use crate::message::head::{Framing, HeadWriter, RequestHead};
use crate::message::line::{is, list};
use crate::proxy::client::refusal::Refusal;
use crate::proxy::policy::forwarded::{ClientOrigin, PriorProxies, is_forwarding_header};
use crate::proxy::policy::inbound::InboundFilter;
use crate::proxy::policy::loop_detector::{self, LoopDetector};
use facts::{HeaderFacts, HeaderKind};
pub(crate) use target::RequestTarget;
use target::is_host;

/// Maximum header lines of a request.
pub(crate) const LINES: usize = 100;
/// Maximum bytes of a target.
const TARGET_BYTES: usize = 65_534;

/// A request that passed the checks.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    /// The head for backends, before per-backend edits.
    pub(crate) head: RequestHead,
    /// Bytes of the head as received.
    pub(crate) length: usize,
    /// The framing of the body.
    pub(crate) body: Framing,
    /// The client waits for `100 Continue`.
    pub(crate) expects: bool,
    /// The protocol to switch to; not in `head`.
    pub(crate) upgrade: Option<Bytes>,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// The connection closes after the response.
    pub(crate) closes: bool,
    /// The client accepts trailers.
    pub(crate) takes_trailers: bool,
    /// Number of ambiguous names that were removed.
    pub(crate) odd_names: u64,
}

impl ClientRequest {
    pub(crate) fn is_head(&self) -> bool {
        *self.head.method() == Method::HEAD
    }

    /// Whether a body follows, even an empty chunked one.
    pub(crate) fn has_body(&self) -> bool {
        self.body != Framing::Length(0)
    }
}

/// Why a request is rejected.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// Invalid HTTP; the status of the response.
    Malformed(StatusCode),
    Refused {
        refusal: Refusal,
        is_head: bool,
        is_http10: bool,
    },
}

impl Rejection {
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Malformed(status) => Refusal::new(status, "the request is not valid"),
            Self::Refused { refusal, .. } => refusal,
        }
    }
}

/// The rules for rewriting a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestRules<'a> {
    pub(crate) inbound: &'a InboundFilter,
    pub(crate) loops: &'a LoopDetector,
    pub(crate) forwarded: ForwardedPolicy,
    pub(crate) head_bytes: usize,
}

pub(crate) struct ParsedHead<'a> {
    pub(crate) method: Method,
    pub(crate) target: RequestTarget<'a>,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// `Host` is required.
    pub(crate) needs_host: bool,
    pub(crate) lines: &'a [Header<'a>],
}

/// Reads the request at the start of `bytes`.
pub(crate) fn read(
    bytes: &[u8],
    rules: RequestRules<'_>,
    origin: &mut ClientOrigin,
) -> Result<ClientRequest, Rejection> {
    let bad = || Rejection::Malformed(StatusCode::BAD_REQUEST);
    let mut lines = [const { MaybeUninit::uninit() }; LINES];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(Status::Complete(length)) if length <= rules.head_bytes => length,
        Ok(Status::Partial) if bytes.len() < rules.head_bytes => return Err(bad()),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Rejection::Malformed(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        Err(_) => return Err(bad()),
    };
    let target = request.path.ok_or_else(bad)?;
    if target.len() > TARGET_BYTES {
        return Err(Rejection::Malformed(StatusCode::URI_TOO_LONG));
    }
    let method = request.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let (method, is_http10) = (method.ok_or_else(bad)?, request.version == Some(0));
    let target = RequestTarget::of(target)?;
    let parsed =
        ParsedHead { method, target, is_http10, needs_host: !is_http10, lines: request.headers };
    Ok(ClientRequest { length, ..parsed.accept(rules, origin)? })
}

impl ParsedHead<'_> {
    /// Checks and rewrites the head.
    pub(crate) fn accept(
        self,
        rules: RequestRules<'_>,
        origin: &mut ClientOrigin,
    ) -> Result<ClientRequest, Rejection> {
        let (facts, is_http10) = (HeaderFacts::of(self.lines, rules)?, self.is_http10);
        let target = &self.target;
        let body = facts.framing(is_http10)?;
        if let Some(refusal) = self.refusal(&facts) {
            let is_head = self.method == Method::HEAD;
            return Err(Rejection::Refused { refusal, is_head, is_http10 });
        }
        let host = target.authority.as_ref().map(|authority| authority.as_str().as_bytes());
        let host = host.or(facts.host);
        let room = self.lines.iter().map(|line| line.name.len() + line.value.len() + 4);
        let room = target.path.len() + room.sum::<usize>() + origin.room();
        let head = HeadWriter::new(&self.method, &target.path, room);
        let mut writing = HeadRewriter {
            head,
            rules,
            body,
            host,
            has_length: false,
            prior: PriorProxies::default(),
        };
        for (line, kind) in self.lines.iter().zip(&facts.kinds) {
            writing.line(line, *kind, &facts);
        }
        let HeadRewriter { mut head, prior, .. } = writing;
        if let Some(host) = host.filter(|_| facts.hosts == 0) {
            head.line(b"host", host);
        }
        if rules.forwarded != ForwardedPolicy::Off {
            origin.write(&mut head.bytes, host, &prior);
        }
        head.line(b"via", rules.loops.via());
        // HTTP/1.0 proxies would not notice the switch.
        let may_switch = !is_http10 && self.method != Method::HEAD;
        Ok(ClientRequest {
            head: head.finish(),
            length: 0,
            body,
            expects: facts.expects && !is_http10 && body != Framing::Length(0),
            upgrade: facts.upgrade().filter(|_| may_switch),
            is_http10,
            closes: facts.closes(is_http10),
            takes_trailers: facts.takes_trailers,
            odd_names: facts.odd_names,
        })
    }

    /// Why a valid request is refused.
    fn refusal(&self, facts: &HeaderFacts<'_>) -> Option<Refusal> {
        if facts.is_loop {
            return Some(loop_detector::refusal());
        }
        if self.method == Method::CONNECT {
            let reason = "CONNECT is for forward proxies";
            return Some(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
        }
        if facts.codings > 0 && !facts.is_sound_coding {
            let reason = "the transfer coding is not chunked";
            return Some(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
        }
        // Checked even if the target has its own host.
        match (facts.host, facts.hosts) {
            (Some(host), 1) if is_host(host) => {}
            (Some(_), 1) => return Some(Refusal::bad("the Host header is not a valid host")),
            (None, _) if self.needs_host => return Some(Refusal::bad("there is no Host header")),
            (None, _) => {}
            (Some(_), _) => return Some(Refusal::bad("there are several Host headers")),
        }
        self.target.refusal(&self.method)
    }
}

struct HeadRewriter<'a> {
    head: HeadWriter,
    rules: RequestRules<'a>,
    body: Framing,
    host: Option<&'a [u8]>,
    has_length: bool,
    /// Forwarding headers of earlier proxies.
    prior: PriorProxies<'a>,
}

impl<'a> HeadRewriter<'a> {
    /// Writes a line, unless it is hop-by-hop or forbidden.
    fn line(&mut self, line: &Header<'a>, kind: HeaderKind, facts: &HeaderFacts<'_>) {
        let name = line.name.as_bytes();
        if facts.connection.names(name) {
            return;
        }
        match kind {
            HeaderKind::Connection | HeaderKind::Upgrade | HeaderKind::Hop => {}
            HeaderKind::Host => self.head.line(name, self.host.unwrap_or_default()),
            HeaderKind::Length => self.length(line),
            // In lower case: a server that does not recognise `chunKed` would read the body as
            // another request.
            HeaderKind::Coding => self.head.line(name, b"chunked"),
            // The proxy itself sends `100 Continue`.
            HeaderKind::Expect if is(line.value, "100-continue") => {}
            // Trailers pass through; other transfer codings do not.
            HeaderKind::TransferExtensions => {
                if list(line.value).any(|one| is(one, "trailers")) {
                    self.head.line(name, b"trailers");
                }
            }
            HeaderKind::Odd if !self.rules.inbound.keeps_odd_names() => {}
            HeaderKind::Odd if self.rules.inbound.is_marker(line.name) => {}
            HeaderKind::Other if self.rules.inbound.is_marked(line.name) => {}
            HeaderKind::Expect | HeaderKind::Via | HeaderKind::Odd | HeaderKind::Other => {
                self.other(line)
            }
        }
    }

    /// Writes the length once and without leading zeros, which not all servers accept.
    fn length(&mut self, line: &Header<'_>) {
        let Framing::Length(length) = self.body else { return };
        if std::mem::replace(&mut self.has_length, true) {
            return;
        }
        let name = line.name.as_bytes();
        if line.value.starts_with(b"0") {
            self.head.line(name, length.to_string().as_bytes());
        } else {
            self.head.line(name, line.value);
        }
    }

    fn other(&mut self, line: &Header<'a>) {
        let how = self.rules.forwarded;
        let is_written = match is_forwarding_header(line.name) && how != ForwardedPolicy::Off {
            false => true,
            true if how == ForwardedPolicy::Replace => false,
            true => self.prior.take(line.name, line.value),
        };
        if is_written {
            self.head.line(line.name.as_bytes(), line.value);
        }
    }
}
