//! HTTP POST, tried again until the destination takes it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{End, Fault, GrpcStatus};
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, Protocol, Resolver, TlsOptions,
};

use super::{Batch, Carrier, Lost};

/// How long one answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a second attempt, and the longest: each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Bytes that may wait for the destination.
const WAITING_MAX: usize = 32 << 20;
/// Bytes up to which batches of lines go in one request: half of what servers in front of a
/// destination usually let pass.
const JOINED_MAX: usize = 512 << 10;
/// How long after the run's end what waits is still sent, even when nothing is tried again.
const LAST: Duration = Duration::from_secs(1);
/// Why figures are missing at a destination that answers.
const TOO_SLOW: &str = "it takes less than comes";
/// The statuses of gRPC after which OTLP makes a call again: cancelled, deadline exceeded, aborted,
/// out of range, unavailable, data loss. After "resource exhausted" it does so only where the
/// answer says when, which is not read.
const LATER: [u32; 6] = [1, 4, 10, 11, 14, 15];
/// Bytes kept of an answer that refuses: its reason.
const REASON_MAX: usize = 300;

/// Where and how batches are posted.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// A request whose success means that the destination is there; it makes it ready, too.
    pub(crate) first: Option<HttpRequest>,
    /// The protocol of connections.
    pub(crate) protocol: Protocol,
}

impl Post {
    /// The same over HTTP/1.1.
    pub(crate) fn new(
        url: String,
        headers: Vec<(String, String)>,
        first: Option<HttpRequest>,
    ) -> Self {
        Self { url, headers, first, protocol: Protocol::Http1 }
    }

    /// Whether batches after one another are one batch: lines of text are, documents are not.
    fn is_lines(&self) -> bool {
        let is_text = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("content-type") && value.starts_with("text/plain")
        };
        self.headers.iter().any(is_text)
    }
}

/// Posts batches on a thread of its own.
pub(crate) struct Push {
    post: Post,
    shared: Arc<SharedQueue>,
    thread: Option<JoinHandle<()>>,
    retry: Duration,
}

#[derive(Default)]
struct SharedQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Batch>,
    bytes: usize,
    /// Once the run is over.
    end: Option<EndOfRun>,
    lost: Lost,
}

/// What there is time for after the run.
#[derive(Clone, Copy)]
struct EndOfRun {
    /// Until then a failed request is made again.
    retry: Instant,
    /// Until then requests are begun.
    send: Instant,
}

impl Queue {
    /// The batch that goes next; batches of lines with those behind it.
    fn pop(&mut self, is_lines: bool) -> Option<Batch> {
        let mut batch = self.waiting.pop_front()?;
        while is_lines
            && let Some(next) = self.waiting.front()
            && batch.bytes.len() + next.bytes.len() <= JOINED_MAX
        {
            batch.bytes.extend_from_slice(&next.bytes);
            batch.rows += next.rows;
            self.waiting.pop_front();
        }
        Some(batch)
    }

    /// Gives up what waits.
    fn lose_waiting(&mut self, why: &str) {
        let rows = self.waiting.drain(..).map(|batch| batch.rows).sum();
        if rows > 0 {
            self.lost.add(rows, why);
        }
    }
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Push {
    /// Makes it ready; `retry` is how long after the run's end it goes on trying.
    pub(crate) fn new(post: &Post, retry: Duration) -> Self {
        Self { post: post.clone(), shared: Arc::default(), thread: None, retry }
    }

    /// Starts the thread. The sink's own thread calls it first, so that it has its class.
    fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let (post, shared) = (self.post.clone(), Arc::clone(&self.shared));
        let run = move || run(&post, &shared);
        match std::thread::Builder::new().name("gake-push".to_owned()).spawn(run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.shared.lock().lost.add(0, error.to_string()),
        }
    }
}

impl Carrier for Push {
    fn check(&mut self) -> Result<(), String> {
        let post = self.post.clone();
        let Some(first) = post.first.clone() else { return Ok(()) };
        let ask =
            move || Sender::new(&post).and_then(|sender| sender.send(&first).map_err(Refused::why));
        // A runtime of its own must not meet the caller's.
        let asked = std::thread::spawn(ask).join();
        asked.unwrap_or_else(|_| Err("the check failed".to_owned()))
    }

