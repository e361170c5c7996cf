//! Serving HTTP/3: quinn does QUIC, h3 the protocol on it.

use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, SendStream as _};
use h3::server::{RequestResolver, RequestStream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use quinn::{ConnectionError, Endpoint, EndpointConfig, Incoming, TokioRuntime};

use crate::accepted::Place;
use crate::body::Answer;
use crate::connection::{Connection, Requests};
use crate::cut::Cut;
use crate::handler::Handler;
use crate::io::FlushWatch;
use crate::shared::Shared;
use crate::worker::Worker;

/// Accepts connections on one thread's socket until the lab stops.
pub(crate) async fn accept_all(socket: UdpSocket, worker: Arc<Worker>) {
    let shared = &worker.shared;
    let Ok(endpoint) = endpoint(socket, &worker) else {
        return shared.connections.accept_error();
    };
    loop {
        // A thread to which nobody comes holds no place.
        let Some(incoming) = endpoint.accept().await else { return };
        let permit = match &shared.places {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        let place = Place::take(Some(worker.index), &shared.loads, &shared.connections, permit);
        tokio::spawn(serve(incoming, place, Arc::clone(&worker)));
    }
}

fn endpoint(socket: UdpSocket, worker: &Worker) -> io::Result<Endpoint> {
    let identity = worker.shared.identity.as_ref();
    let config = identity.map(|identity| identity.quic.clone());
    Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime))
}

/// Serves a connection until it ends. `place` comes before what it counts, to be dropped last.
async fn serve(incoming: Incoming, place: Place, worker: Arc<Worker>) {
    let Ok(quic) = open(incoming, &worker).await else {
        return worker.counters().malformed.add(1);
    };
    let peer = Some(quic.remote_address());
    let (flushes, requests) = (Arc::new(FlushWatch::default()), Requests::default());
    let most = worker.shared.config.goaway_every.unwrap_or(u32::MAX);
    let connection = Arc::new(Connection { worker, number: place.number, peer, flushes, requests });
    let opened = h3::server::builder().build(h3_quinn::Connection::new(quic.clone())).await;
    let Ok(mut http): Result<h3::server::Connection<_, Bytes>, _> = opened else { return };
    let (mut accepted, mut is_ending) = (0, false);
    while let Ok(Some(request)) = http.accept().await {
        if is_ending {
            // What GOAWAY named as not handled.
            tokio::spawn(reject(request));
            continue;
        }
        accepted += 1;
        let (connection, quic) = (Arc::clone(&connection), quic.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = answer(request, connection) => {}
                // Nobody waits for the answer any more.
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

/// Makes the handshake. Where requests may come with it, they are answered before its end.
async fn open(incoming: Incoming, worker: &Worker) -> Result<quinn::Connection, ConnectionError> {
    let Shared { identity, config, .. } = &*worker.shared;
    let connecting = match identity {
        Some(identity) => identity.accept_quic(incoming)?,
        None => incoming.accept()?,
    };
    if !config.early_data {
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

/// Answers one request.
async fn answer(request: Resolver, connection: Arc<Connection>) {
    // A client that sends no request has been told so by h3.
    let Ok((request, stream)) = request.resolve_request().await else {
        return connection.worker.counters().malformed.add(1);
    };
    let (mut send, recv) = stream.split();
    let is_head = request.method() == Method::HEAD;
    let (head, ()) = request.into_parts();
    let body = RequestBody { stream: recv, worker: Arc::clone(&connection.worker) };
    let answered =
        Handler::new(Arc::clone(&connection)).reply(Request::from_parts(head, body)).await;
    let sent = match answered {
        Ok(response) => send_response(&mut send, response, is_head, &connection).await,
        Err(cut) => Err(Some(cut)),
    };
    if let Err(Some(cut)) = sent {
        send.stop_stream(match cut {
            Cut::Reset => Code::H3_INTERNAL_ERROR,
            Cut::Close | Cut::Gone => Code::H3_REQUEST_CANCELLED,
        });
    }
}

/// Sends a response; the error has how it was cut, unless the client is gone.
async fn send_response<S: quic::SendStream<Bytes>>(
    send: &mut RequestStream<S, Bytes>,
    response: Response<Answer>,
    is_head: bool,
    connection: &Connection,
) -> Result<(), Option<Cut>> {
    let (mut head, mut body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    send.send_response(Response::from_parts(head, ())).await.map_err(|_| None)?;
    while !is_head && !body.is_end_stream() {
        let next = std::future::poll_fn(|cx| {
            // What was sent has been handed over.
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

/// The body of a request.
struct RequestBody {
    stream: RequestStream<h3_quinn::RecvStream, Bytes>,
    worker: Arc<Worker>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let polled = self.stream.poll_recv_data(cx).map(|came| match came {
            Ok(Some(mut data)) => Some(Ok(data.copy_to_bytes(data.remaining()))),
            Ok(None) => None,
            Err(_) => Some(Err(Cut::Gone)),
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
