//! What the lines of a request say of its framing, its connection, and whether it is for us.

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;

use super::{LINES, Rejection, RequestRules};
use crate::message::head::{Framing, KEPT_NAMES};
use crate::message::line::{digits, is, is_one_of, list};

/// With a line that says the framing of a request of HTTP/2.
const FRAMED_LINES: usize = LINES + 1;

/// What a header is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    Connection,
    Upgrade,
    /// Belongs to the client's hop.
    Hop,
    Host,
    Length,
    Coding,
    Expect,
    TransferExtensions,
    Via,
    /// Its name holds more than letters, digits and `-`.
    Odd,
    Other,
}

impl HeaderKind {
    /// By the name.
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

/// What one pass over a request's lines finds.
pub(crate) struct HeaderFacts<'a> {
    pub(crate) kinds: [HeaderKind; FRAMED_LINES],
    /// Before any `Transfer-Encoding`: a length behind one is not even read.
    pub(crate) length: Option<u64>,
    pub(crate) has_length: bool,
    pub(crate) codings: usize,
    /// The last transfer coding is `chunked`.
    pub(crate) is_chunked: bool,
    /// There is one coding, `chunked` and nothing else: we would have to undo any other.
    pub(crate) is_sound_coding: bool,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) hosts: usize,
    pub(crate) connection: ConnectionOptions<'a>,
    pub(crate) upgrade: Option<&'a [u8]>,
    pub(crate) expects: bool,
    pub(crate) takes_trailers: bool,
    /// It has been here before.
    pub(crate) is_loop: bool,
    pub(crate) odd_names: u64,
}

/// What a client says of its connection.
#[derive(Default)]
pub(crate) struct ConnectionOptions<'a> {
    /// It ends.
    closes: bool,
    /// It stays.
    keeps: bool,
    /// It becomes one of another protocol.
    upgrades: bool,
    /// The lines, when they name more than that.
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

    /// Whether a header is for the client's hop because a line names it.
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

    /// Takes note of a line.
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
                    // The same once more says nothing.
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
            // Who speaks HTTP/1.0 knows no codings, and no other coding has an end.
            _ if is_http10 || !self.is_chunked => {
                Err(Rejection::Malformed(StatusCode::BAD_REQUEST))
            }
            // The chunks count, and a length beside them is a lie to someone.
            _ => Ok(Framing::Chunked),
        }
    }

    pub(crate) fn closes(&self, is_http10: bool) -> bool {
        let is_ambiguous = self.codings > 0 && self.has_length;
        self.connection.closes || is_ambiguous || (is_http10 && !self.connection.keeps)
    }

    /// The protocol to switch to, if it is one that may be passed on. Cleartext HTTP/2 is not:
    /// requests in such a tunnel would pass unchecked.
    pub(crate) fn upgrade(&self) -> Option<Bytes> {
        let protocol = self.upgrade.filter(|_| self.connection.upgrades)?;
        let is_http2 = protocol.windows(3).any(|part| is(part, "h2c"));
        (!is_http2).then(|| Bytes::copy_from_slice(protocol))
    }
}
