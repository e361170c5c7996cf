//! `--proxy`: through a proxy to nginx, plain and with TLS.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::nginx::Nginx;
use crate::support::*;

/// `me:secret` in basic authentication.
const CREDENTIALS: &str = "Proxy-Authorization: Basic bWU6c2VjcmV0";

/// A proxy that knows one host, `shop.test`, and who may ask.
struct Proxy {
    url: String,
    /// The first line of each connection.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(plain: u16, tls: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, seen) = (stream.unwrap(), Arc::clone(&seen));
                thread::spawn(move || serve(stream, (plain, tls), &seen));
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Asks the target for one connection's first request, and passes the rest on.
fn serve(mut client: TcpStream, (plain, tls): (u16, u16), seen: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head.clone()).unwrap();
    let line = text.lines().next().unwrap().to_owned();
    seen.lock().unwrap().push(line.clone());
    let mut refuse = |status: &str| {
        let _ =
            write!(client, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let tunnel = line.starts_with("CONNECT ");
    if !text.contains(CREDENTIALS) {
        return refuse("407 Proxy Authentication Required");
    }
    if !(line.starts_with("CONNECT shop.test:443 ") || line.starts_with("GET http://shop.test/")) {
        return refuse("502 Bad Gateway");
    }
    let port = if tunnel { tls } else { plain };
    let mut target = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    match tunnel {
        true => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap(),
        // nginx takes the absolute form too.
        false => target.write_all(&head).unwrap(),
    }
    let (mut from, mut to) = (client.try_clone().unwrap(), target.try_clone().unwrap());
    let up = thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut target, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    up.join().unwrap();
}

fn through(proxy: &Proxy, line: &str) -> Json {
    let url = format!("http://me:secret@{}", proxy.url);
    run(&[&*words(line), &["-x", &url]].concat())
}

#[test]
fn plain_requests_are_absolute_and_tls_goes_through_a_tunnel() {
    let nginx = Nginx::start();
    let proxy = Proxy::start(nginx.port, nginx.tls_port);
    // Only the proxy knows the name.
    let json = through(&proxy, "http://shop.test/a?b=c -n 20 -c 2");
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (20, 2));
    assert_eq!(proxy.asked(), ["GET http://shop.test/a?b=c HTTP/1.1"; 2]);
    let json = through(&proxy, "https://shop.test/ -n 20 -c 2 -k");
    assert_eq!((json.count("requests.ok"), json.count("connections.opened")), (20, 2));
    assert_eq!(proxy.asked()[2..], ["CONNECT shop.test:443 HTTP/1.1"; 2]);
    assert!(json.count("latency_ns.tls.count") == 2, "{}", json.0);
    assert!(!json.0.to_string().contains("secret"), "{}", json.0);
}

#[test]
fn a_refusal_by_the_proxy_is_reported_as_the_proxys() {
    let nginx = Nginx::start();
    let proxy = Proxy::start(nginx.port, nginx.tls_port);
    let url = format!("http://{}", proxy.url);
    let line = ["run", "https://shop.test/", "-n", "4", "-c", "1", "-o", "json", "-x", &url];
    let json = ran(&line).json();
    assert_eq!(json.count("faults.proxy"), 4, "{}", json.0);
    assert!(json.0.to_string().contains("407"), "{}", json.0);
    let json = ran(&[&line[..1], &["https://other.test/"], &line[2..]].concat()).json();
    assert_eq!(json.count("faults.proxy"), 4, "{}", json.0);
    // The proxy itself responds to a plain request.
    let json = ran(&[&line[..1], &["http://shop.test/"], &line[2..]].concat()).json();
    assert_eq!(json.count("status.407"), 4, "{}", json.0);
}

#[test]
fn a_proxy_that_is_not_there_is_named() {
    // A proxy that does not exist is named by its address.
    let json = ran(&["run", "http://shop.test/", "-n", "1", "-x", "127.0.0.1:1", "-o", "json"]);
    assert_eq!(json.json().count("faults.proxy"), 1);
}

#[test]
fn a_proxy_is_not_asked_for_http2_in_clear() {
    let nginx = Nginx::start();
    let proxy = Proxy::start(nginx.port, nginx.tls_port);
    let url = format!("http://me:secret@{}", proxy.url);
    let line = ["run", "http://shop.test/", "--proxy", &url, "--http2", "-n", "4", "-c", "1"];
    let json = ran(&[&line[..], &["-o", "json"]].concat()).json();
    assert_eq!((json.count("faults.proxy"), json.count("requests.ok")), (4, 0), "{}", json.0);
}

/// Ends TLS in front of a proxy: key and certificate in PEM, the port of the proxy.
const TLS_FRONT: &str = "
const [key, cert, port] = process.argv.slice(1);
const read = require('fs').readFileSync;
const server = require('tls').createServer({ key: read(key), cert: read(cert) }, (client) => {
  const proxy = require('net').connect(port, '127.0.0.1');
  for (const side of [client, proxy]) side.on('error', () => { client.destroy(); proxy.destroy(); });
  client.pipe(proxy).pipe(client);
});
server.listen(0, '127.0.0.1', () => console.log(`https://localhost:${server.address().port}`));
";

#[test]
fn a_proxy_may_be_behind_tls() {
    let nginx = Nginx::start();
    let proxy = Proxy::start(nginx.port, nginx.tls_port);
    let port = proxy.url.rsplit(':').next().unwrap();
    let (key, certificate) = (nginx.path("server.key"), nginx.path("server.pem"));
    let front = Peer::start(Command::new("node").args(["-e", TLS_FRONT, &key, &certificate, port]));
    let url = front.url.replace("://", "://me:secret@");
    let ca = nginx.path("ca.pem");
    // TLS to the target goes through TLS to the proxy, whose certificate is checked as well.
    for (target, trust) in
        [("http://shop.test/", &["--cacert", &ca][..]), ("https://shop.test/", &["-k"])]
    {
        let line = [&[target, "-n", "20", "-c", "2", "-x", &url], trust].concat();
        let json = run(&line);
        let opened = (json.count("requests.ok"), json.count("connections.opened"));
        assert_eq!(opened, (20, 2), "{target}: {}", json.0);
        assert!(!json.0.to_string().contains("secret"), "{}", json.0);
    }
    let asked = ["GET http://shop.test/ HTTP/1.1", "CONNECT shop.test:443 HTTP/1.1"];
    assert_eq!(proxy.asked(), [asked[0], asked[0], asked[1], asked[1]]);
    let line = ["run", "http://shop.test/", "-n", "2", "-c", "1", "-x", &url, "-o", "json"];
    let json = ran(&line).json();
    assert_eq!((json.count("faults.proxy"), json.count("requests.ok")), (2, 0), "{}", json.0);
}
