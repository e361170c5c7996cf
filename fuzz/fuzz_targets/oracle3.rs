//! The `h3` crate's client on the bytes of a response stream, as the oracle.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes};
use h3::error::Code;
use h3::quic::{
    Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream, StreamErrorIncoming,
    StreamId, WriteBuf,
};

/// The outcome of a stream.
#[derive(Debug)]
pub enum Answer {
    /// A response: status, header fields, bytes of the body, whether there were trailers.
    Whole { status: u16, fields: Vec<(String, Vec<u8>)>, body_bytes: u64, trailers: bool },
    /// An interim response, which the oracle takes for the final one.
    Interim,
    /// Why there is none.
    Failed(String),
}

/// The server's side: one response, and a control stream with empty SETTINGS.
#[derive(Clone)]
struct Server {
    response: Rc<RefCell<Option<Bytes>>>,
    control: Rc<RefCell<Option<Bytes>>>,
    /// The number of the next stream of the client without a response.
    next: Rc<Cell<u64>>,
}

/// A stream whose bytes are all there, and which takes whatever is sent.
struct Stream {
    id: u64,
    bytes: Option<Bytes>,
    /// Whether it has an end.
    ends: bool,
}

fn id(number: u64) -> StreamId {
    StreamId::try_from(number).expect("a small number")
}

impl RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        match self.bytes.take().filter(|bytes| !bytes.is_empty()) {
            None if !self.ends => Poll::Pending,
            bytes => Poll::Ready(Ok(bytes)),
        }
    }

    fn stop_sending(&mut self, _: u64) {}

    fn recv_id(&self) -> StreamId {
        id(self.id)
    }
}

impl SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, _: T) -> Result<(), StreamErrorIncoming> {
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, _: u64) {}

    fn send_id(&self) -> StreamId {
        id(self.id)
    }
}

impl OpenStreams<Bytes> for Server {
    type BidiStream = Stream;
    type SendStream = Stream;

    fn poll_open_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        let bytes = self.response.borrow_mut().take();
        Poll::Ready(Ok(Stream { id: 0, bytes, ends: true }))
    }

    fn poll_open_send(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, StreamErrorIncoming>> {
        let id = self.next.replace(self.next.get() + 4);
        Poll::Ready(Ok(Stream { id, bytes: None, ends: false }))
    }

    fn close(&mut self, _: Code, _: &[u8]) {}
}

impl Connection<Bytes> for Server {
    type RecvStream = Stream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        match self.control.borrow_mut().take() {
            Some(bytes) => Poll::Ready(Ok(Stream { id: 3, bytes: Some(bytes), ends: false })),
            None => Poll::Pending,
        }
    }

    fn poll_accept_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        Poll::Pending
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

/// How the oracle reads `bytes` as the response to a GET request, with header fields of at most
/// `field_bytes`.
pub fn judge(bytes: &[u8], field_bytes: u64) -> Answer {
    let server = Server {
        response: Rc::new(RefCell::new(Some(Bytes::copy_from_slice(bytes)))),
        control: Rc::new(RefCell::new(Some(Bytes::from_static(&[0, 4, 0])))),
        next: Rc::new(Cell::new(2)),
    };
    let mut asking = pin!(ask(server, field_bytes));
    match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer,
        Poll::Ready(Err(why)) => Answer::Failed(why),
        Poll::Pending => Answer::Failed("it waits".to_owned()),
    }
}

async fn ask(server: Server, field_bytes: u64) -> Result<Answer, String> {
    let mut builder = h3::client::builder();
    builder.send_grease(false).max_field_section_size(field_bytes);
    let built = builder.build::<_, _, Bytes>(server).await;
    let (_connection, mut sender) = built.map_err(|error| error.to_string())?;
    let request = http::Request::get("https://a.test/").body(()).map_err(|e| e.to_string())?;
    let stream = sender.send_request(request).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    stream.finish().await.map_err(|error| error.to_string())?;
    let head = stream.recv_response().await.map_err(|error| error.to_string())?;
    if head.status().is_informational() {
        return Ok(Answer::Interim);
    }
    let mut body_bytes = 0;
    while let Some(part) = stream.recv_data().await.map_err(|error| error.to_string())? {
        body_bytes += part.remaining() as u64;
    }
    let trailers = stream.recv_trailers().await.map_err(|error| error.to_string())?;
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    Ok(Answer::Whole {
        status: head.status().as_u16(),
        fields: head.headers().iter().map(field).collect(),
        body_bytes,
        trailers: trailers.is_some(),
    })
}