    fn carry(&mut self, batch: Batch) {
        let mut queue = self.shared.lock();
        if queue.bytes + batch.bytes.len() > WAITING_MAX {
            queue.lost.add(batch.rows, TOO_SLOW);
        } else {
            queue.bytes += batch.bytes.len();
            queue.waiting.push_back(batch);
        }
        drop(queue);
        self.shared.changed.notify_one();
        self.start();
    }

    fn finish(&mut self) {
        let now = Instant::now();
        let end = EndOfRun { retry: now + self.retry, send: now + self.retry.max(LAST) };
        self.shared.lock().end = Some(end);
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.lock().lose_waiting("it could not be reached");
    }

    fn lost(&self) -> Lost {
        self.shared.lock().lost.clone()
    }
}

/// Why a batch was not taken.
enum Refused {
    /// It never will be.
    ForEver(String),
    /// Later it may be.
    ForNow(String),
}

impl Refused {
    fn why(self) -> String {
        match self {
            Self::ForEver(why) | Self::ForNow(why) => why,
        }
    }
}

fn run(post: &Post, shared: &SharedQueue) {
    let sender = match Sender::new(post) {
        Ok(sender) => sender,
        Err(why) => return shared.lock().lost.add(0, why),
    };
    let mut pause = PAUSES.0;
    // A destination that was started late is made ready when it is there.
    let mut first = post.first.clone();
    loop {
        let Some(batch) = next(shared, post.is_lines()) else { return };
        let ready = first.as_ref().map_or(Ok(()), |request| sender.send(request));
        let sent = ready.and_then(|()| {
            first = None;
            let body = Arc::from(batch.bytes.as_slice());
            sender.send(&HttpRequest {
                headers: post.headers.clone(),
                body: Some(body),
                ..HttpRequest::new("POST", &post.url)
            })
        });
        let mut queue = shared.lock();
        match sent {
            Ok(()) => {
                queue.bytes -= batch.bytes.len();
                pause = PAUSES.0;
            }
            Err(Refused::ForEver(why)) => {
                queue.bytes -= batch.bytes.len();
                queue.lost.add(batch.rows, why);
            }
            Err(Refused::ForNow(why)) => {
                let now = Instant::now();
                if queue.end.is_some_and(|end| now + pause >= end.retry) {
                    queue.lost.add(batch.rows, why);
                    return;
                }
                queue.waiting.push_front(batch);
                // A second that comes does not shorten the pause; the end of the run does.
                let (until, is_over) = (now + pause, queue.end.is_some());
                while Instant::now() < until && queue.end.is_some() == is_over {
                    let left = until.saturating_duration_since(Instant::now());
                    let waited = shared.changed.wait_timeout(queue, left);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                pause = (2 * pause).min(PAUSES.1);
            }
        }
    }
}

/// The next batch; `None` when there are no more, or no time for them.
fn next(shared: &SharedQueue, is_lines: bool) -> Option<Batch> {
    let mut queue = shared.lock();
    loop {
        if queue.end.is_some_and(|end| Instant::now() >= end.send) {
            queue.lose_waiting(TOO_SLOW);
        }
        if let Some(batch) = queue.pop(is_lines) {
            return Some(batch);
        }
        if queue.end.is_some() {
            return None;
        }
        queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A fault as a sentence has it.
fn words(fault: Fault) -> String {
    fault.to_string().replace('_', " ")
}

/// What a status of gRPC other than OK means, as OTLP has it.
fn refused(status: GrpcStatus) -> Refused {
    let why = format!("it answers {status}");
    if LATER.contains(&status.number()) { Refused::ForNow(why) } else { Refused::ForEver(why) }
}

#[derive(Debug, Clone, Copy)]
struct Since(Instant);

impl Clock for Since {
    fn now(&self) -> Nanos {
        nanos(self.0.elapsed())
    }

    async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(self.now()))).await;
    }
}

/// Sends requests from one thread, over connections that are kept.
struct Sender {
    runtime: tokio::runtime::Runtime,
    local: tokio::task::LocalSet,
    client: Client<Since>,
}

impl Sender {
    fn new(post: &Post) -> Result<Self, String> {
        let settings = ClientSettings { protocol: post.protocol, ..ClientSettings::default() };
        let builder = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = builder.map_err(|error| error.to_string())?;
        let network = Network::new(&Resolver::default(), &TlsOptions::default(), settings);
        let network = if post.url.starts_with("https:") {
            network.and_then(Network::to_any_origin)
        } else {
            network
        };
        let network = network.map_err(|error| error.to_string())?;
        let client = Client::new(Arc::new(network), Slice::WHOLE, Since(Instant::now()));
        Ok(Self { runtime, local: tokio::task::LocalSet::new(), client })
    }

