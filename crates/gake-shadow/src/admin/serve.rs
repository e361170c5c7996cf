//! Connections to the admin service: one request each, and nobody keeps another from the kill
//! switch. Who has sent no whole head is in a crowd whose oldest gives way to whoever comes; of
//! those who have, some places are for changes alone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{is_change, page, text};
use crate::control::ProxyControl;
use crate::proxy::client::head_buffer::HeadBuffer;

/// For a whole request head.
const HEAD: Duration = Duration::from_secs(2);
/// Bytes of a head.
const HEAD_BYTES: usize = 8 << 10;
/// For taking the answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Connections without a whole head.
const CROWD: usize = 64;
/// Requests that are answered at once.
const PLACES: usize = 64;
/// More places for changes of those who know the token.
const CHANGES: usize = 8;

/// Those without a whole head, in the order in which they came.
#[derive(Default)]
struct Crowd {
    waiting: RefCell<VecDeque<Rc<Notify>>>,
}

impl Crowd {
    /// Takes somebody in. Who has waited longest is told to go when there are too many.
    fn enter(&self) -> Rc<Notify> {
        let gone = Rc::new(Notify::new());
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(Rc::clone(&gone));
        if waiting.len() > CROWD
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        gone
    }

    fn leave(&self, gone: &Rc<Notify>) {
        self.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, gone));
    }
}

/// A request that is answered, until it is dropped.
struct Place(Rc<Cell<usize>>);

impl Place {
    fn take(taken: &Rc<Cell<usize>>, is_change: bool) -> Option<Self> {
        let places = if is_change { PLACES + CHANGES } else { PLACES };
        (taken.get() < places).then(|| {
            taken.set(taken.get() + 1);
            Self(Rc::clone(taken))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, control: ProxyControl) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (crowd, taken) = (Rc::new(Crowd::default()), Rc::new(Cell::new(0)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let gone = crowd.enter();
        let (control, crowd, taken) = (control.clone(), Rc::clone(&crowd), Rc::clone(&taken));
        tokio::task::spawn_local(async move {
            let opened = opened(stream, &gone).await;
            crowd.leave(&gone);
            if let Some(opened) = opened {
                // A client that breaks off, or takes no answer, is no news.
                let _ = tokio::time::timeout(ANSWER, answer(opened, &control, &taken)).await;
            }
        });
        // Everybody is listened to once before the next comes in.
        tokio::task::yield_now().await;
    }
}

/// Waits for a whole head.
async fn opened(mut stream: TcpStream, gone: &Notify) -> Option<Opened> {
    let mut received = HeadBuffer::new(HEAD_BYTES);
    let head = std::future::poll_fn(|cx| received.poll(&mut stream, cx));
    let came = tokio::select! {
        biased;
        came = tokio::time::timeout(HEAD, head) => came.ok()?.ok()?,
        () = gone.notified() => false,
    };
    came.then(|| Opened { stream, early: received.take() })
}

async fn answer(opened: Opened, control: &ProxyControl, taken: &Rc<Cell<usize>>) {
    let place = RefCell::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        *place.borrow_mut() = Place::take(taken, is_change(control, &request));
        let page = match &*place.borrow() {
            Some(_) => page(control, &request),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once\n"),
        };
        async move { Ok::<_, Infallible>(page) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).header_read_timeout(None).max_buf_size(HEAD_BYTES);
    // It fails when the client breaks off.
    let _ = http.serve_connection(TokioIo::new(opened), service).await;
}

/// A connection whose head has come.
struct Opened {
    stream: TcpStream,
    early: Bytes,
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let most = self.early.len().min(buffer.remaining());
            buffer.put_slice(&self.early.split_to(most));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Opened {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn some_places_are_for_changes_alone() {
        let taken = Rc::new(Cell::new(0));
        let mut places: Vec<_> = std::iter::from_fn(|| Place::take(&taken, false)).collect();
        assert_eq!(places.len(), PLACES);
        let changes: Vec<_> = std::iter::from_fn(|| Place::take(&taken, true)).collect();
        assert_eq!(changes.len(), CHANGES);
        places.pop();
        assert!(Place::take(&taken, false).is_none() && Place::take(&taken, true).is_some());
        drop((places, changes));
        assert_eq!(taken.get(), 0);
    }

    #[test]
    fn who_has_waited_longest_gives_way() {
        let crowd = Crowd::default();
        let waiting: Vec<_> = (0..CROWD + 2).map(|_| crowd.enter()).collect();
        crowd.leave(&waiting[5]);
        let last = crowd.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let is_told = |gone: &Notify| std::pin::pin!(gone.notified()).poll(&mut cx).is_ready();
        let told: Vec<_> = waiting.iter().chain([&last]).map(|gone| &**gone).map(is_told).collect();
        assert_eq!(told.iter().filter(|told| **told).count(), 2, "{told:?}");
        assert!(told[0] && told[1]);
    }
}
