//! Servers of HTTP/2 and HTTP/3 that others wrote: Go, Node, nghttpd, and their own counts.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::*;

/// The window of Go's server, unless a test is about it.
const WINDOW: u32 = 1 << 20;

fn golang(window: u32) -> (Peer, String) {
    let program = go_program("protocols");
    let mut peer = Peer::start(Command::new(program).arg(window.to_string()));
    let secure = peer.line();
    (peer, secure)
}

fn node(arguments: &[&str]) -> Peer {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/node/server.mjs");
    Peer::start(command("node").arg(script).args(arguments))
}

/// Runs a line against `url`: how many requests were ok, which are all that were sent.
fn all_ok(url: &str, line: &str) -> Json {
    let json = run(&[&[url, "-k"], &*words(line)].concat());
    let counts = ["requests.ok", "requests.sent", "requests.written"].map(|name| json.count(name));
    assert_eq!(counts, [counts[0]; 3], "{line}: {}", json.0);
    json
}

#[test]
fn go_counts_the_same_over_every_protocol() {
    let (peer, secure) = golang(WINDOW);
    let mut sent = [0; 4];
    let mut opened = [0; 2];
    for (url, version, line) in [
        (&peer.url, 1, "-n 100 -c 4"),
        (&peer.url, 2, "--http2 -n 300 -c 3 --streams 10"),
        (&peer.url, 2, "--http2 -r 300 -d 1s -c 2"),
        (&secure, 2, "--http2 -n 300 -c 3 --streams 10"),
        (&secure, 2, "--http auto -n 100 -c 2 --streams 5"),
        (&secure, 3, "--http3 -n 300 -c 3 --streams 10"),
        (&secure, 3, "--http3 -r 300 -d 1s -c 2"),
        (&secure, 3, "--http3 -n 30 -c 3 --streams 1 --no-keepalive"),
    ] {
        let json = all_ok(url, line);
        sent[version] += json.count("requests.ok");
        opened[version / 3] += json.count("connections.opened");
    }
    let json = all_ok(&secure, "--http auto3 -n 50 -c 1 --streams 1");
    // The first response, over TCP, makes the offer.
    sent[2] += 1;
    sent[3] += 49;
    assert_eq!(json.count("connections.opened"), 2, "{}", json.0);
    let end = peer.end();
    let counts = ["http1", "http2", "http3"].map(|name| number_after(&end, name));
    assert_eq!(counts, sent[1..], "{end}");
    let counts = ["connections", "quic"].map(|name| number_after(&end, name));
    assert_eq!(counts, [opened[0] + 1, opened[1] + 1], "{end}");
}

#[test]
fn bodies_go_up_and_down_to_go() {
    let (peer, secure) = golang(WINDOW);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    std::fs::write(&path, vec![b'x'; 3_000_000]).unwrap();
    let body = format!("@{}", path.display());
    let url = format!("{secure}/?bytes=2000000");
    for http in ["--http2", "--http3"] {
        let line = format!("{http} -n 6 -c 2 --streams 3 --data {body}");
        let json = all_ok(&url, &line);
        assert_eq!(json.count("requests.ok"), 6);
        assert!(json.count("bytes.in") >= 12_000_000, "{}", json.0);
    }
    assert_eq!(number_after(&peer.end(), "bytes"), 12 * 3_000_000);
}

#[test]
fn an_encrypted_hello_is_accepted_by_the_holder_of_its_key() {
    let ((mut peer, secure), (mut other, _)) = (golang(WINDOW), golang(WINDOW));
    // An address has no name that could be hidden.
    let url = secure.replace("127.0.0.1", "localhost");
    let folder = tempfile::tempdir().unwrap();
    let list = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (list("right", peer.line()), list("wrong", other.line()));
    let ran = |http: &str, ech: &str| {
        let line = "-k -4 -n 5 -c 1 --no-keepalive -o json --http";
        ran(&[&["run", &url, "--ech", ech], &*words(line), &[http]].concat())
    };
    for http in ["1.1", "3"] {
        for (ech, expected) in [(right.as_str(), "accepted"), ("grease", "grease")] {
            let json = ran(http, ech).done().json();
            assert_eq!(json.count("requests.ok"), 5, "{}", json.0);
            let all = json.at("metrics.series").as_array().unwrap();
            let handshakes = all.iter().find(|one| one["metric"] == "tls_handshakes").unwrap();
            assert_eq!(handshakes["tags"]["ech"], expected, "{handshakes}");
        }
        let json = ran(http, &wrong).json();
        assert_eq!(json.count("faults.tls"), 5, "{}", json.0);
        assert!(json.at("fault_details").to_string().contains("encrypted hello"), "{}", json.0);
    }
    let noise = list("noise", "noise".to_owned());
    ran("1.1", &noise).refused(1, "configurations of ECH");
    let end = peer.end();
    assert_eq!(["http1", "http3"].map(|name| number_after(&end, name)), [10; 2], "{end}");
}