    fn send(&self, request: &HttpRequest) -> Result<(), Refused> {
        let exchange = async {
            let prepared = self.client.prepare(request).await;
            let prepared = prepared.map_err(|fault| Refused::ForNow(words(fault)))?;
            let deadline = Deadline::within(self.client.clock().now(), PATIENCE);
            let (exchange, kept) = self.client.send(&prepared, deadline, REASON_MAX).await;
            let status = match exchange.end {
                End::Answered(answer) => answer.status,
                End::Fault(Fault::Grpc(status)) => return Err(refused(status)),
                End::Fault(fault) => return Err(Refused::ForNow(words(fault))),
                End::Unfinished => return Err(Refused::ForNow("no answer".to_owned())),
            };
            let reason = String::from_utf8_lossy(&kept.body);
            let shown = gake_text::foreign::line(reason.trim());
            match status {
                200..300 => Ok(()),
                408 | 429 | 500.. => Err(Refused::ForNow(format!("it answers {status} {shown}"))),
                _ => Err(Refused::ForEver(format!("it answers {status} {shown}"))),
            }
        };
        self.local.block_on(&self.runtime, exchange)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    /// A destination that waits before each answer, and the bodies that it took.
    fn destination(wait: impl Fn() + Send + 'static) -> (String, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (taken, bodies) = mpsc::channel();
        let serve = move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                while let Some(body) = body(&mut stream) {
                    wait();
                    // The test may be over.
                    let _ = taken.send(body);
                    stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                }
            }
        };
        std::thread::spawn(serve);
        (url, bodies)
    }

    /// The body of the next request; `None` at the connection's end.
    fn body(stream: &mut impl BufRead) -> Option<String> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = String::new();
        stream.take(length).read_to_string(&mut body).unwrap();
        Some(body)
    }

    fn push(url: String, kind: &str, retry: Duration) -> Push {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        Push::new(&Post::new(url, headers, None), retry)
    }

    fn row() -> Batch {
        Batch { bytes: b"row\n".to_vec(), rows: 1 }
    }

    #[test]
    fn a_slow_destination_does_not_hold_the_end_of_a_run() {
        // 80 documents would take it 8 s.
        let (url, bodies) = destination(|| std::thread::sleep(Duration::from_millis(100)));
        let mut push = push(url, "application/json", Duration::ZERO);
        for _ in 0..80 {
            push.carry(row());
        }
        let begun = Instant::now();
        push.finish();
        assert!(begun.elapsed() < LAST + PATIENCE, "{:?}", begun.elapsed());
        let lost = push.lost();
        assert_eq!(lost.rows + bodies.try_iter().count() as u64, 80);
        assert!(lost.rows > 0);
        assert_eq!(lost.why.as_deref(), Some(TOO_SLOW));
    }

    #[test]
    fn what_waits_at_the_end_is_still_sent_when_nothing_is_tried_again() {
        let (url, bodies) = destination(|| {});
        let mut push = push(url, "application/json", Duration::ZERO);
        push.carry(row());
        push.finish();
        assert_eq!((push.lost().rows, bodies.try_iter().count()), (0, 1));
    }

    #[test]
    fn lines_that_wait_go_in_one_request() {
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (url, bodies) = destination(move || {
            begin.send(()).unwrap();
            // Once the test has let it go, each is answered at once.
            let _ = released.recv();
        });
        let mut push = push(url, "text/plain; charset=utf-8", Duration::from_secs(5));
        push.carry(row());
        begun.recv().unwrap();
        for _ in 0..50 {
            push.carry(row());
        }
        drop(release);
        push.finish();
        assert_eq!(push.lost().rows, 0);
        let rows: Vec<_> = bodies.try_iter().map(|body| body.matches("row\n").count()).collect();
        assert_eq!(rows, [1, 50]);
    }

    #[test]
    fn batches_are_joined_up_to_a_bound_and_documents_never() {
        let queue = || {
            let batch = |_| Batch { bytes: vec![b'x'; JOINED_MAX / 2], rows: 1 };
            Queue { waiting: (0..3).map(batch).collect(), ..Queue::default() }
        };
        let rows = |is_lines| {
            let mut queue = queue();
            std::iter::from_fn(|| queue.pop(is_lines)).map(|batch| batch.rows).collect::<Vec<_>>()
        };
        assert_eq!((rows(true), rows(false)), (vec![2, 1], vec![1; 3]));
    }
}
