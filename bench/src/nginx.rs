//! The server of the throughput parts: Debian's nginx with our own configuration.
//!
//! One process, pinned; a short fixed response; no log. Its `stub_status` says how
//! many requests it served, which is what the clients are measured by.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::process::{Launch, Running};

/// An nginx that is running. Dropping it ends it.
pub struct Nginx {
    process: Option<Running>,
    port: u16,
}

impl Nginx {
    /// Starts one in a directory of its own, pinned to a core.
    pub fn start(dir: &Path, core: usize) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = launch(dir, Some(core), &configuration(dir, None, &server(port)))?;
        let nginx = Self { process: Some(process), port };
        for _ in 0..100 {
            if nginx.served().is_ok() {
                return Ok(nginx);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(error_log(dir)).unwrap_or_default();
        bail!("nginx did not start: {}", log.trim())
    }

    /// What a client is pointed at.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// How many requests it served so far, this question included.
    pub fn served(&self) -> Result<u64> {
        let answer = status(self.port)?;
        parse_status(&answer).with_context(|| format!("no count in nginx's status: {answer:?}"))
    }
}

/// The whole response of a server on this machine to `/status`.
pub fn status(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
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

/// Starts an nginx in a directory of its own.
pub fn launch(dir: &Path, core: Option<usize>, configuration: &str) -> Result<Running> {
    let program = gake_testkit::find("nginx").context("nginx is not installed")?;
    let file = dir.join("nginx.conf");
    fs::write(&file, configuration)?;
    let path = |path: &Path| path.display().to_string();
    let log = path(&error_log(dir));
    let args = ["-p".into(), path(dir), "-c".into(), path(&file), "-e".into(), log];
    let limit = Duration::from_secs(24 * 3600);
    Launch { program: &program, args: &args, stdin: None, core, limit }.start()
}

fn error_log(dir: &Path) -> PathBuf {
    dir.join("nginx-error.log")
}

/// The server of the throughput parts.
fn server(port: u16) -> String {
    format!(
        r#"server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ return 200 "ok\n"; }}
        location = /status {{ stub_status; }}
    }}"#
    )
}

/// nginx's settings around servers; without workers it is one process.
pub fn configuration(dir: &Path, workers: Option<usize>, servers: &str) -> String {
    let dir = dir.display();
    let master = if workers.is_some() { "on" } else { "off" };
    let workers = workers.unwrap_or(1);
    format!(
        r"daemon off;
master_process {master};
worker_processes {workers};
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
    {servers}
}}
"
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
