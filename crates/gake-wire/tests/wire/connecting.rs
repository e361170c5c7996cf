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

/// A listener that takes no more connections: its backlog is full, and stays so while this lives.
struct Full {
    addr: SocketAddr,
    _socket: Socket,
    _fill: Vec<TcpStream>,
}

impl Full {
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
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    Setup::get(format!("http://{free}/")).run(async |client| {
        let exchange = client.lane().fire().await;
        assert_eq!(fault_of(&exchange), Fault::ConnectRefused);
        assert_eq!((exchange.connect, exchange.bytes_out), (None, 0));
        // The attempt did leave.
        assert!(exchange.has_left());
        assert_eq!((client.counts().opened, client.gauges().peak), (0, 0));
    });
}

#[test]
fn nobody_listens_on_the_unix_socket() {
    let path = std::env::temp_dir().join("gake-no-such-socket");
    let setup = Setup::get("http://x/").with(|s| s.resolver.unix_socket = Some(path));
    assert_eq!(setup.fault(), Fault::ConnectRefused);
}

#[test]
fn a_full_backlog_is_a_connect_timeout() {
    let full = Full::new();
    let setup = Setup::get(format!("http://{}/", full.addr))
        .with(|s| s.settings.timeouts.connect = Duration::from_millis(300));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::ConnectTimeout);
    assert!((300..2_000).contains(&millis(exchange.done)), "{exchange:?}");
    assert_eq!(exchange.connect, None);
}

#[test]
fn the_whole_time_may_pass_while_connecting() {
    let full = Full::new();
    let setup = Setup::get(format!("http://{}/", full.addr))
        .with(|s| s.settings.timeouts.total = Duration::from_millis(300));
    let exchange = setup.fire();
    assert_eq!(fault_of(&exchange), Fault::Timeout(Phase::Connect));
    assert!((300..2_000).contains(&millis(exchange.done)), "{exchange:?}");
}

/// In a network of its own, which has no way out.
#[test]
fn an_unreachable_network_is_no_refusal() {
    if !in_own_network("connecting::an_unreachable_network_is_no_refusal") {
        return;
    }
    assert_eq!(Setup::get("http://192.0.2.77:9/").fault(), Fault::ConnectReset);
}

/// Runs one test of this executable alone in a process of its own, behind `before`, with a
/// variable set. True in that process; false when it has passed.
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
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    false
}

fn in_own_network(test: &str) -> bool {
    let allowed = std::process::Command::new("unshare").args(["-rn", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("not tested: this machine gives nobody a network of their own");
        return false;
    }
    alone(test, &["unshare", "-rn"])
}

#[test]
fn no_descriptor_is_left() {
    if !alone("connecting::no_descriptor_is_left", &[]) {
        return;
    }
    let server = Server::start([vec![Request, ok(1)]]);
    Setup::get(server.url("/")).run(async |client| {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        // Nothing can be opened any more; what is open stays so.
        let none = Rlimit { current: Some(0), ..before };
        setrlimit(Resource::Nofile, none).unwrap();
        let exchange = client.lane().fire().await;
        assert_eq!((fault_of(&exchange), exchange.has_left()), (Fault::NoDescriptors, false));
        setrlimit(Resource::Nofile, before).unwrap();
        client.lane().fire_ok(1).await;
    });
}

/// In a network of its own, where there are four local ports.
#[test]
fn no_local_port_is_left() {
    if !in_own_network("connecting::no_local_port_is_left") {
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
        // The connections that are open work on.
        lanes[0].fire_ok(1).await;
    });
    // What one source lacks, the next one has.
    setup("127.0.0.2,127.0.0.3").run(async |client| {
        let mut lanes: Vec<_> = (0..8).map(|_| client.lane()).collect();
        for lane in &mut lanes {
            lane.fire_ok(1).await;
        }
        assert_eq!(fault_of(&client.lane().fire().await), Fault::NoLocalPort);
        assert_eq!(client.counts().opened, 8);
    });
}

/// In a network of its own, where there are a hundred local ports.
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
        let said = notes.iter().any(|note| note.contains("127.0.0.1 to 127.0.0.3"));
        assert_eq!(said, sources == 3, "{notes:?}");
        setup.run(async |client| {
            let mut lanes: Vec<_> = (0..users).map(|_| client.lane()).collect();
            for lane in &mut lanes {
                lane.fire_ok(1).await;
            }
            assert_eq!(client.gauges().open as usize, users);
            let counts = client.counts();
            // A port that the last run left in TIME-WAIT is one fewer, and the next source is tried.
            assert!(counts.connects as usize >= users, "{counts:?}");
            assert!(counts.connect_cpu > 0);
        });
        let peers: Vec<_> = server.seen()[before..].iter().filter_map(|seen| seen.peer).collect();
        let addresses: BTreeSet<_> = peers.iter().map(SocketAddr::ip).collect();
        assert_eq!(addresses.len(), sources, "{addresses:?}");
        // The whole range is searched from the start, and not the ports of one parity first.
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
