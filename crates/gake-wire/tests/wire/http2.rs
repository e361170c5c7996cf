//! HTTP/2 against the lab, an independent implementation: both sides must count the same.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::Clock as _;
use gake_core::record::{Counts, Exchange};
use gake_core::schedule::Slice;
use gake_lab::{Lab, LabConfig};
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, PreparedRequest, Protocol, Resolver,
    TlsOptions,
};

use crate::client::{PATIENCE, TestClock, millis, on_runtime, status_of};

pub fn settings() -> ClientSettings {
    ClientSettings { protocol: Protocol::Http2, connections: 10, ..ClientSettings::default() }
}

/// Sends one request many times concurrently.
pub struct Sender {
    pub client: Client<TestClock>,
    pub request: PreparedRequest,
}

impl Sender {
    pub fn of(request: &HttpRequest, settings: ClientSettings) -> Rc<Self> {
        let network = Network::new(&Resolver::default(), &TlsOptions::default(), settings);
        let mut network = network.unwrap();
        let request = network.prepare(request).unwrap();
        let client = Client::new(Arc::new(network), Slice::WHOLE, TestClock::new());
        Rc::new(Self { client, request })
    }

    pub fn get(url: &str, settings: ClientSettings) -> Rc<Self> {
        Self::of(&HttpRequest::new("GET", url), settings)
    }

    pub async fn send(&self) -> Exchange {
        self.within(PATIENCE).await
    }

    /// Sends one request with a time-out.
    pub async fn within(&self, time: Duration) -> Exchange {
        let deadline = Deadline::within(self.client.clock().now(), time);
        self.client.send_to(&self.request, deadline, &mut ()).await
    }

    pub async fn together(self: &Rc<Self>, count: usize) -> Vec<Exchange> {
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let sender = Rc::clone(self);
                tokio::task::spawn_local(async move { sender.send().await })
            })
            .collect();
        let mut exchanges = Vec::new();
        for task in tasks {
            exchanges.push(task.await.unwrap());
        }
        exchanges
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.client.observe(&mut counts);
        counts
    }
}

fn lab(config: LabConfig) -> Lab {
    Lab::start(LabConfig { cores: 1, ..config }).unwrap()
}

fn url(lab: &Lab, path: &str) -> String {
    format!("http://{}{path}", lab.addr())
}

fn all_ok(exchanges: &[Exchange]) {
    assert!(exchanges.iter().all(|exchange| status_of(exchange) == 200 && exchange.written));
}

#[test]
fn many_requests_share_one_connection() {
    let lab = lab(LabConfig::default());
    let (ours, bytes) = on_runtime(async {
        let sender = Sender::get(&url(&lab, "/fast"), settings());
        let mut exchanges = sender.together(90).await;
        exchanges.extend(sender.together(90).await);
        all_ok(&exchanges);
        // Requests during the handshake waited for the connection and opened no other.
        let opened = exchanges.iter().filter(|exchange| exchange.connect.is_some()).count();
        assert_eq!(opened, 1);
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.streams), (1, 180));
        let bytes =
            exchanges.iter().fold((counts.bytes_in, counts.bytes_out), |(i, o), exchange| {
                (i + exchange.bytes_in, o + exchange.bytes_out)
            });
        (exchanges.len() as u64, bytes)
    });
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.connections.opened), (ours, 1));
    // The server's last acknowledgement and our GOAWAY may still be in flight.
    assert!(stats.bytes_in.abs_diff(bytes.1) <= 17, "{} {}", stats.bytes_in, bytes.1);
    assert!(stats.bytes_out.abs_diff(bytes.0) <= 60, "{} {}", stats.bytes_out, bytes.0);
}

#[test]
fn the_servers_limit_on_streams_is_respected_and_waiting_is_blocked() {
    let lab = lab(LabConfig { h2_max_streams: Some(4), ..LabConfig::default() });
    on_runtime(async {
        let one = ClientSettings { connections: 1, ..settings() };
        let sender = Sender::get(&url(&lab, "/delay/20ms"), one);
        // The first connection learns the limit.
        all_ok(&sender.together(1).await);
        let exchanges = sender.together(12).await;
        all_ok(&exchanges);
        let waited: Vec<_> = exchanges.iter().map(|exchange| millis(exchange.blocked)).collect();
        assert!(waited[..4].iter().all(|waited| *waited < 19), "{waited:?}");
        assert!(waited[4..].iter().all(|waited| *waited >= 19), "{waited:?}");
        assert!(waited[8..].iter().all(|waited| *waited >= 38), "{waited:?}");
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.streams, counts.unhandled), (1, 13, 0));
    });
    assert_eq!(lab.shutdown().requests, 13);
}

