//! Requests and responses of the REST API: one each over a connection of HTTP/1.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use gake_run::{NoAnswer, send_once};
use gake_text::host::is_local_or_address;
use gake_wire::HttpRequest;

use crate::go_errors::cause;

/// Bytes of a request.
const REQUEST_MAX: usize = 64 << 10;

/// Bytes of a response, which may hold many metrics.
const RESPONSE_MAX: usize = 64 << 20;

/// How long either side may keep the other waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiRequest {
    pub(super) method: String,
    /// Without its query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` when it is not one, or names another host: a page of the web that has
/// rebound its name to this machine.
pub(super) fn receive(stream: &mut TcpStream) -> io::Result<Option<ApiRequest>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (head, body) = message(stream)?;
    let Some(line) = head.lines().next() else { return Ok(None) };
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    if !header(&head, "host").is_some_and(is_local_or_address) {
        return Ok(None);
    }
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Some(ApiRequest { method: method.to_owned(), path, body }))
}

/// Writes a response of JSON.
pub(super) fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Sends a request to `address`, and gives the status and body of the response.
///
/// # Errors
/// In words, when there is none.
pub(super) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, Vec<u8>), String> {
    // A name would be taken for that of another site.
    let host = address.to_socket_addrs().map_err(|error| error.to_string())?.next();
    let host = host.ok_or("it has no address")?;
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let request = HttpRequest {
        headers: vec![json],
        body: Some(body.as_bytes().into()),
        ..HttpRequest::new(method, format!("http://{host}{path}"))
    };
    let answer = send_once(&request, RESPONSE_MAX, PATIENCE).map_err(|error| match error {
        NoAnswer::Fault(fault) => cause(fault, &host.to_string()),
        NoAnswer::Other(why) => why,
    })?;
    Ok((answer.status, answer.body))
}

/// The head and the body of a request. One that says no length has no body.
fn message(stream: &mut impl Read) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if more(stream, &mut bytes)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end);
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    while body.len() < length.unwrap_or(0) && more(stream, &mut body)? > 0 {}
    Ok((head, body))
}

fn more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 4096];
    let count = stream.read(&mut chunk)?;
    bytes.extend_from_slice(&chunk[..count]);
    if bytes.len() > REQUEST_MAX {
        return Err(io::Error::other("the request is too long"));
    }
    Ok(count)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end_where_their_heads_say() {
        let read = |mut text: &[u8]| message(&mut text).map(|(_, body)| body);
        assert_eq!(read(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap(), b"");
        assert_eq!(read(b"PATCH / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").unwrap(), b"{}");
        assert!(read(b"GET / HTTP/1.1\r\n").is_err());
        let endless = [&b"GET / HTTP/1.1\r\nA: "[..], &vec![b'x'; REQUEST_MAX + 1]].concat();
        assert!(read(&endless).is_err());
    }
}
