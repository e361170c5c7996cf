//! TLS: names, trust, and every reason for a failure.

use std::time::Duration;

use gake_core::record::{Fault, Phase};
use gake_wire::WireError;

use crate::client::{Setup, request, status_of};
use crate::pki::{Kind, Pki, pki};
use crate::server::{Act, Again, Hold, Notify, Request, Reset, Server, ok, send};

fn serving(kind: Kind, script: Vec<Act>) -> Server {
    Server::tls(pki().server(kind), [script])
}

fn plain(kind: Kind) -> Server {
    serving(kind, vec![Request, ok(1), Again])
}

/// A request to `shop.test`, the name of the server.
fn to(server: &Server, name: &str) -> Setup {
    let port = server.addr.port();
    Setup::of(vec![request("GET", &format!("https://{name}:{port}/"))]).with(|s| {
        s.tls.cacert = vec![pki().path("ca.pem")];
        s.resolver.fix(&format!("{name}:{port}:127.0.0.1")).unwrap();
    })
}

fn fault(kind: Kind, change: impl FnOnce(&mut Setup)) -> Fault {
    to(&plain(kind), "shop.test").with(change).fault()
}

#[test]
fn the_client_sends_server_name_and_alpn() {
    for tls12 in [false, true] {
        let server = plain(Kind { tls12, ..Kind::default() });
        to(&server, "shop.test").run(async |client| {
            let mut lane = client.lane();
            let first = lane.fire().await;
            assert_eq!(status_of(&first), 200);
            assert!(first.tls.is_some_and(|tls| tls > 0) && first.connect.is_some());
            let second = lane.fire().await;
            assert_eq!((status_of(&second), second.tls, second.connect), (200, None, None));
            assert_eq!(client.counts().opened, 1);
            drop(lane);
        });
        let over = |server: &Server| server.is_over();
        while !over(&server) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let seen = server.seen().remove(0);
        assert_eq!(seen.server_name.as_deref(), Some("shop.test"));
        assert_eq!(seen.alpn.as_deref(), Some(&b"http/1.1"[..]));
        assert_eq!(seen.requests.len(), 2);
        let host = format!("Host: shop.test:{}\r\n", server.addr.port());
        assert!(seen.requests[0].contains(&host), "{:?}", seen.requests);
    }
}

#[test]
fn each_failure_has_a_reason() {
    let none = |_: &mut Setup| {};
    let expired = Kind { expired: true, ..Kind::default() };
    assert_eq!(fault(expired, none), Fault::Tls("the certificate has expired"));
    let stranger = Pki::new("theirs");
    assert_eq!(
        fault(Kind::default(), |s| s.tls.cacert = vec![stranger.path("ca.pem")]),
        Fault::Tls("the certificate's issuer is not trusted")
    );
    assert_eq!(
        fault(Kind::default(), |s| s.tls.cacert = Vec::new()),
        Fault::Tls("the certificate's issuer is not trusted")
    );
    let other = plain(Kind::default());
    assert_eq!(to(&other, "other.test").fault(), Fault::Tls("the certificate is for another name"));
    let http2 = Kind { alpn: Some(b"h2"), ..Kind::default() };
    assert_eq!(
        fault(http2, none),
        Fault::Tls("the peer does not offer the requested HTTP version")
    );
}

#[test]
fn a_client_certificate_is_sent_on_request() {
    let wants = Kind { wants_client: true, ..Kind::default() };
    assert_eq!(fault(wants, |_| {}), Fault::Tls("the peer requires a client certificate"));
    for (cert, key) in [("client.pem", Some("client.key")), ("both.pem", None)] {
        let setup = to(&plain(wants), "shop.test").with(|s| {
            s.tls.cert = Some(pki().path(cert));
            s.tls.key = key.map(|key| pki().path(key));
        });
        assert_eq!(status_of(&setup.fire()), 200);
    }
    let stranger = Pki::new("theirs");
    let fault = fault(wants, |s| s.tls.cert = Some(stranger.path("both.pem")));
    assert_eq!(fault, Fault::Tls("the peer rejects the client certificate"));
}

#[test]
fn a_peer_that_does_not_speak_tls() {
    for (greeting, reason) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "the peer does not speak TLS"),
        ("", "the peer closed during the handshake"),
    ] {
        // Reads the client hello, so that the end is not a reset.
        let client_hello = Act::Skip(100);
        let server = Server::start([vec![
            client_hello,
            send(greeting),
            Act::Wait(Duration::from_millis(100)),
        ]]);
        let fault = to(&server, "shop.test").fault();
        assert!(fault == Fault::Tls(reason) || greeting.is_empty(), "{fault}");
        assert!(matches!(fault, Fault::Tls(_)), "{fault}");
    }
    let server = Server::start([vec![Act::Skip(100), Reset]]);
    assert_eq!(to(&server, "shop.test").fault(), Fault::Tls("the peer reset the handshake"));
}

