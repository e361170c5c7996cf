//! A client's request as it is passed on: its head is read once, checked, and written anew.
//!
//! Requests that two servers could read in two ways are refused, or made plain. httparse refuses
//! lines folded (obs-fold), bytes that are not allowed in names and values and blanks before a
//! colon, and the codec bad chunks; the rest is here. The rules of framing are those of RFC 9112,
//! section 6.3, for a server that passes requests on. A line that ends in a bare LF is read, and
//! `Transfer-Encoding` is preferred to `Content-Length`; what has been read is written anew, so no
//! backend sees the ambiguity.

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

/// Header lines of a client's request, at most.
pub(crate) const LINES: usize = 100;
/// Bytes of a target, at most.
const TARGET_BYTES: usize = 65_534;

/// A request that may be passed on.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    /// As backends get it, before their own edits.
    pub(crate) head: RequestHead,
    /// Bytes of what came that it was made of.
    pub(crate) length: usize,
    /// The body that follows.
    pub(crate) body: Framing,
    /// The client waits for an interim answer before it sends the body.
    pub(crate) expects: bool,
    /// The protocol that the client wants to switch to; not in the head.
    pub(crate) upgrade: Option<Bytes>,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// The connection ends behind the answer.
    pub(crate) closes: bool,
    /// Trailers may stand behind the answer.
    pub(crate) takes_trailers: bool,
    /// Names that were taken out for their characters.
    pub(crate) odd_names: u64,
}

impl ClientRequest {
    pub(crate) fn is_head(&self) -> bool {
        *self.head.method() == Method::HEAD
    }

    /// Whether a body follows, were it one of no bytes in chunks.
    pub(crate) fn has_body(&self) -> bool {
        self.body != Framing::Length(0)
    }
}

/// Why a request goes no further.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// It is no valid HTTP; the status of the answer.
    Malformed(StatusCode),
    Refused {
        refusal: Refusal,
        is_head: bool,
        is_http10: bool,
    },
}

impl Rejection {
    /// The answer that says why.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Malformed(status) => Refusal::new(status, "the request is not valid"),
            Self::Refused { refusal, .. } => refusal,
        }
    }
}

/// What of a client's request is left out or added.
#[derive(Clone, Copy)]
pub(crate) struct RequestRules<'a> {
    pub(crate) inbound: &'a InboundFilter,
    pub(crate) loops: &'a LoopDetector,
    pub(crate) forwarded: ForwardedPolicy,
    /// Bytes of a head, at most.
    pub(crate) head_bytes: usize,
}

/// A request's head as it was parsed.
pub(crate) struct ParsedHead<'a> {
    pub(crate) method: Method,
    pub(crate) target: RequestTarget<'a>,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// A `Host` must be there.
    pub(crate) needs_host: bool,
    pub(crate) lines: &'a [Header<'a>],
}

/// Reads the request that `bytes` begin with, when no more bytes come.
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
    /// Checks it, and writes it as it is passed on.
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
        // A proxy before a client of HTTP/1.0 would not know that the connection has changed, and
        // the answer to HEAD has no body in any case.
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

    /// Why a valid request is not for us, or ambiguous.
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
        // Before the target's own host takes its place.
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

/// A head that is being written.
struct HeadRewriter<'a> {
    head: HeadWriter,
    rules: RequestRules<'a>,
    body: Framing,
    host: Option<&'a [u8]>,
    has_length: bool,
    /// The forwarding headers of proxies before this one.
    prior: PriorProxies<'a>,
}

impl<'a> HeadRewriter<'a> {
    /// Writes a line, unless it belongs to the client's hop or is not the client's to say.
    fn line(&mut self, line: &Header<'a>, kind: HeaderKind, facts: &HeaderFacts<'_>) {
        let name = line.name.as_bytes();
        if facts.connection.names(name) {
            return;
        }
        match kind {
            HeaderKind::Connection | HeaderKind::Upgrade | HeaderKind::Hop => {}
            HeaderKind::Host => self.head.line(name, self.host.unwrap_or_default()),
            HeaderKind::Length => self.length(line),
            // As everybody knows it: a server that does not take `chunKed` for it would see no body,
            // and then a request.
            HeaderKind::Coding => self.head.line(name, b"chunked"),
            // Kept by us, as soon as the backend's connection wants the body.
            HeaderKind::Expect if is(line.value, "100-continue") => {}
            // Trailers pass through us; other transfer codings do not.
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

    /// Writes the length once, and without leading zeros: a server may not read that many digits.
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
