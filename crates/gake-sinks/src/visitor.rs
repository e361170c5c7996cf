//! A visitor of a page that gake serves: its request, and an answer that it must take in time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum size of a request's head, in bytes.
const HEAD_MAX: usize = 8 << 10;

/// The head of a request. It must come whole within `patience`: who sends a byte now and then must
/// not hold up the others, nor the end of the run.
pub(crate) fn read_head(visitor: &mut TcpStream, patience: Duration) -> io::Result<Vec<u8>> {
    visitor.set_nonblocking(false)?;
    let end = Instant::now() + patience;
    let mut head = Vec::new();
    let mut some = [0; 1024];
    loop {
        if let Some(at) = head.windows(4).position(|end| end == b"\r\n\r\n") {
            head.truncate(at + 4);
            return Ok(head);
        }
        visitor.set_read_timeout(Some(left_until(end)?))?;
        let read = visitor.read(&mut some)?;
        if read == 0 || head.len() + read > HEAD_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&some[..read]);
    }
}

/// Sends everything, within `patience`.
pub(crate) fn send(visitor: &mut TcpStream, bytes: &[u8], patience: Duration) -> io::Result<()> {
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