#[test]
fn a_handshake_that_never_ends_is_a_connect_timeout() {
    let server = Server::start([vec![Hold]]);
    let setup =
        to(&server, "shop.test").with(|s| s.settings.timeouts.connect = Duration::from_millis(200));
    setup.run(async |client| {
        let exchange = client.lane().fire().await;
        assert_eq!(crate::client::fault_of(&exchange), Fault::ConnectTimeout);
        // The connection itself was open.
        assert!(exchange.connect.is_some() && exchange.tls.is_none());
        assert_eq!((client.counts().opened, client.gauges().open), (1, 0));
    });
}

#[test]
fn insecure_accepts_any_certificate() {
    for kind in [Kind::default(), Kind { expired: true, tls12: true, ..Kind::default() }] {
        let setup = to(&plain(kind), "other.test").with(|s| {
            s.tls.cacert = Vec::new();
            s.tls.insecure = true;
        });
        assert_eq!(status_of(&setup.fire()), 200);
    }
}

#[test]
fn an_end_without_close_notify_is_a_fault() {
    let endless = send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
    let cut = serving(Kind::default(), vec![Request, endless.clone()]);
    assert_eq!(to(&cut, "shop.test").fault(), Fault::ClosedEarly(Phase::Body));
    let whole = serving(Kind::default(), vec![Request, endless, Notify]);
    assert_eq!(status_of(&to(&whole, "shop.test").fire()), 200);
}

#[test]
fn an_idle_session_that_has_ended_is_replaced() {
    let server = serving(Kind::default(), vec![Request, ok(1), Notify]);
    to(&server, "shop.test").run(async |client| {
        let mut lane = client.lane();
        for _ in 0..3 {
            lane.fire_ok(1).await;
            client.until("the server ends it", |_| server.is_over()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((client.counts().opened, client.counts().stale_reconnects), (3, 2));
    });
}

#[test]
fn large_bodies_go_both_ways() {
    let server = serving(Kind::default(), vec![Request, ok(3 << 20), Again]);
    let setup = to(&server, "shop.test").with(|s| {
        s.requests[0].request.method = "POST".to_owned();
        s.requests[0].request.body = Some(vec![b'x'; 2 << 20].into());
    });
    setup.run(async |client| {
        let mut lane = client.lane();
        for _ in 0..2 {
            let exchange = lane.fire().await;
            assert_eq!(status_of(&exchange), 200);
            assert!(exchange.bytes_in > 3 << 20 && exchange.bytes_out > 2 << 20);
        }
        assert_eq!(client.counts().opened, 1);
    });
    assert!(server.requests().iter().all(|request| request.len() > 2 << 20));
}

#[test]
fn errors_of_unusable_files() {
    let missing = pki().path("missing.pem");
    let empty = pki().file("empty.pem", "");
    let garbage =
        pki().file("garbage.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let sentence_of = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup::get("https://127.0.0.1/");
        change(&mut setup);
        let error = setup.prepare().unwrap_err();
        assert!(matches!(error, WireError::Tls(_)), "{error}");
        error.to_string()
    };
    for (path, reason) in
        [(&missing, "No such file"), (&empty, "it holds no PEM certificate"), (&garbage, "base64")]
    {
        let sentence = sentence_of(&|s| s.tls.cacert = vec![path.clone()]);
        assert!(sentence.contains("cannot be used as trusted certificates"), "{sentence}");
        assert!(sentence.contains(reason) && sentence.contains(".pem"), "{sentence}");
        let sentence = sentence_of(&|s| s.tls.cert = Some(path.clone()));
        assert!(sentence.contains("cannot be used as a client certificate"), "{sentence}");
        let sentence = sentence_of(&|s| {
            s.tls.cert = Some(pki().path("client.pem"));
            s.tls.key = Some(path.clone());
        });
        assert!(sentence.contains("cannot be used as a client key"), "{sentence}");
    }
    let sentence = sentence_of(&|s| s.tls.key = Some(pki().path("client.key")));
    assert!(sentence.contains("--cert"), "{sentence}");
    let stranger = Pki::new("theirs");
    let sentence = sentence_of(&|s| {
        s.tls.cert = Some(pki().path("client.pem"));
        s.tls.key = Some(stranger.path("client.key"));
    });
    assert!(sentence.contains("client certificate cannot be used"), "{sentence}");
}
