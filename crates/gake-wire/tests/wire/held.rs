//! Idle connections held beside the load.

use std::net::TcpListener;
use std::time::Duration;

use crate::client::Setup;
use crate::pki::{Kind, pki};
use crate::server::{Act, Again, Hold, Request, Server, Wait, ok, send};

fn holding(server: &Server, count: usize) -> Setup {
    Setup::get(server.url("/")).with(|s| s.settings.idle_connections = count)
}

#[test]
fn all_are_opened_and_held() {
    let server = Server::start([vec![Request, ok(1), Again]]);
    holding(&server, 150).run(async |client| {
        client.until("all are open", |client| client.gauges().open == 150).await;
        // The load has its own connections and limit.
        client.lane().fire_ok(5).await;
        let counts = client.counts();
        assert_eq!((counts.opened, counts.idle_lost, counts.idle_failed), (151, 0, 0));
        assert_eq!(client.gauges().open, 151);
    });
    assert_eq!(server.seen().len(), 151);
}

#[test]
fn connections_closed_by_the_server_are_lost() {
    let ends = |act: Act| vec![Wait(Duration::from_millis(50)), act];
    let timeout = send("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
    let server =
        Server::start([ends(timeout), ends(Act::Reset), ends(Wait(Duration::ZERO)), vec![Hold]]);
    holding(&server, 5).run(async |client| {
        client.until("three are lost", |client| client.counts().idle_lost == 3).await;
        assert_eq!((client.counts().opened, client.gauges().open), (5, 2));
        assert_eq!(client.counts().idle_failed, 0);
    });
}

#[test]
fn refused_connections_have_failed() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setup = Setup::get(format!("http://{free}/")).with(|s| s.settings.idle_connections = 7);
    setup.run(async |client| {
        client.until("all have failed", |client| client.counts().idle_failed == 7).await;
        assert_eq!((client.counts().idle_lost, client.counts().opened), (0, 0));
    });
}

#[test]
fn pending_connections_have_failed_at_the_end() {
    let door = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    door.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    // The kernel completes one connection more than the backlog, and the others retry.
    door.listen(2).unwrap();
    let addr = door.local_addr().unwrap().as_socket().unwrap();
    let setup = Setup::get(format!("http://{addr}/")).with(|s| s.settings.idle_connections = 10);
    setup.run(async |client| {
        client.until("three are in", |client| client.gauges().open == 3).await;
        assert_eq!(client.counts().idle_failed, 0);
        client.finish();
        let counts = client.counts();
        assert_eq!((counts.opened, counts.idle_failed), (3, 7));
    });
}

#[test]
fn session_tickets_do_not_end_a_connection() {
    let server = Server::tls(pki().server(Kind::default()), [vec![Hold]]);
    let mut setup = Setup::get(format!("https://127.0.0.1:{}/", server.addr.port()));
    setup.tls.cacert = vec![pki().path("ca.pem")];
    setup.settings.idle_connections = 3;
    setup.run(async |client| {
        client.until("all are open", |client| client.gauges().open == 3).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!((client.counts().idle_lost, client.gauges().open), (0, 3));
    });
}

#[test]
fn they_open_at_their_rate() {
    let server = Server::start([vec![Hold]]);
    let setup = holding(&server, 10).with(|s| s.settings.connect_rate = Some(20.0));
    setup.run(async |client| {
        client.until("all are open", |client| client.gauges().open == 10).await;
        // The tenth is due 450 ms after the first.
        assert!((450..3_000).contains(&client.clock_millis()), "{} ms", client.clock_millis());
    });
}

#[test]
fn a_tiny_rate_does_no_harm() {
    let server = Server::start([vec![Request, ok(1), Again]]);
    let setup = holding(&server, 2).with(|s| s.settings.connect_rate = Some(1e-300));
    setup.run(async |client| client.lane().fire_ok(1).await);
}
