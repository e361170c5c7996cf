//! HTTP/3: quinn for QUIC, h3 for the protocol above it.

use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, SendStream as _};
use h3::server::{RequestResolver, RequestStream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    ConnectionError, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime,
    TransportConfig,
};

use crate::abort::Abort;
use crate::accepted::ConnectionSlot;
use crate::body::ResponseBody;
use crate::connection::{HttpConnection, RequestCounts};
use crate::handler::Handler;
use crate::io::FlushWatch;
use crate::shared::Shared;
use crate::tls::TlsIdentity;
use crate::worker::Worker;

/// Most concurrent streams per connection, unless the limit is lower: quinn reserves memory for
/// each when a connection begins.
const STREAMS: u32 = 1_024;

/// The keep-alive interval while a response takes time: both sides drop a connection that is silent
/// for 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Accepts connections on one thread's socket until the lab stops.
pub(crate) async fn accept_all(socket: UdpSocket, worker: Arc<Worker>) {
    let shared = &worker.shared;
    let Some(identity) = &shared.identity else { return };
    let early_bytes = if shared.config.early_data { u32::MAX } else { 0 };
    let settings = |early_bytes| settings(identity, shared.config.h2_max_streams, early_bytes);
    let (Some(config), Some(rejecting)) = (settings(early_bytes), settings(0)) else {
        return shared.connections.accept_error();
    };
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime);
    let Ok(endpoint) = endpoint else {
        return shared.connections.accept_error();
    };
    // For connections whose early data is rejected.
    let rejecting = Arc::new(rejecting);
    loop {
        // Accept first: a thread without clients holds no permit.
        let Some(incoming) = endpoint.accept().await else { return };
        let permit = match &shared.places {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        let slot =
            ConnectionSlot::take(Some(worker.index), &shared.loads, &shared.connections, permit);
        tokio::spawn(serve(incoming, slot, Arc::clone(&worker), Arc::clone(&rejecting)));
    }
}

/// The QUIC settings, with the certificate and session store of TLS over TCP; `None` without the
/// cipher suite that QUIC starts with.
fn settings(
    identity: &TlsIdentity,
    streams: Option<u32>,
    early_bytes: u32,
) -> Option<ServerConfig> {
    let mut config = (*identity.config).clone();
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.max_early_data_size = early_bytes;
    let crypto = QuicServerConfig::try_from(config).ok()?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(streams.unwrap_or(STREAMS).min(STREAMS).into());
    transport.keep_alive_interval(Some(KEEP_ALIVE));
    let mut settings = ServerConfig::with_crypto(Arc::new(crypto));
    settings.transport_config(Arc::new(transport));
    Some(settings)
}

/// Serves a connection until it ends. `slot` is declared first, so that it is dropped last.
async fn serve(
    incoming: Incoming,
    slot: ConnectionSlot,
    worker: Arc<Worker>,
    rejecting: Arc<ServerConfig>,
) {
    let Ok(quic) = open(incoming, &worker.shared, rejecting).await else {
        return worker.counters().malformed.add(1);
    };
    let peer = Some(quic.remote_address());
    let (flushes, requests) = (Arc::new(FlushWatch::default()), RequestCounts::default());
    let most = worker.shared.config.goaway_every.unwrap_or(u32::MAX);
    let connection =
        Arc::new(HttpConnection { worker, number: slot.number, peer, flushes, requests });
    let opened = h3::server::builder().build(h3_quinn::Connection::new(quic.clone())).await;
    let Ok(mut http): Result<h3::server::Connection<_, Bytes>, _> = opened else { return };
    let (mut accepted, mut is_ending) = (0, false);
    while let Ok(Some(request)) = http.accept().await {
        if is_ending {
            // Streams that GOAWAY excluded.
            tokio::spawn(reject(request));
            continue;
        }
        accepted += 1;
        let (connection, quic) = (Arc::clone(&connection), quic.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = serve_request(request, connection) => {}
                // The client has gone.
                _ = quic.closed() => {}
            }
        });
        if accepted >= most {
            is_ending = true;
            // h3 names the stream after the last one it accepted.
            if http.shutdown(1).await.is_err() {
                return;
            }
        }
    }
}

