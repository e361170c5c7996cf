//! Scans a head that does not arrive in one slice, byte by byte.
//!
//! httparse starts over on every call, which is quadratic for a server that sends one byte a second.
//! The scanner looks at every byte once and reports the end of the head, or the first wrong byte.
//! It also names the fault when httparse rejects a whole head, so that the fault does not depend on
//! how the bytes are split. It accepts exactly what httparse accepts (bare line feeds end a line),
//! except for empty lines before a status line; the fuzz target `response` compares the two.

use super::malformed::Malformed;
use super::types::ResponseLimits;

/// The position of the next byte in a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// The bytes of `HTTP/1.` received.
    Protocol(u8),
    Minor,
    SpaceAfterVersion,
    /// The digits of the status received.
    Code(u8),
    AfterCode,
    Reason,
    StatusLf,
    LineStart,
    Name,
    /// After a blank between name and colon, if that is allowed.
    NameEnd,
    /// After the colon, before the value's first visible byte.
    ValueStart,
    Value,
    ValueLf,
    /// A carriage return came where a line would start.
    EndLf,
}

/// Scans one head, or one trailer section.
#[derive(Debug, Clone)]
pub(super) struct HeadScanner {
    state: ScanState,
    bytes: usize,
    headers: usize,
    /// Lines must end in CR LF.
    is_strict: bool,
    /// Folded lines and blanks before a colon are allowed.
    is_lenient: bool,
}

const PROTOCOL: &[u8; 7] = b"HTTP/1.";

impl HeadScanner {
    /// A scanner that expects a status line. If `is_lenient`, header lines may be folded and have
    /// blanks before their colon.
    pub(super) const fn head(is_lenient: bool) -> Self {
        Self { state: ScanState::Protocol(0), bytes: 0, headers: 0, is_strict: false, is_lenient }
    }

    /// A scanner that expects header lines only, up to the empty line. If `is_strict`, lines must
    /// end in CR LF.
    pub(super) const fn trailers(is_strict: bool) -> Self {
        Self { state: ScanState::LineStart, bytes: 0, headers: 0, is_strict, is_lenient: false }
    }

    /// Scans the next bytes; `Some(n)` if the head ends after `n` of them.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        limits: &ResponseLimits,
    ) -> Result<Option<usize>, Malformed> {
        for (index, &byte) in bytes.iter().enumerate() {
            self.bytes += 1;
            if self.step(byte, limits)? {
                return Ok(Some(index + 1));
            }
            if self.bytes >= limits.head_bytes {
                return Err(Malformed::HeadTooLarge);
            }
        }
        Ok(None)
    }

    /// Takes one byte; true if it ends the head.
    fn step(&mut self, byte: u8, limits: &ResponseLimits) -> Result<bool, Malformed> {
        let is_bare = byte == b'\n' && !matches!(self.state, ScanState::ValueLf | ScanState::EndLf);
        if self.is_strict && is_bare {
            return Err(Malformed::LineEnd);
        }
        self.state = match self.state {
            ScanState::LineStart => match byte {
                b'\r' => ScanState::EndLf,
                b'\n' => return Ok(true),
                b' ' | b'\t' if self.headers > 0 && self.is_lenient => ScanState::Value,
                b' ' | b'\t' if self.headers > 0 => return Err(Malformed::ObsFold),
                _ if is_token(byte) => ScanState::Name,
                _ => return Err(Malformed::HeaderName),
            },
            ScanState::Name => match byte {
                b':' => ScanState::ValueStart,
                b' ' | b'\t' if self.is_lenient => ScanState::NameEnd,
                _ if is_token(byte) => ScanState::Name,
                _ => return Err(Malformed::HeaderName),
            },
            ScanState::NameEnd => match byte {
                b':' => ScanState::ValueStart,
                b' ' | b'\t' => ScanState::NameEnd,
                _ => return Err(Malformed::HeaderName),
            },
            state @ (ScanState::ValueStart | ScanState::Value) => match byte {
                b'\r' => ScanState::ValueLf,
                b'\n' => self.end_line(limits)?,
                b' ' | b'\t' => state,
                _ if is_text(byte) => ScanState::Value,
                _ => return Err(Malformed::HeaderValue),
            },
            ScanState::ValueLf if byte == b'\n' => self.end_line(limits)?,
            ScanState::EndLf if byte == b'\n' => return Ok(true),
            ScanState::ValueLf | ScanState::EndLf => return Err(Malformed::LineEnd),
            state => status_line(state, byte)?,
        };
        Ok(false)
    }

    fn end_line(&mut self, limits: &ResponseLimits) -> Result<ScanState, Malformed> {
        self.headers += 1;
        if self.headers > limits.header_bound() {
            return Err(Malformed::TooManyHeaders);
        }
        Ok(ScanState::LineStart)
    }
}

/// The next state within the status line (RFC 9112, section 4). The reason phrase and the space
/// before it may be missing.
fn status_line(state: ScanState, byte: u8) -> Result<ScanState, Malformed> {
    Ok(match state {
        ScanState::Protocol(at) => match PROTOCOL.get(usize::from(at)) {
            Some(&expected) if expected == byte && at == 6 => ScanState::Minor,
            Some(&expected) if expected == byte => ScanState::Protocol(at + 1),
            _ if at < 5 => return Err(Malformed::NotHttp),
            _ => return Err(Malformed::Version),
        },
        ScanState::Minor if matches!(byte, b'0' | b'1') => ScanState::SpaceAfterVersion,
        ScanState::SpaceAfterVersion if byte == b' ' => ScanState::Code(0),
        ScanState::Minor | ScanState::SpaceAfterVersion => return Err(Malformed::Version),
        ScanState::Code(2) if byte.is_ascii_digit() => ScanState::AfterCode,
        ScanState::Code(digits) if byte.is_ascii_digit() => ScanState::Code(digits + 1),
        ScanState::AfterCode if byte == b' ' => ScanState::Reason,
        ScanState::AfterCode | ScanState::Reason if byte == b'\r' => ScanState::StatusLf,
        ScanState::AfterCode | ScanState::Reason | ScanState::StatusLf if byte == b'\n' => {
            ScanState::LineStart
        }
        ScanState::Reason if is_text(byte) => ScanState::Reason,
        ScanState::StatusLf => return Err(Malformed::LineEnd),
        _ => return Err(Malformed::StatusLine),
    })
}

/// A character of a token (RFC 9110, section 5.6.2).
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
        )
        || matches!(byte, b'`' | b'|' | b'~')
}

/// A character of a field value or reason phrase: visible, blank, or above ASCII (RFC 9110,
/// section 5.5).
pub(super) const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
