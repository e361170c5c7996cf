//! Targets and sources of connections.

use std::net::{IpAddr, SocketAddr, TcpListener};

use gake_core::record::Fault;
use gake_wire::{SourceAddressError, WireError};

use crate::client::{Setup, status_of};
use crate::server::{Again, Request, Server, ok};

fn plain() -> Server {
    Server::start([vec![Request, ok(1), Again]])
}

fn listening_on(address: &str) -> Option<Server> {
    let listener = TcpListener::bind(address).ok()?;
    Some(Server::listen(listener, None, [vec![Request, ok(1), Again]]))
}

#[test]
fn host_is_that_of_the_url_for_any_target() {
    let server = plain();
    let port = server.addr.port();
    let mut setup = Setup::get("http://shop.test:81/x");
    setup.resolver.connect_to.push(format!("shop.test:81:127.0.0.1:{port}").parse().unwrap());
    assert_eq!(status_of(&setup.fire()), 200);
    let mut setup = Setup::get(format!("http://Shop.Test:{port}/x"));
    setup.resolver.fix(&format!("shop.test:{port}:127.0.0.1")).unwrap();
    assert_eq!(status_of(&setup.fire()), 200);
    let requests = server.requests();
    assert!(requests[0].starts_with("GET /x HTTP/1.1\r\nHost: shop.test:81\r\n"), "{requests:?}");
    assert!(requests[1].contains(&format!("Host: shop.test:{port}\r\n")), "{requests:?}");
}

#[test]
fn an_unknown_name_fails_before_the_run() {
    let error = Setup::get("http://no-such-host.invalid/").prepare().unwrap_err();
    assert!(matches!(error, WireError::Resolve(_)), "{error}");
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

#[test]
fn ipv6() {
    let Some(server) = listening_on("[::1]:0") else { return };
    let exchange =
        Setup::get(server.url("/")).with(|s| s.settings.sources.add("::1").unwrap()).fire();
    assert_eq!(status_of(&exchange), 200);
    assert!(server.requests()[0].contains(&format!("Host: [::1]:{}\r\n", server.addr.port())));
}

#[test]
fn unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let seen = Server::unix(&path, vec![Request, ok(1), Again]);
    let setup = Setup::get("http://docker.test/info").with(|s| s.resolver.unix_socket = Some(path));
    setup.run(async |client| {
        let mut lane = client.lane();
        let first = lane.fire().await;
        assert_eq!(status_of(&first), 200);
        assert!(first.connect.is_some() && first.tcp.is_none());
        lane.fire_ok(4).await;
        assert_eq!(client.counts().opened, 1);
    });
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen[0].requests.len()), (1, 5));
    assert!(seen[0].requests[0].contains("Host: docker.test\r\n"));
}

#[test]
fn addresses_of_a_name_are_used_round_robin() {
    let Some(first) = listening_on("127.0.0.1:0") else { return };
    let port = first.addr.port();
    let Some(second) = listening_on(&format!("127.0.0.2:{port}")) else { return };
    let mut setup = Setup::get(format!("http://both.test:{port}/"));
    setup.settings.keepalive = false;
    // The third is unreachable and left out.
    setup.resolver.fix("both.test:*:127.0.0.1,127.0.0.2,127.0.0.3").unwrap();
    let wire = setup.prepare().unwrap();
    assert_eq!(wire.network.origins[0].addresses.len(), 2);
    assert!(wire.notes[0].contains("127.0.0.3"), "{:?}", wire.notes);
    setup.run(async |client| client.lane().fire_ok(10).await);
    assert_eq!((first.requests().len(), second.requests().len()), (5, 5));
}

#[test]
fn without_a_reachable_address_the_run_fails() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut setup = Setup::get(format!("http://none.test:{free}/"));
    setup.resolver.fix("none.test:*:127.0.0.1,127.0.0.2").unwrap();
    assert_eq!(setup.fault(), Fault::ConnectRefused);
}

/// The peers that a server saw, in order, without
/// probes.
fn peers(server: &Server) -> Vec<IpAddr> {
    let mut peers: Vec<_> = server
        .seen()
        .iter()
        .filter(|seen| !seen.requests.is_empty())
        .map(|seen| seen.peer.unwrap().ip())
        .collect();
    peers.sort();
    peers
}

#[test]
fn every_source_is_used() {
    let server = plain();
    let setup = Setup::get(server.url("/")).with(|s| {
        s.settings.keepalive = false;
        s.settings.sources.add("127.0.0.11-127.0.0.13").unwrap();
    });
    setup.run(async |client| client.lane().fire_ok(6).await);
    let expected = [11, 11, 12, 12, 13, 13].map(|last| IpAddr::from([127, 0, 0, last]));
    assert_eq!(peers(&server), expected);
}

#[test]
fn every_source_is_used_with_every_address() {
    let Some(first) = listening_on("127.0.0.1:0") else { return };
    let port = first.addr.port();
    let Some(second) = listening_on(&format!("127.0.0.2:{port}")) else { return };
    let mut setup = Setup::get(format!("http://both.test:{port}/"));
    setup.resolver.fix("both.test:*:127.0.0.1,127.0.0.2").unwrap();
    setup.settings.keepalive = false;
    setup.settings.sources.add("127.0.0.21,127.0.0.22").unwrap();
    setup.run(async |client| client.lane().fire_ok(8).await);
    let expected = [21, 21, 22, 22].map(|last| IpAddr::from([127, 0, 0, last]));
    assert_eq!((peers(&first), peers(&second)), (expected.to_vec(), expected.to_vec()));
}

fn refused(target: &str, sources: &str) -> WireError {
    let setup = Setup::get(target).with(|s| s.settings.sources.add(sources).unwrap());
    setup.prepare().unwrap_err()
}

#[test]
fn a_foreign_source_fails_before_the_run() {
    for address in ["203.0.113.9", "2001:db8::9"] {
        let error = refused("http://127.0.0.1/", address);
        let WireError::Source(SourceAddressError::NotOurs(named)) = &error else {
            panic!("{error}")
        };
        assert_eq!(*named, address.parse::<IpAddr>().unwrap());
        assert!(error.to_string().contains("not an address of this machine"), "{error}");
    }
    let error = refused("http://127.0.0.1/", "127.0.0.1,203.0.113.9");
    assert!(error.to_string().starts_with("203.0.113.9 "), "{error}");
}

#[test]
fn a_missing_device_fails_before_the_run() {
    let error = refused("http://127.0.0.1/", "nosuchdev0");
    assert!(matches!(error, WireError::Source(SourceAddressError::Unusable { .. })), "{error}");
    assert!(error.to_string().starts_with("nosuchdev0 cannot be a source"), "{error}");
}

#[test]
fn sources_and_target_must_be_of_one_family() {
    let error = refused("http://[::1]/", "127.0.0.1");
    assert!(matches!(error, WireError::Source(SourceAddressError::Family { .. })), "{error}");
    // Only reachable addresses are used.
    let mut setup = Setup::get("http://two.test/");
    setup.resolver.fix("two.test:80:::1,127.0.0.1").unwrap();
    setup.settings.sources.add("127.0.0.1").unwrap();
    let wire = setup.prepare().unwrap();
    let v4 = gake_wire::Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 80)));
    assert_eq!(wire.network.origins[0].addresses, [v4]);
}
