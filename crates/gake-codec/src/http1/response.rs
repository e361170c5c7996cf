//! The parser of one connection's responses.

use std::mem::{self, MaybeUninit};

use httparse::{Header, ParserConfig, Status};

use super::chunked::ChunkDecoder;
use super::head::{Framing, ResponseHead, interpret};
use super::known_heads::{KnownHeads, ParsedHead};
use super::malformed::Malformed;
use super::scan::HeadScanner;
use super::types::{Eof, MAX_HEADERS, ParseProgress, Response, ResponseLimits, Version};
use super::visitor::Visitor;

/// Header lines parsed on a small stack frame; heads with more take a slower path.
const FEW_HEADERS: usize = 64;

/// The capacity that a connection keeps of its buffer for split heads.
const KEPT_PARTIAL: usize = 4 * 1024;

#[derive(Debug)]
enum State {
    /// No request is pending.
    Idle,
    Head,
    /// Bytes of the body still expected, at least one.
    Length(u64),
    Chunked(ChunkDecoder),
    /// The body ends with the connection.
    Close,
    Failed(Malformed),
}

/// Parses the responses of one connection in sequence.
///
/// Call [`start`](Self::start) before each request, then [`feed`](Self::feed) the bytes of the
/// socket until it returns `Done`, or [`eof`](Self::eof) when the peer closes.
#[derive(Debug)]
pub struct ResponseParser {
    limits: ResponseLimits,
    state: State,
    request_is_head: bool,
    ignores_length: bool,
    is_lenient: bool,
    may_switch: bool,
    started: bool,
    interim: u32,
    status: u16,
    version: Version,
    keep_alive: bool,
    body_bytes: u64,
    /// Scans a head that is split over several slices; its bytes are in `partial`. New while that
    /// is empty.
    scanner: HeadScanner,
    /// Empty unless a head is incomplete.
    partial: Vec<u8>,
}

impl ResponseParser {
    /// A parser without a pending request.
    pub const fn new(limits: ResponseLimits) -> Self {
        Self {
            limits,
            state: State::Idle,
            request_is_head: false,
            ignores_length: false,
            is_lenient: false,
            may_switch: false,
            started: false,
            interim: 0,
            status: 0,
            version: Version::Http11,
            keep_alive: false,
            body_bytes: 0,
            scanner: HeadScanner::head(false),
            partial: Vec::new(),
        }
    }

    /// Ignores `Content-Length` together with `Transfer-Encoding` instead of rejecting it: RFC 9112,
    /// section 6.3, allows that to an intermediary that removes the length from what it forwards.
    #[must_use]
    pub const fn ignoring_length_beside_transfer_encoding(mut self) -> Self {
        self.ignores_length = true;
        self
    }

