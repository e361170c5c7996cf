//! HTTP/2 streams on a shared connection: a stalled reader does not block the others.

use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use gake_shadow::config::{Backend as BackendConfig, Config};
use gake_shadow::{Category, Proxy};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::runtime::{Builder, Runtime};

use crate::backend::{Backend, ok, read_request};
use crate::client::{Client, get};
use crate::{config, shadow_at, start, stop, until, until_count};

const DATA: &[u8] = &[b'x'; 100];
/// More than the kernel buffers between two processes.
const FRAMES: usize = 80_000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Sends frames within the flow control, counting them.
async fn send(mut body: SendStream<Bytes>, frames: usize, sent: Arc<AtomicUsize>) {
    for _ in 0..frames {
        body.reserve_capacity(DATA.len());
        while body.capacity() < DATA.len() {
            // The peer is gone.
            let Some(Ok(_)) = poll_fn(|cx| body.poll_capacity(cx)).await else { return };
        }
        if body.send_data(Bytes::from_static(DATA), false).is_err() {
            return;
        }
        sent.fetch_add(1, Ordering::SeqCst);
    }
    let _ = body.send_data(Bytes::new(), true);
}

/// Waits until a count stops increasing.
fn wait_until_stalled(count: &AtomicUsize) {
    let (mut last, mut times) = (0, 0);
    until("nothing moves", || {
        let now = count.load(Ordering::SeqCst);
        times = if now == last { times + 1 } else { 0 };
        last = now;
        now > 0 && times > 60
    });
}

/// An HTTP/2 backend: many frames at `/stream`, one at other paths.
struct Streaming {
    addr: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// Frames of `/stream`.
    sent: Arc<AtomicUsize>,
}

impl Streaming {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let addr = listener.local_addr().unwrap();
        let (connections, sent) = (Arc::default(), Arc::default());
        let backend = Self { addr, connections, sent };
        let (connections, sent) = (Arc::clone(&backend.connections), Arc::clone(&backend.sent));
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    connections.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(stream, Arc::clone(&sent)));
                }
            });
        });
        backend
    }

    fn url(&self) -> String {
        format!("h2c://{}", self.addr)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: tokio::net::TcpStream, sent: Arc<AtomicUsize>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(response(request, respond, Arc::clone(&sent)));
    }
}

async fn response(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    sent: Arc<AtomicUsize>,
) {
    let is_stream = request.uri().path() == "/stream";
    let (frames, sent) = if is_stream { (FRAMES, sent) } else { (1, Arc::default()) };
    let length = frames * DATA.len();
    let head = Response::builder().header("content-length", length).body(()).unwrap();
    if let Ok(body) = respond.send_response(head, false) {
        send(body, frames, sent).await;
    }
}

#[test]
fn a_client_that_does_not_read_blocks_no_other() {
    let (master, shadow) = (Streaming::start(), Streaming::start());
    let mut config = Config::new(BackendConfig::new("master", &master.url()).unwrap());
    config.threads = 1;
    config.shadows.push(shadow_at(0, &shadow.url()));
    config.shadows[0].timeout = crate::LONG;
    config.limits.response_body = u64::MAX;
    let proxy = start(config);
    // Frames arrive faster than they are passed on.
    assert_eq!(get(proxy.addr(), "/stream").body.len(), FRAMES * DATA.len());
    until_count(&proxy, 0, Category::Ok, 1);

    master.sent.store(0, Ordering::SeqCst);
    let mut slow = Client::new(proxy.addr());
    slow.write("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_until_stalled(&master.sent);
    let sent = master.sent.load(Ordering::SeqCst);
    assert!(sent < FRAMES, "everything was buffered");
    let mut other = Client::new(proxy.addr());
    for _ in 0..50 {
        assert_eq!(other.get("/").body.as_bytes(), DATA);
    }
    assert_eq!(slow.response(false).body.len(), FRAMES * DATA.len(), "it continues");
    until_count(&proxy, 0, Category::Ok, 52);
    assert_eq!((master.connections(), shadow.connections()), (1, 1), "no connection was closed");
    let stats = stop(proxy).stats;
    assert_eq!((stats.responses[2], stats.broken_responses, stats.master_faults), (52, 0, 0));
}

#[test]
fn a_client_that_leaves_ends_only_its_stream() {
    let master = Streaming::start();
    let mut config = Config::new(BackendConfig::new("master", &master.url()).unwrap());
    config.threads = 1;
    let proxy = start(config);
    for _ in 0..100 {
        let mut client = Client::new(proxy.addr());
        client.write("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = client.response(true);
        assert_eq!(response.status, 200, "{response:?} {}", client.rest());
    }
    // Their unread capacity is released.
    assert_eq!(get(proxy.addr(), "/stream").body.len(), FRAMES * DATA.len());
    assert_eq!(master.connections(), 1);
    stop(proxy);
}

#[test]
fn a_response_to_head_may_end_after_its_head() {
    let (head_seen, has_head) = std::sync::mpsc::channel::<()>();
    let has_head = Arc::new(std::sync::Mutex::new(has_head));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        runtime().block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let has_head = Arc::clone(&has_head);
                tokio::spawn(async move {
                    let head = Response::builder().header("content-length", 5).body(()).unwrap();
                    let mut body = respond.send_response(head, false).unwrap();
                    let wait = move || has_head.lock().unwrap().recv();
                    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
                    // Fails on a reset stream.
                    let _ = body.send_data(Bytes::new(), true);
                });
            }
        });
    });
    let mut proxy = Proxy::new(Config::new(BackendConfig::new("master", &url).unwrap())).unwrap();
    let exchanges = proxy.exchanges(10);
    let proxy = proxy.start().unwrap();
    runtime().block_on(async {
        let stream = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
        let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let head = Request::head(format!("http://{}/", proxy.addr())).body(()).unwrap();
        let (response, _) = requests.send_request(head, true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-length"]),
            (200, &http::HeaderValue::from_static("5"))
        );
        assert!(response.body().is_end_stream());
        head_seen.send(()).unwrap();
        let wait = move || exchanges.next_within(crate::LONG).unwrap();
        let exchange = tokio::task::spawn_blocking(wait).await.unwrap();
        let response = exchange.master().unwrap().result.as_ref().unwrap();
        assert_eq!(response.status.as_u16(), 200);
    });
    stop(proxy);
}

