//! Each limit in turn, on servers that others wrote: the first finding is the true one, and where
//! nothing limits, nothing is blamed.
//!
//! `cargo xtask causes` measures every cell several times and prints the matrix of docs/causes.md;
//! the tests run those once whose answer does not hang on what else the machine does.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use gake_lab::LabConfig;

use crate::database::{KEPT, LOCK, MariaDb, SLEEP};
use crate::nginx::Nginx;
use crate::tomcat::{Settings, tomcat};
use crate::{alone, source, support::*};

/// A limit, how it is loaded, and what may be said of it first.
struct Cell {
    /// The true cause.
    cause: &'static str,
    /// First findings that name it; none where nothing limits.
    right: &'static [&'static str],
    /// Runs it and gives what was found.
    measure: fn() -> Json,
}

/// What is true of a busy machine whatever limits the server.
const MACHINES: [&str; 2] = ["run_delay", "shared_cores"];

const CELLS: &[Cell] = &[
    Cell { cause: "no limit, open loop", right: &[], measure: open_without_limit },
    Cell { cause: "no limit, closed loop", right: &[], measure: closed_without_limit },
    Cell { cause: "CPU", right: &["target_cpu"], measure: cpu },
    Cell { cause: "worker threads", right: &["target_pool"], measure: threads },
    Cell {
        cause: "worker threads, unwatched",
        right: &["pool_queueing", "unexplained"],
        measure: threads_unwatched,
    },
    Cell { cause: "connections (Tomcat)", right: &["target_connections"], measure: connections },
    Cell { cause: "connections (nginx)", right: &["server_closes"], measure: worker_connections },
    Cell { cause: "accept queue", right: &["target_overflows"], measure: accept_queue },
    Cell { cause: "database pool", right: &["target_db_pool"], measure: database_pool },
    Cell { cause: "database's connections", right: &["db_connections_refused"], measure: refused },
    Cell { cause: "churning pool", right: &["db_pool_churn"], measure: churn },
    Cell { cause: "row lock", right: &["db_locks"], measure: row_lock },
    Cell { cause: "lock", right: &["target_lock"], measure: lock },
    Cell { cause: "garbage collection", right: &["target_gc"], measure: collector },
    Cell { cause: "bandwidth", right: &["bandwidth"], measure: bandwidth },
    Cell { cause: "generator's ports", right: &["client_ports"], measure: ports },
    Cell { cause: "generator's descriptors", right: &["client_descriptors"], measure: descriptors },
];

impl Cell {
    /// Measures it once: its cause is named, and nothing else but what is so of the machine or
    /// goes with the cause.
    fn check(cause: &str, beside: &[&str]) {
        let _alone = alone();
        let cell = CELLS.iter().find(|cell| cell.cause == cause).unwrap();
        let json = (cell.measure)();
        let findings = json.at("verdict.findings").as_array().unwrap();
        let causes = findings.iter().filter(|finding| finding["rank"] == "cause");
        let causes: Vec<_> = causes.map(|finding| finding["id"].as_str().unwrap()).collect();
        let may = |id: &&str| [cell.right, beside, &MACHINES].iter().any(|ids| ids.contains(id));
        assert!(causes.iter().all(may), "{cause}: {}", json.0["verdict"]);
        assert!(cell.right.iter().all(|id| causes.contains(id)), "{cause}: {}", json.0["verdict"]);
    }
}

/// What is said where nothing is.
const NOTHING: &str = "none";

/// What is said first; what is so and explains nothing is no answer.
fn first(json: &Json) -> String {
    let findings = json.at("verdict.findings").as_array().unwrap();
    let told = findings.iter().find(|finding| finding["rank"] != "context");
    told.map_or(NOTHING, |finding| finding["id"].as_str().unwrap()).to_owned()
}

/// `gake run` of a URL, with sources beside it.
fn load(url: &str, watch: &[&str], flags: &str) -> Json {
    let watch: Vec<_> = watch.iter().flat_map(|source| ["--watch", source]).collect();
    run(&[&[url], &*watch, &*words(flags)].concat())
}

