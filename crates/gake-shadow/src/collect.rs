//! Assembles exchanges from the outcomes of the backends and feeds them to listeners.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gake_core::clock::nanos;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body::Frame;

use crate::exchange::{
    BackendFailure, BackendOutcome, BackendResponse, CapturedBody, CapturedRequest,
    MirroredExchange, RequestIds, Role,
};
use crate::message::body::{BodyBuffer, BufferedBody};
use crate::message::head::RequestHead;

/// Bytes queued for one listener.
const QUEUE_BYTES: u64 = 64 << 20;
/// Bytes of an exchange besides its bodies, roughly.
const EXCHANGE_BYTES: u64 = 2048;

#[derive(Debug, Default)]
pub(crate) struct ExchangeFeed {
    listeners: Vec<FeedListener>,
}

#[derive(Debug)]
struct FeedListener {
    /// `None` once the proxy has ended.
    sender: RwLock<Option<SyncSender<Arc<MirroredExchange>>>>,
    state: Arc<ListenerState>,
}

#[derive(Debug, Default)]
struct ListenerState {
    bytes: AtomicU64,
    dropped: AtomicU64,
}

/// A bounded queue of finished exchanges. When it is full, new ones are dropped and counted.
#[derive(Debug)]
pub struct Exchanges {
    receiver: Receiver<Arc<MirroredExchange>>,
    state: Arc<ListenerState>,
}

impl Exchanges {
    /// Blocks for the next exchange; `None` when the proxy has ended and the queue is empty.
    #[must_use]
    pub fn next(&self) -> Option<Arc<MirroredExchange>> {
        self.receiver.recv().ok().inspect(|exchange| self.release(exchange))
    }

    /// Like [`next`](Self::next), for at most `time`.
    ///
    /// # Errors
    /// When the time is over, or the proxy has ended.
    pub fn next_within(&self, time: Duration) -> Result<Arc<MirroredExchange>, RecvTimeoutError> {
        self.receiver.recv_timeout(time).inspect(|exchange| self.release(exchange))
    }

    /// Exchanges dropped because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state.dropped.load(Relaxed)
    }

    fn release(&self, exchange: &MirroredExchange) {
        self.state.bytes.fetch_sub(weight(exchange), Relaxed);
    }
}

impl ExchangeFeed {
    /// Adds a listener whose queue holds `capacity` exchanges.
    pub(crate) fn listen(&mut self, capacity: usize) -> Exchanges {
        let (sender, receiver) = sync_channel(capacity.max(1));
        let state = Arc::new(ListenerState::default());
        let sender = RwLock::new(Some(sender));
        self.listeners.push(FeedListener { sender, state: Arc::clone(&state) });
        Exchanges { receiver, state }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Ends the listeners, even while handles to the proxy remain.
    pub(crate) fn close(&self) {
        for listener in &self.listeners {
            *listener.sender.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.listeners.iter().map(|listener| listener.state.dropped.load(Relaxed)).sum()
    }

    fn offer(&self, exchange: MirroredExchange) {
        let weight = weight(&exchange);
        let exchange = Arc::new(exchange);
        for listener in &self.listeners {
            let full = listener.state.bytes.fetch_add(weight, Relaxed) > QUEUE_BYTES;
            let sender = listener.sender.read().unwrap_or_else(PoisonError::into_inner);
            let send = |sender: &SyncSender<_>| sender.try_send(Arc::clone(&exchange)).is_ok();
            if full || !sender.as_ref().is_some_and(send) {
                listener.state.bytes.fetch_sub(weight, Relaxed);
                listener.state.dropped.fetch_add(1, Relaxed);
            }
        }
    }
}

fn weight(exchange: &MirroredExchange) -> u64 {
    let responses = exchange.backends.iter().filter_map(|outcome| outcome.result.as_ref().ok());
    let bodies: usize = responses.map(|response| response.body.bytes.len()).sum();
    (bodies + exchange.request.body.bytes.len()) as u64 + EXCHANGE_BYTES
}

/// A running exchange. Dropping the last reference hands it to the listeners.
#[derive(Debug)]
pub(crate) struct ExchangeCollector {
    feed: Arc<ExchangeFeed>,
    ids: RequestIds,
    received_unix_ns: u64,
    client: SocketAddr,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    limit: u64,
    collected: Mutex<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    body: CapturedBody,
    outcomes: Vec<(usize, BackendOutcome)>,
}

impl ExchangeCollector {
    pub(crate) fn new(
        feed: &Arc<ExchangeFeed>,
        received_unix_ns: u64,
        client: SocketAddr,
        request: &RequestHead,
        limit: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            feed: Arc::clone(feed),
            ids: request.ids,
            received_unix_ns,
            client,
            method: request.method().clone(),
            uri: request.uri(),
            headers: request.map(),
            limit,
            collected: Mutex::default(),
        })
    }

