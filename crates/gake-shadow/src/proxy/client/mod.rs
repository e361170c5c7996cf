//! What the requests of one client's connection share, and whose turn it is.

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

use crate::proxy::deadline::Deadline;
use crate::proxy::policy::forwarded::ClientOrigin;
use crate::proxy::worker::ProxyWorker;

/// What the requests of one connection share.
pub(crate) struct ClientState {
    pub(crate) worker: Rc<ProxyWorker>,
    pub(crate) peer: SocketAddr,
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) origin: RefCell<ClientOrigin>,
    waiting_on: Cell<WaitingOn>,
}

/// Who has to do something next, and is to blame when it takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingOn {
    /// The client may ask, or not.
    Idle,
    /// The client must send more of its body, or take more of the answer.
    Client,
    /// The client broke off in the middle of its body, or sent one that is not valid.
    ClientAborted,
    /// The backend must take more of the request, or send more of the answer.
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
        Self { worker, peer, deadline, origin, waiting_on }
    }

    /// Counts names of a request that were taken out for their characters.
    pub(crate) fn note_odd(&self, names: u64) {
        if names > 0 {
            self.worker.counters().odd_names.fetch_add(names, Relaxed);
        }
    }

    /// A piece of a request's body, or the fields behind it without what may not stand there.
    pub(crate) fn cleaned(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_trailers() {
            Ok(mut trailers) => {
                self.clean_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        }
    }

    /// Takes out of the fields behind a body what may not stand there.
    pub(crate) fn clean_trailers(&self, trailers: &mut HeaderMap) {
        self.note_odd(self.worker.shared.inbound.clean_trailers(trailers));
    }

    /// A request has come, its head or all of it; it is the backend's turn.
    pub(crate) fn request_received(&self) {
        self.waiting_on.set(WaitingOn::Backend);
        self.deadline.set(self.worker.timeout_ticks.first_byte);
    }

    /// A piece of the request's body has come.
    pub(crate) fn body_received(&self) {
        self.waiting_on.set(WaitingOn::Backend);
        self.deadline.set(self.worker.timeout_ticks.client);
    }

    /// The next piece of the request's body has not come yet.
    pub(crate) fn body_starved(&self) {
        self.waiting_on.set(WaitingOn::Client);
    }

    /// No more of the request's body will come.
    pub(crate) fn body_aborted(&self) {
        self.waiting_on.set(WaitingOn::ClientAborted);
    }

    /// Whose turn it is.
    pub(crate) fn waiting_on(&self) -> WaitingOn {
        self.waiting_on.get()
    }

    /// The answer's body begins to flow, as soon as the client takes it.
    pub(crate) fn response_begun(&self) {
        self.waiting_on.set(WaitingOn::Client);
        self.deadline.set(self.worker.timeout_ticks.idle);
    }

    /// A piece of the answer has come.
    pub(crate) fn response_received(&self) {
        self.waiting_on.set(WaitingOn::Client);
        self.deadline.extend();
    }

    /// The next piece of the answer has not come yet.
    pub(crate) fn response_starved(&self) {
        self.waiting_on.set(WaitingOn::Backend);
    }

    /// The answer is whole; the next request may come.
    pub(crate) fn response_sent(&self) {
        self.waiting_on.set(WaitingOn::Idle);
        self.worker.mirror.response_sent();
        self.deadline.set(self.worker.timeout_ticks.head);
    }

    /// The same client as one of several requests at once sees it.
    pub(crate) fn stream(&self, deadline: Rc<Deadline>) -> Self {
        Self {
            worker: Rc::clone(&self.worker),
            peer: self.peer,
            deadline,
            origin: self.origin.clone(),
            waiting_on: Cell::new(WaitingOn::Idle),
        }
    }
}