    /// Accepts what a client may read but an intermediary must not pass on (RFC 9112): folded
    /// header lines (section 5.2), blanks before a colon, and `Content-Length` together with
    /// `Transfer-Encoding`, where the length is ignored (section 6.3).
    #[must_use]
    pub const fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self.scanner = HeadScanner::head(true);
        self.ignoring_length_beside_transfer_encoding()
    }

    /// Expects the response to a new request. The response to HEAD has no body, whatever its head
    /// announces (RFC 9112, section 6.3).
    pub fn start(&mut self, request_is_head: bool) {
        self.state = State::Head;
        self.request_is_head = request_is_head;
        self.may_switch = false;
        self.started = false;
        self.interim = 0;
        self.body_bytes = 0;
        if !self.partial.is_empty() {
            self.reset_head();
        }
    }

    /// Expects the response to an upgrade request: a 101 is final then, and the bytes after
    /// [`Response::consumed`] belong to the other protocol.
    pub fn start_upgrade(&mut self) {
        self.start(false);
        self.may_switch = true;
    }

    /// Whether any byte of the response has come, interim responses included.
    pub const fn started(&self) -> bool {
        self.started
    }

    /// Whether the final head is complete and the body is not.
    pub const fn in_body(&self) -> bool {
        matches!(self.state, State::Length(_) | State::Chunked(_) | State::Close)
    }

    /// Takes the next bytes of the response. See [`feed_with`](Self::feed_with).
    ///
    /// # Errors
    /// See [`feed_known`](Self::feed_known).
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<ParseProgress, Malformed> {
        self.feed_with(bytes, &mut ())
    }

    /// Takes the next bytes of the response and shows its head and body to `visitor`.
    ///
    /// # Errors
    /// See [`feed_known`](Self::feed_known).
    pub fn feed_with<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Result<ParseProgress, Malformed> {
        self.feed_known(bytes, visitor, &mut KnownHeads::new())
    }

    /// Takes the next bytes of the response and shows its head and body to `visitor`. A head that
    /// `known` holds is not parsed unless the visitor wants to see it.
    ///
    /// # Errors
    /// The first fault in the response. The connection is unusable, and every later call returns
    /// the same fault until [`start`](Self::start).
    pub fn feed_known<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<ParseProgress, Malformed> {
        let fed = self.advance(bytes, visitor, known);
        if let Err(fault) = fed {
            self.state = State::Failed(fault);
            self.reset_head();
        }
        fed
    }

    /// The peer closed its side: returns the effect on the pending response.
    pub fn eof(&mut self) -> Eof {
        let end = match self.state {
            State::Close => {
                let ParseProgress::Done(response) = self.done(0, 0) else { return Eof::Cut };
                Eof::Complete(response)
            }
            State::Idle => Eof::Nothing,
            State::Head if !self.started => Eof::Nothing,
            _ => Eof::Cut,
        };
        self.state = State::Idle;
        self.reset_head();
        end
    }

    fn advance<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<ParseProgress, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Head => {
                    self.started = true;
                    let Some(consumed) = self.head(rest, visitor, known)? else {
                        return Ok(ParseProgress::More);
                    };
                    at += consumed;
                    if matches!(self.state, State::Idle) {
                        return Ok(self.done(at, bytes.len()));
                    }
                }
                State::Length(left) => {
                    let take = usize::try_from(*left).map_or(rest.len(), |n| n.min(rest.len()));
                    *left -= take as u64;
                    let complete = *left == 0;
                    self.body_bytes += take as u64;
                    visitor.body(&rest[..take]);
                    at += take;
                    if complete {
                        return Ok(self.done(at, bytes.len()));
                    }
                }
                State::Chunked(decoder) => {
                    let pushed = decoder.push(rest, &self.limits, visitor)?;
                    self.body_bytes += pushed.body_bytes;
                    at += pushed.consumed;
                    if pushed.done {
                        return Ok(self.done(at, bytes.len()));
                    }
                }
                State::Close => {
                    self.body_bytes += rest.len() as u64;
                    visitor.body(rest);
                    at = bytes.len();
                }
                State::Idle => return Err(Malformed::Unsolicited),
                State::Failed(fault) => return Err(*fault),
            }
        }
        Ok(ParseProgress::More)
    }

    fn done(&mut self, consumed: usize, fed: usize) -> ParseProgress {
        self.state = State::Idle;
        ParseProgress::Done(Response {
            status: self.status,
            version: self.version,
            body_bytes: self.body_bytes,
            consumed,
            keep_alive: self.keep_alive,
            excess: consumed < fed,
        })
    }

    /// Takes bytes of a head; `Some(n)` if `n` of them complete it.
    fn head<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<Option<usize>, Malformed> {
        if self.partial.is_empty() {
            if !visitor.wants_head()
                && let Some((length, parsed)) = known.recall(bytes, self.request_is_head)
                && !visitor.wants_head_of(parsed.status)
            {
                self.enter(parsed);
                return Ok(Some(length));
            }
            let bounded = &bytes[..bytes.len().min(self.limits.head_bytes)];
            // httparse skips empty lines before a status line, which RFC 9112 does not allow.
            if bounded.first() == Some(&b'H')
                && let Some(length) = self.parse(bounded, visitor, known)?
            {
                return Ok(Some(length));
            }
        }
        let end = self.scanner.push(bytes, &self.limits)?;
        self.partial.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            let whole = mem::take(&mut self.partial);
            let parsed = self.parse(&whole, visitor, known);
            self.partial = whole;
            self.reset_head();
            // The scanner found the end, so httparse must find it, too.
            parsed?.ok_or(Malformed::HeaderName)?;
        }
        Ok(end)
    }

    /// Parses a head; `None` while it is incomplete.
    #[inline]
    fn parse<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<Option<usize>, Malformed> {
        let mut few = [const { MaybeUninit::uninit() }; FEW_HEADERS];
        let room = self.limits.header_bound().min(FEW_HEADERS);
        match parse_into(bytes, &mut few[..room]) {
            Err(httparse::Error::TooManyHeaders) => self.parse_many(bytes, visitor, known),
            parsed => self.parsed(bytes, parsed, visitor, known),
        }
    }

    /// The same with space for the maximum number of headers. Not inlined: only heads that need it
    /// pay for the stack.
    #[cold]
    #[inline(never)]
    fn parse_many<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<Option<usize>, Malformed> {
        let mut many = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let parsed = parse_into(bytes, &mut many[..self.limits.header_bound()]);
        self.parsed(bytes, parsed, visitor, known)
    }

    #[inline]
    fn parsed<V: Visitor>(
        &mut self,
        bytes: &[u8],
        parsed: Result<Option<(ResponseHead<'_>, usize)>, httparse::Error>,
        visitor: &mut V,
        known: &mut KnownHeads,
    ) -> Result<Option<usize>, Malformed> {
        match parsed {
            Ok(Some((head, length))) => {
                if let Some(parsed) = self.accept(&head)? {
                    visitor.head(&head);
                    // A visitor of all heads never recalls one, and a 101 is not a valid response to
                    // other requests.
                    if !visitor.wants_head() && head.status != 101 {
                        known.learn(&bytes[..length], self.request_is_head, parsed);
                    }
                }
                Ok(Some(length))
            }
            Ok(None) => Ok(None),
            Err(_) if self.is_lenient => self.parse_mended(bytes, visitor),
            Err(error) => Err(self.reason(bytes, error)),
        }
    }

    /// Parses a head that httparse refuses again, without its folded lines and blanks before
    /// colons; `None` while it is incomplete.
    #[cold]
    #[inline(never)]
    fn parse_mended<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Result<Option<usize>, Malformed> {
        let Some(length) = HeadScanner::head(true).push(bytes, &self.limits)? else {
            return Ok(None);
        };
        let whole = mended(&bytes[..length]);
        let mut many = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        match parse_into(&whole, &mut many[..self.limits.header_bound()]) {
            Ok(Some((head, _))) => {
                if self.accept(&head)?.is_some() {
                    visitor.head(&head);
                }
                Ok(Some(length))
            }
            Ok(None) => Err(Malformed::HeaderName),
            Err(error) => Err(self.reason(bytes, error)),
        }
    }

    /// Names the fault that httparse found by the scanner, which distinguishes more of them.
    #[cold]
    fn reason(&self, bytes: &[u8], error: httparse::Error) -> Malformed {
        match HeadScanner::head(self.is_lenient).push(bytes, &self.limits) {
            Err(fault) => fault,
            Ok(_) => match error {
                httparse::Error::Version => Malformed::Version,
                httparse::Error::Status => Malformed::StatusLine,
                httparse::Error::NewLine => Malformed::LineEnd,
                httparse::Error::HeaderValue => Malformed::HeaderValue,
                httparse::Error::TooManyHeaders => Malformed::TooManyHeaders,
                _ => Malformed::HeaderName,
            },
        }
    }

    /// Advances from a complete head to the next one (`None`), to the body, or to the end.
    #[inline]
    fn accept(&mut self, head: &ResponseHead<'_>) -> Result<Option<ParsedHead>, Malformed> {
        match head.status {
            ..100 => return Err(Malformed::Status),
            101 if !self.may_switch => return Err(Malformed::Upgrade),
            102..200 | 100 => {
                self.interim += 1;
                if self.interim > self.limits.interim {
                    return Err(Malformed::TooManyInterim);
                }
                return Ok(None);
            }
            _ => {}
        }
        let (framing, keep_alive) = interpret(head, self.request_is_head, self.ignores_length)?;
        let parsed = ParsedHead { status: head.status, version: head.version, keep_alive, framing };
        self.enter(parsed);
        Ok(Some(parsed))
    }

    /// Enters the state of the body, or `Idle` without one.
    #[inline]
    fn enter(&mut self, parsed: ParsedHead) {
        self.status = parsed.status;
        self.version = parsed.version;
        self.keep_alive = parsed.keep_alive;
        self.state = match parsed.framing {
            Framing::Empty => State::Idle,
            Framing::Length(bytes) => State::Length(bytes),
            Framing::Chunked => State::Chunked(ChunkDecoder::new()),
            Framing::Close => State::Close,
        };
    }

    fn reset_head(&mut self) {
        self.scanner = HeadScanner::head(self.is_lenient);
        self.partial.clear();
        self.partial.shrink_to(KEPT_PARTIAL);
    }
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new(ResponseLimits::default())
    }
}

