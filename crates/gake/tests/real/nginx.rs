//! nginx with few connections for each worker.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::alone;
use crate::support::*;

pub struct Nginx {
    child: Child,
    _directory: TempDir,
    pub url: String,
}

impl Nginx {
    pub fn start(worker_connections: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error;
             events {{ worker_connections {worker_connections}; }}
             http {{
               access_log off; keepalive_requests 1000000; keepalive_timeout 60s;
               client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
               uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
               server {{ listen {address} backlog=4096; location / {{ return 200 \"hello\\n\"; }} }}
             }}"
        );
        fs::write(directory.path().join("conf"), configuration).unwrap();
        let child = Command::new("nginx")
            .args(["-c", &format!("{at}/conf"), "-e", &format!("{at}/error")])
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is needed for this test: install the Debian package nginx");
        eventually("nginx listens", || TcpStream::connect(address).is_ok());
        Self { child, _directory: directory, url: format!("http://{address}/") }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn too_few_worker_connections_are_closed_under_their_requests() {
    let _alone = alone();
    let flags = words("-c 100 -d 3s");
    let few = Nginx::start(50);
    let json = run(&[&[few.url.as_str()], &*flags].concat());
    assert!(json.findings().contains(&"server_closes"), "{}", json.at("verdict"));
    let failed = json.count("requests.failed") + json.count("connections.stale_reconnects");
    assert!(failed > 100, "{}", json.0);
    let enough = Nginx::start(500);
    let json = run(&[&[enough.url.as_str()], &*flags].concat());
    assert!(!json.findings().contains(&"server_closes"), "{}", json.at("verdict"));
    assert_eq!(json.count("requests.failed"), 0, "{}", json.0);
    assert_eq!(json.count("connections.opened"), 100, "{}", json.0);
}