/// Completes the handshake, or returns before its end where requests may come with it.
async fn open(
    incoming: Incoming,
    shared: &Shared,
    rejecting: Arc<ServerConfig>,
) -> Result<quinn::Connection, ConnectionError> {
    let connecting = match shared.identity.as_ref().is_some_and(TlsIdentity::rejects_next) {
        true => incoming.accept_with(rejecting)?,
        false => incoming.accept()?,
    };
    if !shared.config.early_data {
        return connecting.await;
    }
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => connecting.await,
    }
}

type Resolver = RequestResolver<h3_quinn::Connection, Bytes>;

async fn reject(request: Resolver) {
    let mut stream = request.frame_stream;
    stream.reset(Code::H3_REQUEST_REJECTED.value());
}

async fn serve_request(request: Resolver, connection: Arc<HttpConnection>) {
    // An incomplete request was rejected by h3 already.
    let Ok((request, stream)) = request.resolve_request().await else {
        return connection.worker.counters().malformed.add(1);
    };
    let (mut send, recv) = stream.split();
    let is_head = request.method() == Method::HEAD;
    let (head, ()) = request.into_parts();
    let body = RequestBody { stream: recv, worker: Arc::clone(&connection.worker) };
    let response =
        Handler::new(Arc::clone(&connection)).reply(Request::from_parts(head, body)).await;
    let sent = match response {
        Ok(response) => send_response(&mut send, response, is_head, &connection).await,
        Err(cut) => Err(Some(cut)),
    };
    if let Err(Some(cut)) = sent {
        send.stop_stream(match cut {
            Abort::Reset => Code::H3_INTERNAL_ERROR,
            Abort::Close | Abort::Gone => Code::H3_REQUEST_CANCELLED,
        });
    }
}

/// Sends a response; the error says how it was aborted, `None` when the client has gone.
async fn send_response<S: quic::SendStream<Bytes>>(
    send: &mut RequestStream<S, Bytes>,
    response: Response<ResponseBody>,
    is_head: bool,
    connection: &HttpConnection,
) -> Result<(), Option<Abort>> {
    let (mut head, mut body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    send.send_response(Response::from_parts(head, ())).await.map_err(|_| None)?;
    while !is_head && !body.is_end_stream() {
        let next = std::future::poll_fn(|cx| {
            // Everything so far has been handed over.
            connection.flushes.flushed();
            match Pin::new(&mut body).poll_frame(cx) {
                Poll::Pending => {
                    connection.flushes.flushed();
                    Pin::new(&mut body).poll_frame(cx)
                }
                ready => ready,
            }
        });
        let Some(frame) = next.await else { break };
        match frame.map_err(Some)?.into_data() {
            Ok(data) => {
                connection.worker.counters().bytes_out.add(data.len() as u64);
                send.send_data(data).await.map_err(|_| None)?;
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return send.send_trailers(trailers).await.map_err(|_| None);
                }
            }
        }
    }
    send.finish().await.map_err(|_| None)
}

struct RequestBody {
    stream: RequestStream<h3_quinn::RecvStream, Bytes>,
    worker: Arc<Worker>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let polled = self.stream.poll_recv_data(cx).map(|came| match came {
            Ok(Some(mut data)) => Some(Ok(data.copy_to_bytes(data.remaining()))),
            Ok(None) => None,
            Err(_) => Some(Err(Abort::Gone)),
        });
        polled.map(|came| {
            came.map(|data| {
                data.map(|data| {
                    self.worker.counters().bytes_in.add(data.len() as u64);
                    Frame::data(data)
                })
            })
        })
    }
}
