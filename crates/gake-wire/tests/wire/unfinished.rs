//! Abandoned arrivals: their facts, and the state of their connection.

use gake_core::record::{Exchange, ExchangeEnd};

use crate::client::{Client, Setup};
use crate::server::{Act, Again, Hold, Request, Server, ok, send};

fn abandoned(
    script: Vec<Act>,
    what: &str,
    mut is_so: impl FnMut(&Client, &Server) -> bool,
) -> Exchange {
    let server = Server::start([script]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        let exchange = lane.abandon_when(what, |client| is_so(client, &server)).await;
        assert_eq!(exchange.end, ExchangeEnd::Unfinished);
        assert_eq!(client.gauges().open, 0, "the connection is closed");
        client.until("the server hears of it", |_| server.is_over()).await;
        exchange
    })
}

#[test]
fn before_the_connection() {
    // A SYN to this address gets no reply, because of a full backlog.
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let patience = std::time::Duration::from_millis(200);
    let fill: Vec<_> =
        std::iter::from_fn(|| std::net::TcpStream::connect_timeout(&addr, patience).ok()).collect();
    Setup::get(format!("http://{addr}/")).run(async |client| {
        let begun = std::time::Instant::now();
        let so = |_: &Client| begun.elapsed() >= patience;
        let exchange = client.lane().abandon_when("time passes", so).await;
        assert_eq!(exchange.end, ExchangeEnd::Unfinished);
        assert!(!exchange.written && exchange.connect.is_none() && exchange.first_byte.is_none());
        assert_eq!((exchange.bytes_out, exchange.bytes_in), (0, 0));
    });
    drop(fill);
}

#[test]
fn before_the_response() {
    let exchange = abandoned(vec![Request, Hold], "the request is read", |_, server| {
        server.requests().len() == 1
    });
    assert!(exchange.written && exchange.bytes_out > 0 && exchange.connect.is_some());
    assert_eq!((exchange.first_byte, exchange.bytes_in), (None, 0));
}

/// Long enough for bytes on loopback to be read.
fn soon() -> impl FnMut(&Client, &Server) -> bool {
    let mut since = None;
    move |_, server| {
        let read = server.requests().len() == 1;
        let since = since.get_or_insert_with(std::time::Instant::now);
        if !read {
            *since = std::time::Instant::now();
        }
        read && since.elapsed() > std::time::Duration::from_millis(300)
    }
}

#[test]
fn in_the_head() {
    let half = send("HTTP/1.1 200 OK\r\nX:");
    let exchange = abandoned(vec![Request, half, Hold], "half a head", soon());
    assert!(exchange.written && exchange.first_byte.is_some());
    assert_eq!(exchange.bytes_in, 19);
}

#[test]
fn in_the_body() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    let exchange = abandoned(vec![Request, send(half), Hold], "half a body", soon());
    assert!(exchange.written && exchange.first_byte.is_some());
    assert_eq!(exchange.bytes_in, half.len() as u64);
}

#[test]
fn while_writing() {
    let server = Server::start([vec![Act::Wait(std::time::Duration::from_secs(5))]]);
    Setup::post(server.url("/"), vec![0; 32 << 20]).run(async |client| {
        let begun = std::time::Instant::now();
        let so = |_: &Client| begun.elapsed() >= std::time::Duration::from_millis(300);
        let exchange = client.lane().abandon_when("time passes", so).await;
        assert!(!exchange.written && exchange.bytes_out > 0 && exchange.first_byte.is_none());
    });
}

#[test]
fn the_lane_can_be_used_again() {
    let server = Server::start([vec![Request, Hold], vec![Request, ok(1), Again]]);
    Setup::get(server.url("/")).run(async |client| {
        let mut lane = client.lane();
        lane.abandon_when("the request is read", |_| server.requests().len() == 1).await;
        lane.fire_ok(2).await;
        assert_eq!((client.counts().opened, client.gauges().open), (2, 1));
    });
}
