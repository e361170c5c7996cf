//! Clients that speak HTTP/2: hyper has the protocol, and each request takes the way with maps of
//! headers, beside the others of its connection and with a watch of its own.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;

use super::client::{Client, Turn, Watched};
use super::service;
use super::shared::count;
use super::watch::Watch;

/// Requests of a connection at once.
const STREAMS: u32 = 128;
/// Bytes of a request's body that may come before they are passed on.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same for all requests of a connection.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Bytes of an answer that wait for the client.
const SEND_BUFFER: usize = 32 << 10;

/// What a client that knows that we speak HTTP/2 begins with, as far as no other request can.
const PREFACE: &[u8] = b"PRI * HTTP/2";

/// Whether a connection begins as one of HTTP/2.
pub(super) fn is_preface(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFACE)
}

/// Serves a connection until the client leaves, asks nothing for a while, or is to leave.
pub(super) async fn serve(client: &Rc<Client>, io: Watched) {
    let worker = &client.worker;
    let streams = Streams::new(client);
    let spawning = streams.clone();
    let service = service_fn(move |request| service::handle(spawning.begin(), request));
    let mut builder = Builder::new(streams.clone());
    builder
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(
            u32::try_from(worker.shared.config.limits.head_bytes).unwrap_or(u32::MAX),
        );
    let mut connection = builder.serve_connection(io, service);
    let mut told = false;
    poll_fn(|cx| {
        client.watch.register(cx);
        if Pin::new(&mut connection).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if worker.is_stopping() && !told {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
            if Pin::new(&mut connection).poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        // Requests have watches of their own.
        let rests = streams.0.open.get() == 0;
        if rests && client.watch.fired() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The requests of one connection, each a task.
#[derive(Clone)]
struct Streams(Rc<State>);

struct State {
    connection: Rc<Client>,
    /// The request whose task hyper starts next, right behind the call of the service.
    next: RefCell<Option<Rc<Client>>>,
    open: Cell<u32>,
    /// Watches of requests that have ended.
    spare: RefCell<Vec<Rc<Watch>>>,
}

/// A request that is under way.
struct Open {
    streams: Streams,
    client: Rc<Client>,
}

impl Streams {
    fn new(client: &Rc<Client>) -> Self {
        Self(Rc::new(State {
            connection: Rc::clone(client),
            next: RefCell::new(None),
            open: Cell::new(0),
            spare: RefCell::default(),
        }))
    }

    /// The client as a new request sees it.
    fn begin(&self) -> Rc<Client> {
        let State { connection, next, spare, .. } = &*self.0;
        let watch = spare.borrow_mut().pop();
        let watch = watch.unwrap_or_else(|| Rc::new(connection.worker.ticker.watch()));
        let stream = Rc::new(connection.stream(watch));
        next.replace(Some(Rc::clone(&stream)));
        stream
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Streams {
    fn execute(&self, future: F) {
        // Nothing else is started: no request becomes a tunnel.
        let Some(client) = self.0.next.take() else { return };
        self.0.open.set(self.0.open.get() + 1);
        self.0.connection.watch.clear();
        let open = Open { streams: self.clone(), client };
        tokio::task::spawn_local(open.run(future));
    }
}

impl Open {
    /// Runs the request, unless whose turn it is takes too long: the stream is reset then.
    async fn run(self, future: impl Future<Output = ()>) {
        let mut future = pin!(future);
        let client = &self.client;
        poll_fn(|cx| {
            if future.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            client.watch.register(cx);
            if client.watch.fired() {
                let counters = client.worker.counters();
                match client.turn() {
                    Turn::Backend => count(&counters.broken_answers),
                    // Also one who does not take the end of an answer that is whole.
                    _ => count(&counters.client_timeouts),
                }
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let State { connection, open, spare, .. } = &*self.streams.0;
        open.set(open.get() - 1);
        if open.get() == 0 {
            connection.watch.set(connection.worker.patience.head);
        }
        self.client.watch.clear();
        spare.borrow_mut().push(Rc::clone(&self.client.watch));
    }
}
