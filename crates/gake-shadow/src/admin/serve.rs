//! Connections to the admin service, one request each. Idle clients cannot block the kill switch:
//! of connections without a complete head the oldest is evicted when there are too many, and some
//! request slots are reserved for changes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Cursor;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{is_change, page, text};
use crate::control::ProxyControl;
use crate::proxy::client::head_buffer::HeadBuffer;

const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
const HEAD_BYTES: usize = 8 << 10;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections without a complete head.
const PENDING_MAX: usize = 64;
/// Concurrent requests.
const SLOTS: usize = 64;
/// Additional ones reserved for authorised changes.
const CHANGE_SLOTS: usize = 8;

/// Connections without a complete head, oldest first.
#[derive(Default)]
struct PendingHeads {
    waiting: RefCell<VecDeque<Rc<Notify>>>,
}

impl PendingHeads {
    /// Adds a connection, evicting the oldest beyond the bound.
    fn enter(&self) -> Rc<Notify> {
        let evicted = Rc::new(Notify::new());
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(Rc::clone(&evicted));
        if waiting.len() > PENDING_MAX
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        evicted
    }

    fn leave(&self, evicted: &Rc<Notify>) {
        self.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, evicted));
    }
}

/// Held while a request is served.
struct RequestSlot(Rc<Cell<usize>>);

impl RequestSlot {
    fn take(taken: &Rc<Cell<usize>>, is_change: bool) -> Option<Self> {
        let slots = if is_change { SLOTS + CHANGE_SLOTS } else { SLOTS };
        (taken.get() < slots).then(|| {
            taken.set(taken.get() + 1);
            Self(Rc::clone(taken))
        })
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

pub(crate) async fn serve(listener: TcpListener, control: ProxyControl) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (pending, taken) = (Rc::new(PendingHeads::default()), Rc::new(Cell::new(0)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let evicted = pending.enter();
        let (control, pending, taken) = (control.clone(), Rc::clone(&pending), Rc::clone(&taken));
        tokio::task::spawn_local(async move {
            let connection = read_head(stream, &evicted).await;
            pending.leave(&evicted);
            if let Some(connection) = connection {
                // A client that disconnects or does not read is no error.
                let response = respond(connection, &control, &taken);
                let _ = tokio::time::timeout(RESPONSE_TIMEOUT, response).await;
            }
        });
        // Lets every connection read once before the next is accepted.
        tokio::task::yield_now().await;
    }
}

async fn read_head(mut stream: TcpStream, evicted: &Notify) -> Option<(TcpStream, Bytes)> {
    let mut received = HeadBuffer::new(HEAD_BYTES);
    let head = std::future::poll_fn(|cx| received.poll(&mut stream, cx));
    let is_complete = tokio::select! {
        biased;
        read = tokio::time::timeout(HEAD_TIMEOUT, head) => read.ok()?.ok()?,
        () = evicted.notified() => false,
    };
    is_complete.then(|| (stream, received.take()))
}

/// Serves one request; `early` is what was already read of it.
async fn respond(
    (stream, early): (TcpStream, Bytes),
    control: &ProxyControl,
    taken: &Rc<Cell<usize>>,
) {
    let slot = RefCell::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        *slot.borrow_mut() = RequestSlot::take(taken, is_change(control, &request));
        let page = match &*slot.borrow() {
            Some(_) => page(control, &request),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests\n"),
        };
        async move { Ok::<_, Infallible>(page) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).header_read_timeout(None).max_buf_size(HEAD_BYTES);
    // An error means that the client has disconnected.
    let (read, write) = stream.into_split();
    let io = tokio::io::join(Cursor::new(early).chain(read), write);
    let _ = http.serve_connection(TokioIo::new(io), service).await;
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn some_slots_are_reserved_for_changes() {
        let taken = Rc::new(Cell::new(0));
        let mut slots: Vec<_> = std::iter::from_fn(|| RequestSlot::take(&taken, false)).collect();
        assert_eq!(slots.len(), SLOTS);
        let changes: Vec<_> = std::iter::from_fn(|| RequestSlot::take(&taken, true)).collect();
        assert_eq!(changes.len(), CHANGE_SLOTS);
        slots.pop();
        assert!(
            RequestSlot::take(&taken, false).is_none() && RequestSlot::take(&taken, true).is_some()
        );
        drop((slots, changes));
        assert_eq!(taken.get(), 0);
    }

    #[test]
    fn the_oldest_connection_is_evicted() {
        let pending = PendingHeads::default();
        let waiting: Vec<_> = (0..PENDING_MAX + 2).map(|_| pending.enter()).collect();
        pending.leave(&waiting[5]);
        let last = pending.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let is_notified =
            |evicted: &Notify| std::pin::pin!(evicted.notified()).poll(&mut cx).is_ready();
        let notified: Vec<_> =
            waiting.iter().chain([&last]).map(|evicted| &**evicted).map(is_notified).collect();
        assert_eq!(notified.iter().filter(|done| **done).count(), 2, "{notified:?}");
        assert!(notified[0] && notified[1]);
    }
}
