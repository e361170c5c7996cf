//! HTTP/3 against the lab, an independent implementation: both sides must count the same.

use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::Clock as _;
use gake_core::record::{Exchange, ExchangeEnd, Fault, Phase, ResponseSummary};
use gake_core::schedule::Slice;
use gake_lab::{Lab, LabConfig};
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, Network, Protocol, Resolver, TlsOptions,
    WireError,
};

use crate::client::{PATIENCE, TestClock, fault_of, millis, on_runtime, status_of};
use crate::http2::Sender;
use crate::pki::{Kind, pki};
use crate::server::{Again, Request, Server, send};

pub fn settings() -> ClientSettings {
    ClientSettings { protocol: Protocol::Http3, connections: 10, ..ClientSettings::default() }
}

pub fn network(settings: ClientSettings) -> Network {
    let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
    Network::new(&Resolver::default(), &tls, settings).unwrap()
}

pub fn sender(request: &HttpRequest, settings: ClientSettings) -> Rc<Sender> {
    let mut network = network(settings);
    let request = network.prepare(request).unwrap();
    let client = Client::new(Arc::new(network), Slice::WHOLE, TestClock::new());
    Rc::new(Sender { client, request })
}

pub fn get(url: &str, settings: ClientSettings) -> Rc<Sender> {
    sender(&HttpRequest::new("GET", url), settings)
}

fn lab(config: LabConfig) -> Lab {
    Lab::start(LabConfig { cores: 1, tls: true, http3: true, ..config }).unwrap()
}

fn url(lab: &Lab, path: &str) -> String {
    format!("https://{}{path}", lab.addr())
}

fn all_ok(exchanges: &[Exchange]) {
    for exchange in exchanges {
        assert_eq!(status_of(exchange), 200);
        assert!(exchange.written && exchange.bytes_in > 0 && exchange.bytes_out > 0);
    }
}

#[test]
fn many_requests_share_one_connection() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let sender = get(&url(&lab, "/fast"), settings());
        let mut exchanges = sender.together(90).await;
        exchanges.extend(sender.together(90).await);
        all_ok(&exchanges);
        let opened = exchanges.iter().filter(|exchange| exchange.connect.is_some()).count();
        assert_eq!(opened, 1);
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.streams, counts.http3_streams), (1, 180, 180));
        assert!(exchanges.iter().any(|exchange| exchange.tcp.is_some_and(|path| path.rtt > 0)));
        assert!(counts.quic_packets > 0, "{counts:?}");
        // Also with a connection for each.
        let single = ClientSettings { keepalive: false, ..settings() };
        let sender = get(&url(&lab, "/fast"), single);
        all_ok(&sender.together(20).await);
        assert_eq!(sender.counts().opened, 20);
    });
    let stats = lab.shutdown();
    assert_eq!((stats.requests, stats.connections.opened), (200, 21));
}

#[test]
fn the_servers_limit_on_streams_is_respected_and_waiting_is_blocked() {
    let lab = lab(LabConfig { h2_max_streams: Some(4), ..LabConfig::default() });
    on_runtime(async {
        let one = ClientSettings { connections: 1, ..settings() };
        let sender = get(&url(&lab, "/delay/20ms"), one);
        for _ in 0..2 {
            let exchanges = sender.together(12).await;
            all_ok(&exchanges);
            let mut waited: Vec<_> = exchanges.iter().map(|one| millis(one.blocked)).collect();
            waited.sort_unstable();
            assert!(waited[4] >= 19 && waited[8] >= 38, "{waited:?}");
        }
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.streams, counts.unhandled), (1, 24, 0));
        assert!(counts.stream_waits >= 16, "{counts:?}");
        assert_eq!(counts.streams_allowed, 4 * counts.stream_waits);
    });
    assert_eq!(lab.shutdown().requests, 24);
}

