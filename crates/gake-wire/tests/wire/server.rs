//! A scripted server, with one script per connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use crate::client::PATIENCE;

/// One step of a script.
#[derive(Debug, Clone)]
pub enum Act {
    /// Reads and records a request, head and body.
    Request,
    /// Reads a head and, on purpose, nothing after it.
    Head,
    /// Reads and discards this many bytes.
    Skip(usize),
    Send(Vec<u8>),
    /// Sends byte by byte.
    Drip(Vec<u8>, Duration),
    /// Sends bytes repeatedly until the peer closes.
    Flood(Vec<u8>),
    Wait(Duration),
    /// Waits until the peer ends the connection.
    Hold,
    /// Sends close_notify on a TLS session.
    Notify,
    /// Ends with a RST, after a pause in which the peer reads.
    Reset,
    /// Starts again at the first step.
    Again,
}

pub use Act::{Again, Drip, Flood, Head, Hold, Notify, Request, Reset, Skip, Wait};

pub fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

/// A response with a body of this many bytes.
pub fn ok(length: usize) -> Act {
    send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)))
}

/// The record of a connection.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub peer: Option<SocketAddr>,
    pub server_name: Option<String>,
    pub alpn: Option<Vec<u8>>,
    /// Complete requests, as text.
    pub requests: Vec<String>,
    /// Whether the script or the connection has ended.
    pub over: bool,
}

pub struct Server {
    pub addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// `scripts`: one for each connection; further connections play the last one.
    pub fn start<const N: usize>(scripts: [Vec<Act>; N]) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), None, scripts)
    }

    pub fn tls<const N: usize>(config: Arc<ServerConfig>, scripts: [Vec<Act>; N]) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), Some(config), scripts)
    }

    pub fn listen<const N: usize>(
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        scripts: [Vec<Act>; N],
    ) -> Self {
        let server = Self { addr: listener.local_addr().unwrap(), seen: Arc::default() };
        let seen = Arc::clone(&server.seen);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let peer = Some(stream.peer_addr().unwrap());
                let script = scripts[number.min(scripts.len() - 1)].clone();
                let play = Play::new(&seen, peer, script);
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    None => play.run(Side::Plain(stream)),
                    Some(config) => {
                        let session = ServerConnection::new(config).unwrap();
                        play.run(Side::Tls(Box::new(StreamOwned::new(session, stream))));
                    }
                });
            }
        });
        server
    }

    /// Listens on a Unix socket; returns the records.
    pub fn unix(path: &Path, script: Vec<Act>) -> Arc<Mutex<Vec<Seen>>> {
        let listener = UnixListener::bind(path).unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let play = Play::new(&noted, None, script.clone());
                std::thread::spawn(move || play.run(Side::Unix(stream.unwrap())));
            }
        });
        seen
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The connections accepted so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests read so far, connection by connection.
    pub fn requests(&self) -> Vec<String> {
        self.seen().into_iter().flat_map(|seen| seen.requests).collect()
    }

    /// Whether every connection has ended.
    pub fn is_over(&self) -> bool {
        self.seen.lock().unwrap().iter().all(|seen| seen.over)
    }
}

enum Side {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Side {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

/// An open connection.
struct Play {
    seen: Arc<Mutex<Vec<Seen>>>,
    number: usize,
    script: Vec<Act>,
    buffered: Vec<u8>,
}

impl Play {
    fn new(seen: &Arc<Mutex<Vec<Seen>>>, peer: Option<SocketAddr>, script: Vec<Act>) -> Self {
        let mut all = seen.lock().unwrap();
        all.push(Seen { peer, ..Seen::default() });
        let number = all.len() - 1;
        Self { seen: Arc::clone(seen), number, script, buffered: Vec::new() }
    }

    fn run(mut self, mut side: Side) {
        let mut at = 0;
        while let Some(act) = self.script.get(at).cloned() {
            at = if matches!(act, Again) { 0 } else { at + 1 };
            match self.act(act, &mut side) {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        if let Side::Tls(stream) = &side {
            let (name, alpn) = (stream.conn.server_name(), stream.conn.alpn_protocol());
            self.note(|seen| {
                seen.server_name = name.map(str::to_owned);
                seen.alpn = alpn.map(<[u8]>::to_vec);
            });
        }
        drop(side);
        self.note(|seen| seen.over = true);
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap()[self.number]);
    }

    /// False once the peer has ended the connection.
    fn act(&mut self, act: Act, side: &mut Side) -> io::Result<bool> {
        match act {
            Request => {
                let Some(head) = self.head(side)? else { return Ok(false) };
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length = length.map_or(0, |length| length.parse().unwrap());
                while self.buffered.len() < length {
                    if !self.fill(side)? {
                        return Ok(false);
                    }
                }
                let body: Vec<u8> = self.buffered.drain(..length).collect();
                let whole = head + &String::from_utf8_lossy(&body);
                self.note(|seen| seen.requests.push(whole));
            }
            Head => {
                let Some(head) = self.head(side)? else { return Ok(false) };
                self.note(|seen| seen.requests.push(head));
            }
            Skip(length) => {
                while self.buffered.len() < length {
                    if !self.fill(side)? {
                        return Ok(false);
                    }
                }
                self.buffered.drain(..length);
            }
            Act::Send(bytes) => side.write(&bytes)?,
            Drip(bytes, every) => {
                for byte in bytes {
                    std::thread::sleep(every);
                    side.write(&[byte])?;
                }
            }
            Flood(bytes) => loop {
                side.write(&bytes)?;
            },
            Wait(length) => std::thread::sleep(length),
            Hold => while self.fill(side)? {},
            Notify => {
                if let Side::Tls(stream) = side {
                    stream.conn.send_close_notify();
                    stream.flush()?;
                }
            }
            Reset => {
                if let Side::Plain(stream) = side {
                    SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
                }
                return Ok(false);
            }
            Again => {}
        }
        Ok(true)
    }

    fn head(&mut self, side: &mut Side) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self.buffered.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.buffered.drain(..at + 4).collect();
                return Ok(Some(String::from_utf8(head).unwrap()));
            }
            if !self.fill(side)? {
                return Ok(None);
            }
        }
    }

    fn fill(&mut self, side: &mut Side) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let n = side.read(&mut chunk)?;
        self.buffered.extend_from_slice(&chunk[..n]);
        Ok(n > 0)
    }
}
