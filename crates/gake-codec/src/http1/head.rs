//! The framing and persistence that a head announces (RFC 9112, sections 6.3 and 9.3).

use httparse::Header;

use super::malformed::Malformed;
use super::scan::is_token;
use super::types::Version;

/// The head of a final response, borrowed from the bytes that were read.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The reason phrase; empty if it is not ASCII.
    pub reason: &'a str,
    /// The version in the status line.
    pub version: Version,
    /// The header lines in order, names in their original case.
    pub headers: &'a [Header<'a>],
}

impl<'a> ResponseHead<'a> {
    /// The value of the first header with this name, in any case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value)
    }
}

/// How the end of the body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Empty,
    /// Bytes of the body, at least one.
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    Close,
}

/// The framing of the body, and whether the connection may carry another request after it.
/// `Content-Length` together with `Transfer-Encoding` is a fault unless `ignores_length`.
pub(super) fn interpret(
    head: &ResponseHead<'_>,
    request_is_head: bool,
    ignores_length: bool,
) -> Result<(Framing, bool), Malformed> {
    let fields = Fields::read(head.headers);
    // Rule 1 of RFC 9112, section 6.3: such a response ends with its head, whatever length it
    // announces. (CONNECT is never sent, so rule 2 does not apply.)
    let framing = if request_is_head || matches!(head.status, 100..=199 | 204 | 304) {
        Framing::Empty
    } else {
        fields.framing(head, ignores_length)?
    };
    let persistent = match head.version {
        Version::Http11 => !fields.close,
        Version::Http10 => fields.keep_alive && !fields.close,
    };
    // With two lengths, the next response might not begin where this one seems to end.
    let is_sure = fields.length.is_none() || framing != Framing::Chunked;
    Ok((framing, persistent && framing != Framing::Close && is_sure))
}

/// The headers that matter for framing, collected in one pass.
#[derive(Default)]
struct Fields {
    length: Option<Result<u64, Malformed>>,
    transfer: Option<Result<Codings, Malformed>>,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[Header<'_>]) -> Self {
        let mut fields = Self::default();
        for header in headers {
            // The length of the name rules out nearly every header without a comparison.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.connection(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.length = Some(content_length(fields.length.take(), header.value));
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let before = fields.transfer.take().unwrap_or(Ok(Codings::None));
                    fields.transfer = Some(before.and_then(|c| c.append(header.value)));
                }
                _ => {}
            }
        }
        fields
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Rules 3 to 8 of RFC 9112, section 6.3.
    fn framing(&self, head: &ResponseHead<'_>, ignores_length: bool) -> Result<Framing, Malformed> {
        let Some(transfer) = self.transfer else {
            return Ok(match self.length.transpose()? {
                None => Framing::Close,
                Some(0) => Framing::Empty,
                Some(bytes) => Framing::Length(bytes),
            });
        };
        if head.version == Version::Http10 {
            return Err(Malformed::TransferEncodingInHttp10);
        }
        if self.length.is_some() && !ignores_length {
            return Err(Malformed::LengthAndTransferEncoding);
        }
        match transfer? {
            Codings::None => Err(Malformed::TransferEncoding),
            Codings::Other => Ok(Framing::Close),
            Codings::Chunked => Ok(Framing::Chunked),
        }
    }
}

/// Merges a `Content-Length` line with earlier ones. Repeated values, also as a list in one line,
/// are allowed when they are equal (RFC 9110, section 8.6).
fn content_length(before: Option<Result<u64, Malformed>>, value: &[u8]) -> Result<u64, Malformed> {
    let mut known = before.transpose()?;
    for member in value.split(|&b| b == b',') {
        let length = decimal(member.trim_ascii()).ok_or(Malformed::ContentLength)?;
        if known.is_some_and(|other| other != length) {
            return Err(Malformed::ContentLengthConflict);
        }
        known = Some(length);
    }
    known.ok_or(Malformed::ContentLength)
}

/// Digits only: no sign, no blank, no overflow, at least one.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The transfer codings of all lines, as far as framing needs them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Codings {
    None,
    /// Codings without `chunked`.
    Other,
    /// `chunked` is the last coding.
    Chunked,
}

impl Codings {
    fn append(mut self, value: &[u8]) -> Result<Self, Malformed> {
        for member in Members(value) {
            let mut parts = member.splitn(2, |&b| b == b';');
            let coding = parts.next().unwrap_or_default().trim_ascii_end();
            let has_parameters = parts.next().is_some();
            if coding.is_empty() && !has_parameters {
                continue; // RFC 9110, section 5.6.1.2: empty list elements are ignored.
            }
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            if !coding.iter().all(|&b| is_token(b)) || coding.is_empty() {
                return Err(Malformed::TransferEncoding);
            }
            if self == Self::Chunked {
                return Err(Malformed::ChunkedNotLast);
            }
            if chunked && has_parameters {
                return Err(Malformed::TransferEncoding);
            }
            self = if chunked { Self::Chunked } else { Self::Other };
        }
        Ok(self)
    }
}

/// The trimmed members of a comma-separated list; commas inside quoted strings do not separate.
struct Members<'a>(&'a [u8]);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let (mut quoted, mut escaped) = (false, false);
        let end = self.0.iter().position(|&byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b',' => return !quoted,
                _ => {}
            }
            false
        });
        let (member, rest) = match end {
            Some(comma) => (&self.0[..comma], &self.0[comma + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        Some(member.trim_ascii())
    }
}
