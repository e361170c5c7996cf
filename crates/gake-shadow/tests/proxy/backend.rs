//! Scripted backends: a thread per connection; requests are recorded as received.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceivedRequest {
    pub line: String,
    /// Header lines in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body with its framing.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect()
    }

    /// The value of a header that occurs at most once.
    pub fn get(&self, name: &str) -> &str {
        let all = self.all(name);
        assert!(all.len() < 2, "{name}: {all:?}");
        all.first().copied().unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

#[derive(Debug)]
pub struct Backend {
    pub addr: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    leftovers: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

pub fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Backend {
    /// An empty response closes the connection.
    pub fn responding(
        response: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, leftovers) = (Arc::clone(&seen), Arc::new(AtomicUsize::new(0)));
        let left = Arc::clone(&leftovers);
        let mut backend = Self::raw(move |mut stream, _| {
            let mut buffer = Vec::new();
            while let Some(request) = read_request(&mut stream, &mut buffer) {
                kept.lock().unwrap().push(request.clone());
                let response = response(&request);
                if response.is_empty() || stream.write_all(&response).is_err() {
                    return;
                }
            }
            left.fetch_add(usize::from(!buffer.is_empty()), Ordering::SeqCst);
        });
        backend.seen = seen;
        backend.leftovers = leftovers;
        backend
    }

    pub fn hello() -> Self {
        Self::responding(|_| ok("hello"))
    }

    /// Serves connections, which are numbered, with `serve`.
    pub fn raw(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), serve)
    }

    pub fn on(
        listener: TcpListener,
        serve: impl Fn(TcpStream, usize) + Send + Sync + 'static,
    ) -> Self {
        let addr = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (serve, count) = (Arc::new(serve), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream, number));
            }
        });
        Self { addr, seen: Arc::default(), leftovers: Arc::default(), connections }
    }

    /// Refuses connections.
    pub fn refusing() -> Self {
        // Bound but not listening, so that no other process gets the port.
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let addr = socket.local_addr().unwrap().as_socket().unwrap();
        std::mem::forget(socket);
        Self { addr, seen: Arc::default(), leftovers: Arc::default(), connections: Arc::default() }
    }

    /// Has a full backlog, so that connecting blocks.
    pub fn full() -> Self {
        let socket =
            || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let listener = socket();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let addr = listener.local_addr().unwrap();
        for _ in 0..4 {
            let client = socket();
            client.set_nonblocking(true).unwrap();
            // The first one connects, the others fill the backlog.
            let _ = client.connect(&addr);
            std::mem::forget(client);
        }
        std::mem::forget(listener);
        let addr = addr.as_socket().unwrap();
        Self { addr, seen: Arc::default(), leftovers: Arc::default(), connections: Arc::default() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Connections that ended with an incomplete request.
    pub fn leftovers(&self) -> usize {
        self.leftovers.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads a request; `None` at the end of the connection.
pub fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<ReceivedRequest> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        fill(stream, buffer)?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut seen = ReceivedRequest { line: lines.next()?.to_owned(), ..ReceivedRequest::default() };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if seen.get("transfer-encoding") == "chunked" {
        let end = loop {
            if let Some(end) = end_of_chunks(buffer) {
                break end;
            }
            fill(stream, buffer)?;
        };
        seen.body = buffer.drain(..end).collect();
    } else {
        let length: usize = seen.get("content-length").parse().unwrap_or(0);
        while buffer.len() < length {
            fill(stream, buffer)?;
        }
        seen.body = buffer.drain(..length).collect();
    }
    Some(seen)
}

/// The end of a chunked body with its trailers.
pub fn end_of_chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = bytes[at..].windows(2).position(|two| two == b"\r\n")?;
        let text = std::str::from_utf8(&bytes[at..at + line]).unwrap();
        let size = usize::from_str_radix(text, 16).unwrap();
        at += line + 2;
        if size == 0 {
            let rest = &bytes[at..];
            if rest.starts_with(b"\r\n") {
                return Some(at + 2);
            }
            return Some(at + rest.windows(4).position(|four| four == b"\r\n\r\n")? + 4);
        }
        at += size + 2;
        if at > bytes.len() {
            return None;
        }
    }
}

fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 65536];
    let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
    buffer.extend_from_slice(&piece[..read]);
    Some(())
}
