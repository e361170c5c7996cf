//! A client too simple to hide what the server did.

// Not every test file uses every helper, and all of it is test code.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gake_lab::{Lab, LabConfig};

/// Upper bound of every wait in these tests.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn start(config: LabConfig) -> Lab {
    Lab::start(LabConfig { cores: 2, ..config }).unwrap()
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub struct Client {
    stream: TcpStream,
    buffered: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buffered: Vec::new() }
    }

    pub fn set_timeout(&self, timeout: Duration) {
        self.stream.set_read_timeout(Some(timeout)).unwrap();
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn send_get(&mut self, target: &str) {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n").as_bytes());
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send_get(target);
        self.read_response(false)
    }

    pub fn head(&mut self, target: &str) -> Response {
        self.send(format!("HEAD {target} HTTP/1.1\r\nHost: lab\r\n\r\n").as_bytes());
        self.read_response(true)
    }

    pub fn post(&mut self, target: &str, body: &[u8]) -> Response {
        let length = body.len();
        let head =
            format!("POST {target} HTTP/1.1\r\nHost: lab\r\nContent-Length: {length}\r\n\r\n");
        self.send(head.as_bytes());
        self.send(body);
        self.read_response(false)
    }

    pub fn read_response(&mut self, is_head: bool) -> Response {
        let end = loop {
            if let Some(at) = self.buffered.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill().unwrap() > 0, "closed before a whole head");
        };
        let head = String::from_utf8(self.buffered.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (key, value) = line.split_once(": ").unwrap();
            (key.to_owned(), value.to_owned())
        };
        let mut response =
            Response { status, headers: lines.map(header).collect(), body: Vec::new() };
        if is_head {
        } else if response.header("transfer-encoding") == Some("chunked") {
            response.body = self.read_chunks();
        } else if let Some(length) = response.header("content-length") {
            response.body = self.read_exact(length.parse().unwrap());
        }
        response
    }

    /// All bytes until the end, and how it ended.
    pub fn read_to_end(&mut self) -> (Vec<u8>, io::Result<()>) {
        let mut ended = Ok(());
        loop {
            match self.fill() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        (std::mem::take(&mut self.buffered), ended)
    }

    pub fn read_line(&mut self) -> String {
        let at = loop {
            if let Some(at) = self.buffered.windows(2).position(|two| two == b"\r\n") {
                break at;
            }
            assert!(self.fill().unwrap() > 0, "closed within a line");
        };
        let line: Vec<u8> = self.buffered.drain(..at + 2).collect();
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.read_line(), 16).unwrap();
            body.extend(self.read_exact(size));
            assert_eq!(self.read_line(), "");
            if size == 0 {
                return body;
            }
        }
    }

    fn read_exact(&mut self, length: usize) -> Vec<u8> {
        while self.buffered.len() < length {
            assert!(self.fill().unwrap() > 0, "closed within a body");
        }
        self.buffered.drain(..length).collect()
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        let n = self.stream.read(&mut chunk)?;
        self.buffered.extend_from_slice(&chunk[..n]);
        Ok(n)
    }
}

pub fn get(lab: &Lab, target: &str) -> Response {
    Client::connect(lab.addr()).get(target)
}

pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
