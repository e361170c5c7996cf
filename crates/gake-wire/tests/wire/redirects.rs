//! Redirects, followed or not.

use std::time::Duration;

use gake_core::record::{Fault, Phase};

use crate::client::{Setup, fault_of, millis, request, status_of};
use crate::pki::{Kind, pki};
use crate::server::{Act, Again, Request, Server, Wait, ok, send};

fn to(status: u16, location: &str) -> Act {
    send(format!(
        "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\nmove"
    ))
}

fn following(setup: Setup, most: u32) -> Setup {
    setup.with(|s| s.settings.max_redirects = most)
}

#[test]
fn by_default_a_redirect_is_a_response() {
    let server = Server::start([vec![Request, to(302, "/next"), Again]]);
    Setup::get(server.url("/")).run(async |client| {
        assert_eq!(status_of(&client.lane().fire().await), 302);
        assert_eq!(client.counts().redirects, 0);
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_chain_is_one_arrival() {
    let first = vec![
        Request,
        to(301, "/b?c"),
        Request,
        to(302, "d"),
        Request,
        to(307, "http://other.test/e"),
        Again,
    ];
    let second = vec![Request, Wait(Duration::from_millis(50)), ok(10), Again];
    let server = Server::start([first, second]);
    let mut setup = following(Setup::get("http://self.test/a/"), 3);
    setup.resolver.connect_to.push(format!("::127.0.0.1:{}", server.addr.port()).parse().unwrap());
    setup.run(async |client| {
        let mut lane = client.lane();
        for round in 1..=2 {
            let exchange = lane.fire().await;
            assert_eq!(status_of(&exchange), 200);
            let counts = client.counts();
            assert_eq!((counts.redirects, counts.opened), (3 * round, 2));
            assert!(exchange.bytes_in > 10 + 3 * 4 && exchange.written);
            // The first byte of the last response, and the time of the whole chain.
            assert!(millis(exchange.service()) >= 50);
            assert!(millis(exchange.first_byte.unwrap() - exchange.write) >= 50);
        }
    });
    assert_eq!(server.requests().len(), 8);
}

#[test]
fn the_same_origin_needs_no_other_connection() {
    let server = Server::start([vec![
        Request,
        to(301, "/b"),
        Request,
        to(308, "c?d#e"),
        Request,
        ok(1),
        Again,
    ]]);
    following(Setup::get(server.url("/a/")), 10).run(async |client| {
        client.lane().fire_ok(3).await;
        let counts = client.counts();
        assert_eq!((counts.opened, counts.redirects), (1, 6));
    });
    let targets: Vec<_> =
        server.requests().iter().map(|r| r.lines().next().unwrap().to_owned()).collect();
    assert_eq!(targets[..3], ["GET /a/ HTTP/1.1", "GET /b HTTP/1.1", "GET /c?d HTTP/1.1"]);
}

#[test]
fn a_closed_connection_does_not_end_the_chain() {
    let bye = send("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /b\r\n\r\n");
    let server = Server::start([vec![Request, bye], vec![Request, ok(1)]]);
    following(Setup::get(server.url("/")), 1).run(async |client| {
        client.lane().fire_ok(1).await;
        assert_eq!(client.counts().opened, 2);
    });
}

#[test]
fn the_next_request_depends_on_the_status() {
    for (status, method, has_body) in
        [(301, "GET", false), (303, "GET", false), (307, "POST", true)]
    {
        let server = Server::start([vec![Request, to(status, "/next"), Request, ok(1)]]);
        let setup = following(Setup::post(server.url("/"), "hello"), 1).with(|s| {
            s.requests[0]
                .request
                .headers
                .push(("Content-Type".to_owned(), "text/plain".to_owned()));
        });
        assert_eq!(status_of(&setup.fire()), 200);
        let next = server.requests().remove(1);
        assert!(next.starts_with(&format!("{method} /next HTTP/1.1\r\n")), "{next}");
        assert_eq!(next.ends_with("hello"), has_body, "{next}");
        assert_eq!(next.contains("Content-Type"), has_body, "{next}");
    }
}

#[test]
fn another_origin_is_resolved_once_and_gets_no_secrets() {
    let there = Server::start([vec![Request, ok(1), Again]]);
    let here = Server::start([vec![Request, to(302, &there.url("/there")), Again]]);
    let setup = following(Setup::get(here.url("/")), 1).with(|s| {
        for name in ["Authorization", "Cookie", "X-Own"] {
            s.requests[0].request.headers.push((name.to_owned(), "x".to_owned()));
        }
    });
    setup.run(async |client| {
        client.lane().fire_ok(5).await;
        assert_eq!((client.counts().opened, client.counts().redirects), (2, 5));
    });
    assert_eq!((here.seen().len(), there.seen().len()), (1, 1));
    for request in there.requests() {
        assert!(request.contains(&format!("\r\nHost: {}\r\n", there.addr)), "{request}");
        assert!(request.contains("X-Own"), "{request}");
        assert!(!request.contains("Authorization") && !request.contains("Cookie"), "{request}");
    }
}

#[test]
fn a_redirect_may_lead_to_tls() {
    let config = pki().server(Kind::default());
    let there = Server::tls(config, [vec![Request, ok(1), Again]]);
    let here = Server::start([vec![Request, to(301, "https://shop.test/"), Again]]);
    let setup = following(Setup::get(here.url("/")), 1).with(|s| {
        s.tls.cacert = vec![pki().path("ca.pem")];
        let rule = format!("shop.test:443:127.0.0.1:{}", there.addr.port());
        s.resolver.connect_to.push(rule.parse().unwrap());
    });
    setup.run(async |client| client.lane().fire_ok(2).await);
    assert_eq!((there.seen().len(), there.requests().len()), (1, 2));
}

#[test]
fn a_loop_ends_at_the_limit() {
    let server = Server::start([vec![Request, to(302, "/"), Again]]);
    following(Setup::get(server.url("/")), 4).run(async |client| {
        let exchange = client.lane().fire().await;
        assert_eq!(fault_of(&exchange), Fault::RedirectLimit);
        assert!(exchange.written && exchange.first_byte.is_some());
        assert_eq!(client.counts().redirects, 4);
    });
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn an_unusable_location_is_a_fault() {
    for (location, fault) in [
        ("ftp://h/", Fault::Malformed("location")),
        ("http://no-such-host.invalid/", Fault::Dns),
        ("http://127.0.0.1:1/", Fault::ConnectRefused),
    ] {
        let server = Server::start([vec![Request, to(302, location), Again]]);
        following(Setup::get(server.url("/")), 1).run(async |client| {
            let mut lane = client.lane();
            for _ in 0..2 {
                assert_eq!(fault_of(&lane.fire().await), fault, "{location}");
            }
        });
    }
}

#[test]
fn a_redirect_without_a_location_is_a_response() {
    let server =
        Server::start([vec![Request, send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")]]);
    assert_eq!(status_of(&following(Setup::get(server.url("/")), 1).fire()), 302);
    let server =
        Server::start([vec![Request, send("HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n\r\n")]]);
    assert_eq!(status_of(&following(Setup::get(server.url("/")), 1).fire()), 304);
}

#[test]
fn the_whole_chain_has_one_time_out() {
    let server =
        Server::start([vec![Request, Wait(Duration::from_millis(150)), to(302, "/"), Again]]);
    let setup = following(Setup::get(server.url("/")), 1_000)
        .with(|s| s.settings.timeouts.total = Duration::from_millis(400));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::Timeout(Phase::FirstByte));
    assert!((400..1_500).contains(&millis(exchange.done)), "{exchange:?}");
}

#[test]
fn a_stale_connection_within_a_chain_is_replaced() {
    // Ends after the redirect, so that the second request finds a dead connection.
    let server = Server::start([vec![Request, to(302, "/b"), Request], vec![Request, ok(1)]]);
    following(Setup::of(vec![request("GET", &server.url("/"))]), 1).run(async |client| {
        client.lane().fire_ok(1).await;
        assert_eq!((client.counts().opened, client.counts().stale_reconnects), (2, 1));
    });
}
