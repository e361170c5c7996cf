//! What the threads of processes wait for: the system call in which each is blocked.
//!
//! `/proc/PID/task/TID/syscall` has the call and its arguments, of processes that this one may
//! trace: its own descendants; for root, all; where Yama allows it, the user's.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;

use gake_core::record::LevelUnit;
use procfs::net::TcpNetEntry;

use crate::level::Level;

/// Peers with a level of their own.
const PEERS_MAX: usize = 4;
/// Descriptors of a `poll` that are looked at.
const POLLED_MAX: usize = 4;
/// Bytes of a `struct pollfd`, which begins with the descriptor.
const POLL_FD: usize = 8;

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// To read from or write to a socket, by inode.
    Socket(u64),
    Sleep,
    Futex,
    FileLock,
    Child,
}

impl Wait {
    /// Reads a line of `syscall` of a thread of `pid`; `None` for a running thread and for calls of
    /// no interest.
    pub(crate) fn parse(pid: i32, line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse::<i64>().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (first, second) = (argument()?, argument()?);
        Some(match number {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg => Self::Socket(socket(pid, i32::try_from(first).ok()?)?),
            libc::SYS_ppoll | POLL if second == 0 => Self::Sleep,
            // Of several sockets, the first stands for all.
            libc::SYS_ppoll | POLL => {
                let descriptors = polled(pid, first, second);
                Self::Socket(descriptors.into_iter().find_map(|one| socket(pid, one))?)
            }
            libc::SYS_pselect6 | SELECT if first == 0 => Self::Sleep,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Self::Sleep,
            libc::SYS_futex => Self::Futex,
            libc::SYS_flock => Self::FileLock,
            libc::SYS_fcntl if [LOCK_WAIT, OPEN_FILE_LOCK_WAIT].contains(&second) => Self::FileLock,
            libc::SYS_wait4 | libc::SYS_waitid => Self::Child,
            _ => return None,
        })
    }
}

// Calls that an architecture lacks are negative there, which no blocked call is.
#[cfg(target_arch = "x86_64")]
const POLL: i64 = libc::SYS_poll;
#[cfg(target_arch = "x86_64")]
const SELECT: i64 = libc::SYS_select;
#[cfg(not(target_arch = "x86_64"))]
const POLL: i64 = -1;
#[cfg(not(target_arch = "x86_64"))]
const SELECT: i64 = -2;
const LOCK_WAIT: u64 = libc::F_SETLKW as u64;
const OPEN_FILE_LOCK_WAIT: u64 = libc::F_OFD_SETLKW as u64;

/// Threads by what they wait for. Event loops and threads that wait for clients count nowhere.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    sleeping: usize,
    futex: usize,
    file_lock: usize,
    child: usize,
    /// By inode.
    sockets: HashMap<u64, usize>,
}

impl Waits {
    /// Counts the waits of threads.
    pub(crate) fn of(all: impl Iterator<Item = Wait>) -> Self {
        let mut waits = Self::default();
        for wait in all {
            let count = match wait {
                Wait::Sleep => &mut waits.sleeping,
                Wait::Futex => &mut waits.futex,
                Wait::FileLock => &mut waits.file_lock,
                Wait::Child => &mut waits.child,
                Wait::Socket(inode) => waits.sockets.entry(inode).or_default(),
            };
            *count += 1;
        }
        waits
    }