/// The peak memory of `run`'s process, in bytes, and the outcome of `run`.
fn watched(run: Started) -> (u64, Ran) {
    let status = format!("/proc/{}/status", run.pid());
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        // Once it has ended, it has no memory, or no entry at all.
        while let Ok(text) = std::fs::read_to_string(&status)
            && text.contains("VmHWM:")
        {
            peak = number_after(&text, "VmHWM:") * 1024;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        peak
    });
    let ran = run.wait();
    (watch.join().unwrap(), ran)
}

#[test]
fn large_bodies_flow_through_small_and_large_windows_in_bounded_memory() {
    let size: u64 = if full() { 1 << 30 } else { 32 << 20 };
    let folder = tempfile::tempdir().unwrap();
    // Sparse files of zeros.
    let [small, large] = [("small", 1), ("large", size)].map(|(name, size)| {
        let path = folder.path().join(name);
        File::create(&path).unwrap().set_len(size).unwrap();
        format!("@{}", path.display())
    });
    for (window, bits) in [(1 << 16, "16"), (1 << 24, "24")] {
        let (peer, secure) = golang(window);
        let down = |size: u64| {
            let url = format!("{}/?bytes={size}", peer.url);
            let line = ["as", "h2load", "-n", "1", "-c", "1", "-w", bits, "-W", bits, &url];
            let (peak, ran) = watched(start(&mut gake(&line)));
            let ran = ran.done();
            let expected = format!("({size}) data");
            assert!(
                ran.stdout.contains(&expected) && ran.stdout.contains("1 succeeded"),
                "{ran:?}"
            );
            peak
        };
        // What a run takes anyway is what it takes for a byte.
        let more = down(size).saturating_sub(down(1));
        assert!(more < size / 2, "{more} bytes more with a window of {window}");
        for (url, http) in [(&peer.url, "--http2"), (&secure, "--http3")] {
            let up = |body: &str| {
                let line = ["run", url, "-k", http, "-n", "1", "-c", "1", "-o", "json"];
                let (peak, ran) =
                    watched(start(&mut gake(&[&line, &["--data", body][..]].concat())));
                assert_eq!(ran.done().json().count("requests.ok"), 1);
                peak
            };
            // It is in memory once.
            let more = up(&large).saturating_sub(up(&small));
            assert!(more < size / 2 * 3, "{more} bytes more with a window of {window}, {http}");
        }
        assert_eq!(number_after(&peer.end(), "bytes"), 2 * (size + 1));
    }
}

#[test]
fn node_counts_the_same_while_its_bound_on_streams_falls() {
    let peer = node(&[]);
    let line = "--http2 -n 500 -c 3 --streams 20";
    assert_eq!(all_ok(&peer.url, line).count("connections.opened"), 3);
    let end = peer.end();
    let counts = ["requests", "sessions"].map(|name| number_after(&end, name));
    assert_eq!(counts, [500, 3], "{end}");
    for line in ["-n 400 -c 1 --streams 40", "-n 400 -c 3 --streams 20", "-r 400 -d 1s -c 2"] {
        let peer = node(&["falling"]);
        let json = all_ok(&peer.url, &format!("--http2 {line}"));
        assert_eq!(json.count("requests.ok"), 400, "{line}");
        assert!(json.count("connections.http2.stream_waits") > 0, "{line}: {}", json.0);
        assert_eq!(number_after(&peer.end(), "requests"), 400, "{line}");
    }
}

/// nghttpd, which writes to a file what it receives. Ended when it is dropped.
struct Nghttpd {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Nghttpd {
    fn start() -> Self {
        // A port that is free now may be another's before nghttpd has it.
        (0..5).find_map(|_| Self::try_start()).expect("nghttpd listens on none of five ports")
    }

    /// `None` when it ends at once: its port is taken.
    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.html"), "hello\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Each line as it comes.
        let child = Command::new("stdbuf")
            .arg("-oL")
            .arg(command("nghttpd").get_program())
            .args(["-v", "--no-tls", "-a", "127.0.0.1", "-m", "10", "-d"])
            .arg(folder.path())
            .arg(port.to_string())
            .stdout(File::create(folder.path().join("log")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut started = Self { child, port, folder };
        let mut has_ended = false;
        eventually("nghttpd listens or ends", || {
            has_ended = started.child.try_wait().unwrap().is_some();
            has_ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        (!has_ended).then_some(started)
    }

    /// Stops it and returns what it received.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        // At the end of a test it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn nghttpd_counts_the_same() {
    let server = Nghttpd::start();
    let url = format!("http://127.0.0.1:{}/", server.port);
    let (mut sent, mut refused) = (0, 0);
    for line in ["-n 300 -c 3 --streams 10", "-n 300 -c 1 --streams 50", "-r 300 -d 1s -c 2"] {
        let json = all_ok(&url, &format!("--http2 {line}"));
        sent += json.count("requests.ok");
        // More than ten at once that are there before its settings are refused, and sent again.
        refused += json.count("connections.http2.unhandled");
    }
    let log = server.end();
    assert_eq!(log.matches("recv HEADERS frame").count() as u64, sent + refused);
    assert_eq!(sent, 900);
}