/// The head with folded lines joined by a blank (RFC 9112, section 5.2) and without blanks before
/// colons.
fn mended(head: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(head.len());
    for (number, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if number > 1 && line.starts_with(b" ") | line.starts_with(b"\t") {
            whole.truncate(whole.trim_ascii_end().len());
            whole.push(b' ');
            whole.extend_from_slice(line.trim_ascii_start());
            if line.trim_ascii().is_empty() {
                whole.extend_from_slice(b"\r\n");
            }
            continue;
        }
        match line.iter().position(|byte| *byte == b':').filter(|_| number > 0) {
            Some(colon) => {
                whole.extend_from_slice(line[..colon].trim_ascii_end());
                whole.extend_from_slice(&line[colon..]);
            }
            None => whole.extend_from_slice(line),
        }
    }
    whole
}

/// Parses the head at the start of `bytes` into `headers`; `None` while it is incomplete.
#[inline]
fn parse_into<'h, 'b: 'h>(
    bytes: &'b [u8],
    headers: &'h mut [MaybeUninit<Header<'b>>],
) -> Result<Option<(ResponseHead<'h>, usize)>, httparse::Error> {
    let mut response = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut response, bytes, headers)? {
        Status::Partial => Ok(None),
        Status::Complete(length) => {
            let version = match response.version {
                Some(0) => Version::Http10,
                _ => Version::Http11,
            };
            let status = response.code.unwrap_or(0);
            let reason = response.reason.unwrap_or_default();
            Ok(Some((ResponseHead { status, reason, version, headers: response.headers }, length)))
        }
    }
}
