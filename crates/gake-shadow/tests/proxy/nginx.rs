//! nginx as master and shadow, its access log counting the requests; and as a reference proxy.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use gake_shadow::config::{Backend as BackendConfig, Config};
use gake_shadow::{Category, Proxy, ProxySummary};
use tempfile::TempDir;

use crate::client::Client;
use crate::{shadow_at, stop, until};

pub struct Nginx {
    child: Child,
    directory: TempDir,
    pub ports: [u16; 2],
}

impl Nginx {
    /// Starts nginx with two servers that have this location.
    pub fn start(location: &str) -> Self {
        Self::speaking("", location)
    }

    /// Like [`start`](Self::start), with parameters of `listen`.
    pub fn speaking(protocol: &str, location: &str) -> Self {
        // Another process may take a port in between.
        (0..5)
            .find_map(|_| Self::try_start(protocol, location))
            .expect("nginx does not start on any port")
    }

    fn try_start(protocol: &str, location: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = free.map(|listener| listener.local_addr().unwrap().port());
        let at = directory.path().display();
        let server = |number: usize| {
            format!(
                "server {{ listen 127.0.0.1:{} {protocol}; access_log {at}/{number};
                   merge_slashes off; location / {{ {location} }} }}",
                ports[number]
            )
        };
        let configuration = format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error;
             events {{ worker_connections 1024; }}
             http {{
               keepalive_requests 50;
               client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
               uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
               {} {}
             }}",
            server(0),
            server(1)
        );
        fs::write(directory.path().join("conf"), configuration).unwrap();
        let child = Command::new("nginx")
            .args(["-c", &format!("{at}/conf"), "-e", &format!("{at}/error")])
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is needed for this test: install the Debian package nginx-light");
        let mut nginx = Self { child, directory, ports };
        until("nginx listens or ends", || {
            TcpStream::connect(("127.0.0.1", ports[1])).is_ok()
                || nginx.child.try_wait().unwrap().is_some()
        });
        nginx.child.try_wait().unwrap().is_none().then_some(nginx)
    }

    fn url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[number])
    }

    /// Requests in the log by protocol.
    fn logged(&self, number: usize, protocol: &str) -> usize {
        let log = fs::read_to_string(self.directory.path().join(number.to_string()));
        log.unwrap_or_default().lines().filter(|line| line.contains(protocol)).count()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Runs eight clients against a proxy whose master and shadow have these URLs.
fn copied(urls: [String; 2], ask: impl Fn(&mut Client) + Send + Sync) -> ProxySummary {
    let [master, shadow] = urls;
    let mut config = Config::new(BackendConfig::new("nginx", &master).unwrap());
    config.threads = 2;
    let mut shadow = shadow_at(0, &shadow);
    shadow.queue = 10_000;
    config.shadows.push(shadow);
    let proxy = Proxy::new(config).unwrap().start().unwrap();
    let addr = proxy.addr();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| ask(&mut Client::new(addr)));
        }
    });
    stop(proxy)
}

#[test]
fn nginx_gets_every_request_and_copy() {
    let nginx = Nginx::start(r#"return 200 "hello\n";"#);
    let summary = copied([0, 1].map(|number| nginx.url(number)), |client| {
        for _ in 0..200 {
            let response = client.get("/");
            assert_eq!((response.status, response.body.as_str()), (200, "hello\n"));
        }
    });
    assert_eq!(summary.ledgers[0].count(Category::Ok), 1600, "{}", summary.ledgers[0]);
    assert_eq!(summary.stats.responses[2], 1600);
    let logged = |number| nginx.logged(number, "HTTP/1.1\"");
    until("both logs are written", || logged(0) == 1600 && logged(1) == 1600);
}

/// nginx closes connections after 50 requests, and refuses the requests in flight.
#[test]
fn no_request_is_lost_when_nginx_closes_http2_connections() {
    let nginx = Nginx::speaking("http2", "return 200 \"$request_method $host$request_uri\\n\";");
    let urls = [0, 1].map(|number| nginx.url(number).replace("http:", "h2c:"));
    let summary = copied(urls, |client| {
        for number in 0..100 {
            let path = format!("/{number}?a=b");
            let response = client.get(&path);
            assert_eq!((response.status, response.body), (200, format!("GET h{path}\n")));
            let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5");
            client.write(format!("{head}\r\n\r\nhello"));
            let response = client.response(false);
            assert_eq!((response.status, response.body), (200, format!("POST h{path}\n")));
        }
    });
    assert_eq!(summary.ledgers[0].count(Category::Ok), 1600, "{}", summary.ledgers[0]);
    assert_eq!((summary.stats.responses[2], summary.stats.master_faults), (1600, 0));
    let logged = |number| nginx.logged(number, "HTTP/2.0\"");
    until("both logs are written", || logged(0) >= 1600 && logged(1) >= 1600);
}
