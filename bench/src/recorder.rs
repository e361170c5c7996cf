//! The arrival recorder: a server that notes the instant of every request.
//!
//! It runs as a process of its own (`xtask recorder`), pinned to the server's
//! core, and polls without sleeping, so that what it sees is the client's timing
//! and not its own wake-up. The listening socket is its standard input. A
//! connection that begins with `QUIT` gets all instants, eight
//! little-endian bytes each, and ends it.

#![expect(unsafe_code, reason = "a bare epoll loop, whose own lateness is known")]

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::clock::now_ns;

/// What a connection sends to get the instants and to end the recorder.
pub const QUIT: &[u8] = b"QUIT";
/// Keep-alive is said for clients of HTTP/1.0.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";
const EVENTS: usize = 256;

/// Stops for `length` once, `after` the first arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From the first arrival.
    pub after: Duration,
    /// How long nothing is read and no response is sent.
    pub length: Duration,
}

/// One client's connection.
struct Connection {
    stream: TcpStream,
    heads: Heads,
}

/// Counts the request heads in a stream of bytes, however it is split.
#[derive(Default)]
struct Heads {
    matched: usize,
}

struct Recorder {
    epoll: OwnedFd,
    listener: TcpListener,
    connections: HashMap<RawFd, Connection>,
    arrivals: Vec<u64>,
    stall: Option<Stall>,
}

/// The hidden task: `recorder [STALL_AFTER_MS STALL_LENGTH_MS]`.
pub fn main(args: &[String]) -> Result<()> {
    let millis = |text: &String| text.parse().map(Duration::from_millis);
    let stall = match args {
        [] => None,
        [after, length] => Some(Stall { after: millis(after)?, length: millis(length)? }),
        _ => bail!("usage: recorder [STALL_AFTER_MS STALL_LENGTH_MS]"),
    };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut asker = Recorder::new(TcpListener::from(stdin), stall)?.serve()?;
    asker.stream.set_nonblocking(false)?;
    asker.stream.write_all(&asker.answer)?;
    Ok(())
}

/// The connection that said QUIT and what it is owed.
struct Asker {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Recorder {
    fn new(listener: TcpListener, stall: Option<Stall>) -> Result<Self> {
        listener.set_nonblocking(true)?;
        // SAFETY: the descriptor is a listening socket; listening again changes its backlog.
        unsafe { libc::listen(listener.as_raw_fd(), 4096) };
        // SAFETY: takes a flag, returns a new descriptor or -1.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            bail!("epoll_create1: {}", std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned here.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let arrivals = Vec::with_capacity(1 << 20);
        let recorder = Self { epoll, listener, connections: HashMap::new(), arrivals, stall };
        recorder.watch(recorder.listener.as_raw_fd())?;
        Ok(recorder)
    }

    /// Serves until it reads QUIT.
    fn serve(mut self) -> Result<Asker> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            self.stall_if_due();
            let max = i32::try_from(EVENTS)?;
            // SAFETY: the buffer has room for `max` events. A zero time-out: never sleep.
            let ready =
                unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), max, 0) };
            for event in &events[..usize::try_from(ready).unwrap_or(0)] {
                let fd = RawFd::try_from(event.u64)?;
                if fd == self.listener.as_raw_fd() {
                    self.accept()?;
                } else if let Some(stream) = self.read(fd) {
                    let answer = self.arrivals.iter().flat_map(|at| at.to_le_bytes()).collect();
                    return Ok(Asker { stream, answer });
                }
            }
        }
    }

    fn stall_if_due(&mut self) {
        let (Some(stall), Some(first)) = (self.stall, self.arrivals.first()) else { return };
        if u128::from(now_ns() - first) >= stall.after.as_nanos() {
            self.stall = None;
            std::thread::sleep(stall.length);
        }
    }

    fn accept(&mut self) -> Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.watch(stream.as_raw_fd())?;
            let connection = Connection { stream, heads: Heads::default() };
            self.connections.insert(connection.stream.as_raw_fd(), connection);
        }
        Ok(())
    }

    /// One read, its instant, its responses. Gives the stream back if it said QUIT.
    fn read(&mut self, fd: RawFd) -> Option<TcpStream> {
        let mut buffer = [0; 16 * 1024];
        let connection = self.connections.get_mut(&fd)?;
        let result = connection.stream.read(&mut buffer);
        let now = now_ns();
        match result {
            Ok(1..) if buffer.starts_with(QUIT) => {
                return self.connections.remove(&fd).map(|connection| connection.stream);
            }
            Ok(length @ 1..) => {
                for _ in 0..connection.heads.count(&buffer[..length]) {
                    self.arrivals.push(now);
                    // A peer that went away is seen by the next read.
                    let _ = connection.stream.write_all(ANSWER);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => {
                self.connections.remove(&fd); // Closing it takes it out of the epoll set.
            }
        }
        None
    }

    fn watch(&self, fd: RawFd) -> Result<()> {
        let data = u64::try_from(fd)?;
        let mut event = libc::epoll_event { events: libc::EPOLLIN.unsigned_abs(), u64: data };
        // SAFETY: both descriptors are open and the event is valid.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        };
        if result != 0 {
            return Err(std::io::Error::last_os_error()).context("epoll_ctl");
        }
        Ok(())
    }
}

impl Heads {
    fn count(&mut self, bytes: &[u8]) -> usize {
        const END: &[u8] = b"\r\n\r\n";
        let mut count = 0;
        for byte in bytes {
            if *byte == END[self.matched] {
                self.matched += 1;
            } else {
                self.matched = usize::from(*byte == END[0]);
            }
            if self.matched == END.len() {
                self.matched = 0;
                count += 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_counted_however_they_are_split() {
        let text = b"GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n\r\r\n\r\n";
        for split in 0..text.len() {
            let mut heads = Heads::default();
            let (first, second) = text.split_at(split);
            assert_eq!(heads.count(first) + heads.count(second), 2);
        }
    }

    #[test]
    fn it_serves_and_hands_out_the_instants() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let before = now_ns();
        let recorder = Recorder::new(listener, None).unwrap();
        let server = std::thread::spawn(move || recorder.serve().unwrap());
        let mut client = TcpStream::connect(address).unwrap();
        let mut answer = [0; ANSWER.len()];
        for _ in 0..3 {
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, ANSWER);
        }
        TcpStream::connect(address).unwrap().write_all(QUIT).unwrap();
        let asker = server.join().unwrap();
        let instants: Vec<u64> = asker
            .answer
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert_eq!(instants.len(), 3);
        assert!(instants[0] > before && instants.is_sorted());
    }
}
