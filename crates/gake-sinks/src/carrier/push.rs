//! HTTP POST, retried until the destination accepts.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{ExchangeEnd, Fault, GrpcStatus};
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, Protocol, Resolver, TlsOptions,
};

use super::{Carrier, FigureBatch, LostFigures};

pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The first and the longest pause between attempts; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
const WAITING_MAX: usize = 32 << 20;
/// Maximum bytes of joined batches of lines: half of the usual limit of proxies.
const JOINED_MAX: usize = 512 << 10;
/// Minimum time after the run's end to send the queue, even without retries.
const LAST: Duration = Duration::from_secs(1);
/// The reason for losses at a destination that responds.
const TOO_SLOW: &str = "the destination is too slow";
/// The gRPC statuses that OTLP retries: cancelled, deadline exceeded, aborted, out of range,
/// unavailable, data loss. "Resource exhausted" is retried only with a delay in the response, which
/// is not read.
const LATER: [u32; 6] = [1, 4, 10, 11, 14, 15];
/// Maximum bytes read of an error response.
const REASON_MAX: usize = 300;

#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// A first request that checks and prepares the destination.
    pub(crate) first: Option<HttpRequest>,
    pub(crate) protocol: Protocol,
}

impl Post {
    pub(crate) fn new(
        url: String,
        headers: Vec<(String, String)>,
        first: Option<HttpRequest>,
    ) -> Self {
        Self { url, headers, first, protocol: Protocol::Http1 }
    }

    /// Whether batches can be joined: lines of text can, documents cannot.
    fn is_lines(&self) -> bool {
        let is_text = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("content-type") && value.starts_with("text/plain")
        };
        self.headers.iter().any(is_text)
    }
}

/// Posts batches on its own thread.
pub(crate) struct Push {
    post: Post,
    shared: Arc<SharedQueue>,
    thread: Option<JoinHandle<()>>,
    retry: Duration,
}

#[derive(Default)]
struct SharedQueue {
    queue: Mutex<PushQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct PushQueue {
    waiting: VecDeque<FigureBatch>,
    bytes: usize,
    /// Set at the end of the run.
    end: Option<EndOfRun>,
    lost: LostFigures,
}

#[derive(Clone, Copy)]
struct EndOfRun {
    /// Failed requests are retried until then.
    retry: Instant,
    /// Requests are started until then.
    send: Instant,
}

impl PushQueue {
    /// The next batch; batches of lines are joined.
    fn pop(&mut self, is_lines: bool) -> Option<FigureBatch> {
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

    /// Drops the queue, counted as lost.
    fn lose_waiting(&mut self, why: &str) {
        let rows = self.waiting.drain(..).map(|batch| batch.rows).sum();
        if rows > 0 {
            self.lost.add(rows, why);
        }
    }
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, PushQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Push {
    /// A carrier that retries for `retry` after the run's end.
    pub(crate) fn new(post: &Post, retry: Duration) -> Self {
        Self { post: post.clone(), shared: Arc::default(), thread: None, retry }
    }

    /// Starts the thread, which inherits the scheduling class of the sink's thread.
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
        let check = move || {
            HttpSender::new(&post)
                .and_then(|sender| sender.send(&first).map_err(PushRejection::why))
        };
        // On its own thread, since runtimes must not nest.
        let checked = std::thread::spawn(check).join();
        checked.unwrap_or_else(|_| Err("the check failed".to_owned()))
    }

    fn carry(&mut self, batch: FigureBatch) {
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
        self.shared.lock().lose_waiting("the destination was unreachable");
    }

    fn lost(&self) -> LostFigures {
        self.shared.lock().lost.clone()
    }
}

enum PushRejection {
    /// Permanently.
    Permanent(String),
    /// Temporarily.
    Temporary(String),
}

impl PushRejection {
    fn why(self) -> String {
        match self {
            Self::Permanent(why) | Self::Temporary(why) => why,
        }
    }
}

fn run(post: &Post, shared: &SharedQueue) {
    let sender = match HttpSender::new(post) {
        Ok(sender) => sender,
        Err(why) => return shared.lock().lost.add(0, why),
    };
    let mut pause = PAUSES.0;
    // A destination that starts late is prepared when it responds.
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
            Err(PushRejection::Permanent(why)) => {
                queue.bytes -= batch.bytes.len();
                queue.lost.add(batch.rows, why);
            }
            Err(PushRejection::Temporary(why)) => {
                let now = Instant::now();
                if queue.end.is_some_and(|end| now + pause >= end.retry) {
                    queue.lost.add(batch.rows, why);
                    return;
                }
                queue.waiting.push_front(batch);
                // New batches do not shorten the pause; the end of the run does.
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

/// The next batch; `None` when the run is over and the queue empty or expired.
fn next(shared: &SharedQueue, is_lines: bool) -> Option<FigureBatch> {
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

fn words(fault: Fault) -> String {
    fault.to_string().replace('_', " ")
}

/// The rejection that OTLP assigns to a gRPC status other than OK.
fn rejection(status: GrpcStatus) -> PushRejection {
    let why = format!("status {status}");
    if LATER.contains(&status.number()) {
        PushRejection::Temporary(why)
    } else {
        PushRejection::Permanent(why)
    }
}

#[derive(Debug, Clone, Copy)]
struct SteadyClock(Instant);

impl Clock for SteadyClock {
    fn now(&self) -> Nanos {
        nanos(self.0.elapsed())
    }

    async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(self.now()))).await;
    }
}

/// Sends requests from one thread, over kept connections.
struct HttpSender {
    runtime: tokio::runtime::Runtime,
    local: tokio::task::LocalSet,
    client: Client<SteadyClock>,
}

impl HttpSender {
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
        let client = Client::new(Arc::new(network), Slice::WHOLE, SteadyClock(Instant::now()));
        Ok(Self { runtime, local: tokio::task::LocalSet::new(), client })
    }

