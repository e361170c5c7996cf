//! A user's connection as one to a database.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use gake_k6::user::dial::UserStream;
use gake_sql::{Dsn, SqlTransport};
use gake_wire::StreamTls;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};

/// A connection, and the settings of TLS, which starts once the server has agreed to it.
#[derive(Debug)]
pub(super) struct UserTransport {
    stream: BufReader<UserStream>,
    tls: Option<StreamTls>,
}

impl UserTransport {
    pub(super) fn new(stream: UserStream, tls: Option<StreamTls>) -> Self {
        Self { stream: BufReader::new(stream), tls }
    }
}

impl SqlTransport for UserTransport {
    async fn secure(self, _: &Dsn) -> Result<Self, String> {
        // Bytes in clear text could have been injected.
        if !self.stream.buffer().is_empty() {
            return Err("the server sent data before TLS".to_owned());
        }
        let Some(tls) = &self.tls else { return Err("TLS was not set up".to_owned()) };
        let stream = self.stream.into_inner().secure(tls).await?;
        Ok(Self { stream: BufReader::new(stream), tls: None })
    }

    fn farewell(&self, bytes: &[u8]) {
        self.stream.get_ref().inner().try_write(bytes);
    }

    fn is_open_to_listeners(&self) -> bool {
        !self.stream.get_ref().inner().is_secure()
    }

    fn has_ended(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.stream).poll_fill_buf(&mut cx) {
            Poll::Ready(Ok(bytes)) => bytes.is_empty(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }
}

impl AsyncRead for UserTransport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for UserTransport {
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
