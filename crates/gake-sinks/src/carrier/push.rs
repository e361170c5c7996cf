//! HTTP POST, retried until the destination accepts.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{ExchangeEnd, Fault, GrpcStatus};
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, Protocol, Resolver, TlsOptions,
};

use super::{Carrier, DRAIN_MAX, FigureBatch, INTERRUPTED, LostFigures, WATCH};
use crate::spill::{Importance, Spill, SpillQueue, TOO_SLOW};

pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The first and the longest pause between attempts; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
const WAITING_MAX: usize = 32 << 20;
/// Maximum bytes of joined batches of lines: half of the usual limit of proxies.
const JOINED_MAX: usize = 512 << 10;
/// Minimum time after the run's end to send the queue, even without retries.
const LAST: Duration = Duration::from_secs(1);
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
    spill: Spill,
}

struct SharedQueue {
    queue: Mutex<PushQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct PushQueue {
    waiting: SpillQueue,
    /// Rows of the request in flight.
    sending: u64,
    /// Set at the end of the run.
    end: Option<EndOfRun>,
    /// The thread that sends has ended.
    is_done: bool,
    /// Why the destination does not take data now.
    error: Option<String>,
}

#[derive(Clone, Copy)]
struct EndOfRun {
    /// Failed requests are retried until then.
    retry: Instant,
    /// Requests are started until then.
    send: Instant,
    /// How long a destination is waited for after the last data that it has taken.
    patience: Duration,
    /// The end of all patience.
    last: Instant,
}

impl EndOfRun {
    fn new(patience: Duration) -> Self {
        let now = Instant::now();
        let (retry, send, last) = (now + patience, now + patience.max(LAST), now + DRAIN_MAX);
        Self { retry, send, patience, last }
    }

    /// The destination has taken data.
    fn extend(&mut self) {
        if !self.patience.is_zero() {
            let end = (Instant::now() + self.patience).min(self.last);
            (self.retry, self.send) = (end, end);
        }
    }
}

impl PushQueue {
    /// The next batch; batches of lines are joined.
    fn pop(&mut self, is_lines: bool) -> Option<FigureBatch> {
        let mut batch = self.waiting.pop()?;
        while is_lines && let Some(next) = self.waiting.pop() {
            if batch.bytes.len() + next.bytes.len() > JOINED_MAX {
                self.waiting.put_back(next);
                break;
            }
            batch.bytes.extend_from_slice(&next.bytes);
            batch.rows += next.rows;
        }
        Some(batch)
    }
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, PushQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Push {
    /// A carrier that retries for `retry` after the run's end.
    pub(crate) fn new(post: &Post, retry: Duration, spill: &Spill) -> Self {
        let waiting = SpillQueue::new(WAITING_MAX, spill.clone());
        let queue = Mutex::new(PushQueue { waiting, ..PushQueue::default() });
        let shared = Arc::new(SharedQueue { queue, changed: Condvar::new() });
        Self { post: post.clone(), shared, thread: None, retry, spill: spill.clone() }
    }

    /// Starts the thread, which inherits the scheduling class of the sink's thread.
    fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let (post, shared) = (self.post.clone(), Arc::clone(&self.shared));
        let run = move || {
            run(&post, &shared);
            shared.lock().is_done = true;
            shared.changed.notify_all();
        };
        match std::thread::Builder::new().name("gake-push".to_owned()).spawn(run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.shared.lock().waiting.lost.add(0, error.to_string()),
        }
    }

    fn take(&mut self, batch: FigureBatch, importance: Importance) {
        let mut queue = self.shared.lock();
        let PushQueue { waiting, error, .. } = &mut *queue;
        waiting.push(batch, importance, error.as_deref());
        drop(queue);
        self.shared.changed.notify_all();
        self.start();
    }

    /// Waits for the thread, as long as the watcher of the delivery does.
    fn wait(&self, thread: &JoinHandle<()>) {
        let mut queue = self.shared.lock();
        let mut watched = Instant::now();
        while !queue.is_done && !thread.is_finished() {
            let waited = self.shared.changed.wait_timeout(queue, WATCH);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if watched.elapsed() < WATCH || queue.is_done {
                continue;
            }
            let rows = queue.waiting.rows() + queue.sending;
            drop(queue);
            let goes_on = self.spill.goes_on(&self.post.url, rows);
            queue = self.shared.lock();
            watched = Instant::now();
            if !goes_on {
                queue.waiting.lose(INTERRUPTED);
                queue.end = Some(EndOfRun::new(Duration::ZERO));
                self.shared.changed.notify_all();
            }
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
        self.take(batch, Importance::Figures);
    }

    fn carry_samples(&mut self, batch: FigureBatch) {
        self.take(batch, Importance::Samples);
    }

    fn finish(&mut self) {
        self.shared.lock().end = Some(EndOfRun::new(self.retry));
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            self.wait(&thread);
            let _ = thread.join();
        }
        let mut queue = self.shared.lock();
        let why = queue.error.take();
        queue.waiting.lose(why.as_deref().unwrap_or("the destination was unreachable"));
    }

    fn lost(&self) -> LostFigures {
        self.shared.lock().waiting.lost.clone()
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
        Err(why) => return shared.lock().error = Some(why),
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
        queue.sending = 0;
        match sent {
            Ok(()) => {
                pause = PAUSES.0;
                queue.error = None;
                queue.end.iter_mut().for_each(EndOfRun::extend);
            }
            Err(PushRejection::Permanent(why)) => queue.waiting.lost.add(batch.rows, why),
            Err(PushRejection::Temporary(why)) => {
                queue.waiting.put_back(batch);
                if queue.end.is_some_and(|end| Instant::now() + pause >= end.retry) {
                    return queue.waiting.lose(&why);
                }
                queue.error = Some(why);
                drop(wait_out(shared, queue, pause));
                pause = (2 * pause).min(PAUSES.1);
            }
        }
    }
}

/// Waits before the next attempt. New batches do not shorten the pause; the end of the run, and the
/// user who ends the delivery, do.
fn wait_out<'a>(
    shared: &'a SharedQueue,
    mut queue: MutexGuard<'a, PushQueue>,
    pause: Duration,
) -> MutexGuard<'a, PushQueue> {
    let until = Instant::now() + pause;
    let last = queue.end.map(|end| end.last);
    while Instant::now() < until && queue.end.map(|end| end.last) == last {
        let left = until.saturating_duration_since(Instant::now());
        let waited = shared.changed.wait_timeout(queue, left);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    queue
}

/// The next batch; `None` when the run is over and the queue empty or expired.
fn next(shared: &SharedQueue, is_lines: bool) -> Option<FigureBatch> {
    let mut queue = shared.lock();
    loop {
        if queue.end.is_some_and(|end| Instant::now() >= end.send) {
            queue.waiting.lose(TOO_SLOW);
        }
        if let Some(batch) = queue.pop(is_lines) {
            queue.sending = batch.rows;
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
#[path = "push_tests.rs"]
mod tests;
