//! nginx as master and shadow: its access logs count what came. Also as another proxy.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use gake_shadow::config::{Backend as Place, Config};
use gake_shadow::{Category, Proxy};
use tempfile::TempDir;

use crate::client::Client;
use crate::{shadow_at, stop, until};

/// An nginx with two servers.
pub struct Nginx {
    child: Child,
    directory: TempDir,
    pub ports: [u16; 2],
}

impl Nginx {
    /// Starts one whose servers have this in their locations.
    pub fn start(location: &str) -> Self {
        // Another program may take a port in between.
        (0..5).find_map(|_| Self::try_start(location)).expect("nginx does not start on any port")
    }

    fn try_start(location: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = free.map(|listener| listener.local_addr().unwrap().port());
        let at = directory.path().display();
        let server = |number: usize| {
            format!(
                "server {{ listen 127.0.0.1:{}; access_log {at}/{number};
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

    fn logged(&self, number: usize) -> usize {
        let log = fs::read_to_string(self.directory.path().join(number.to_string()));
        log.unwrap_or_default().lines().filter(|line| line.contains("HTTP/1.1\"")).count()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn nginx_answers_everything_and_sees_every_copy() {
    let nginx = Nginx::start(r#"return 200 "hello\n";"#);
    let mut config = Config::new(Place::new("nginx", &nginx.url(0)).unwrap());
    config.threads = 2;
    let mut shadow = shadow_at(0, &nginx.url(1));
    shadow.queue = 10_000;
    config.shadows.push(shadow);
    let proxy = Proxy::new(config).unwrap().start().unwrap();
    let addr: SocketAddr = proxy.addr();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::new(addr);
                for _ in 0..200 {
                    let answer = client.get("/");
                    assert_eq!((answer.status, answer.body.as_str()), (200, "hello\n"));
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let summary = stop(proxy);
    assert_eq!(summary.ledgers[0].count(Category::Ok), 1600, "{}", summary.ledgers[0]);
    assert_eq!(summary.stats.answers[2], 1600);
    until("both logs are written", || nginx.logged(0) == 1600 && nginx.logged(1) == 1600);
}
