//! Analyses the header lines of a request: framing, connection options, hosts.

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;

use super::{LINES, Rejection, RequestRules};
use crate::message::head::{Framing, KEPT_NAMES};
use crate::message::line::{digits, is, is_one_of, list};

/// Including a framing line added to HTTP/2 requests.
const FRAMED_LINES: usize = LINES + 1;

/// The kinds of headers that need special treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    Connection,
    Upgrade,
    /// Hop-by-hop.
    Hop,
    Host,
    Length,
    Coding,
    Expect,
    TransferExtensions,
    Via,
    /// The name has characters other than letters, digits and `-`.
    Odd,
    Other,
}

impl HeaderKind {
    pub(crate) fn of(name: &[u8]) -> Self {
        if !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            return Self::Odd;
        }
        match name.len() {
            2 if is(name, "te") => Self::TransferExtensions,
            3 if is(name, "via") => Self::Via,
            4 if is(name, "host") => Self::Host,
            6 if is(name, "expect") => Self::Expect,
            7 if is(name, "upgrade") => Self::Upgrade,
            10 if is(name, "connection") => Self::Connection,
            10 if is(name, "keep-alive") => Self::Hop,
            14 if is(name, "content-length") => Self::Length,
            14 if is(name, "http2-settings") => Self::Hop,
            16 if is(name, "proxy-connection") => Self::Hop,
            17 if is(name, "transfer-encoding") => Self::Coding,
            19 if is(name, "proxy-authorization") => Self::Hop,
            _ => Self::Other,
        }
    }
}

/// The results of one pass over a request's lines.
pub(crate) struct HeaderFacts<'a> {
    pub(crate) kinds: [HeaderKind; FRAMED_LINES],
    /// Only lines before a `Transfer-Encoding` are parsed.
    pub(crate) length: Option<u64>,
    pub(crate) has_length: bool,
    pub(crate) codings: usize,
    /// The last transfer coding is `chunked`.
    pub(crate) is_chunked: bool,
    /// The only coding is `chunked`; any other would have to be decoded.
    pub(crate) is_sound_coding: bool,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) hosts: usize,
    pub(crate) connection: ConnectionOptions<'a>,
    pub(crate) upgrade: Option<&'a [u8]>,
    pub(crate) expects: bool,
    pub(crate) takes_trailers: bool,
    /// The request has passed this proxy before.
    pub(crate) is_loop: bool,
    pub(crate) odd_names: u64,
}

/// The client's `Connection` options.
#[derive(Default)]
pub(crate) struct ConnectionOptions<'a> {
    closes: bool,
    keeps: bool,
    upgrades: bool,
    /// Lines that nominate headers.
    named: Vec<&'a [u8]>,
}

impl<'a> ConnectionOptions<'a> {
    fn take(&mut self, line: &'a [u8]) {
        let mut is_usual = true;
        for option in list(line) {
            match option.len() {
                5 if is(option, "close") => self.closes = true,
                7 if is(option, "upgrade") => self.upgrades = true,
                10 if is(option, "keep-alive") => self.keeps = true,
                _ => is_usual = false,
            }
        }
        if !is_usual {
            self.named.push(line);
        }
    }

    /// Whether a header is nominated as hop-by-hop.
    pub(crate) fn names(&self, name: &[u8]) -> bool {
        !self.named.is_empty()
            && self
                .named
                .iter()
                .flat_map(|line| list(line))
                .any(|one| one.eq_ignore_ascii_case(name))
            && !is_one_of(name, KEPT_NAMES)
    }
}

impl<'a> HeaderFacts<'a> {
    pub(crate) fn of(lines: &[Header<'a>], rules: RequestRules<'_>) -> Result<Self, Rejection> {
        let mut facts = Self {
            kinds: [HeaderKind::Other; FRAMED_LINES],
            length: None,
            has_length: false,
            codings: 0,
            is_chunked: false,
            is_sound_coding: false,
            host: None,
            hosts: 0,
            connection: ConnectionOptions::default(),
            upgrade: None,
            expects: false,
            takes_trailers: false,
            is_loop: false,
            odd_names: 0,
        };
        for (number, line) in lines.iter().enumerate() {
            let kind = HeaderKind::of(line.name.as_bytes());
            facts.kinds[number] = kind;
            facts.take(kind, line.value, rules)?;
        }
        Ok(facts)
    }

    fn take(
        &mut self,
        kind: HeaderKind,
        value: &'a [u8],
        rules: RequestRules<'_>,
    ) -> Result<(), Rejection> {
        match kind {
            HeaderKind::Connection => self.connection.take(value),
            HeaderKind::Upgrade => self.upgrade = self.upgrade.or(Some(value)),
            HeaderKind::Host => {
                self.hosts += 1;
                self.host = Some(value);
            }
            HeaderKind::Length => {
                self.has_length = true;
                if self.codings == 0 {
                    // Equal repetitions are allowed.
                    let is_same = |length: &u64| self.length.is_none_or(|before| before == *length);
                    let bad = Rejection::Malformed(StatusCode::BAD_REQUEST);
                    self.length = Some(digits(value).filter(is_same).ok_or(bad)?);
                }
            }
            HeaderKind::Coding => {
                self.codings += 1;
                self.is_chunked = list(value).last().is_some_and(|last| is(last, "chunked"));
                self.is_sound_coding = self.codings == 1 && is(value, "chunked");
            }
            HeaderKind::Expect => self.expects |= is(value, "100-continue"),
            HeaderKind::TransferExtensions => {
                self.takes_trailers |= list(value).any(|one| is(one, "trailers"));
            }
            HeaderKind::Via => self.is_loop |= rules.loops.contains_own_via(value),
            HeaderKind::Odd if !rules.inbound.keeps_odd_names() => self.odd_names += 1,
            HeaderKind::Hop | HeaderKind::Odd | HeaderKind::Other => {}
        }
        Ok(())
    }

    pub(crate) fn framing(&self, is_http10: bool) -> Result<Framing, Rejection> {
        match self.codings {
            0 => Ok(Framing::Length(self.length.unwrap_or(0))),
            // HTTP/1.0 has no codings, and only `chunked` delimits a body.
            _ if is_http10 || !self.is_chunked => {
                Err(Rejection::Malformed(StatusCode::BAD_REQUEST))
            }
            // Chunks take precedence over a length.
            _ => Ok(Framing::Chunked),
        }
    }

    pub(crate) fn closes(&self, is_http10: bool) -> bool {
        let is_ambiguous = self.codings > 0 && self.has_length;
        self.connection.closes || is_ambiguous || (is_http10 && !self.connection.keeps)
    }

    /// The protocol to switch to, except cleartext HTTP/2: requests in such a tunnel would bypass
    /// all checks.
    pub(crate) fn upgrade(&self) -> Option<Bytes> {
        let protocol = self.upgrade.filter(|_| self.connection.upgrades)?;
        let is_http2 = protocol.windows(3).any(|word| is(word, "h2c"));
        (!is_http2).then(|| Bytes::copy_from_slice(protocol))
    }
}
