//! The clients' side: connections, requests, responses.

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod date;
pub(crate) mod direct;
pub(crate) mod frame_path;
pub(crate) mod head_buffer;
pub(crate) mod incoming;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod response_writer;
pub(crate) mod side;
pub(crate) mod transaction;
pub(crate) mod tunnel;
pub(crate) mod upload;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use crate::exchange::RequestIds;
use crate::message::head::RequestHead;
use crate::proxy::deadline::Deadline;
use crate::proxy::policy::forwarded::ClientOrigin;
use crate::proxy::worker::ProxyWorker;

/// The state of a client's connection, shared by its requests.
pub(crate) struct ClientState {
    pub(crate) worker: Rc<ProxyWorker>,
    pub(crate) peer: SocketAddr,
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) origin: RefCell<ClientOrigin>,
    waiting_on: Cell<WaitingOn>,
    connection: u64,
    /// Requests so far, on all streams.
    requests: Rc<Cell<u64>>,
}

/// The peer that must act next, and to which a timeout is attributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingOn {
    /// Neither: no request is running.
    Idle,
    /// The client must send more of its body, or read more of the response.
    Client,
    /// Neither: the client aborted its body, or sent an invalid one.
    ClientAborted,
    /// The backend must read more of the request, or send more of the response.
    Backend,
}

impl ClientState {
    pub(crate) fn new(
        worker: Rc<ProxyWorker>,
        peer: SocketAddr,
        deadline: Rc<Deadline>,
        origin: ClientOrigin,
    ) -> Self {
        let (origin, waiting_on) = (RefCell::new(origin), Cell::new(WaitingOn::Idle));
        let (connection, requests) = (worker.connection_id(), Rc::default());
        Self { worker, peer, deadline, origin, waiting_on, connection, requests }
    }

    /// Numbers a request that was read.
    pub(crate) fn number(&self, head: &mut RequestHead) {
        self.requests.set(self.requests.get() + 1);
        let (connection, sequence) = (self.connection, self.requests.get());
        head.ids = RequestIds { id: self.worker.request_id(), connection, sequence };
    }

    pub(crate) fn note_odd(&self, names: u64) {
        if names > 0 {
            self.worker.counters().odd_names.fetch_add(names, Relaxed);
        }
    }

    /// Cleans a frame of a request's body: see [`clean_trailers`](Self::clean_trailers).
    pub(crate) fn cleaned(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_trailers() {
            Ok(mut trailers) => {
                self.clean_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        }
    }

    /// Removes trailers that clients may not send.
    pub(crate) fn clean_trailers(&self, trailers: &mut HeaderMap) {
        self.note_odd(self.worker.shared.inbound.clean_trailers(trailers));
    }

    /// A request's head or all of it has been received: wait for the backend.
    pub(crate) fn request_received(&self) {
        self.waiting_on.set(WaitingOn::Backend);
        self.deadline.set(self.worker.timeout_ticks.first_byte);
    }

    pub(crate) fn body_received(&self) {
        self.waiting_on.set(WaitingOn::Backend);
        self.deadline.set(self.worker.timeout_ticks.client);
    }

    /// No body data is available: wait for the client.
    pub(crate) fn body_starved(&self) {
        self.waiting_on.set(WaitingOn::Client);
    }

    pub(crate) fn body_aborted(&self) {
        self.waiting_on.set(WaitingOn::ClientAborted);
    }

    pub(crate) fn waiting_on(&self) -> WaitingOn {
        self.waiting_on.get()
    }

    /// The response has begun: wait for the client to read it.
    pub(crate) fn response_begun(&self) {
        self.waiting_on.set(WaitingOn::Client);
        self.deadline.set(self.worker.timeout_ticks.idle);
    }

    pub(crate) fn response_received(&self) {
        self.waiting_on.set(WaitingOn::Client);
        self.deadline.extend();
    }

    /// No response data is available: wait for the backend.
    pub(crate) fn response_starved(&self) {
        self.waiting_on.set(WaitingOn::Backend);
    }

    /// The response is complete; the next request may come.
    pub(crate) fn response_sent(&self) {
        self.waiting_on.set(WaitingOn::Idle);
        self.worker.mirror.response_sent();
        self.deadline.set(self.worker.timeout_ticks.head);
    }

    /// The state for one of several concurrent requests (HTTP/2).
    pub(crate) fn stream(&self, deadline: Rc<Deadline>) -> Self {
        Self {
            worker: Rc::clone(&self.worker),
            peer: self.peer,
            deadline,
            origin: self.origin.clone(),
            waiting_on: Cell::new(WaitingOn::Idle),
            connection: self.connection,
            requests: Rc::clone(&self.requests),
        }
    }
}
