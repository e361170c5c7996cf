//! Opening a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use gake_codec::http2::ConnectionLimits;
use gake_codec::http3::StreamRequest;
use gake_core::record::{Fault, Phase};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, ConnectError, Connection, ConnectionIdGenerator, Endpoint, EndpointConfig,
    RecvStream, SendStream, TokioRuntime, TransportConfig, VarInt, ZeroRttAccepted,
};

use super::errors::of_lost;
use super::socket::QuicSocket;
use crate::net::fault;

/// Streams that the server may open: its control stream, QPACK's, and reserved types (RFC 9114,
/// section 6.2.3).
const SERVER_STREAMS: u32 = 8;

#[derive(Debug, Clone)]
pub(crate) struct QuicSettings {
    client: ClientConfig,
    endpoint: EndpointConfig,
}

impl QuicSettings {
    /// The settings of a client, with the flow-control windows of `limits`; `None` if `tls` does not
    /// offer TLS 1.3 or the initial cipher suite of QUIC (AES-128-GCM).
    pub(crate) fn new(tls: Arc<rustls::ClientConfig>, limits: &ConnectionLimits) -> Option<Self> {
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).ok()?));
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(SERVER_STREAMS))
            .stream_receive_window(VarInt::from_u32(limits.stream_window))
            .receive_window(VarInt::from_u32(limits.connection_window))
            .datagram_receive_buffer_size(None)
            // Requests have their own deadlines; the server's idle time-out still applies.
            .max_idle_timeout(None);
        client.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::default();
        // A socket has one connection, which needs no identifier.
        endpoint.cid_generator(|| Box::new(EmptyConnectionIds));
        Some(Self { client, endpoint })
    }
}

#[derive(Debug)]
struct EmptyConnectionIds;

impl ConnectionIdGenerator for EmptyConnectionIds {
    fn generate_cid(&mut self) -> quinn::ConnectionId {
        quinn::ConnectionId::new(&[])
    }

    fn cid_len(&self) -> usize {
        0
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// A request that may be sent as early data; `sent` is called once it is.
pub(crate) struct EarlyCall<'a> {
    pub(crate) request: &'a StreamRequest,
    pub(crate) sent: &'a mut dyn FnMut(),
}

/// The outcome of a request sent as early data.
#[derive(Debug)]
pub(crate) enum EarlyEnd {
    Accepted(SendStream, RecvStream),
    /// The server has not processed it.
    Rejected,
}

/// Opens a connection to `name` at `peer` over `socket`, on the current runtime. Sends `early` with
/// the handshake if a session is resumed and the server allows it.
pub(crate) async fn connect(
    settings: &QuicSettings,
    socket: std::net::UdpSocket,
    (peer, name): (SocketAddr, &str),
    early: Option<EarlyCall<'_>>,
) -> Result<((Connection, Arc<QuicSocket>), Option<EarlyEnd>), Fault> {
    let opened = || -> io::Result<_> {
        let socket = QuicSocket::new(socket)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            settings.endpoint.clone(),
            None,
            Arc::clone(&socket) as Arc<dyn quinn::AsyncUdpSocket>,
            Arc::new(TokioRuntime),
        )?;
        Ok((endpoint, socket))
    };
    let (endpoint, socket) = opened().map_err(|error| fault::of_connect(&error))?;
    let connecting = endpoint.connect_with(settings.client.clone(), peer, name);
    let mut connecting = connecting.map_err(|error| of_begin(&error))?;
    if let Some(early) = early {
        match connecting.into_0rtt() {
            Ok((connection, accepted)) => {
                let end = tokio::select! {
                    biased;
                    end = send_early(&connection, accepted, early) => end?,
                    () = socket.refused() => return Err(Fault::ConnectRefused),
                };
                return Ok(((connection, socket), end));
            }
            Err(without) => connecting = without,
        }
    }
    tokio::select! {
        biased;
        connected = connecting => match connected {
            Ok(connection) => Ok(((connection, socket), None)),
            Err(error) => Err(of_lost(&error, Phase::Connect)),
        },
        () = socket.refused() => Err(Fault::ConnectRefused),
    }
}

/// Sends a request during the handshake and awaits its end; `None` if the request could not be sent.
async fn send_early(
    connection: &Connection,
    accepted: ZeroRttAccepted,
    early: EarlyCall<'_>,
) -> Result<Option<EarlyEnd>, Fault> {
    let sent = send(connection, early.request).await;
    if sent.is_some() {
        (early.sent)();
    }
    let is_accepted = accepted.await;
    match (sent, connection.close_reason()) {
        (Some((send, recv)), _) if is_accepted => Ok(Some(EarlyEnd::Accepted(send, recv))),
        (_, Some(error)) => Err(of_lost(&error, Phase::Connect)),
        (sent, None) => Ok(sent.map(|_| EarlyEnd::Rejected)),
    }
}

/// Sends a request on a new stream.
async fn send(
    connection: &Connection,
    request: &StreamRequest,
) -> Option<(SendStream, RecvStream)> {
    let (mut send, recv) = connection.open_bi().await.ok()?;
    // Replayable requests have no body.
    let [head, _] = request.buffers();
    send.write_chunk(head).await.ok()?;
    send.finish().ok()?;
    Some((send, recv))
}

/// The fault of a connection that cannot be started.
fn of_begin(error: &ConnectError) -> Fault {
    match error {
        ConnectError::InvalidServerName(_) => Fault::Tls("the server name is not valid"),
        ConnectError::InvalidRemoteAddress(_) => Fault::ConnectReset,
        _ => Fault::Quic("the connection could not be started"),
    }
}
