//! A small HTTP/1 server for pages and APIs of gake, with time limits.

mod head;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub use head::VisitorHead;

/// Maximum size of a request's head, in bytes.
const HEAD_MAX: usize = 8 << 10;

/// Pause between checks for new visitors and for the end.
const PAUSE: Duration = Duration::from_millis(20);

/// The head of a request, which must arrive within `patience`: slow visitors must not delay others
/// or the end of the run.
///
/// # Errors
/// When it does not arrive in time, or is too long.
pub fn read_head(visitor: &mut TcpStream, patience: Duration) -> io::Result<Vec<u8>> {
    let (mut bytes, end) = read(visitor, patience)?;
    bytes.truncate(end);
    Ok(bytes)
}

/// The head and the body of a request, each of which must arrive within `patience`; the body has at
/// most `most` bytes. Without a Content-Length there is no body.
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

/// The bytes of a request so far, and the length of its head.
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

/// Reads at least one byte before `end`.
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

/// A listener at `HOST:PORT` for [`accept_until`].
///
/// # Errors
/// When it cannot listen there.
pub fn listen(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts visitors until `is_over`.
pub fn accept_until(listener: &TcpListener, is_over: impl Fn() -> bool, serve: impl Fn(TcpStream)) {
    while !is_over() {
        match listener.accept() {
            Ok((visitor, _)) => serve(visitor),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Sends a response within `patience`; `headers` are whole lines.
///
/// # Errors
/// When the visitor does not read in time.
pub fn respond(
    visitor: &mut TcpStream,
    status: &str,
    content_type: &str,
    headers: &str,
    body: &[u8],
    patience: Duration,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    send(visitor, &[head.as_bytes(), body].concat(), patience)
}

/// Sends all bytes within `patience`.
///
/// # Errors
/// When the visitor does not read in time.
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

/// The time left until `end`; an error if there is none.
fn left_until(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {

    use super::*;

    const MOST: usize = 100;

    fn body(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut visitor = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut served = listener.accept().unwrap().0;
        visitor.write_all(bytes).unwrap();
        drop(visitor);
        read_whole(&mut served, MOST, Duration::from_secs(60)).map(|(_, body)| body)
    }

    #[test]
    fn bodies_have_the_length_in_the_head() {
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
