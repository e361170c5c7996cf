//! The head of a request in HTTP/1.1 in parts, for those that do not pass as bytes.
//!
//! The rules of framing are those of RFC 9112, section 6.3, for a server that passes requests on:
//! what two servers could read in two ways is refused, here or by [`guard`](super::guard).

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderName, TE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use httparse::Status;

use super::answer_bytes::{is, list};
use super::plain::Framing;
use super::service::Head;

/// Header lines, at most.
const HEADERS: usize = 100;
/// Bytes of a target, at most.
const TARGET_BYTES: usize = 65_534;

/// A head, and what it says of its hop.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) head: Head,
    /// Bytes of it.
    pub(super) length: usize,
    /// The body that follows.
    pub(super) body: Framing,
    /// The client waits for an interim answer before it sends the body.
    pub(super) expects: bool,
    /// The client speaks HTTP/1.0.
    pub(super) is_old: bool,
    /// The connection ends behind the answer.
    pub(super) closes: bool,
    /// Trailers may stand behind the answer.
    pub(super) takes_trailers: bool,
}

/// What the lines of a head say of its framing and its connection, as far as they were read.
#[derive(Default)]
struct Said {
    length: Option<u64>,
    /// The last transfer coding is `chunked`; `None` when there is none.
    is_chunked: Option<bool>,
    says_length: bool,
    closes: bool,
    keeps: bool,
    expects: bool,
    takes_trailers: bool,
}

/// Reads the head that `bytes` begin with, when no more bytes come.
///
/// # Errors
/// The status of the answer to an invalid request.
pub(super) fn read(bytes: &[u8], head_bytes: usize) -> Result<RequestHead, StatusCode> {
    let bad = StatusCode::BAD_REQUEST;
    let mut lines = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut lines);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) if length <= head_bytes => length,
        Ok(Status::Partial) if bytes.len() < head_bytes => return Err(bad),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        Err(_) => return Err(bad),
    };
    let target = request.path.ok_or(bad)?;
    if target.len() > TARGET_BYTES {
        return Err(StatusCode::URI_TOO_LONG);
    }
    let method = Method::from_bytes(request.method.ok_or(bad)?.as_bytes()).map_err(|_| bad)?;
    let uri = Uri::try_from(target).map_err(|_| bad)?;
    let is_old = request.version == Some(0);
    let mut said = Said::default();
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for line in request.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| bad)?;
        let value = HeaderValue::from_bytes(line.value).map_err(|_| bad)?;
        if said.take(&name, line.value).ok_or(bad)? {
            headers.append(name, value);
        }
    }
    let body = match (said.is_chunked, said.length) {
        // Who speaks HTTP/1.0 knows no codings, and no other coding has an end.
        (Some(_), _) if is_old => return Err(bad),
        (Some(false), _) => return Err(bad),
        (Some(true), _) => {
            // The chunks count, and a length beside them is a lie to someone.
            headers.remove(CONTENT_LENGTH);
            Framing::Chunked
        }
        (None, None) => Framing::Length(0),
        (None, Some(length)) => {
            // Leading zeros are not passed on: a server may not read that many digits.
            headers.insert(CONTENT_LENGTH, length.into());
            Framing::Length(length)
        }
    };
    let is_ambiguous = said.is_chunked.is_some() && said.says_length;
    let closes = said.closes || is_ambiguous || (is_old && !said.keeps);
    let expects = said.expects && !is_old && body != Framing::Length(0);
    let head = Head { method, uri, headers };
    let takes_trailers = said.takes_trailers;
    Ok(RequestHead { head, length, body, expects, is_old, closes, takes_trailers })
}

impl Said {
    /// Takes note of a line. Returns whether it is kept; `None` when it makes no sense.
    fn take(&mut self, name: &HeaderName, value: &[u8]) -> Option<bool> {
        let has = |word: &str| list(value).any(|one| is(one, word));
        match *name {
            TRANSFER_ENCODING => {
                self.is_chunked = Some(list(value).last().is_some_and(|last| is(last, "chunked")));
            }
            CONTENT_LENGTH => {
                self.says_length = true;
                if self.is_chunked.is_some() {
                    return Some(false);
                }
                let length = digits(value)?;
                if self.length.is_some_and(|before| before != length) {
                    return None;
                }
                // The same once more says nothing.
                return Some(self.length.replace(length).is_none());
            }
            CONNECTION => {
                self.closes |= has("close");
                self.keeps |= has("keep-alive");
            }
            EXPECT => self.expects = is(value, "100-continue"),
            TE => self.takes_trailers |= has("trailers"),
            _ => {}
        }
        Some(true)
    }
}

/// A length of digits alone.
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Result<RequestHead, StatusCode> {
        read(format!("POST /a?b HTTP/1.1\r\n{lines}\r\n").as_bytes(), 8192)
    }

    #[test]
    fn the_framing_is_the_one_that_every_server_sees() {
        let framing = |lines: &str| head(lines).map(|head| (head.body, head.closes)).ok();
        assert_eq!(framing(""), Some((Framing::Length(0), false)));
        assert_eq!(framing("Content-Length: 5\r\n"), Some((Framing::Length(5), false)));
        let twice = "Content-Length: 5\r\nContent-Length: 5\r\n";
        assert_eq!(head(twice).unwrap().head.headers.get_all(CONTENT_LENGTH).iter().count(), 1);
        for both in [
            "Content-Length: 5\r\nTransfer-Encoding: chunKed\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: x\r\n",
        ] {
            assert_eq!(framing(both), Some((Framing::Chunked, true)), "{both}");
            assert!(!head(both).unwrap().head.headers.contains_key(CONTENT_LENGTH), "{both}");
        }
        for bad in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: chunked, gzip\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        ] {
            assert_eq!(head(bad).unwrap_err(), StatusCode::BAD_REQUEST, "{bad}");
        }
        let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(old, 8192).unwrap_err(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_connection_ends_when_one_line_says_so() {
        let closes = |lines: &str| head(lines).unwrap().closes;
        assert!(!closes("Connection: x-hop\r\n"));
        assert!(closes("Connection: x, Close\r\nConnection: keep-alive\r\n"));
        let old = |lines: &str| {
            read(format!("GET / HTTP/1.0\r\n{lines}\r\n").as_bytes(), 8192).unwrap().closes
        };
        assert!(old("") && !old("Connection: Keep-Alive\r\n"));
        assert!(old("Connection: close\r\nConnection: keep-alive\r\n"));
    }

    #[test]
    fn what_is_too_large_is_told_from_what_is_no_request() {
        let large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        assert_eq!(head(&"X: y\r\n".repeat(101)).unwrap_err(), large);
        assert_eq!(head(&format!("X: {}\r\n", "y".repeat(9000))).unwrap_err(), large);
        let endless = format!("GET /{}", "a".repeat(9000));
        assert_eq!(read(endless.as_bytes(), 8192).unwrap_err(), large);
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
        assert_eq!(read(long.as_bytes(), 80_000).unwrap_err(), StatusCode::URI_TOO_LONG);
        for bad in ["GET / HTTP/2.0\r\n\r\n", "\x16\x03\x01\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n"] {
            assert_eq!(read(bad.as_bytes(), 8192).unwrap_err(), StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
