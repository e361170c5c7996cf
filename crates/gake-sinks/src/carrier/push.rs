//! HTTP POST, tried again until the destination takes it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{End, Fault, GrpcStatus};
use gake_core::schedule::Slice;
use gake_wire::{Client, Deadline, HttpRequest, Network, Protocol, Resolver, Settings, TlsOptions};

use super::{Batch, Carrier, Lost};

/// How long one answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a second attempt, and the longest: each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Bytes that may wait for the destination.
const WAITING_MAX: usize = 32 << 20;
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
    /// When it is given up, once the run is over.
    end: Option<Instant>,
    lost: Lost,
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
        let ask = move || {
            Sender::new(post.protocol).and_then(|sender| sender.send(&first).map_err(Refused::why))
        };
        // A runtime of its own must not meet the caller's.
        let asked = std::thread::spawn(ask).join();
        asked.unwrap_or_else(|_| Err("the check failed".to_owned()))
    }

    fn carry(&mut self, batch: Batch) {
        let mut queue = self.shared.lock();
        if queue.bytes + batch.bytes.len() > WAITING_MAX {
            queue.lost.add(batch.rows, "it takes less than comes");
        } else {
            queue.bytes += batch.bytes.len();
            queue.waiting.push_back(batch);
        }
        drop(queue);
        self.shared.changed.notify_one();
        self.start();
    }

    fn finish(&mut self) {
        self.shared.lock().end = Some(Instant::now() + self.retry);
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut queue = self.shared.lock();
        let rows = queue.waiting.drain(..).map(|batch| batch.rows).sum();
        if rows > 0 {
            queue.lost.add(rows, "it could not be reached");
        }
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
    let sender = match Sender::new(post.protocol) {
        Ok(sender) => sender,
        Err(why) => return shared.lock().lost.add(0, why),
    };
    let mut pause = PAUSES.0;
    // A destination that was started late is made ready when it is there.
    let mut first = post.first.clone();
    loop {
        let Some(batch) = next(shared) else { return };
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
                if queue.end.is_some_and(|end| now + pause >= end) {
                    queue.lost.add(batch.rows, why);
                    return;
                }
                queue.waiting.push_front(batch);
                // A second that comes does not shorten the pause; the end of the run does.
                let until = now + pause;
                while Instant::now() < until {
                    let left = until.saturating_duration_since(Instant::now());
                    let waited = shared.changed.wait_timeout(queue, left);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                pause = (2 * pause).min(PAUSES.1);
            }
        }
    }
}

/// The next batch; `None` when there are no more.
fn next(shared: &SharedQueue) -> Option<Batch> {
    let mut queue = shared.lock();
    loop {
        if let Some(batch) = queue.waiting.pop_front() {
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
    fault.name().replace('_', " ")
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
        self.0.elapsed().as_nanos() as Nanos
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
    fn new(protocol: Protocol) -> Result<Self, String> {
        let settings = Settings { protocol, ..Settings::default() };
        let builder = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = builder.map_err(|error| error.to_string())?;
        let network = Network::new(&Resolver::default(), &TlsOptions::default(), settings)
            .map_err(|error| error.to_string())?;
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
            let shown = gake_core::foreign::line(reason.trim());
            match status {
                200..300 => Ok(()),
                408 | 429 | 500.. => Err(Refused::ForNow(format!("it answers {status} {shown}"))),
                _ => Err(Refused::ForEver(format!("it answers {status} {shown}"))),
            }
        };
        self.local.block_on(&self.runtime, exchange)
    }
}
