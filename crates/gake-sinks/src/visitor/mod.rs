//! A visitor of a page or an API that gake serves: its request, and a response that it must take in
//! time.

mod head;

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub use head::VisitorHead;

/// Maximum size of a request's head, in bytes.
const HEAD_MAX: usize = 8 << 10;

/// The head of a request. It must come whole within `patience`: who sends a byte now and then must
/// not hold up the others, nor the end of the run.
///
/// # Errors
/// When it does not, or is too long.
pub fn read_head(visitor: &mut TcpStream, patience: Duration) -> io::Result<Vec<u8>> {
    let (mut bytes, end) = read(visitor, patience)?;
    bytes.truncate(end);
    Ok(bytes)
}

/// The head and the body of a request, of `most` bytes at most, which must come within `patience`
/// each. A request without a length has no body.
///
/// # Errors
/// As [`read_head`].
pub fn read_whole(
    visitor: &mut TcpStream,
    most: usize,
    patience: Duration,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut head, end) = read(visitor, patience)?;
    let mut body = head.split_off(end);
    let length =
        VisitorHead::parse(&head).and_then(|head| head.only("Content-Length")?.parse().ok());
    let length = length.unwrap_or(0);
    if length > most {
        return Err(ErrorKind::InvalidData.into());
    }
    let end = Instant::now() + patience;
    while body.len() < length {
        more(visitor, &mut body, end)?;
    }
    body.truncate(length);
    Ok((head, body))
}

/// A request as far as it has come, and where its head ends.
fn read(visitor: &mut TcpStream, patience: Duration) -> io::Result<(Vec<u8>, usize)> {
    visitor.set_nonblocking(false)?;
    let end = Instant::now() + patience;
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok((bytes, at + 4));
        }
        if bytes.len() > HEAD_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        more(visitor, &mut bytes, end)?;
    }
}

/// Adds what comes next until `end`; something must come.
fn more(visitor: &mut TcpStream, bytes: &mut Vec<u8>, end: Instant) -> io::Result<()> {
    let mut some = [0; 1024];
    visitor.set_read_timeout(Some(left_until(end)?))?;
    match visitor.read(&mut some)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        read => {
            bytes.extend_from_slice(&some[..read]);
            Ok(())
        }
    }
}

/// Sends everything, within `patience`.
///
/// # Errors
/// When the visitor does not take it.
pub fn send(visitor: &mut TcpStream, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    let mut rest = bytes;
    while !rest.is_empty() {
        visitor.set_write_timeout(Some(left_until(end)?))?;
        match visitor.write(rest)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            sent => rest = &rest[sent..],
        }
    }
    Ok(())
}

/// What is left until `end`, which is not nothing.
fn left_until(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Bytes of a body at most.
    const MOST: usize = 100;

    /// The body of the request that these bytes are.
    fn body(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut visitor = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut served = listener.accept().unwrap().0;
        visitor.write_all(bytes).unwrap();
        drop(visitor);
        read_whole(&mut served, MOST, Duration::from_secs(60)).map(|(_, body)| body)
    }

    #[test]
    fn requests_end_where_their_heads_say() {
        assert_eq!(body(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap(), b"");
        assert_eq!(body(b"PATCH / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").unwrap(), b"{}");
        assert!(body(b"PATCH / HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}").is_err());
        assert!(body(b"GET / HTTP/1.1\r\n").is_err());
        let endless = [&b"GET / HTTP/1.1\r\nA: "[..], &vec![b'x'; HEAD_MAX + 1]].concat();
        assert!(body(&endless).is_err());
        let long = [&b"PATCH / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"[..], &[b'x'; 101]].concat();
        assert!(body(&long).is_err());
    }
}