#[test]
fn an_unread_body_blocks_no_other_request() {
    let released = Arc::new(AtomicBool::new(false));
    let may_read = Arc::clone(&released);
    let master = Backend::raw(move |mut stream, _| {
        let mut start = [0; 6];
        while stream.peek(&mut start).is_ok_and(|seen| seen == start.len()) {
            while start == *b"POST /" && !may_read.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let Some(seen) = read_request(&mut stream, &mut Vec::new()) else { return };
            std::io::Write::write_all(&mut stream, &ok(&seen.body.len().to_string())).unwrap();
        }
    });
    let proxy = start(config(&master, &[]));
    let sent = Arc::new(AtomicUsize::new(0));
    runtime().block_on(async {
        let stream = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
        let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let total = FRAMES * DATA.len();
        let url = format!("http://{}/", proxy.addr());
        let post = Request::post(&url).header("content-length", total).body(()).unwrap();
        let (response, body) = requests.send_request(post, false).unwrap();
        tokio::spawn(send(body, FRAMES, Arc::clone(&sent)));
        let counted = Arc::clone(&sent);
        tokio::task::spawn_blocking(move || wait_until_stalled(&counted)).await.unwrap();
        assert!(sent.load(Ordering::SeqCst) < FRAMES, "everything was buffered");
        for _ in 0..50 {
            let get = Request::get(&url).body(()).unwrap();
            let (response, _) = requests.send_request(get, true).unwrap();
            assert_eq!(response.await.unwrap().status(), 200);
        }
        released.store(true, Ordering::SeqCst);
        let mut response = response.await.unwrap();
        assert_eq!(response.body_mut().data().await.unwrap().unwrap(), total.to_string());
    });
    assert_eq!(stop(proxy).stats.responses[2], 51);
}

#[test]
fn many_unread_bodies_block_no_other_body() {
    // Small kernel buffers, so that each body fills its window.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = socket2::SockRef::from(&listener);
    options.set_recv_buffer_size(4096).unwrap();
    options.set_tcp_mss(536).unwrap();
    let released = Arc::new(AtomicBool::new(false));
    let may_end = Arc::clone(&released);
    let master = Backend::on(listener, move |mut stream, _| {
        let mut start = [0; 7];
        until("asked", || stream.peek(&mut start).is_ok_and(|seen| seen == start.len()));
        if start == *b"POST /x" {
            return until("released", || may_end.load(Ordering::SeqCst));
        }
        let seen = read_request(&mut stream, &mut Vec::new()).unwrap();
        std::io::Write::write_all(&mut stream, &ok(&seen.body.len().to_string())).unwrap();
    });
    let proxy = start(config(&master, &[]));
    let sent = Arc::new(AtomicUsize::new(0));
    runtime().block_on(async {
        let stream = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
        let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut responses = Vec::new();
        for _ in 0..40 {
            requests = requests.ready().await.unwrap();
            let post = Request::post(format!("http://{}/x", proxy.addr())).body(()).unwrap();
            let (response, body) = requests.send_request(post, false).unwrap();
            tokio::spawn(send(body, FRAMES, Arc::clone(&sent)));
            responses.push(response);
        }
        let counted = Arc::clone(&sent);
        tokio::task::spawn_blocking(move || wait_until_stalled(&counted)).await.unwrap();
        let url = format!("http://{}/y", proxy.addr());
        let post = Request::post(url).header("content-length", 1000).body(()).unwrap();
        let (response, body) = requests.send_request(post, false).unwrap();
        tokio::spawn(send(body, 10, Arc::default()));
        let mut response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.body_mut().data().await.unwrap().unwrap(), "1000");
        released.store(true, Ordering::SeqCst);
    });
    stop(proxy);
}
