//! Shadows that misbehave, each in one way: a listener with a thread for each connection.

#![expect(unsafe_code, reason = "setpriority, and socket options of servers that misbehave")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process::unpin_this_thread;

/// Connections open at once; the proxy opens no more than its lanes, and those it gave up linger.
const CONNECTIONS_MAX: usize = 512;

/// How soon a thread sees that it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the deaf one holds a connection, which it cannot see closing: longer than a copy lives.
const HELD_LOOKS: usize = 20;

/// How the shadow is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Hangs,
    Refuses,
    Resets,
    Drips,
    Floods,
    Deaf,
}

/// A server that is running. Dropping it ends it.
pub struct Bad {
    port: u16,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    /// A port without a listener, reserved as the local end of a connection.
    _held: Option<(TcpStream, TcpListener)>,
}

impl Bad {
    pub fn start(manner: Manner) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        if manner == Manner::Refuses {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            let port = stream.local_addr()?.port();
            return Ok(Self { port, stop, accepting: None, _held: Some((stream, listener)) });
        }
        if manner == Manner::Deaf {
            take_little(&listener)?;
        }
        let seen = Arc::clone(&stop);
        let accepting = Some(std::thread::spawn(move || accept(&listener, manner, &seen)));
        Ok(Self { port, stop, accepting, _held: None })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It waits for one more connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, manner: Manner, stop: &Arc<AtomicBool>) {
    // It stands for another machine: what it costs must not be taken for the proxy's doing.
    let _ = unpin_this_thread();
    stand_back();
    let mut serving: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming().map_while(Result::ok) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        serving.retain(|thread| !thread.is_finished());
        if serving.len() < CONNECTIONS_MAX {
            let stop = Arc::clone(stop);
            serving.push(std::thread::spawn(move || drop(serve(stream, manner, &stop))));
        }
    }
    for thread in serving {
        let _ = thread.join();
    }
}

/// The lowest priority for this thread and those it starts.
fn stand_back() {
    // SAFETY: three numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Serves until the other end or the bench has had enough.
fn serve(mut stream: TcpStream, manner: Manner, stop: &AtomicBool) -> Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let mut piece = vec![b'x'; 65536];
    match manner {
        // The one that refuses gets no connection.
        Manner::Refuses => {}
        Manner::Resets => reset_on_close(&stream)?,
        Manner::Hangs => while retried(stop, || stream.read(&mut piece))? > 0 {},
        Manner::Deaf => wait(stop, HELD_LOOKS),
        Manner::Drips => {
            answer(&mut stream, &mut piece, 1_000, stop)?;
            loop {
                retried(stop, || stream.write(b"x"))?;
                wait(stop, 10);
            }
        }
        Manner::Floods => {
            let mut left: usize = 1 << 30;
            answer(&mut stream, &mut piece, left, stop)?;
            while left > 0 {
                left -= retried(stop, || stream.write(&piece[..left.min(piece.len())]))?;
            }
        }
    }
    Ok(())
}

/// The head of a response, once a request has begun to come.
fn answer(
    stream: &mut TcpStream,
    piece: &mut [u8],
    length: usize,
    stop: &AtomicBool,
) -> Result<()> {
    retried(stop, || stream.read(piece))?;
    piece.fill(b'x');
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    Ok(stream.write_all(head.as_bytes())?)
}

/// Again after each time-out; an error when the bench ends.
fn retried(
    stop: &AtomicBool,
    mut io: impl FnMut() -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    while !stop.load(Ordering::Relaxed) {
        match io() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
    Err(ErrorKind::ConnectionAborted.into())
}

fn wait(stop: &AtomicBool, looks: usize) {
    for _ in 0..looks {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Makes the close a RST.
fn reset_on_close(stream: &TcpStream) -> Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set(stream, libc::SOL_SOCKET, libc::SO_LINGER, linger)
}

/// Lets the kernel take less than 100 KB for a server that does not read: on loopback, with its
/// long segments, it would take 4 MB.
fn take_little(listener: &TcpListener) -> Result<()> {
    set(listener, libc::SOL_SOCKET, libc::SO_RCVBUF, 4096_i32)?;
    set(listener, libc::IPPROTO_TCP, libc::TCP_MAXSEG, 536_i32)
}

fn set<T>(socket: &impl AsRawFd, level: i32, option: i32, value: T) -> Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is given with its size, and the descriptor is open.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size)
    };
    if set != 0 {
        bail!("setsockopt: {}", std::io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets that asks and waits for so long.
    fn asked(manner: Manner, wait_ms: u64) -> (Bad, std::io::Result<Vec<u8>>) {
        let bad = Bad::start(manner).unwrap();
        let got = TcpStream::connect(("127.0.0.1", bad.port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_millis(wait_ms)))?;
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            let mut got = vec![0; 1 << 16];
            let read = stream.read(&mut got)?;
            got.truncate(read);
            Ok(got)
        });
        (bad, got)
    }

    #[test]
    fn each_is_bad_in_its_way_and_ends() {
        use ErrorKind::{ConnectionRefused, WouldBlock};
        let long = 60_000;
        let kind = |manner, wait| asked(manner, wait).1.unwrap_err().kind();
        assert_eq!(kind(Manner::Hangs, 300), WouldBlock);
        assert_eq!(kind(Manner::Deaf, 300), WouldBlock);
        assert_eq!(kind(Manner::Refuses, long), ConnectionRefused);
        // The reset meets the write or the read.
        assert_ne!(kind(Manner::Resets, long), WouldBlock);
        for manner in [Manner::Drips, Manner::Floods] {
            let (_bad, got) = asked(manner, long);
            assert!(
                got.unwrap().starts_with(b"HTTP/1.1 200 OK\r\nContent-Length: 1"),
                "{manner:?}"
            );
        }
    }
}
