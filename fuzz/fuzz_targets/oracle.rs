//! The `h2` crate's client on bytes of a server, as the oracle.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::ResponseFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The outcome of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// A whole response: status, header fields without pseudo-headers, bytes of the body.
    Whole(u16, Vec<(String, Vec<u8>)>, u64),
    /// A reset, or something malformed.
    Failed,
    /// Nothing yet.
    Pending,
}

/// The outcome of a connection.
#[derive(Debug)]
pub struct Verdict {
    /// The code of the error that ended it, if one did.
    pub broken: Option<u32>,
    /// Each stream's response, in order.
    pub answers: Vec<Answer>,
}

/// A server whose bytes are all there, and which reads whatever is sent.
struct Server<'a> {
    bytes: &'a [u8],
    /// Whether the requests are sent, so that it may respond.
    is_asked: Rc<Cell<bool>>,
}

impl AsyncRead for Server<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() || !self.is_asked.get() {
            return Poll::Pending;
        }
        let (now, later) = self.bytes.split_at(self.bytes.len().min(buf.remaining()));
        buf.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What the oracle makes of `bytes` after `streams` GET requests.
pub fn judge(bytes: &[u8], streams: usize, window: u32) -> Verdict {
    let mut cx = Context::from_waker(Waker::noop());
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(window)
        .initial_connection_window_size(1 << 30)
        .max_header_list_size(1 << 20);
    let is_asked = Rc::new(Cell::new(false));
    let server = Server { bytes, is_asked: Rc::clone(&is_asked) };
    let mut handshake = pin!(builder.handshake::<_, Bytes>(server));
    let Poll::Ready(Ok((sender, connection))) = handshake.as_mut().poll(&mut cx) else {
        return Verdict { broken: Some(0), answers: Vec::new() };
    };
    let (mut sender, mut connection) = (sender, pin!(connection));
    let request = || http::Request::get("http://a.test/").body(()).expect("a plain request");
    let mut responses: Vec<ResponseFuture> = (0..streams)
        .filter_map(|_| sender.send_request(request(), true).ok().map(|(response, _)| response))
        .collect();
    let _ = connection.as_mut().poll(&mut cx);
    is_asked.set(true);
    let mut broken = None;
    // Frames that the client sends on its own are sent by the next poll.
    for _ in 0..4 {
        match connection.as_mut().poll(&mut cx) {
            Poll::Ready(Err(error)) => {
                broken = Some(error.reason().map_or(u32::MAX, u32::from));
                break;
            }
            Poll::Ready(Ok(())) => break,
            Poll::Pending => {}
        }
    }
    let answers = responses.iter_mut().map(|response| answer(response, &mut cx)).collect();
    Verdict { broken, answers }
}

fn answer(response: &mut ResponseFuture, cx: &mut Context<'_>) -> Answer {
    let (head, mut body) = match Pin::new(response).poll(cx) {
        Poll::Pending => return Answer::Pending,
        Poll::Ready(Err(_)) => return Answer::Failed,
        Poll::Ready(Ok(response)) => response.into_parts(),
    };
    let mut bytes = 0;
    loop {
        match body.poll_data(cx) {
            Poll::Pending => return Answer::Pending,
            Poll::Ready(Some(Err(_))) => return Answer::Failed,
            Poll::Ready(Some(Ok(part))) => bytes += part.len() as u64,
            Poll::Ready(None) => break,
        }
    }
    match body.poll_trailers(cx) {
        Poll::Pending => return Answer::Pending,
        Poll::Ready(Err(_)) => return Answer::Failed,
        Poll::Ready(Ok(_)) => {}
    }
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    let mut fields: Vec<_> = head.headers.iter().map(field).collect();
    fields.sort();
    Answer::Whole(head.status.as_u16(), fields, bytes)
}
