//! nginx as a peer: plain, TLS, Unix socket, IPv6, redirects. Its access log counts.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;

use crate::support::*;

pub struct Nginx {
    nginx: gake_testkit::Nginx,
    pub port: u16,
    pub tls_port: u16,
    /// HTTP/2 in clear, and a GOAWAY after every 1,000 requests.
    h2c_port: u16,
}

impl Nginx {
    pub fn start() -> Self {
        let nginx = gake_testkit::Nginx::start(4096, 3, |directory, ports| {
            certificates(directory);
            let at = directory.display();
            let [port, tls_port, h2c_port] = ports else { unreachable!() };
            let listens = format!(
                "listen 127.0.0.1:{port} backlog=4096; listen [::1]:{port}; \
                 listen unix:{at}/sock; listen 127.0.0.1:{tls_port} ssl http2;"
            );
            format!(
                "log_format counted '\"$request\" $status early=$ssl_early_data';
                 access_log {at}/access counted; keepalive_requests 1000000;
                 server {{
                   {listens}
                   server_name localhost;
                   ssl_certificate {at}/server.pem; ssl_certificate_key {at}/server.key;
                   ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:sessions:1m;
                   ssl_early_data on;
                   ssl_stapling on; ssl_stapling_file {at}/ocsp;
                   location / {{ return 200 \"hello\\n\"; }}
                   location /once {{ keepalive_requests 1; return 200 \"hello\\n\"; }}
                   location /moved {{ return 302 /there; }}
                   location /circle {{ return 302 /circle; }}
                 }}
                 server {{
                   listen 127.0.0.1:{h2c_port} http2; keepalive_requests 1000;
                   location / {{ return 200 \"hello\\n\"; }}
                 }}"
            )
        });
        let [port, tls_port, h2c_port] = [0, 1, 2].map(|number| nginx.ports[number]);
        Self { nginx, port, tls_port, h2c_port }
    }

    pub fn path(&self, name: &str) -> String {
        self.nginx.path(name).to_str().unwrap().to_owned()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn tls_url(&self) -> String {
        format!("https://localhost:{}/", self.tls_port)
    }

    /// Stops it and returns the number of logged requests.
    fn end(self) -> u64 {
        self.end_with("").0
    }

    /// Ends it; how many requests it has logged, and how many of them with this.
    fn end_with(mut self, what: &str) -> (u64, u64) {
        self.nginx.quit();
        let log = fs::read_to_string(self.nginx.path("access")).unwrap();
        let is_whole = |line: &&str| line.contains("HTTP/1.1\"") || line.contains("HTTP/2.0\"");
        let lines = || log.lines().filter(is_whole);
        (lines().count() as u64, lines().filter(|line| line.contains(what)).count() as u64)
    }
}

/// An authority, a certificate of it for localhost, and another authority.
fn certificates(directory: &Path) {
    let write = |name: &str, text: String| fs::write(directory.join(name), text).unwrap();
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ca, other) = (authority("one"), authority("another"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap();
    write("ca.pem", ca.pem());
    write("other.pem", other.pem());
    write("server.pem", certificate.pem());
    write("server.key", key.serialize_pem());
    // An OCSP response that reports a malformed request.
    fs::write(directory.join("ocsp"), [0x30, 3, 0x0a, 1, 1]).unwrap();
}

#[test]
fn counts_agree_with_its_access_log() {
    let nginx = Nginx::start();
    let mut written = 0;
    for (flags, path, opened) in [
        ("-n 200 -c 20", "/", Some(20)),
        ("-n 200 -c 20 --no-keepalive", "/", Some(200)),
        ("-n 200 -c 20", "/once", Some(200)),
        ("-r 400 -d 500ms", "/", None),
        ("-r 400 -d 500ms -c 2 -t 2", "/", None),
    ] {
        let url = nginx.url(path);
        let json = run(&[&[url.as_str()], &*words(flags)].concat());
        assert_eq!(json.count("requests.ok"), 200, "{flags} {path}: {}", json.0);
        if let Some(opened) = opened {
            assert_eq!(json.count("connections.opened"), opened, "{flags} {path}");
        }
        written += json.written();
    }
    assert_eq!(nginx.end(), written);
}

#[test]
fn counts_of_http2_agree_with_its_access_log() {
    let nginx = Nginx::start();
    let clear = format!("http://127.0.0.1:{}/", nginx.h2c_port);
    let (secure, ca) = (nginx.tls_url(), nginx.path("ca.pem"));
    let mut written = 0;
    for (url, flags, opened) in [
        (&clear, "--http2 -n 900 -c 1", Some(1)),
        (&clear, "--http2 -n 200 -c 5 --streams 10", Some(5)),
        (&secure, "--http2 -n 200 -c 5 --streams 4", Some(5)),
        (&secure, "--http auto -n 200 -c 5 --streams 4", Some(5)),
        (&secure, "-n 200 -c 5", Some(5)),
        (&clear, "--http2 -n 20 -c 2 --no-keepalive", Some(20)),
        (&clear, "--http2 -r 400 -d 500ms", Some(1)),
        // Each connection ends after 1,000 requests: nothing is lost.
        (&clear, "--http2 -n 10000 -c 4 --streams 25", None),
        (&clear, "--http2 -r 10000 -d 1s -c 2", None),
    ] {
        let trusted: &[&str] = if url == &secure { &["--cacert", &ca] } else { &[] };
        let json = run(&[&[url.as_str()], trusted, &*words(flags)].concat());
        assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{flags}: {}", json.0);
        match opened {
            Some(opened) => assert_eq!(json.count("connections.opened"), opened, "{flags}"),
            None => assert!(json.count("connections.opened") >= 10, "{flags}: {}", json.0),
        }
        written += json.count("requests.ok");
    }
    assert_eq!(nginx.end(), written);
}

#[test]
fn a_server_that_is_reloaded_under_load_loses_nothing() {
    let nginx = Nginx::start();
    let (clear, plain) = (format!("http://127.0.0.1:{}/", nginx.h2c_port), nginx.url("/"));
    let access = PathBuf::from(nginx.path("access"));
    let lines = || fs::read_to_string(&access).unwrap().lines().count();
    let mut ok = 0;
    for (url, flags) in [
        (&clear, "--http2 -r 1000 -d 2s -c 3"),
        (&clear, "--http2 -d 2s -c 3 --streams 10"),
        (&plain, "-r 500 -d 2s -c 10"),
    ] {
        let before = lines();
        // Requests after the load would be in nginx's log, and not in the counts.
        let line = [&["run", url, "-o", "json", "--no-probe"], &*words(flags)].concat();
        let running = start(&mut gake(&line));
        for reload in 1..=3 {
            let seen = before + reload * 300;
            eventually("requests come", || lines() > seen);
            nginx.nginx.signal(Signal::HUP);
        }
        let json = running.wait().done().json();
        assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{flags}: {}", json.0);
        assert!(json.count("connections.opened") > 3, "{flags}: {}", json.0);
        ok += json.count("requests.ok");
    }
    assert_eq!(nginx.end(), ok);
}

#[test]
fn counts_agree_after_an_interrupt() {
    let nginx = Nginx::start();
    let url = nginx.url("/");
    let run = start(&mut gake(&["run", &url, "-r", "500", "-d", "60s", "-o", "json"]));
    let access = PathBuf::from(nginx.path("access"));
    eventually("requests come", || fs::metadata(&access).is_ok_and(|file| file.len() > 10_000));
    run.signal(Signal::INT);
    let ran = run.wait();
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.json().count("requests.written"), nginx.end());
}

#[test]
fn unix_sockets_and_ipv6_are_ways_to_it() {
    let nginx = Nginx::start();
    let (socket, port) = (nginx.path("sock"), nginx.port);
    let json = run(&["http://anything/", "-n", "50", "-c", "5", "--unix-socket", &socket]);
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (50, 5));
    let json = run(&[&format!("http://[::1]:{port}/"), "-n", "50", "-c", "5"]);
    assert_eq!(json.count("requests.ok"), 50);
    let json =
        run(&["http://[::1]/", "--connect-to", &format!("[::1]:80:127.0.0.1:{port}"), "-n", "50"]);
    assert_eq!(json.count("requests.ok"), 50);
    assert_eq!(nginx.end(), 150);
}

#[test]
fn redirects_are_followed_when_asked() {
    let nginx = Nginx::start();
    let json = run(&[&nginx.url("/moved"), "-n", "20", "-c", "2"]);
    assert_eq!(json.count("status.302"), 20);
    let json = run(&[&nginx.url("/moved"), "-n", "20", "-c", "2", "--max-redirs", "3"]);
    assert_eq!((json.count("status.200"), json.count("requests.redirects")), (20, 20));
    let circle = ran(&[
        "run",
        &nginx.url("/circle"),
        "-n",
        "20",
        "-c",
        "2",
        "--max-redirs",
        "3",
        "-o",
        "json",
    ]);
    let json = circle.json();
    assert_eq!(json.count("faults.redirect_limit"), 20, "{}", json.0);
    assert_eq!(nginx.end(), 20 + 40 + 80);
}

#[test]
fn tls_is_trusted_by_its_authority_only() {
    let nginx = Nginx::start();
    let url = nginx.tls_url();
    let load = ["run", &url, "-4", "-n", "40", "-c", "4", "-o", "json"];
    let with = |flags: &[&str]| ran(&[&load, flags].concat());

    let json = with(&["--cacert", &nginx.path("ca.pem")]).done().json();
    assert_eq!((json.count("requests.ok"), json.count("latency_ns.tls.count")), (40, 4));
    assert!(json.count("latency_ns.tls.min") > 0);
    let all = json.at("metrics.series").as_array().unwrap();
    let stapled = all.iter().find(|one| one["metric"] == "tls_stapled").unwrap();
    assert_eq!((&stapled["samples"], &stapled["passed"]), (&4.into(), &4.into()), "{stapled}");
    let json = with(&["--insecure"]).done().json();
    assert_eq!(json.count("requests.ok"), 40);

    let untrusted: &[&[&str]] = &[&["--cacert", &nginx.path("other.pem")], &[]];
    for flags in untrusted {
        let ran = with(flags);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let json = ran.json();
        assert_eq!((json.count("faults.tls"), json.count("requests.written")), (40, 0));
        let detail = json.at("fault_details")[0]["detail"].as_str().unwrap();
        assert!(detail.contains("issuer is not trusted"), "{detail}");
    }

    // Its certificate is for localhost.
    let address = format!("https://127.0.0.1:{}/", nginx.tls_port);
    let ran = ran(&["run", &address, "-n", "4", "-o", "json", "--cacert", &nginx.path("ca.pem")]);
    let json = ran.json();
    let detail = json.at("fault_details")[0]["detail"].as_str().unwrap();
    assert!(detail.contains("another name"), "{detail}");
    assert_eq!(nginx.end(), 80);
}

/// nginx responds to early data before the end of the handshake, and logs which requests it came with.
#[test]
fn early_data_is_answered_before_the_end_of_the_handshake() {
    let nginx = Nginx::start();
    let (url, ca) = (nginx.tls_url(), nginx.path("ca.pem"));
    let flags = words("-4 -n 40 -c 1 --no-keepalive --tls-early-data");
    let json = run(&[&flags[..], &["--cacert", &ca, url.as_str()]].concat());
    assert_eq!((json.count("requests.sent"), json.count("requests.ok")), (40, 40), "{json:?}");
    let all = json.at("metrics.series").as_array().unwrap();
    let early = all.iter().find(|one| one["metric"] == "tls_early_data").unwrap();
    let accepted = early["passed"].as_u64().unwrap();
    let (logged, early) = nginx.end_with("early=1");
    assert_eq!(logged, 40);
    assert!(0 < early && early <= accepted && accepted < 40, "{early} {accepted} {json:?}");
}

#[test]
fn http_where_tls_is_expected_is_a_fault_that_says_so() {
    let nginx = Nginx::start();
    let url = format!("https://127.0.0.1:{}/", nginx.port);
    let ran = ran(&["run", &url, "-n", "4", "-k", "-o", "json"]);
    let json = ran.json();
    assert_eq!(json.count("faults.tls"), 4, "{}", json.0);
    let detail = json.at("fault_details")[0]["detail"].as_str().unwrap();
    assert!(detail.contains("does not speak TLS"), "{detail}");
    nginx.end();
}
