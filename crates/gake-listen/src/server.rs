//! The loop over all connections.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::reply::{Reply, Sending};
use crate::request::{Incoming, Received, Request};

/// Time limit for a request, and for each response and event.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of connections without a complete request.
pub const PENDING_MAX: usize = 512;

/// Maximum number of responses on their way, streams included.
pub const REPLIES_MAX: usize = 64;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 4096;

/// Connections accepted before those that are open get their turn again.
const ACCEPTS: usize = 64;

/// The interval at which streams are asked for events.
const EVENT_INTERVAL: Duration = Duration::from_millis(20);

/// The interval of a loop without streams, which notices the end and those that are late.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// What a listener serves.
pub trait Site: Send + 'static {
    /// Whether the Host of a request is this server.
    fn accepts(&self, request: &Request<'_>) -> bool {
        request.is_for("")
    }

    /// The response. All other connections wait for it.
    fn reply(&self, request: &Request<'_>) -> Reply;

    /// Called when a response was handed to the kernel, or could not be.
    fn sent(&self) {}
}

/// A listener at `HOST:PORT` for [`Server::start`].
///
/// # Errors
/// When it cannot listen there.
pub fn listen(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// A thread that serves a site until it is dropped.
#[derive(Debug)]
pub struct Server {
    closing: Arc<Closing>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Closing {
    /// To end when no response is on its way.
    soon: AtomicBool,
    now: AtomicBool,
}

impl Server {
    /// Serves `site` on a thread, which first calls `prepare`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        name: &str,
        listener: TcpListener,
        site: impl Site,
        prepare: fn(),
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let closing = Arc::new(Closing::default());
        let until = Arc::clone(&closing);
        let serve = move || {
            prepare();
            let mut connections = Connections { pending: VecDeque::new(), replies: Vec::new() };
            connections.serve(&listener, &site, &until);
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(serve)?;
        Ok(Self { closing, thread: Some(thread) })
    }

    /// Ends when no response is on its way, after `patience` at the latest.
    pub fn finish(mut self, patience: Duration) {
        self.closing.soon.store(true, Ordering::Relaxed);
        let end = Instant::now() + patience;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && Instant::now() < end
        {
            thread::sleep(EVENT_INTERVAL);
        }
        self.end();
    }

    fn end(&mut self) {
        self.closing.now.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection without a complete request.
struct Pending {
    stream: TcpStream,
    incoming: Incoming,
    since: Instant,
}

struct Connections {
    /// The oldest first.
    pending: VecDeque<Pending>,
    /// The oldest first.
    replies: Vec<Sending>,
}

impl Connections {
    fn serve(&mut self, listener: &TcpListener, site: &impl Site, closing: &Closing) {
        while !closing.now.load(Ordering::Relaxed) {
            let is_ending = closing.soon.load(Ordering::Relaxed);
            let ready = self.wait(listener, is_ending);
            let now = Instant::now();
            self.send(&ready[1 + self.pending.len()..], site, now);
            self.read(&ready[1..], site, now);
            if !ready[0].is_empty() {
                self.accept(listener, site, now);
            }
            if is_ending && self.replies.is_empty() {
                return;
            }
        }
    }

    /// Waits until a connection is ready, or a stream may have an event; what each is ready for.
    fn wait(&self, listener: &TcpListener, is_ending: bool) -> Vec<PollFlags> {
        let reply = |reply: &Sending| match reply.waiting_since() {
            Some(_) => PollFlags::OUT,
            None => PollFlags::RDHUP,
        };
        let mut all = vec![PollFd::new(listener, PollFlags::IN)];
        all.extend(self.pending.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        all.extend(self.replies.iter().map(|one| PollFd::new(&one.stream, reply(one))));
        let has_streams = self.replies.iter().any(|one| one.waiting_since().is_none());
        let interval = if has_streams || is_ending { EVENT_INTERVAL } else { IDLE_INTERVAL };
        let interval = Timespec { tv_sec: 0, tv_nsec: i64::from(interval.subsec_nanos()) };
        if poll(&mut all, Some(&interval)).is_err() {
            thread::sleep(EVENT_INTERVAL);
        }
        all.iter().map(PollFd::revents).collect()
    }

    fn accept(&mut self, listener: &TcpListener, site: &impl Site, now: Instant) {
        for _ in 0..ACCEPTS {
            match listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok()
                    {
                        self.receive(
                            Pending { stream, incoming: Incoming::default(), since: now },
                            site,
                            now,
                        );
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // No free descriptor, for example.
                Err(_) => {
                    self.pending.pop_front();
                    return thread::sleep(EVENT_INTERVAL);
                }
            }
        }
    }

    /// Reads what has arrived, and closes connections that are late.
    fn read(&mut self, ready: &[PollFlags], site: &impl Site, now: Instant) {
        for (index, one) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            if !ready[index].is_empty() {
                self.receive(one, site, now);
            } else if now.duration_since(one.since) < PATIENCE {
                self.pending.push_back(one);
            }
        }
    }

    /// Reads from a connection; replies if the request is complete.
    fn receive(&mut self, mut one: Pending, site: &impl Site, now: Instant) {
        let mut data = [0; 4096];
        loop {
            let read = match one.stream.read(&mut data) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return,
            };
            match one.incoming.add(&data[..read]) {
                Received::Incomplete => {}
                Received::Invalid => return self.reply(one.stream, invalid(), site, now),
                Received::Complete(request) => {
                    let reply = match site.accepts(&request) {
                        true => site.reply(&request),
                        false => misdirected(),
                    };
                    return self.reply(one.stream, reply, site, now);
                }
            }
        }
        if now.duration_since(one.since) < PATIENCE {
            self.pending.push_back(one);
            // It has had the chance to send a whole request.
            if self.pending.len() > PENDING_MAX {
                self.pending.pop_front();
            }
        }
    }

    fn reply(&mut self, stream: TcpStream, reply: Reply, site: &impl Site, now: Instant) {
        let reply = match reply.events {
            Some(_) if !self.has_place(now) => crowded(),
            _ => reply,
        };
        let mut sending = Sending::new(stream, reply, now);
        match sending.advance(now) {
            Ok(true) if self.has_place(now) => return self.replies.push(sending),
            Ok(false) => sending.finish(),
            Ok(true) | Err(_) => {}
        }
        site.sent();
    }

    /// Makes a place if the oldest reply has had its time.
    fn has_place(&mut self, now: Instant) -> bool {
        if self.replies.len() < REPLIES_MAX {
            return true;
        }
        let is_old = now.duration_since(self.replies[0].since) >= PATIENCE;
        if is_old {
            self.replies.remove(0);
        }
        is_old
    }

    /// Sends what is ready, and closes connections that are late or gone.
    fn send(&mut self, ready: &[PollFlags], site: &impl Site, now: Instant) {
        let mut ready = ready.iter();
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::RDHUP;
        for mut one in std::mem::take(&mut self.replies) {
            let is_gone = ready.next().is_some_and(|ready| ready.intersects(gone));
            match one.advance(now) {
                Ok(true) => {
                    let is_late = one
                        .waiting_since()
                        .is_some_and(|since| now.duration_since(since) >= PATIENCE);
                    if !is_gone && !is_late {
                        self.replies.push(one);
                        continue;
                    }
                }
                Ok(false) => one.finish(),
                Err(_) => {}
            }
            site.sent();
        }
    }
}

fn invalid() -> Reply {
    Reply::text("400 Bad Request", "", "not an HTTP/1 request for a path of at most 8 KiB\n")
}

fn misdirected() -> Reply {
    let text = "send exactly one Host header: an IP address, localhost or the name given to gake\n";
    Reply::text("403 Forbidden", "", text)
}

/// An `EventSource` gives up after any other response.
fn crowded() -> Reply {
    let text: &[u8] = b"retry: 5000\n: too many viewers\n\n";
    Reply::new("200 OK", "text/event-stream", "", vec![text.into()])
}

#[cfg(test)]
mod tests;
