//! A WebSocket that echoes every message. Each message is an ordinary request: it waits for a
//! worker, takes its service time, and is counted. Pings are counted and ponged without a delay.
//! The upgrade itself is not counted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use crate::abort::Abort;
use crate::connection::HttpConnection;
use crate::flight::Flight;
use crate::io::CountedStream;
use crate::pool;
use crate::routes::{self, Route};

/// The status that messages are counted under: that of the upgrade.
const OPEN: u16 = 101;

/// Bytes of a session's read buffer. The library's default is 128 KB.
const READ_BUFFER: usize = 4096;

/// Serves messages until the session ends. Returns the stream if it must be reset.
pub(crate) async fn serve<S>(connection: &Arc<HttpConnection>, io: CountedStream<S>) -> Option<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut delay = Duration::ZERO;
    #[expect(clippy::result_large_err, reason = "the signature is the library's")]
    let look = |request: &Request, response: Response| match routes::message_delay(request.uri()) {
        Ok(duration) => {
            delay = duration;
            Ok(response)
        }
        Err(bad) => {
            let mut refusal = ErrorResponse::new(Some(format!("{bad}\n")));
            *refusal.status_mut() = StatusCode::BAD_REQUEST;
            Err(refusal)
        }
    };
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
    let accepted = accept_hdr_async_with_config(io, look, Some(config)).await;
    let Ok(mut session) = accepted else {
        connection.worker.counters().malformed.add(1);
        return None;
    };
    loop {
        match echo(connection, &mut session, delay).await {
            Ok(()) => {}
            Err(Abort::Reset) => return Some(session.into_inner().stream),
            Err(Abort::Close | Abort::Gone) => return None,
        }
    }
}

async fn echo<S>(
    connection: &Arc<HttpConnection>,
    session: &mut WebSocketStream<CountedStream<S>>,
    delay: Duration,
) -> Result<(), Abort>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let worker = &connection.worker;
    let message = session.next().await.ok_or(Abort::Gone)?.map_err(|_| Abort::Gone)?;
    let is_ping = matches!(message, Message::Ping(_));
    if !is_ping && !message.is_text() && !message.is_binary() {
        return Ok(());
    }
    connection.requests.begin();
    worker.begin(Route::WebSocket);
    let mut flight = Flight::new(connection);
    if worker.shared.draw_reset() {
        flight.cut();
        return Err(Abort::Reset);
    }
    if is_ping {
        // The library sends the pong.
        session.flush().await.map_err(|_| Abort::Gone)?;
        flight.responded(OPEN);
        return Ok(());
    }
    let Some(permit) = pool::admit(worker) else {
        // A message has no status for a rejection: the session ends.
        let frame = CloseFrame { code: CloseCode::Again, reason: "the queue is full".into() };
        let _ = session.close(Some(frame)).await;
        flight.cut();
        return Err(Abort::Close);
    };
    flight.hold(pool::hold(worker, delay, permit).await?);
    session.send(message).await.map_err(|_| Abort::Gone)?;
    flight.responded(OPEN);
    Ok(())
}
