//! QUIC servers that break connections and streams in every way.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gake_core::record::{ErrorCode, Fault};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, SendStream,
    TokioRuntime, VarInt,
};

use crate::client::{fault_of, on_runtime, status_of};
use crate::http3::{get, settings};

/// The configuration of a server.
struct Server {
    endpoint: EndpointConfig,
    alpn: &'static [u8],
}

impl Default for Server {
    fn default() -> Self {
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(|| Box::new(UnsignedConnectionIds));
        Self { endpoint, alpn: b"h3" }
    }
}

/// Connection ids that another endpoint with the same key accepts as its own. By default quinn
/// signs them with a key of the endpoint, and ignores the ids of other endpoints.
#[derive(Debug)]
struct UnsignedConnectionIds;

impl ConnectionIdGenerator for UnsignedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ConnectionId::new(&NEXT.fetch_add(1, Relaxed).to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        size_of::<u64>()
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl Server {
    /// An endpoint on the current runtime, at `addr` or anywhere.
    fn listen(&self, addr: Option<SocketAddr>) -> Endpoint {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![self.alpn.to_vec()];
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let socket = UdpSocket::bind(addr.unwrap_or(([127, 0, 0, 1], 0).into())).unwrap();
        let endpoint = self.endpoint.clone();
        Endpoint::new(endpoint, Some(config), socket, Arc::new(TokioRuntime)).unwrap()
    }
}

/// Serves every connection on the current runtime; returns the URL.
fn serving<F: Future<Output = ()> + 'static>(
    server: &Server,
    serve: impl Fn(Connection) -> F + 'static,
) -> String {
    let endpoint = server.listen(None);
    let url = format!("https://{}/", endpoint.local_addr().unwrap());
    tokio::task::spawn_local(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else { continue };
            tokio::task::spawn_local(serve(connection));
        }
    });
    url
}

/// The fault of one request to a server that runs `serve` on its connection.
fn fault<F: Future<Output = ()> + 'static>(serve: impl Fn(Connection) -> F + 'static) -> Fault {
    on_runtime(async {
        let url = serving(&Server::default(), serve);
        fault_of(&get(&url, settings()).send().await)
    })
}

/// The fault of one request to a server that runs `serve` on its stream.
fn stream_fault<F: Future<Output = ()> + 'static>(
    serve: impl Fn(SendStream) -> F + Clone + 'static,
) -> Fault {
    fault(move |connection| {
        let serve = serve.clone();
        async move {
            while let Ok((send, _recv)) = connection.accept_bi().await {
                serve(send).await;
            }
        }
    })
}

/// The fault of one request whose response has these bytes.
fn response_fault(bytes: &'static [u8]) -> Fault {
    stream_fault(move |mut send: SendStream| async move {
        send.write_all(bytes).await.unwrap();
        let _ = send.finish();
    })
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.http3_number()).unwrap()
}

#[test]
fn violations_of_streams_and_connections() {
    let cancelled = stream_fault(|mut send: SendStream| async move {
        let _ = send.reset(code(ErrorCode::H3RequestCancelled));
    });
    assert_eq!(cancelled, Fault::StreamReset(ErrorCode::H3RequestCancelled));
    let unknown = stream_fault(|mut send: SendStream| async move {
        let _ = send.reset(VarInt::from_u32(77));
    });
    assert_eq!(unknown, Fault::StreamReset(ErrorCode::Unknown));
    let closed = fault(|connection: Connection| async move {
        let _ = connection.accept_bi().await;
        connection.close(code(ErrorCode::H3ExcessiveLoad), b"too much");
    });
    assert_eq!(closed, Fault::Quic("H3_EXCESSIVE_LOAD"));
    // A push, a second control stream, and settings that HTTP/3 forbids.
    for (bytes, name) in [
        (&[1, 0][..], "push_promise"),
        (&[0, 4, 0, 7, 1, 1], "goaway"),
        (&[0, 7, 1, 0], "settings_missing"),
        (&[0, 4, 2, 2, 0], "settings"),
    ] {
        let fault = fault(move |connection: Connection| async move {
            let mut control = connection.open_uni().await.unwrap();
            control.write_all(bytes).await.unwrap();
            connection.closed().await;
        });
        assert_eq!(fault, Fault::Malformed(name), "{bytes:?}");
    }
    let closed = fault(|connection: Connection| async move {
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        let _ = control.finish();
        connection.closed().await;
    });
    assert_eq!(closed, Fault::Malformed("control_stream_closed"));
}