    fn send(&self, request: &HttpRequest) -> Result<(), PushRejection> {
        let exchange = async {
            let prepared = self.client.prepare(request).await;
            let prepared = prepared.map_err(|fault| PushRejection::Temporary(words(fault)))?;
            let deadline = Deadline::within(self.client.clock().now(), PATIENCE);
            let (exchange, capture) = self.client.send(&prepared, deadline, REASON_MAX).await;
            let status = match exchange.end {
                ExchangeEnd::Response(response) => response.status,
                ExchangeEnd::Fault(Fault::Grpc(status)) => return Err(rejection(status)),
                ExchangeEnd::Fault(fault) => return Err(PushRejection::Temporary(words(fault))),
                ExchangeEnd::Unfinished => {
                    return Err(PushRejection::Temporary("no response".to_owned()));
                }
            };
            let reason = String::from_utf8_lossy(&capture.body);
            let shown = gake_text::foreign::line(reason.trim());
            match status {
                200..300 => Ok(()),
                408 | 429 | 500.. => {
                    Err(PushRejection::Temporary(format!("status {status} {shown}")))
                }
                _ => Err(PushRejection::Permanent(format!("status {status} {shown}"))),
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

    /// A destination that waits before each response, and the bodies it received.
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

    fn row() -> FigureBatch {
        FigureBatch { bytes: b"row\n".to_vec(), rows: 1 }
    }

    #[test]
    fn a_slow_destination_does_not_delay_the_end_of_a_run() {
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
    fn the_queue_is_sent_at_the_end_without_retries() {
        let (url, bodies) = destination(|| {});
        let mut push = push(url, "application/json", Duration::ZERO);
        push.carry(row());
        push.finish();
        assert_eq!((push.lost().rows, bodies.try_iter().count()), (0, 1));
    }

    #[test]
    fn queued_lines_are_joined() {
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (url, bodies) = destination(move || {
            begin.send(()).unwrap();
            // After the release each response is immediate.
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
    fn lines_are_joined_up_to_a_limit_and_documents_never() {
        let queue = || {
            let batch = |_| FigureBatch { bytes: vec![b'x'; JOINED_MAX / 2], rows: 1 };
            PushQueue { waiting: (0..3).map(batch).collect(), ..PushQueue::default() }
        };
        let rows = |is_lines| {
            let mut queue = queue();
            std::iter::from_fn(|| queue.pop(is_lines)).map(|batch| batch.rows).collect::<Vec<_>>()
        };
        assert_eq!((rows(true), rows(false)), (vec![2, 1], vec![1; 3]));
    }
}
