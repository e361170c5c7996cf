//! The server of the throughput parts: Debian's nginx with our own configuration.
//!
//! One process, pinned; a short fixed answer; no log. Its `stub_status` says how
//! many requests it served, which is what the clients are measured by.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::process::{Launch, Running};
use crate::command;

/// An nginx that is running. Dropping it ends it.
pub struct Nginx {
    process: Option<Running>,
    port: u16,
}

impl Nginx {
    /// Starts one in a directory of its own, pinned to a core.
    pub fn start(dir: &Path, core: usize) -> Result<Self> {
        let program = command::find("nginx").context("nginx is not installed")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = dir.join("nginx.conf");
        fs::write(&file, configuration(dir, port))?;
        let path = |path: &Path| path.display().to_string();
        let log = path(&dir.join("nginx-error.log"));
        let args = ["-p".into(), path(dir), "-c".into(), path(&file), "-e".into(), log.clone()];
        let limit = Duration::from_secs(24 * 3600);
        let launch = Launch { program: &program, args: &args, stdin: None, core, limit };
        let nginx = Self { process: Some(launch.start()?), port };
        for _ in 0..100 {
            if nginx.served().is_ok() {
                return Ok(nginx);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("nginx did not start: {}", fs::read_to_string(log).unwrap_or_default().trim())
    }

    /// What a client is pointed at.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// How many requests it served so far, this question included.
    pub fn served(&self) -> Result<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        parse_status(&answer).with_context(|| format!("no count in nginx's status: {answer:?}"))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.terminate();
            // A server without connections ends at once; if not, the drop kills it.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The third number of the line under `server accepts handled requests`.
fn parse_status(answer: &str) -> Option<u64> {
    let (_, rest) = answer.split_once("server accepts handled requests")?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn configuration(dir: &Path, port: u16) -> String {
    let dir = dir.display();
    format!(
        r#"daemon off;
master_process off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log warn;
events {{ worker_connections 16000; use epoll; }}
http {{
    access_log off;
    keepalive_requests 4000000000;
    keepalive_timeout 3600s;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    default_type text/plain;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ return 200 "ok\n"; }}
        location = /status {{ stub_status; }}
    }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read() {
        let answer = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \n\
                      server accepts handled requests\n 3 3 7 \nReading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(parse_status(answer), Some(7));
        assert_eq!(parse_status("nothing"), None);
    }
}