    /// Whether a thread waits for a socket: [`Waits::levels`] needs the table of sockets.
    pub(crate) fn needs_table(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Levels of threads by what they wait for. `own` are the ports on which the processes listen:
    /// who connected there is a client.
    pub(crate) fn levels(&self, table: &[TcpNetEntry], own: &HashSet<u16>) -> Vec<Level> {
        let count = |name: &str, n: usize| Level::new(name, LevelUnit::Count, n as f64);
        let mut levels = vec![
            count("futex_threads", self.futex),
            count("sleeping_threads", self.sleeping),
            count("file_lock_threads", self.file_lock),
            count("child_threads", self.child),
        ];
        let mut peers: HashMap<SocketAddr, usize> = HashMap::new();
        let outgoing = table.iter().filter(|entry| !own.contains(&entry.local_address.port()));
        for entry in outgoing {
            if let Some(threads) = self.sockets.get(&entry.inode) {
                *peers.entry(entry.remote_address).or_default() += threads;
            }
        }
        let mut peers: Vec<_> = peers.into_iter().collect();
        peers.sort_by_key(|(peer, threads)| (std::cmp::Reverse(*threads), *peer));
        peers.truncate(PEERS_MAX);
        levels.extend(peers.iter().map(|(peer, n)| count(&format!("{peer} awaited"), *n)));
        levels
    }
}

/// The first descriptors of a `poll`, from the memory of the process.
fn polled(pid: i32, list: u64, count: u64) -> Vec<i32> {
    let count = usize::try_from(count).unwrap_or(POLLED_MAX).min(POLLED_MAX);
    let mut bytes = [0; POLL_FD * POLLED_MAX];
    let memory = File::open(format!("/proc/{pid}/mem"));
    let read = memory.and_then(|memory| memory.read_exact_at(&mut bytes[..POLL_FD * count], list));
    if read.is_err() {
        return Vec::new();
    }
    let polled = bytes[..POLL_FD * count].chunks_exact(POLL_FD);
    polled.map(|one| i32::from_ne_bytes([one[0], one[1], one[2], one[3]])).collect()
}

/// The inode of a descriptor that is a socket.
fn socket(pid: i32, descriptor: i32) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use procfs::process::Process;

    use super::*;
    use crate::sockets;
    use crate::threads::ThreadSampler;

    #[test]
    fn calls_are_known_by_number_and_arguments() {
        let line = |number: i64, first: u64, second: u64| {
            format!("{number} {first:#x} {second:#x} 0x0 0x0 0x0 0x0 0x7ffe 0x7f00\n")
        };
        for (line, wait) in [
            (line(libc::SYS_ppoll, 0, 0), Some(Wait::Sleep)),
            (line(libc::SYS_pselect6, 0, 0), Some(Wait::Sleep)),
            (line(libc::SYS_pselect6, 5, 0), None),
            (line(libc::SYS_fcntl, 3, 7), Some(Wait::FileLock)),
            (line(libc::SYS_fcntl, 3, 1), None),
            (line(libc::SYS_wait4, 3, 1), Some(Wait::Child)),
            (line(libc::SYS_epoll_pwait, 3, 1), None),
            // Neither the descriptor nor the process is there.
            (line(libc::SYS_recvfrom, 7, 9), None),
            (line(libc::SYS_ppoll, 0x1000, 1), None),
            ("running\n".to_owned(), None),
            ("-1 0x7ffe 0x7f00\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(Wait::parse(i32::MAX, &line), wait, "{line}");
        }
    }

    /// Levels of this process once `is_there` holds for them.
    fn levels_when(is_there: impl Fn(&dyn Fn(&str) -> f64) -> bool) {
        let me = Process::myself().unwrap();
        let begun = Instant::now();
        loop {
            let mut threads = ThreadSampler::default();
            threads.read(&[me.pid()], Instant::now());
            let waits = threads.waits().expect("a process may read its own");
            let levels = waits.levels(&sockets::table(&me), &HashSet::new());
            let value = |name: &str| {
                levels.iter().find(|level| level.name == name).map_or(0.0, |level| level.value)
            };
            if is_there(&value) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{levels:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn threads_are_counted_by_what_they_wait_for() {
        let server = TcpListener::bind("127.9.8.5:0").unwrap();
        let peer = server.local_addr().unwrap();
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().unwrap();
        for timeout in [None, Some(Duration::from_secs(60)), None] {
            let mut stream = TcpStream::connect(peer).unwrap();
            stream.set_read_timeout(timeout).unwrap();
            std::thread::spawn(move || stream.read(&mut [0]));
        }
        // `poll` of one descriptor, as database drivers call it.
        let polled = TcpStream::connect(peer).unwrap();
        std::thread::spawn(move || {
            let mut polled = [rustix::event::PollFd::new(&polled, rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut polled, None)
        });
        let waiter = Arc::clone(&lock);
        std::thread::spawn(move || drop(waiter.lock()));
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
        levels_when(|value| {
            value(&format!("{peer} awaited")) == 4.0
                && value("futex_threads") >= 1.0
                && value("sleeping_threads") >= 1.0
        });
        drop(held);
    }

    #[test]
    fn clients_are_not_awaited() {
        let waits = Waits { sockets: [(7, 3)].into(), ..Waits::default() };
        assert!(waits.needs_table());
        assert_eq!(waits.levels(&[], &[80].into()).len(), 4);
        let mut threads = ThreadSampler::default();
        threads.read(&[i32::MAX], Instant::now());
        assert_eq!(threads.waits(), None);
    }
}