#[test]
fn a_limit_that_arrives_late_loses_nothing() {
    let lab = lab(LabConfig { h2_max_streams: Some(3), ..LabConfig::default() });
    on_runtime(async {
        let one = ClientSettings { connections: 1, ..settings() };
        let sender = Sender::get(&url(&lab, "/delay/5ms"), one);
        // All requests are sent before the server's SETTINGS.
        all_ok(&sender.together(50).await);
        let counts = sender.counts();
        assert!(counts.unhandled <= 50 * 5, "{counts:?}");
        assert_eq!(counts.streams, 50 + counts.unhandled);
    });
    assert_eq!(lab.shutdown().requests, 50);
}

#[test]
fn repeated_goaways_lose_nothing() {
    let lab = lab(LabConfig { goaway_every: Some(10), ..LabConfig::default() });
    let ours = on_runtime(async {
        let sender = Sender::get(&url(&lab, "/delay/1ms"), settings());
        for _ in 0..10 {
            all_ok(&sender.together(30).await);
        }
        let counts = sender.counts();
        assert!(counts.goaways >= 10 && counts.opened >= 10, "{counts:?}");
        300
    });
    assert_eq!(lab.shutdown().requests, ours);
}

#[test]
fn bodies_go_both_ways_under_flow_control() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let body: Arc<[u8]> = vec![b'x'; 3_000_000].into();
        let request =
            HttpRequest { body: Some(body), ..HttpRequest::new("POST", url(&lab, "/fast")) };
        let sender = Sender::of(&request, settings());
        let exchanges = sender.together(3).await;
        all_ok(&exchanges);
        assert!(exchanges.iter().all(|exchange| exchange.bytes_out > 3_000_000));
        // The server's first window has 65,535 bytes.
        assert_eq!(sender.counts().window_waits, 3);
        let large = Sender::get(&url(&lab, "/bytes/50000000"), settings());
        for exchange in large.together(3).await {
            let answered =
                gake_core::record::ResponseSummary { status: 200, body_bytes: 50_000_000 };
            assert_eq!(exchange.end, gake_core::record::ExchangeEnd::Response(answered));
        }
    });
}

#[test]
fn heads_and_bodies_are_kept() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let mut request = HttpRequest::new("PUT", url(&lab, "/echo?a=b"));
        request.headers =
            [("X-One", "1"), ("Connection", "close"), ("Host", "other.test:8")].map(owned).to_vec();
        request.body = Some(Arc::from(&b"hello"[..]));
        let sender = Sender::of(&request, settings());
        let [note] = &sender.client.network().notes[..] else { panic!("one note") };
        assert!(note.contains("Connection"), "{note}");
        for _ in 0..3 {
            let deadline = Deadline::within(sender.client.clock().now(), PATIENCE);
            let (exchange, kept) = sender.client.send(&sender.request, deadline, 100_000).await;
            assert_eq!(status_of(&exchange), 200);
            assert!(kept.headers.contains(&owned(("content-type", "application/json"))));
            let echo = String::from_utf8(kept.body).unwrap();
            for expected in
                ["\"PUT\"", "/echo", "a=b", "x-one", "hello", "HTTP/2.0", "gake/", "content-length"]
            {
                assert!(echo.contains(expected), "{expected} in {echo}");
            }
            assert!(!echo.contains("\"close\""), "{echo}");
        }
    });
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn a_time_out_resets_only_its_stream() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let sender = Sender::get(&url(&lab, "/fast"), settings());
        all_ok(&sender.together(1).await);
        let hang = HttpRequest::new("GET", url(&lab, "/hang"));
        let hang = sender.client.prepare(&hang).await.unwrap();
        let now = sender.client.clock().now();
        let deadline = Deadline::within(now, Duration::from_millis(50));
        let exchange = sender.client.send_to(&hang, deadline, &mut ()).await;
        assert!(matches!(
            exchange.end,
            gake_core::record::ExchangeEnd::Fault(gake_core::record::Fault::Timeout(_))
        ));
        assert!(exchange.written && millis(exchange.done - now) >= 50);
        all_ok(&sender.together(5).await);
        assert_eq!(sender.counts().opened, 1);
    });
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.aborted), (7, 1));
}