    pub(crate) fn body(&self, kept: &BufferedBody, seen: u64, truncated: bool) {
        let body = CapturedBody { bytes: kept.bytes(), truncated, len: seen };
        self.collected.lock().unwrap_or_else(PoisonError::into_inner).body = body;
    }

    /// A slot for a backend's outcome; outcomes are sorted by `order`.
    pub(crate) fn slot(
        self: &Arc<Self>,
        order: usize,
        name: &Arc<str>,
        role: Role,
    ) -> Box<OutcomeSlot> {
        Box::new(OutcomeSlot {
            collector: Arc::clone(self),
            order,
            name: Arc::clone(name),
            role,
            started: Instant::now(),
            connect_ns: 0,
            first_byte_ns: None,
            head: None,
            body: BodyBuffer::default(),
            // Recorded when the slot's owner is dropped: the client's task when the client
            // disconnects, a shadow's when the proxy ends.
            default_failure: match role {
                Role::Master => BackendFailure::ClientGone,
                _ => BackendFailure::NotSent("unfinished"),
            },
            ended: false,
        })
    }
}

impl Drop for ExchangeCollector {
    fn drop(&mut self) {
        let collected = self.collected.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut outcomes = std::mem::take(&mut collected.outcomes);
        outcomes.sort_by_key(|(order, _)| *order);
        self.feed.offer(MirroredExchange {
            ids: self.ids,
            received_unix_ns: self.received_unix_ns,
            client: Some(self.client),
            request: CapturedRequest {
                method: self.method.clone(),
                uri: self.uri.clone(),
                headers: std::mem::take(&mut self.headers),
                body: std::mem::take(&mut collected.body),
            },
            backends: outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
        });
    }
}

/// Collects one backend's outcome of a running exchange.
#[derive(Debug)]
pub(crate) struct OutcomeSlot {
    collector: Arc<ExchangeCollector>,
    order: usize,
    name: Arc<str>,
    role: Role,
    started: Instant,
    connect_ns: u64,
    first_byte_ns: Option<u64>,
    head: Option<(StatusCode, HeaderMap)>,
    body: BodyBuffer,
    default_failure: BackendFailure,
    ended: bool,
}

impl OutcomeSlot {
    pub(crate) fn set_default_failure(&mut self, failure: BackendFailure) {
        self.default_failure = failure;
    }

    /// Restarts the clock of this outcome.
    pub(crate) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// A new connection is open.
    pub(crate) fn connected(&mut self) {
        self.connect_ns = self.elapsed();
    }

    pub(crate) fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.first_byte_ns = Some(self.elapsed());
        self.head = Some((status, headers.clone()));
    }

    /// Records data or trailers. gRPC's trailers, which carry the status of a call, count as
    /// headers; others are ignored.
    pub(crate) fn frame(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.data(data);
        } else if let Some(trailers) = frame.trailers_ref() {
            self.trailers(trailers);
        }
    }

    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) {
        let Some((_, headers)) = &mut self.head else { return };
        let grpc = trailers.iter().filter(|(name, _)| name.as_str().starts_with("grpc-"));
        headers.extend(grpc.map(|(name, value)| (name.clone(), value.clone())));
    }

    pub(crate) fn data(&mut self, data: &Bytes) {
        self.body.take(data, self.collector.limit);
    }

    /// The response is complete, or `cut` at the limit.
    pub(crate) fn done(mut self: Box<Self>, cut: bool) {
        let Some((status, headers)) = self.head.take() else { return };
        let (truncated, len) = (cut || self.body.is_over(), self.body.seen());
        let bytes = self.body.finish().bytes();
        self.put(Ok(BackendResponse {
            status,
            headers,
            body: CapturedBody { bytes, truncated, len },
        }));
    }

    pub(crate) fn failed(mut self: Box<Self>, failure: BackendFailure) {
        self.put(Err(failure));
    }

    fn elapsed(&self) -> u64 {
        nanos(self.started.elapsed())
    }

    fn put(&mut self, result: Result<BackendResponse, BackendFailure>) {
        self.ended = true;
        let outcome = BackendOutcome {
            name: Arc::clone(&self.name),
            role: self.role,
            result,
            connect_ns: self.connect_ns,
            first_byte_ns: self.first_byte_ns,
            total_ns: self.elapsed(),
        };
        let mut collected = self.collector.collected.lock().unwrap_or_else(PoisonError::into_inner);
        collected.outcomes.push((self.order, outcome));
    }
}

impl Drop for OutcomeSlot {
    fn drop(&mut self) {
        if !self.ended {
            let failure = self.default_failure.clone();
            self.put(Err(failure));
        }
    }
}
