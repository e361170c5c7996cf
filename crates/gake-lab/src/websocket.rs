//! Serving a WebSocket: every message comes back. Each is a request like any other: it waits for a
//! thread, takes its service time, and is counted. Pings are counted and answered at once. The
//! upgrade itself is not counted.

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

use crate::abort::Cut;
use crate::connection::Connection;
use crate::flight::Flight;
use crate::io::Counted;
use crate::pool;
use crate::routes::{self, Route};

/// The status that answered messages are counted under: that of the upgrade.
const OPEN: u16 = 101;

/// Bytes of the read buffer of a session. The library's own default is 128 KB.
const READ_BUFFER: usize = 4096;

/// Serves messages to the session's end. Returns the stream if it is to be reset.
pub(crate) async fn serve<S>(connection: &Arc<Connection>, io: Counted<S>) -> Option<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut delay = Duration::ZERO;
    #[expect(clippy::result_large_err, reason = "the signature is the library's")]
    let look = |request: &Request, response: Response| match routes::message_delay(request.uri()) {
        Ok(asked) => {
            delay = asked;
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
            Err(Cut::Reset) => return Some(session.into_inner().stream),
            Err(Cut::Close | Cut::Gone) => return None,
        }
    }
}

/// Answers the next message.
async fn echo<S>(
    connection: &Arc<Connection>,
    session: &mut WebSocketStream<Counted<S>>,
    delay: Duration,
) -> Result<(), Cut>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let worker = &connection.worker;
    let message = session.next().await.ok_or(Cut::Gone)?.map_err(|_| Cut::Gone)?;
    let is_ping = matches!(message, Message::Ping(_));
    if !is_ping && !message.is_text() && !message.is_binary() {
        return Ok(());
    }
    connection.requests.begin();
    worker.begin(Route::WebSocket);
    let mut flight = Flight::new(connection);
    if worker.shared.draw_reset() {
        flight.cut();
        return Err(Cut::Reset);
    }
    if is_ping {
        // The library sends the pong.
        session.flush().await.map_err(|_| Cut::Gone)?;
        flight.answered(OPEN);
        return Ok(());
    }
    let Some(place) = pool::place(worker) else {
        // A message has no status to refuse it with: the session ends.
        let frame = CloseFrame { code: CloseCode::Again, reason: "the queue is full".into() };
        let _ = session.close(Some(frame)).await;
        flight.cut();
        return Err(Cut::Close);
    };
    flight.hold(pool::hold(worker, delay, place).await?);
    session.send(message).await.map_err(|_| Cut::Gone)?;
    flight.answered(OPEN);
    Ok(())
}