fn go() -> Peer {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    Peer::start(&mut Command::new(BUILT.get_or_init(|| go_program("go"))))
}

fn port_of(url: &str) -> String {
    let port = url.rsplit(':').next().unwrap_or_default();
    format!("port:{}", port.trim_end_matches(|c: char| !c.is_ascii_digit()))
}

fn open_without_limit() -> Json {
    let peer = go();
    load(&format!("{}/?wait=5ms", peer.url), &[&port_of(&peer.url)], "-r 100 -d 4s")
}

fn closed_without_limit() -> Json {
    let peer = go();
    load(&format!("{}/?wait=100ms", peer.url), &[&port_of(&peer.url)], "-c 20 -d 4s")
}

fn cpu() -> Json {
    let peer = go();
    load(&format!("{}/?work=100000", peer.url), &[&port_of(&peer.url)], "-c 16 -d 5s")
}

/// Room for every connection.
const TWENTY: Settings =
    Settings { threads: 20, max_connections: 8_192, accept_count: 1_000, sleep_ms: 200 };

fn threads() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 60 -d 5s --warmup 1s")
}

fn threads_unwatched() -> Json {
    let server = tomcat(TWENTY);
    // Nobody waits for the first, which shows how long one takes alone.
    load(&server.peer.url, &[], "-c 100 -d 8s")
}

fn connections() -> Json {
    let settings =
        Settings { threads: 200, max_connections: 50, accept_count: 10, sleep_ms: 1_000 };
    let server = tomcat(settings);
    load(&server.peer.url, &[&server.watch], "-c 100 -d 12s --drain 1s")
}

fn worker_connections() -> Json {
    load(&Nginx::start(50).url, &[], "-c 100 -d 3s")
}

/// A server that accepts one connection in 50 ms, with four in its queue.
fn accept_queue() -> Json {
    let listener = slow::listen();
    let url = format!("http://{}/", listener.address());
    load(&url, &[], "-c 40 --no-keepalive -d 6s --drain 1s")
}

fn database(max_connections: u32, service: (u32, u32, &str), flags: &str) -> Json {
    let database = MariaDb::start(max_connections);
    let (pool, idle, query) = service;
    let service = database.service(pool, idle, query);
    let metrics = format!("prometheus:{}/metrics", service.url);
    load(&service.url, &[&metrics, &database.watch()], flags)
}

fn database_pool() -> Json {
    database(100, (5, KEPT, SLEEP), "-c 50 -d 4s --warmup 1s")
}

fn refused() -> Json {
    database(30, (0, KEPT, SLEEP), "-c 100 -d 4s --warmup 1s")
}

fn churn() -> Json {
    database(200, (0, 2, SLEEP), "-c 40 -d 4s --warmup 1s")
}

fn row_lock() -> Json {
    database(200, (0, KEPT, LOCK), "-c 20 -d 4s --warmup 1s")
}

fn lock() -> Json {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| go_program("lock"));
    let peer = Peer::start(Command::new(program).arg("10ms"));
    let metrics = format!("prometheus:{}/metrics", peer.url);
    load(&peer.url, &[&metrics], "-c 20 -d 4s --warmup 1s")
}

fn collector() -> Json {
    let mut command = Command::new("java");
    // Hardly larger than what lives, and collected for every request.
    command.args(["-Xmx72m", "-Xmn4m", "-XX:+UseSerialGC", "-Dsun.net.httpserver.nodelay=true"]);
    command.arg(source("gc").join("Peer.java"));
    let peer = Peer::start(command.args(["80", "4"]));
    let metrics = format!("prometheus:{}/metrics", peer.url);
    load(&peer.url, &[&metrics], "-c 8 -d 5s --warmup 1s")
}

