//! The chunked transfer coding (RFC 9112, section 7.1).

use super::malformed::Malformed;
use super::scan::{HeadScanner, is_text};
use super::types::{MAX_HEADERS, ResponseLimits};
use super::visitor::Visitor;

#[derive(Debug, Clone)]
enum ChunkState {
    /// Before the first digit of a size.
    SizeStart,
    Size,
    /// Blanks after a size, which some servers pad with.
    SizeBlank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers(HeadScanner),
}

/// Decodes the chunked body of one response or request. The outcome does not depend on how the
/// bytes are split.
#[derive(Debug, Clone)]
pub struct ChunkDecoder {
    state: ChunkState,
    /// The size being read, then the bytes of the chunk still expected.
    left: u64,
    /// Bytes of the current size line, which is bounded.
    line: usize,
    /// Whether the lines of trailers must end in CR LF.
    is_strict: bool,
    /// The trailers received, if the visitor wants them.
    trailers: Vec<u8>,
}

/// The result of [`ChunkDecoder::push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkProgress {
    /// Bytes taken, counting from the start of the slice.
    pub consumed: usize,
    /// Bytes of the body among them.
    pub body_bytes: u64,
    /// Whether the body, with its trailers, is complete.
    pub done: bool,
}

impl ChunkDecoder {
    /// A decoder at the start of a response's body.
    pub const fn new() -> Self {
        Self::with(false)
    }

    /// A decoder at the start of a request's body. Trailer lines must end in CR LF: every server in
    /// a chain must see the request end at the same byte.
    pub const fn of_request() -> Self {
        Self::with(true)
    }

    const fn with(is_strict: bool) -> Self {
        Self { state: ChunkState::SizeStart, left: 0, line: 0, is_strict, trailers: Vec::new() }
    }

    /// Decodes the next bytes and hands the data to `visitor`. Trailers are validated, and skipped
    /// unless the visitor wants them.
    ///
    /// # Errors
    /// The first fault in the framing. The decoder is unusable afterwards.
    pub fn push<V: Visitor>(
        &mut self,
        bytes: &[u8],
        limits: &ResponseLimits,
        visitor: &mut V,
    ) -> Result<ChunkProgress, Malformed> {
        let mut at = 0;
        let mut body_bytes = 0;
        while let Some(&byte) = bytes.get(at) {
            match &mut self.state {
                ChunkState::Data => {
                    let rest = &bytes[at..];
                    let take = usize::try_from(self.left).map_or(rest.len(), |n| n.min(rest.len()));
                    visitor.body(&rest[..take]);
                    at += take;
                    body_bytes += take as u64;
                    self.left -= take as u64;
                    if self.left == 0 {
                        self.state = ChunkState::DataCr;
                    }
                }
                ChunkState::Trailers(scanner) => {
                    let end = scanner.push(&bytes[at..], limits).map_err(of_trailers)?;
                    let consumed = end.map_or(bytes.len(), |n| at + n);
                    if visitor.wants_trailers() {
                        self.trailers.extend_from_slice(&bytes[at..consumed]);
                        if end.is_some() {
                            show_trailers(&self.trailers, visitor)?;
                        }
                    }
                    return Ok(ChunkProgress { consumed, body_bytes, done: end.is_some() });
                }
                _ => {
                    self.line_byte(byte, limits)?;
                    at += 1;
                }
            }
        }
        Ok(ChunkProgress { consumed: at, body_bytes, done: false })
    }

    /// Takes one byte of the framing around the data. Lines must end in CR LF: the leniency of
    /// RFC 9112, section 2.2, applies to the head only.
    fn line_byte(&mut self, byte: u8, limits: &ResponseLimits) -> Result<(), Malformed> {
        self.state = match (&self.state, byte) {
            (ChunkState::SizeStart | ChunkState::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.left > u64::MAX >> 4 {
                    return Err(Malformed::ChunkSizeOverflow);
                }
                self.left = self.left << 4 | u64::from(hex_value(byte));
                ChunkState::Size
            }
            (ChunkState::SizeStart, _) => return Err(Malformed::ChunkSize),
            (ChunkState::Size | ChunkState::SizeBlank | ChunkState::Extension, b'\r') => {
                ChunkState::SizeLf
            }
            (ChunkState::Size | ChunkState::SizeBlank, b' ' | b'\t') => ChunkState::SizeBlank,
            (ChunkState::Size | ChunkState::SizeBlank, b';') => ChunkState::Extension,
            (ChunkState::Size, _) => return Err(Malformed::ChunkSize),
            (ChunkState::Extension, _) if is_text(byte) => ChunkState::Extension,
            (ChunkState::SizeLf, b'\n') => return self.end_size_line(),
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::SizeStart,
            (ChunkState::DataCr | ChunkState::DataLf, _) => return Err(Malformed::ChunkEnd),
            _ => return Err(Malformed::ChunkLine),
        };
        if !matches!(self.state, ChunkState::DataLf | ChunkState::SizeStart) {
            self.line += 1;
            if self.line > limits.chunk_line {
                return Err(Malformed::ChunkLineTooLong);
            }
        }
        Ok(())
    }

    fn end_size_line(&mut self) -> Result<(), Malformed> {
        self.line = 0;
        // A size of zero is the last chunk, followed by the trailer section.
        self.state = match self.left {
            0 => ChunkState::Trailers(HeadScanner::trailers(self.is_strict)),
            _ => ChunkState::Data,
        };
        Ok(())
    }
}

impl Default for ChunkDecoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows trailers that the scanner has accepted. Not inlined: only visitors that want trailers pay
/// for the stack.
#[cold]
#[inline(never)]
fn show_trailers<V: Visitor>(bytes: &[u8], visitor: &mut V) -> Result<(), Malformed> {
    let mut trailers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    match httparse::parse_headers(bytes, &mut trailers) {
        Ok(httparse::Status::Complete((_, trailers))) => {
            if !trailers.is_empty() {
                visitor.trailers(trailers);
            }
            Ok(())
        }
        _ => Err(Malformed::HeaderName),
    }
}

/// Turns a fault of a head into the fault of trailers.
const fn of_trailers(fault: Malformed) -> Malformed {
    match fault {
        Malformed::HeadTooLarge => Malformed::TrailersTooLarge,
        Malformed::TooManyHeaders => Malformed::TooManyTrailers,
        other => other,
    }
}

const fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
