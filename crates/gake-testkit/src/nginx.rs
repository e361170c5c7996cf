//! An nginx in a folder of its own, on free ports.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::command;

/// How long it may take to listen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running nginx; ended when it is dropped.
pub struct Nginx {
    child: Child,
    directory: TempDir,
    /// What it listens at, on 127.0.0.1.
    pub ports: Vec<u16>,
}

impl Nginx {
    /// Starts it with so many connections and so many free ports; `http` gives the contents of the
    /// block `http` for a folder, where files may be written, and the ports.
    ///
    /// # Panics
    /// If nginx is not installed, or does not listen.
    pub fn start(
        worker_connections: u32,
        ports: usize,
        http: impl Fn(&Path, &[u16]) -> String,
    ) -> Self {
        // Another program may take a port in between.
        (0..5)
            .find_map(|_| Self::try_start(worker_connections, ports, &http))
            .expect("nginx does not start on any port")
    }

    fn try_start(
        worker_connections: u32,
        ports: usize,
        http: impl Fn(&Path, &[u16]) -> String,
    ) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let free: Vec<_> = (0..ports).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> =
            free.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(free);
        let http = http(directory.path(), &ports);
        let at = directory.path().display();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error;
             events {{ worker_connections {worker_connections}; }}
             http {{
               client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
               uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
               {http}
             }}"
        );
        let file = directory.path().join("conf");
        fs::write(&file, configuration).unwrap();
        let child = command("nginx")
            .arg("-c")
            .arg(&file)
            .args(["-e", &format!("{at}/error")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut nginx = Self { child, directory, ports };
        let begun = Instant::now();
        let is_listening = |nginx: &Self| {
            nginx.ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        };
        while !is_listening(&nginx) {
            if nginx.child.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(begun.elapsed() < PATIENCE, "nginx does not listen");
            thread::sleep(Duration::from_millis(2));
        }
        // Another process may listen at its port while it ends.
        nginx.child.try_wait().unwrap().is_none().then_some(nginx)
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The URL of one of its ports.
    pub fn url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[number])
    }

    /// Sends a signal to its master.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it once it has responded to every request: its logs are whole then.
    pub fn quit(&mut self) {
        self.signal(Signal::QUIT);
        self.child.wait().unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}
