//! Connections that cannot be opened.

#![expect(
    unsafe_code,
    reason = "ioctl SIOCSIFFLAGS: the loopback of a network namespace is brought up"
)]

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use gake_core::record::{Fault, Phase};
use socket2::{Domain, Socket, Type};

use crate::client::{Setup, fault_of, millis};
use crate::server::{Again, Request, Server, ok};

/// A listener with a full backlog.
struct FullListener {
    addr: SocketAddr,
    _socket: Socket,
    _fill: Vec<TcpStream>,
}

impl FullListener {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        let addr = socket.local_addr().unwrap().as_socket().unwrap();
        let mut fill = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&addr, Duration::from_millis(200)) {
            fill.push(stream);
            assert!(fill.len() < 100, "the backlog never fills");
        }
        Self { addr, _socket: socket, _fill: fill }
    }
}

#[test]
fn a_port_without_a_listener_refuses() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    Setup::get(format!("http://{free}/")).run(async |client| {
        let exchange = client.lane().fire().await;
        assert_eq!(fault_of(&exchange), Fault::ConnectRefused);
        assert_eq!((exchange.connect, exchange.bytes_out), (None, 0));
        // The attempt was made.
        assert!(exchange.has_left());
        assert_eq!((client.counts().opened, client.gauges().peak), (0, 0));
    });
}

#[test]
fn a_unix_socket_without_a_listener_refuses() {
    let path = std::env::temp_dir().join("gake-no-such-socket");
    let setup = Setup::get("http://x/").with(|s| s.resolver.unix_socket = Some(path));
    assert_eq!(setup.fault(), Fault::ConnectRefused);
}

#[test]
fn a_full_backlog_is_a_connect_timeout() {
    let full = FullListener::new();
    let setup = Setup::get(format!("http://{}/", full.addr))
        .with(|s| s.settings.timeouts.connect = Duration::from_millis(300));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::ConnectTimeout);
    assert!((300..2_000).contains(&millis(exchange.done)), "{exchange:?}");
    assert_eq!(exchange.connect, None);
}

#[test]
fn the_total_time_out_applies_while_connecting() {
    let full = FullListener::new();
    let setup = Setup::get(format!("http://{}/", full.addr))
        .with(|s| s.settings.timeouts.total = Duration::from_millis(300));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::Timeout(Phase::Connect));
    assert!((300..2_000).contains(&millis(exchange.done)), "{exchange:?}");
}

/// In a network namespace without routes.
#[test]
fn an_unreachable_network_is_not_a_refusal() {
    if !in_own_network("connecting::an_unreachable_network_is_not_a_refusal") {
        return;
    }
    assert_eq!(Setup::get("http://192.0.2.77:9/").fault(), Fault::Unreachable(101));
}

/// Runs one test of this executable in a separate process, by the command `before`, with a
/// variable set. True in that process; false once it has passed.
fn alone(test: &str, before: &[&str]) -> bool {
    const VARIABLE: &str = "GAKE_TEST_ALONE";
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let executable = std::env::current_exe().unwrap();
    let mut words = before.iter().map(std::ffi::OsStr::new).chain([executable.as_os_str()]);
    let child = std::process::Command::new(words.next().unwrap())
        .args(words)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
    false
}

fn in_own_network(test: &str) -> bool {
    let allowed = std::process::Command::new("unshare").args(["-rn", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("not tested: this machine does not allow network namespaces");
        return false;
    }
    alone(test, &["unshare", "-rn"])
}

#[test]
fn without_descriptors_connecting_fails() {
    if !alone("connecting::without_descriptors_connecting_fails", &[]) {
        return;
    }
    let server = Server::start([vec![Request, ok(1)]]);
    Setup::get(server.url("/")).run(async |client| {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        // Open connections still work.
        let none = Rlimit { current: Some(0), ..before };
        setrlimit(Resource::Nofile, none).unwrap();
        let exchange = client.lane().fire().await;
        assert_eq!((fault_of(&exchange), exchange.has_left()), (Fault::NoDescriptors, false));
        setrlimit(Resource::Nofile, before).unwrap();
        client.lane().fire_ok(1).await;
    });
}

/// In a network namespace with four local ports.
#[test]
fn without_local_ports_connecting_fails() {
    if !in_own_network("connecting::without_local_ports_connecting_fails") {
        return;
    }
    raise_loopback();
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "50000 50003").unwrap();
    let listener = TcpListener::bind("127.0.0.1:8080").unwrap();
    let server = Server::listen(listener, None, [vec![Request, ok(1), Again]]);
    let setup = |sources: &str| {
        Setup::get(server.url("/")).with(|s| {
            s.settings.pooled = false;
            s.settings.sources.add(sources).unwrap();
        })
    };
    setup("127.0.0.1").run(async |client| {
        let mut lanes: Vec<_> = (0..4).map(|_| client.lane()).collect();
        for lane in &mut lanes {
            lane.fire_ok(1).await;
        }
        assert_eq!(fault_of(&client.lane().fire().await), Fault::NoLocalPort);
        // Open connections still work.
        lanes[0].fire_ok(1).await;
    });
    // The next source has free ports.
    setup("127.0.0.2,127.0.0.3").run(async |client| {
        let mut lanes: Vec<_> = (0..8).map(|_| client.lane()).collect();
        for lane in &mut lanes {
            lane.fire_ok(1).await;
        }
        assert_eq!(fault_of(&client.lane().fire().await), Fault::NoLocalPort);
        assert_eq!(client.counts().opened, 8);
    });
}

/// In a network namespace with a hundred local ports.
#[test]
fn loopback_has_more_addresses_when_one_has_too_few_ports() {
    if !in_own_network("connecting::loopback_has_more_addresses_when_one_has_too_few_ports") {
        return;
    }
    raise_loopback();
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "50000 50099").unwrap();
    let listener = TcpListener::bind("127.0.0.1:8080").unwrap();
    let server = Server::listen(listener, None, [vec![Request, ok(1), Again]]);
    for (users, sources) in [(40, 1), (250, 3)] {
        let before = server.seen().len();
        let setup = Setup::get(server.url("/")).with(|s| {
            s.settings.pooled = false;
            s.settings.connections = users;
        });
        let notes = setup.prepare().unwrap().notes;
        let is_noted = notes.iter().any(|note| note.contains("127.0.0.1 to 127.0.0.3"));
        assert_eq!(is_noted, sources == 3, "{notes:?}");
        setup.run(async |client| {
            let mut lanes: Vec<_> = (0..users).map(|_| client.lane()).collect();
            for lane in &mut lanes {
                lane.fire_ok(1).await;
            }
            assert_eq!(client.gauges().open as usize, users);
            let counts = client.counts();
            // Ports in TIME-WAIT are skipped for the next source.
            assert!(counts.connects as usize >= users, "{counts:?}");
            assert!(counts.connect_cpu > 0);
        });
        let peers: Vec<_> = server.seen()[before..].iter().filter_map(|seen| seen.peer).collect();
        let addresses: BTreeSet<_> = peers.iter().map(SocketAddr::ip).collect();
        assert_eq!(addresses.len(), sources, "{addresses:?}");
        // The whole range is searched, not the ports of one parity first.
        let odd = peers.iter().filter(|peer| peer.port() % 2 == 1).count();
        assert!(odd > 0 && odd < peers.len(), "{peers:?}");
    }
}

fn raise_loopback() {
    use std::os::fd::AsRawFd;
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    // SAFETY: every field is an integer or an array of them.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the pointer is valid for the length of the call, and names an interface.
    let raised = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) };
    assert_eq!(raised, 0);
}
