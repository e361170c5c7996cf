//! Tomcat, and the lab with the same settings: both must behave alike.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::*;
use crate::{copy_dependencies, source};

/// A server whose handler sleeps, one request a thread.
pub struct Server {
    pub peer: Peer,
    /// What tells of its threads and connections.
    pub watch: String,
    /// What it keeps beside the load.
    _directory: Option<TempDir>,
}

/// Its settings, as Tomcat names them.
#[derive(Clone, Copy)]
pub struct Settings {
    pub threads: u64,
    pub max_connections: u64,
    pub accept_count: u64,
    pub sleep_ms: u64,
}

/// Tomcat's jars, fetched once.
fn jars() -> PathBuf {
    let jars = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tomcat-10.1.34");
    let pom = fs::read(source("tomcat").join("pom.xml")).unwrap();
    once(&jars.join("pom"), &pom, || copy_dependencies("tomcat", &jars));
    jars
}

pub fn tomcat(settings: Settings) -> Server {
    let Settings { threads, max_connections, accept_count, sleep_ms } = settings;
    let directory = tempfile::tempdir().unwrap();
    let mut command = command("java");
    command
        .arg(format!("-Djava.io.tmpdir={}", directory.path().display()))
        .arg("-cp")
        .arg(format!("{}/*", jars().display()))
        .arg(source("tomcat").join("Peer.java"))
        .args([threads, max_connections, accept_count, sleep_ms].map(|n| n.to_string()));
    let mut peer = Peer::start(&mut command);
    let watch = format!("actuator:{}", peer.line());
    Server { peer, watch, _directory: Some(directory) }
}

fn lab(settings: Settings) -> Server {
    let Settings { threads, max_connections, accept_count, sleep_ms } = settings;
    let flags = format!(
        "--threads {threads} --max-connections {max_connections} --accept-count {accept_count} \
         --service const:{sleep_ms}ms"
    );
    let peer = Peer::lab(&words(&flags));
    let watch = format!("prometheus:{}/metrics", peer.url);
    Server { peer, watch, _directory: None }
}

/// Starts a server with settings.
type Start = fn(Settings) -> Server;

const BOTH: [(&str, Start); 2] = [("tomcat", tomcat), ("lab", lab)];

/// Checks both servers beside each other: their handlers sleep, and leave the cores idle.
fn of_both(check: impl Fn(&str, Start) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        for (name, start) in BOTH {
            scope.spawn(move || check(name, start));
        }
    });
}

/// With room for every connection.
fn threads(threads: u64) -> Settings {
    Settings { threads, max_connections: 8_192, accept_count: 1_000, sleep_ms: 500 }
}

fn load(server: &Server, flags: &str) -> Json {
    let watch = ["--watch", &server.watch];
    run(&[&[server.peer.url.as_str()], &watch[..], &*words(flags)].concat())
}

/// Responses a second for users without think time; checks the limit.
fn rate(server: &Server, settings: Settings) -> f64 {
    let seconds = 5;
    let users = settings.threads * 3;
    let json = load(server, &format!("-c {users} -d {seconds}s --warmup 1500ms"));
    let ok = json.count("requests.ok");
    // Each thread sends a response per service time; the run waits for requests in flight at the end.
    let in_time = settings.threads * seconds * 1_000 / settings.sleep_ms;
    assert!(ok <= in_time + settings.threads + users, "{ok} of {in_time}");
    let rate = json.number("rate.completed");
    let limit = (settings.threads * 1_000 / settings.sleep_ms) as f64;
    assert!((limit * 0.7..=limit * 1.05).contains(&rate), "{rate} of {limit}: {}", json.0);
    let findings = json.findings();
    assert!(findings.contains(&"target_pool"), "{findings:?}");
    // Of the connection nothing is said: it was never the limit.
    assert!(!findings.iter().any(|id| id.contains("connection")), "{findings:?}");
    rate
}

#[test]
fn threads_over_service_time_is_the_rate() {
    of_both(|name, start| {
        let few = rate(&start(threads(20)), threads(20));
        let many = rate(&start(threads(50)), threads(50));
        assert!(many > 1.7 * few, "{name}: {few} to {many}");
    });
}

#[test]
fn half_as_many_again_as_there_are_threads_wait_once() {
    for (name, start) in BOTH {
        let server = start(threads(20));
        let json = load(&server, "-n 30 -c 30");
        assert_eq!(json.count("requests.ok"), 30, "{name}: {}", json.0);
        let response = |quantile| json.number(&format!("latency_ns.response.{quantile}")) / 1e6;
        // The first 20 after one service time, the others after two, less the time by which they
        // came later than those they wait for.
        assert!(response("p50") >= 499.0 && response("p50") < 900.0, "{name}: {}", json.0);
        assert!(response("p75") >= 900.0, "{name}: {}", json.0);
    }
}

#[test]
fn tomcat_counts_the_same_over_http2() {
    let server = tomcat(Settings { sleep_ms: 1, ..threads(20) });
    let mut sent = 0;
    for flags in ["-n 300 -c 3 --streams 10", "-n 300 -c 1 --streams 100", "-r 200 -d 1s -c 2"] {
        let json = run(&[&[server.peer.url.as_str(), "--http2"], &*words(flags)].concat());
        assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{}", json.0);
        assert_eq!(json.text("connections.protocol"), "HTTP/2");
        sent += json.count("requests.ok");
    }
    assert_eq!(number_after(&server.peer.end(), "requests"), sent);
}

#[test]
fn connections_beyond_the_limit_are_never_answered() {
    let settings =
        Settings { threads: 200, max_connections: 50, accept_count: 10, sleep_ms: 1_000 };
    of_both(|name, start| {
        let server = start(settings);
        // A short drain: when the others leave at the end, waiting clients are accepted.
        let json = load(&server, "-c 100 -d 12s --drain 1s");
        // 50 are served, the others wait in the backlog or outside it.
        let unfinished = json.count("requests.unfinished");
        assert!(unfinished <= 100, "{name}: {unfinished}");
        // 50 in each of the 12 s, at the very most.
        let ok = json.count("requests.ok");
        assert!(ok <= 50 * 13 + 50, "{name}: {ok}");
        let findings = json.findings();
        assert_eq!(findings[0], "target_connections", "{name}: {findings:?}");
        assert!(findings.contains(&"connection_limit"), "{name}: {findings:?}");
        // The kernel counts it at the server's own socket, so nothing is guessed.
        assert!(findings.contains(&"target_overflows"), "{name}: {findings:?}");
        let guesses = ["syn_drops", "accept_queue"];
        assert!(!findings.iter().any(|id| guesses.contains(id)), "{name}: {findings:?}");
        // The packets were lost in the queue and not on the way.
        assert!(!findings.contains(&"retransmits"), "{name}: {findings:?}");
        // With room for all there is none of it, and the rate doubles.
        let roomy = Settings { max_connections: 200, accept_count: 200, ..settings };
        let cured = load(&start(roomy), "-c 100 -d 5s --warmup 1s");
        let doubled = cured.number("rate.completed");
        assert!(doubled > 1.4 * json.number("rate.completed"), "{name}: {doubled}");
        let findings = cured.findings();
        assert!(!findings.iter().any(|id| id.contains("connection")), "{name}: {findings:?}");
    });
}
