//! The floor of CPU per request: what any client and server on epoll must do, and nothing else.
//!
//! Both run as processes of their own (`floor serve`, `floor load URL CONNECTIONS SECONDS`), one
//! thread each, pinned. The client keeps one request in flight on each connection, finds the end of
//! the head and `Content-Length`, reads the clock and counts the response time in a histogram: one
//! send, one receive a request, and one wait for as many as have come. The server sends fixed
//! bytes, so that it keeps any client busy, and the number of its responses at `/status`.

#![expect(unsafe_code, reason = "bare epoll loops")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::clock::now_ns;
use super::nginx;
use super::process::{Ended, Launch, OURSELVES, Running};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: floor\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const STATUS: &[u8] = b"GET /status ";
const EVENTS: usize = 256;
const NO_EVENTS: [libc::epoll_event; EVENTS] = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];

/// The hidden task: `floor serve`, whose standard input is the listener, or
/// `floor load URL CONNECTIONS SECONDS`.
pub fn main(args: &[String]) -> Result<()> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(std::io::stdin().as_fd().try_clone_to_owned()?.into()),
        ["load", url, connections, seconds] => {
            let address = url.trim_start_matches("http://").trim_end_matches('/');
            load(address, connections.parse()?, Duration::from_secs(seconds.parse()?))
        }
        _ => bail!("usage: floor serve | floor load URL CONNECTIONS SECONDS"),
    }
}

/// The minimal server, running. Dropping it ends it.
pub struct FloorServer {
    _process: Running,
    port: u16,
}

impl FloorServer {
    /// Starts it on a core.
    pub fn start(core: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let args = ["floor".to_owned(), "serve".to_owned()];
        let limit = Duration::from_secs(24 * 3600);
        let stdin = Some(listener.into());
        let program = Path::new(OURSELVES);
        let process = Launch { program, args: &args, stdin, core: Some(core), limit }.start()?;
        Ok(Self { _process: process, port })
    }

    /// What a client is pointed at.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// How many requests it served so far, this question included.
    pub fn served(&self) -> Result<u64> {
        let answer = nginx::status(self.port)?;
        let count = answer.split_once("\r\n\r\n").map(|(_, body)| body.trim());
        count.and_then(|count| count.parse().ok()).context("no count in the floor's status")
    }
}

/// Runs the client on a core.
pub fn run_client(url: &str, connections: u64, seconds: u64, core: usize) -> Result<Ended> {
    let args = ["floor", "load", url, &connections.to_string(), &seconds.to_string()];
    let (args, limit) = (args.map(str::to_owned), Duration::from_secs(seconds + 30));
    let program = Path::new(OURSELVES);
    let launch = Launch { program, args: &args, stdin: None, core: Some(core), limit };
    launch.run()?.accept("the floor", &[0])
}

/// A connection of the client.
struct Client {
    stream: TcpStream,
    sent_ns: u64,
    /// Bytes of the response so far.
    head: Vec<u8>,
}

fn load(address: &str, connections: u64, length: Duration) -> Result<()> {
    let epoll = Epoll::new()?;
    let mut clients = Vec::new();
    for number in 0..connections {
        let stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll.watch(stream.as_raw_fd(), number)?;
        clients.push(Client { stream, sent_ns: 0, head: Vec::new() });
    }
    let end = now_ns() + u64::try_from(length.as_nanos())?;
    // Response times by their order of magnitude and the ten bits after it.
    let mut histogram = vec![0_u64; 64 << 10];
    for client in &mut clients {
        client.send(now_ns())?;
    }
    let (mut room, mut now) = ([0; 64 * 1024], now_ns());
    let mut events = NO_EVENTS;
    while now < end {
        let ready = epoll.wait(&mut events, 100);
        now = if ready == 0 { now_ns() } else { now };
        for event in &events[..ready] {
            let client = &mut clients[usize::try_from(event.u64)?];
            let count = match client.stream.read(&mut room) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            if !client.is_complete(&room[..count])? {
                continue;
            }
            now = now_ns();
            let time = (now - client.sent_ns).max(1);
            let octave = 63 - time.leading_zeros();
            let within = (time << (63 - octave) >> 53) & 1023;
            histogram[(octave as usize) << 10 | usize::try_from(within)?] += 1;
            client.send(now)?;
        }
    }
    println!("{}", histogram.iter().sum::<u64>());
    Ok(())
}