#[test]
fn a_time_out_while_waiting_for_a_stream_counts_as_blocked() {
    let lab = lab(LabConfig { h2_max_streams: Some(1), ..LabConfig::default() });
    on_runtime(async {
        let one = ClientSettings { connections: 1, ..settings() };
        let sender = get(&url(&lab, "/delay/1500ms"), one);
        let late = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            sender.within(Duration::from_millis(200)).await
        };
        let (first, late) = tokio::join!(sender.send(), late);
        assert_eq!(status_of(&first), 200);
        assert_eq!(fault_of(&late), Fault::Timeout(Phase::Connect));
        assert!(!late.written && millis(late.blocked) >= 190, "{late:?}");
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.streams), (1, 1));
    });
    assert_eq!(lab.shutdown().requests, 1);
}

#[test]
fn repeated_goaways_lose_and_repeat_nothing() {
    let lab = lab(LabConfig { goaway_every: Some(10), ..LabConfig::default() });
    on_runtime(async {
        let sender = get(&url(&lab, "/delay/1ms"), settings());
        for _ in 0..10 {
            all_ok(&sender.together(30).await);
        }
        let counts = sender.counts();
        assert!(counts.goaways >= 10 && counts.opened >= 10, "{counts:?}");
        assert_eq!(counts.streams, 300 + counts.unhandled + counts.stale_reconnects);
    });
    assert_eq!(lab.shutdown().requests, 300);
}

#[test]
fn bodies_go_both_ways_under_flow_control() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let body: Arc<[u8]> = vec![b'x'; 3_000_000].into();
        let post = HttpRequest { body: Some(body), ..HttpRequest::new("POST", url(&lab, "/fast")) };
        let exchanges = sender(&post, settings()).together(3).await;
        all_ok(&exchanges);
        assert!(exchanges.iter().all(|exchange| exchange.bytes_out > 3_000_000));
        let windows = (Some(65_535), Some(100_000));
        let small =
            ClientSettings { stream_window: windows.0, connection_window: windows.1, ..settings() };
        for exchange in get(&url(&lab, "/bytes/5000000"), small).together(3).await {
            assert_eq!(
                exchange.end,
                ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 5_000_000 })
            );
        }
        let head = sender(&HttpRequest::new("HEAD", url(&lab, "/bytes/1000")), settings());
        let response = ResponseSummary { status: 200, body_bytes: 0 };
        assert_eq!(head.send().await.end, ExchangeEnd::Response(response));
    });
}

#[test]
fn heads_and_bodies_are_kept() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let mut request = HttpRequest::new("PUT", url(&lab, "/echo?a=b"));
        let headers = [("X-One", "1"), ("Connection", "close"), ("Cookie", "a=b")];
        request.headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        request.body = Some(Arc::from(&b"hello"[..]));
        let sender = sender(&request, settings());
        let [note] = &sender.client.network().notes[..] else { panic!("one note") };
        assert!(note.contains("HTTP/3") && note.contains("Connection"), "{note}");
        let deadline = Deadline::within(sender.client.clock().now(), PATIENCE);
        let (exchange, kept) = sender.client.send(&sender.request, deadline, 100_000).await;
        assert_eq!(status_of(&exchange), 200);
        let json = ("content-type".to_owned(), "application/json".to_owned());
        assert!(kept.headers.contains(&json), "{kept:?}");
        let echo = String::from_utf8(kept.body).unwrap();
        for expected in ["\"PUT\"", "/echo", "a=b", "x-one", "hello", "HTTP/3.0", "gake/", "\"5\""]
        {
            assert!(echo.contains(expected), "{expected} in {echo}");
        }
        assert!(!echo.contains("\"close\""), "{echo}");
    });
}

#[test]
fn names_of_the_static_table_match_the_server() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let names = [
            "accept-language",
            "authorization",
            "early-data",
            "forwarded",
            "if-range",
            "origin",
            "purpose",
            "range",
            "referer",
            "upgrade-insecure-requests",
            "user-agent",
            "x-forwarded-for",
        ];
        let mut request = HttpRequest::new("GET", url(&lab, "/echo"));
        request.headers = names.map(|name| (name.to_owned(), format!("of {name}"))).to_vec();
        let sender = sender(&request, settings());
        let deadline = Deadline::within(sender.client.clock().now(), PATIENCE);
        let (exchange, kept) = sender.client.send(&sender.request, deadline, 100_000).await;
        assert_eq!(status_of(&exchange), 200);
        let echo = String::from_utf8(kept.body).unwrap();
        for name in names {
            assert!(echo.contains(&format!("\"{name}\":\"of {name}\"")), "{name}: {echo}");
        }
    });
}