#[test]
fn violations_of_responses() {
    for (bytes, fault) in [
        (&b""[..], Fault::Malformed("status_missing")),
        (b"\0\x01x", Fault::Malformed("data_before_headers")),
        (b"\x01\x03\0\0\xd9\0\x05abc", Fault::Malformed("frame_cut")),
        (b"\x01\x03\0\0\x80", Fault::Malformed("qpack_dynamic_table")),
        (b"\x04\0", Fault::Malformed("frame_unexpected")),
        (b"\x01\x80\x10\0\0", Fault::TooLarge("header_block_too_large")),
    ] {
        assert_eq!(response_fault(bytes), fault, "{bytes:?}");
    }
}

#[test]
fn a_rejected_request_is_retried_a_few_times() {
    on_runtime(async {
        let rejects = |left: u32| {
            let left = std::rc::Rc::new(std::cell::Cell::new(left));
            serving(&Server::default(), move |connection| {
                let left = left.clone();
                async move {
                    while let Ok((mut send, _recv)) = connection.accept_bi().await {
                        if left.get() > 0 {
                            left.set(left.get() - 1);
                            let _ = send.reset(code(ErrorCode::H3RequestRejected));
                        } else {
                            send.write_all(b"\x01\x03\0\0\xd9").await.unwrap();
                            let _ = send.finish();
                        }
                    }
                }
            })
        };
        let few = get(&rejects(3), settings());
        assert_eq!(status_of(&few.send().await), 200);
        let counts = few.counts();
        assert_eq!((counts.unhandled, counts.stream_resets, counts.streams), (3, 3, 4));
        let many = get(&rejects(100), settings());
        let rejected = Fault::StreamReset(ErrorCode::H3RequestRejected);
        assert_eq!(fault_of(&many.send().await), rejected);
        assert_eq!(many.counts().unhandled, 5);
    });
}

#[test]
fn faults_of_connecting() {
    on_runtime(async {
        // The port is closed again.
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let closed = get(&format!("https://{free}/"), settings());
        assert_eq!(fault_of(&closed.send().await), Fault::ConnectRefused);
        // The listener never replies.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut short = settings();
        short.timeouts.connect = Duration::from_millis(100);
        let url = format!("https://{}/", silent.local_addr().unwrap());
        let silence = get(&url, short);
        // The request's deadline is later.
        let deadline = crate::client::PATIENCE;
        let now = gake_core::clock::Clock::now(silence.client.clock());
        let mut within = gake_wire::Deadline::within(now, deadline);
        within.connect = 100_000_000;
        let exchange = silence.client.send_to(&silence.request, within, &mut ()).await;
        assert_eq!(fault_of(&exchange), Fault::ConnectTimeout);
        let other = Server { alpn: b"hq", ..Server::default() };
        let url = serving(&other, |_| async {});
        let words = "the peer does not offer the requested HTTP version";
        assert_eq!(fault_of(&get(&url, settings()).send().await), Fault::Tls(words));
        let mut endpoint = EndpointConfig::default();
        endpoint.supported_versions(vec![0x1a2a_3a4a]);
        let url = serving(&Server { endpoint, ..Server::default() }, |_| async {});
        let fault = fault_of(&get(&url, settings()).send().await);
        assert_eq!(fault, Fault::Quic("version_negotiation"));
    });
}

#[test]
fn a_server_that_has_forgotten_its_connections_resets_them() {
    let (sender, addr) = std::sync::mpsc::channel();
    let (done, over) = tokio::sync::oneshot::channel::<()>();
    let (again, restarted) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        let server = Server::default();
        let addr = on_runtime(async {
            let endpoint = server.listen(None);
            let addr = endpoint.local_addr().unwrap();
            sender.send(addr).unwrap();
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let _ = connection.accept_bi().await;
            addr
        });
        // Its state is lost without a close. With the same key it can send stateless resets.
        on_runtime(async {
            let _endpoint = server.listen(Some(addr));
            again.send(()).unwrap();
            let _ = over.await;
        });
    });
    let addr = addr.recv().unwrap();
    on_runtime(async {
        let sender = get(&format!("https://{addr}/"), settings());
        let send = || {
            let sender = std::rc::Rc::clone(&sender);
            tokio::task::spawn_local(async move { sender.send().await })
        };
        let first = send();
        restarted.await.unwrap();
        // The next packet of the client causes a reset.
        let _second = send();
        assert_eq!(fault_of(&first.await.unwrap()), Fault::Reset);
    });
    let _ = done.send(());
    server.join().unwrap();
}
