//! A running proxy, and a client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::*;

/// `gake shadow` on free ports, with its admin service.
pub struct Proxy {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    pub url: String,
    admin: String,
}

/// The outcome.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// Without the URL, its first line.
    pub stdout: String,
    pub stderr: String,
}

impl Proxy {
    pub fn start(flags: &[&str]) -> Self {
        let ports = ["shadow", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut child = gake(&[&ports, flags].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut url, mut admin) = (String::new(), String::new());
        stdout.read_line(&mut url).unwrap();
        stderr.read_line(&mut admin).unwrap();
        let said = admin.split_once("admin: http://").map(|(_, rest)| rest);
        let address = said.and_then(|rest| rest.split([',', '\n']).next());
        let admin = address.unwrap_or_else(|| panic!("{url}{admin}")).to_owned();
        // Read to the end, so that the pipe never fills.
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, stdout, stderr: Some(stderr), url: url.trim_end().to_owned(), admin }
    }

    /// Its only or its first shadow's ledger, whose identity holds.
    pub fn ledger(&self) -> Value {
        let answer = ask(&self.admin, "GET", "/ledger", "", "");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str::<Value>(body).unwrap()[0].take()
    }

    /// What its admin service replies.
    pub fn admin(&self, path: &str) -> String {
        ask(&self.admin, "GET", path, "", "")
    }

    /// The same once all copies have come to an end.
    pub fn settled(&self) -> Value {
        eventually("all copies end", || self.ledger()["in_flight"] == 0);
        self.ledger()
    }

    pub fn end(mut self, signal: Signal) -> Ended {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ended { code, stdout, stderr }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // At the end of a test it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many of `received` came to which end, by a ledger that adds up.
pub fn entries(ledger: &Value) -> u64 {
    let others = ["name", "received", "balance", "answers", "bytes_in"];
    let ends = ledger.as_object().unwrap().iter().filter(|(name, _)| !others.contains(&&***name));
    let sum: u64 = ends.map(|(_, count)| count.as_u64().unwrap()).sum();
    assert_eq!((&ledger["received"], &ledger["balance"]), (&sum.into(), &0.into()), "{ledger}");
    sum
}

/// The response to one request on a connection of its own.
pub fn ask(address: &str, method: &str, target: &str, headers: &str, body: &str) -> String {
    let address = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{length}{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{method} {target}: {answer:?}");
    answer
}
