//! A client on the level of bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::LONG;

pub struct Client(pub TcpStream);

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Client {
    pub fn new(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Ignores errors: the proxy may have refused the request already.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref());
    }

    /// Reads a response with a `Content-Length` or without a body.
    pub fn response(&mut self, is_head: bool) -> Response {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            let read = self.0.read(&mut byte).unwrap();
            assert_eq!(read, 1, "closed after {:?}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let status = head[9..12].parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let has_body = !is_head && !matches!(status, 100..200 | 204 | 304);
        let length = length.filter(|_| has_body).map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Response { status, head, body: String::from_utf8_lossy(&body).into_owned() }
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.write(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        self.response(false)
    }

    /// Reads until the connection is closed.
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // Or reset.
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Sends bytes on a new connection, and reads until it is closed.
pub fn send_raw(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    let mut client = Client::new(addr);
    client.write(bytes);
    client.rest()
}

/// Like [`send_raw`], and shuts down its side.
pub fn send_and_shutdown(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    let mut client = Client::new(addr);
    client.write(bytes);
    let _ = client.0.shutdown(Shutdown::Write);
    client.rest()
}

pub fn get(addr: SocketAddr, path: &str) -> Response {
    Client::new(addr).get(path)
}

pub fn post(addr: SocketAddr, path: &str, body: &str) -> Response {
    let mut client = Client::new(addr);
    let length = body.len();
    client.write(format!(
        "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    client.response(false)
}
