//! Kept responses.

use gake_core::record::{ExchangeEnd, ResponseSummary};
use gake_wire::KeepLimits;

use crate::client::{Setup, status_of};
use crate::server::{Act, Again, Request, Server, send};

fn chunked() -> Act {
    send(
        "HTTP/1.1 200 OK\r\nServer: one\r\nServer: two\r\nTransfer-Encoding: chunked\r\n\r\n\
         6\r\nabcdef\r\n4\r\nghij\r\n0\r\n\r\n",
    )
}

fn moved() -> Act {
    send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 4\r\n\r\nmove")
}

#[test]
fn by_default_no_response_is_kept() {
    let server = Server::start([vec![Request, chunked(), Again]]);
    let exchange = Setup::get(server.url("/")).fire();
    assert_eq!(exchange.captured, None);
    assert_eq!(
        exchange.end,
        ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 10 })
    );
}

#[test]
fn responses_are_kept_up_to_limits() {
    let server = Server::start([vec![Request, chunked(), Again]]);
    let keep = KeepLimits { responses: 2, body_bytes: 7 };
    Setup::get(server.url("/")).with(|s| s.settings.keep = Some(keep)).run(async |client| {
        let mut lane = client.lane();
        for round in 0..3 {
            let kept = lane.fire().await.captured;
            assert_eq!(kept.is_some(), round < 2, "round {round}");
            let Some(kept) = kept else { continue };
            let servers: Vec<_> =
                kept.headers.iter().filter(|(name, _)| name == "Server").collect();
            assert_eq!(
                servers.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(),
                ["one", "two"]
            );
            assert_eq!(kept.body, b"abcdefg");
        }
    });
}

#[test]
fn the_last_response_of_redirects_is_kept() {
    let server = Server::start([vec![Request, moved(), Request, chunked(), Again]]);
    let setup = Setup::get(server.url("/a")).with(|s| {
        s.settings.max_redirects = 1;
        s.settings.keep = Some(KeepLimits { responses: u64::MAX, body_bytes: 100 });
    });
    let exchange = setup.fire();
    assert_eq!(status_of(&exchange), 200);
    assert_eq!(exchange.captured.unwrap().body, b"abcdefghij");
}