/// gake in a network of its own, whose `script` runs it as "$@".
fn in_network(script: &str, line: &str) -> Json {
    let mut command = Command::new("unshare");
    let script = format!("ip link set lo up && {script}");
    command.args(["--map-root-user", "--net", "sh", "-c", &script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_gake")).args(words(line));
    start(&mut command).wait().json()
}

/// A link of 80 Mbit/s.
fn bandwidth() -> Json {
    let script = "ip link set lo mtu 1500 && \
        tc qdisc add dev lo root tbf rate 80mbit burst 128kb latency 400ms && \
        { timeout 60 \"$1\" serve --quiet --listen 127.0.0.1:8099 >/dev/null & } && \
        until ss -ltn | grep -q :8099; do sleep 0.05; done; \
        \"$@\"; code=$?; kill $!; exit $code";
    in_network(script, "run http://127.0.0.1:8099/bytes/200000 -c 4 -d 4s -o json")
}

fn ports() -> Json {
    let script = "echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    in_network(script, "run demo -c 150 -n 1500 -o json --interface 127.0.0.1")
}

fn descriptors() -> Json {
    let lab = lab_with(LabConfig::default());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_gake")]);
    let url = url(&lab, "/delay/20ms");
    start(command.args(["run", &url]).args(words("-c 300 -n 3000 -o json"))).wait().json()
}

/// A server that accepts slowly.
mod slow {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    pub struct Listener {
        address: SocketAddr,
        ended: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    pub fn listen() -> Listener {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        socket.listen(4).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let (stream, _) = socket.accept().unwrap();
                answer(stream.into());
                thread::sleep(Duration::from_millis(50));
            }
        });
        Listener { address, ended, thread: Some(thread) }
    }

    fn answer(mut stream: TcpStream) {
        let mut head = [0; 4096];
        // Who has gone meanwhile gets no answer.
        let _ = stream.read(&mut head);
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }

    impl Listener {
        pub fn address(&self) -> SocketAddr {
            self.address
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            self.ended.store(true, Ordering::Relaxed);
            // It waits for somebody.
            let _ = TcpStream::connect(self.address);
            self.thread.take().unwrap().join().unwrap();
        }
    }
}

/// Every cell, `GAKE_CAUSES_RUNS` times each; a line each into the file `GAKE_CAUSES`.
#[test]
#[ignore = "minutes: cargo xtask causes runs it"]
fn matrix() {
    let _alone = alone();
    let path = std::env::var("GAKE_CAUSES").expect("cargo xtask causes says where");
    let runs: u32 = std::env::var("GAKE_CAUSES_RUNS").unwrap().parse().unwrap();
    let only = std::env::var("GAKE_CAUSES_ONLY").unwrap_or_default();
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    for cell in CELLS.iter().filter(|cell| cell.cause.contains(&only)) {
        for _ in 0..runs {
            let json = (cell.measure)();
            let first = first(&json);
            let is_right = match cell.right {
                [] => first == NOTHING,
                right => right.contains(&first.as_str()),
            };
            writeln!(file, "{}\t{first}\t{is_right}\t{}", cell.cause, json.at("verdict")).unwrap();
        }
    }
}

#[test]
fn where_nothing_limits_nothing_is_blamed() {
    Cell::check("no limit, open loop", &[]);
    Cell::check("no limit, closed loop", &[]);
}

#[test]
fn a_full_accept_queue_is_named() {
    // Who waits to be accepted waits for the first byte too.
    Cell::check("accept queue", &["pool_queueing"]);
}

#[test]
fn a_pool_that_keeps_no_connections_is_named() {
    Cell::check("churning pool", &[]);
}

#[test]
fn locks_are_named_where_they_are() {
    Cell::check("row lock", &[]);
    Cell::check("lock", &[]);
}

#[test]
fn a_heap_that_is_nearly_full_is_named() {
    Cell::check("garbage collection", &["target_cpu", "target_thread"]);
}

#[test]
fn a_link_that_is_full_is_named() {
    Cell::check("bandwidth", &[]);
}
