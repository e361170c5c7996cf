//! Serves an HTTP/2 connection, which starts with prior knowledge.

use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::HttpConnection;
use crate::handler::Handler;
use crate::io::CountedStream;

/// Serves requests until the connection ends.
pub(crate) async fn serve<S>(connection: &Arc<HttpConnection>, io: CountedStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let config = &connection.worker.shared.config;
    let mut http = Builder::new(TokioExecutor::new());
    http.max_concurrent_streams(config.h2_max_streams);
    let handler = Handler::new(Arc::clone(connection));
    let mut http = pin!(http.serve_connection(TokioIo::new(io), handler));
    let most = config.goaway_every.unwrap_or(u32::MAX);
    let mut is_ending = false;
    let ended = std::future::poll_fn(|cx| {
        let ended = http.as_mut().poll(cx);
        if ended.is_pending() && connection.requests.begun() >= most && !is_ending {
            is_ending = true;
            http.as_mut().graceful_shutdown();
            return http.as_mut().poll(cx);
        }
        ended
    });
    if ended.await.is_err() {
        connection.worker.counters().malformed.add(1);
    }
}