impl Client {
    fn send(&mut self, now: u64) -> Result<()> {
        self.sent_ns = now;
        self.head.clear();
        // The kernel takes the whole of so short a request.
        Ok(self.stream.write_all(REQUEST)?)
    }

    /// Whether the response is complete with these bytes.
    fn is_complete(&mut self, bytes: &[u8]) -> Result<bool> {
        if self.head.is_empty() && is_whole(bytes)? {
            return Ok(true);
        }
        self.head.extend_from_slice(bytes);
        is_whole(&self.head)
    }
}

/// Whether the bytes hold a head and the body that it announces.
fn is_whole(bytes: &[u8]) -> Result<bool> {
    let Some(end) = position(bytes, END_OF_HEAD) else { return Ok(false) };
    let head = &bytes[..end];
    let name = b"Content-Length: ";
    let at = position(head, name).context("a response without Content-Length")? + name.len();
    let digits = head[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
    Ok(bytes.len() >= end + END_OF_HEAD.len() + length)
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let first = part[0];
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        from += at;
        if bytes[from..].starts_with(part) {
            return Some(from);
        }
        from += 1;
    }
    None
}

/// Serves until it is ended. A request comes in one read: it is shorter than a segment.
fn serve(listener: TcpListener) -> Result<()> {
    listener.set_nonblocking(true)?;
    // SAFETY: the descriptor is a listening socket; listening again changes its backlog.
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    let epoll = Epoll::new()?;
    let own = u64::try_from(listener.as_raw_fd())?;
    epoll.watch(listener.as_raw_fd(), own)?;
    let (mut streams, mut served, mut room) = (Vec::<Option<TcpStream>>::new(), 0, [0; 16 * 1024]);
    let mut events = NO_EVENTS;
    loop {
        let ready = epoll.wait(&mut events, -1);
        for event in &events[..ready] {
            if event.u64 == own {
                let Ok((stream, _)) = listener.accept() else { continue };
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let fd = stream.as_raw_fd();
                epoll.watch(fd, u64::try_from(fd)?)?;
                let at = usize::try_from(fd)?;
                streams.resize_with(streams.len().max(at + 1), || None);
                streams[at] = Some(stream);
                continue;
            }
            let slot = &mut streams[usize::try_from(event.u64)?];
            let Some(stream) = slot else { continue };
            match stream.read(&mut room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => *slot = None,
                Ok(count) if room[..count].starts_with(STATUS) => {
                    served += 1;
                    let _ =
                        write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{served}\n");
                    *slot = None;
                }
                Ok(_) => {
                    served += 1;
                    if stream.write_all(RESPONSE).is_err() {
                        *slot = None;
                    }
                }
            }
        }
    }
}

struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    fn new() -> Result<Self> {
        // SAFETY: takes a flag, returns a new descriptor or -1.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            bail!("epoll_create1: {}", std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned here.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    fn watch(&self, fd: RawFd, data: u64) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: data };
        let add = libc::EPOLL_CTL_ADD;
        // SAFETY: both descriptors are open, and the event is valid.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), add, fd, &raw mut event) } {
            0 => Ok(()),
            _ => bail!("epoll_ctl: {}", std::io::Error::last_os_error()),
        }
    }

    /// Waits some milliseconds for events, without end if negative; returns their number.
    fn wait(&self, events: &mut [libc::epoll_event; EVENTS], millis: i32) -> usize {
        let (fd, max) = (self.fd.as_raw_fd(), EVENTS as i32);
        // SAFETY: the buffer has room for `max` events.
        let ready = unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), max, millis) };
        usize::try_from(ready).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_whole_with_its_body() {
        assert!(is_whole(RESPONSE).unwrap());
        for cut in 0..RESPONSE.len() {
            assert!(!is_whole(&RESPONSE[..cut]).unwrap(), "{cut}");
        }
        assert!(is_whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn client_and_server_count_the_same_requests() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || serve(listener));
        load(&format!("127.0.0.1:{port}"), 3, Duration::from_millis(50)).unwrap();
        let answer = nginx::status(port).unwrap();
        assert!(answer.lines().last().unwrap().parse::<u64>().unwrap() > 3, "{answer}");
    }
}
