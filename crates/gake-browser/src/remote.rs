//! A Chromium that runs already, reached by its WebSocket (`K6_BROWSER_WS_URL`, `connectOverCDP`).

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_codec::websocket::{
    FrameEvents, FrameReader, UpgradeProgress, UpgradeRequest, opcode, put_frame, random_mask,
};
use gake_core::record::CloseCode;

use crate::pipe::MESSAGE_MAX;

/// The bytes of the response to the upgrade, at most.
const HEAD_MAX: usize = 64 << 10;

/// The sending half.
pub(crate) struct RemoteWriter(Arc<Mutex<TcpStream>>);

/// The receiving half.
pub(crate) struct RemoteReader {
    stream: TcpStream,
    writer: RemoteWriter,
    frames: FrameReader,
    received: Received,
}

/// Connects with the Chromium at a `ws://` URL.
///
/// # Errors
/// Why it cannot, with the URL.
pub(crate) fn connect(url: &str, limit: Duration) -> Result<(RemoteWriter, RemoteReader), String> {
    let failed = |why: String| format!("cannot connect with the Chromium at {url}: {why}");
    let Some(rest) = url.strip_prefix("ws://") else {
        return Err(failed("it must begin with ws://".to_owned()));
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let stream = dial(authority, limit).map_err(|error| failed(error.to_string()))?;
    let request = UpgradeRequest::new((authority, &format!("/{path}")), &[], &[]);
    let request = request.map_err(|error| failed(error.to_string()))?;
    let head = upgrade(&stream, &request).map_err(|error| failed(error.to_string()))?;
    let clone = stream.try_clone().map_err(|error| failed(error.to_string()))?;
    let writer = Arc::new(Mutex::new(clone));
    let mut reader = RemoteReader {
        stream,
        writer: RemoteWriter(Arc::clone(&writer)),
        frames: FrameReader::default(),
        received: Received::default(),
    };
    reader.take(&head).map_err(|error| failed(error.to_string()))?;
    Ok((RemoteWriter(writer), reader))
}

fn dial(authority: &str, limit: Duration) -> io::Result<TcpStream> {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(limit))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Asks for the session; returns what came behind the response.
fn upgrade(mut stream: &TcpStream, request: &UpgradeRequest) -> io::Result<Vec<u8>> {
    stream.write_all(&request.bytes)?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        match request.read(&bytes) {
            UpgradeProgress::Complete(response, length) if response.is_open() => {
                stream.set_read_timeout(None)?;
                return Ok(bytes.split_off(length));
            }
            UpgradeProgress::Complete(response, _) => {
                let why = format!("the server answered {} instead of 101", response.status);
                return Err(io::Error::other(why));
            }
            UpgradeProgress::Malformed(_) => return Err(io::Error::other("it is no WebSocket")),
            UpgradeProgress::Partial if bytes.len() > HEAD_MAX => {
                return Err(io::Error::other("the response's head is too long"));
            }
            UpgradeProgress::Partial => {}
        }
        match stream.read(&mut chunk)? {
            0 => return Err(io::Error::other("the server closed the connection")),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

impl RemoteWriter {
    fn frame(&self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len().saturating_add(14));
        put_frame(&mut bytes, opcode, payload, random_mask());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// When the connection is gone.
    pub(crate) fn write(&self, command: &[u8]) -> io::Result<()> {
        self.frame(opcode::TEXT, command)
    }

    /// Ends the connection, and with it the wait of the reader.
    pub(crate) fn close(&self) {
        // Both fail when it has ended.
        let _ = self.frame(opcode::CLOSE, &[]);
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl RemoteReader {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frames.read(bytes, &mut self.received).map_err(io::Error::other)?;
        for payload in std::mem::take(&mut self.received.pings) {
            self.writer.frame(opcode::PONG, &payload)?;
        }
        if self.received.is_too_long {
            return Err(io::Error::other("a message of the browser is too long"));
        }
        Ok(())
    }

    /// The next message; none at the end.
    ///
    /// # Errors
    /// When it cannot be read or is too long.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut chunk = vec![0; 1 << 16];
        loop {
            if let Some(message) = self.received.messages.pop_front() {
                return Ok(Some(message));
            }
            match self.stream.read(&mut chunk)? {
                0 => return Ok(None),
                _ if self.received.is_closed => return Ok(None),
                count => self.take(&chunk[..count])?,
            }
        }
    }
}

/// What frames held.
#[derive(Default)]
struct Received {
    partial: Vec<u8>,
    messages: VecDeque<String>,
    pings: Vec<Vec<u8>>,
    is_closed: bool,
    is_too_long: bool,
}

impl FrameEvents for Received {
    fn data(&mut self, bytes: &[u8]) {
        self.is_too_long |= (self.partial.len() + bytes.len()) as u64 > MESSAGE_MAX;
        if !self.is_too_long {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn message(&mut self, _: bool) {
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        self.messages.push_back(text);
    }

    fn ping(&mut self, payload: &[u8]) {
        self.pings.push(payload.to_vec());
    }

    fn pong(&mut self, _: &[u8]) {}

    fn close(&mut self, _: CloseCode, _: &[u8]) {
        self.is_closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(5);

    fn refusal(url: &str) -> String {
        connect(url, LIMIT).err().unwrap_or_default()
    }

    #[test]
    fn what_cannot_be_connected_is_named() {
        let wrong = refusal("wss://127.0.0.1/devtools");
        let expected = "cannot connect with the Chromium at wss://127.0.0.1/devtools: \
                        it must begin with ws://";
        assert_eq!(wrong, expected);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}/x", listener.local_addr().expect("bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut head = [0; 4096];
            let count = stream.read(&mut head).expect("a request");
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").expect("sent");
            String::from_utf8_lossy(&head[..count]).into_owned()
        });
        let refused = refusal(&url);
        assert!(refused.ends_with("the server answered 404 instead of 101"), "{refused}");
        let asked = server.join().expect("a server");
        assert!(asked.starts_with("GET /x HTTP/1.1\r\n"), "{asked}");
    }

    #[test]
    fn messages_come_whole_and_pings_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("connected");
        let (mut server, _) = listener.accept().expect("a client");
        let writer = Arc::new(Mutex::new(client.try_clone().expect("a clone")));
        let mut reader = RemoteReader {
            stream: client,
            writer: RemoteWriter(writer),
            frames: FrameReader::default(),
            received: Received::default(),
        };
        server.write_all(b"\x89\x01p\x01\x02{\"\x80\x03a\"}\x88\x00").expect("sent");
        assert_eq!(reader.next().expect("a message").as_deref(), Some("{\"a\"}"));
        server.write_all(b"x").expect("sent");
        assert_eq!(reader.next().expect("the end"), None);
        let mut pong = [0; 7];
        server.read_exact(&mut pong).expect("a pong");
        assert_eq!((pong[0], pong[1]), (0x8a, 0x81));
    }
}