#[test]
fn a_time_out_or_reset_ends_only_its_stream() {
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let sender = get(&url(&lab, "/fast"), settings());
        all_ok(&sender.together(1).await);
        let hang = HttpRequest::new("GET", url(&lab, "/hang"));
        let hang = sender.client.prepare(&hang).await.unwrap();
        let now = sender.client.clock().now();
        let deadline = Deadline::within(now, Duration::from_millis(50));
        let exchange = sender.client.send_to(&hang, deadline, &mut ()).await;
        assert!(matches!(fault_of(&exchange), Fault::Timeout(_)));
        assert!(exchange.written && millis(exchange.done - now) >= 50);
        for path in ["/reset", "/reset?after=100"] {
            let reset = HttpRequest::new("GET", url(&lab, path));
            let reset = sender.client.prepare(&reset).await.unwrap();
            let deadline = Deadline::within(sender.client.clock().now(), PATIENCE);
            let exchange = sender.client.send_to(&reset, deadline, &mut ()).await;
            assert_eq!(fault_of(&exchange).to_string(), "stream_reset: H3_INTERNAL_ERROR");
        }
        all_ok(&sender.together(5).await);
        let counts = sender.counts();
        assert_eq!((counts.opened, counts.stream_resets), (1, 2));
    });
}

#[test]
fn an_alternative_is_used_or_marked_as_failed() {
    let advertised =
        ClientSettings { protocol: Protocol::Advertised, connections: 2, ..settings() };
    let lab = lab(LabConfig::default());
    on_runtime(async {
        let sender = get(&url(&lab, "/fast"), advertised.clone());
        // The first response, over TCP, advertises HTTP/3.
        all_ok(&sender.together(1).await);
        assert_eq!(sender.counts().http3_streams, 0);
        all_ok(&sender.together(50).await);
        let counts = sender.counts();
        assert_eq!((counts.http3_streams, counts.http3_fallbacks), (50, 0), "{counts:?}");
    });
    assert_eq!(lab.shutdown().requests, 51);
}

#[test]
fn a_silent_alternative_falls_back_in_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let offer = format!("Alt-Svc: h3=\":{port}\"\r\nContent-Length: 0");
    let response = send(format!("HTTP/1.1 200 OK\r\n{offer}\r\n\r\n"));
    let server = Server::tls(pki().server(Kind::default()), [vec![Request, response, Again]]);
    // The request's time-out is shorter than that of a connect.
    let time = Duration::from_secs(2);
    let mut short = ClientSettings { protocol: Protocol::Advertised, connections: 1, ..settings() };
    short.timeouts.total = time;
    on_runtime(async {
        let sender = get(&format!("https://{}/", server.addr), short);
        for _ in 0..3 {
            assert_eq!(status_of(&sender.within(time).await), 200);
        }
        let counts = sender.counts();
        assert_eq!((counts.http3_streams, counts.http3_fallbacks), (0, 1), "{counts:?}");
    });
}

#[test]
fn settings_that_exclude_http3_are_refused() {
    let refused = |url: &str, tls: &TlsOptions| {
        let network = Network::new(&Resolver::default(), tls, settings());
        let mut network = network.unwrap();
        let refused = network.prepare(&HttpRequest::new("GET", url)).unwrap_err();
        assert!(matches!(refused, WireError::Http3(_)), "{refused}");
    };
    refused("http://127.0.0.1:1/", &TlsOptions::default());
    let old = TlsOptions { ciphers: vec!["TLS_AES_256_GCM_SHA384".into()], ..Default::default() };
    refused("https://127.0.0.1:1/", &old);
}
