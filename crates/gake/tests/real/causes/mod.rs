//! Each limit in turn, on servers that others wrote: the first finding is the true one, and where
//! nothing limits, nothing is blamed.
//!
//! `cargo xtask causes` measures every cell several times and prints the matrix of docs/causes.md;
//! the tests run those once whose answer does not hang on what else the machine does.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gake_lab::LabConfig;

use crate::database::{KEPT, LOCK, MariaDb, SLEEP};
use crate::group::Group;
use crate::nginx::Nginx;
use crate::tomcat::{Settings, tomcat};
use crate::{alone, slow, source, support::*};

/// A limit, how it is loaded, and what may be said of it first.
struct Cell {
    /// The true cause.
    cause: &'static str,
    /// First findings that name it; none where nothing limits.
    right: &'static [&'static str],
    /// Runs it and gives what was found.
    measure: fn() -> Json,
    /// Makes the control group that it needs, to see whether this machine allows it.
    needs: Option<fn() -> Option<Group>>,
}

/// What is true of a busy machine whatever limits the server.
const MACHINES: [&str; 2] = ["run_delay", "shared_cores"];

const CELLS: &[Cell] = &[
    Cell::new("no limit, open loop", &[], open_without_limit),
    Cell::new("no limit, closed loop", &[], closed_without_limit),
    Cell::new("CPU", &["target_cpu"], cpu),
    Cell::new("CPU, 64 users", &["target_cpu"], cpu_many),
    Cell::new("CPU quota", &["target_cpu_quota"], cpu_quota).needing(Group::of_cpu),
    Cell::new("memory", &["target_memory"], memory).needing(Group::of_memory),
    Cell::new("worker threads", &["target_pool"], threads),
    Cell::new("worker threads, 30 users", &["target_pool"], threads_few),
    Cell::new("worker threads, 200 users", &["target_pool"], threads_many),
    Cell::new("worker threads, unwatched", &["pool_queueing", "unexplained"], threads_unwatched),
    Cell::new("connections (Tomcat)", &["target_connections"], connections),
    Cell::new("connections (nginx)", &["server_closes"], worker_connections),
    Cell::new("accept queue", &["target_overflows"], accept_queue),
    Cell::new("database pool", &["target_db_pool"], database_pool),
    Cell::new("database pool, 10 users", &["target_db_pool"], database_pool_few),
    Cell::new("database's connections", &["db_connections_refused"], refused),
    Cell::new("churning pool", &["db_pool_churn"], churn),
    Cell::new("row lock", &["db_locks"], row_lock),
    Cell::new("lock", &["target_lock"], lock),
    Cell::new("garbage collection", &["target_gc"], collector),
    Cell::new("bandwidth", &["bandwidth"], bandwidth),
    Cell::new("generator's ports", &["client_ports"], ports),
    Cell::new("generator's descriptors", &["client_descriptors"], descriptors),
];

impl Cell {
    const fn new(
        cause: &'static str,
        right: &'static [&'static str],
        measure: fn() -> Json,
    ) -> Self {
        Self { cause, right, measure, needs: None }
    }

    const fn needing(self, group: fn() -> Option<Group>) -> Self {
        Self { needs: Some(group), ..self }
    }

    /// Whether this machine allows what it needs.
    fn is_allowed(&self) -> bool {
        self.needs.is_none_or(|group| group().is_some())
    }

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

fn go_binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| go_program("go"))
}

fn go() -> Peer {
    Peer::start(&mut Command::new(go_binary()))
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

fn cpu_many() -> Json {
    let peer = go();
    load(&format!("{}/?work=100000", peer.url), &[&port_of(&peer.url)], "-c 64 -d 5s")
}

fn cpu_quota() -> Json {
    let group = Group::of_cpu().unwrap();
    let peer = Peer::start(&mut group.command(go_binary()));
    load(&format!("{}/?work=20000", peer.url), &[&port_of(&peer.url)], "-c 8 -d 5s --warmup 1s")
}

/// 512 MB of data, of which 64 MB fit into memory.
fn memory() -> Json {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| go_program("paged"));
    let (group, folder) = (Group::of_memory().unwrap(), tempfile::tempdir().unwrap());
    let peer = Peer::start(group.command(program).arg(folder.path().join("data")).arg("512"));
    load(&peer.url, &[&port_of(&peer.url)], "-c 8 -d 5s --warmup 1s")
}

fn threads_few() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 30 -d 5s --warmup 1s")
}

fn threads_many() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 200 -d 6s --warmup 2s")
}

fn database_pool_few() -> Json {
    database(100, (5, KEPT, SLEEP), "-c 10 -d 4s --warmup 1s")
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
        if !cell.is_allowed() {
            eprintln!("{} is left out: no control group can be made here", cell.cause);
            continue;
        }
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
fn a_full_pool_that_nobody_watches_is_not_passed_over_in_silence() {
    let _alone = alone();
    let json = threads_unwatched();
    let said = first(&json);
    // On a machine that is busy its cores may be to blame as well.
    let may = ["pool_queueing", "unexplained"].iter().chain(&MACHINES);
    assert!(may.into_iter().any(|id| *id == said), "{said}: {}", json.0["verdict"]);
}

#[test]
fn a_bound_on_cpu_is_named_where_one_can_be_set() {
    if Group::of_cpu().is_some() {
        Cell::check("CPU quota", &["target_cpu"]);
    }
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
