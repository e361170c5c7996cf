//! HTTP/2 clients: curl, h2load, and raw frames.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use gake_shadow::Category;
use gake_shadow::config::{Backend as BackendConfig, Config, ServerTls};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::backend::{Backend, ok};
use crate::client::{Client, get};
use crate::{LONG, config, start, stop, until_count};

/// The output of curl.
fn curl(args: &[&str], url: &str) -> String {
    let output = gake_testkit::command("curl")
        .args(["-sS", "--http2-prior-knowledge", "-w", " %{http_version} %{http_code}"])
        .args(args)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn http2_requests_reach_http1_backends() {
    let master = Backend::responding(|seen| ok(&seen.body.len().to_string()));
    let shadow = Backend::hello();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("body"), vec![b'x'; 300_000]).unwrap();
    let mut config = config(&master, &[&shadow]);
    config.shadows[0].queue = 1_000;
    let proxy = start(config);
    let url = format!("http://{}/a?b=c", proxy.addr());

    assert_eq!(curl(&["-H", "Cookie: a=1", "-H", "Cookie: b=2"], &url), "0 2 200");
    // Larger than the window, with and without a length.
    let body = format!("@{}", path("body"));
    assert_eq!(curl(&["--data-binary", &body], &url), "300000 2 200");
    let chunked = curl(&["-X", "PUT", "-H", "Content-Length:", "-T", &path("body")], &url);
    assert!(chunked.ends_with(" 2 200"), "{chunked}");
    assert_eq!(curl(&["-I", "-o", "/dev/null"], &url), " 2 200");
    // Ambiguous to HTTP/1.1 backends.
    assert!(!curl(&["-H", "Content-Length: 0, 5"], &url).ends_with(" 200"));
    assert!(!curl(&["-X", "CONNECT"], &url).ends_with(" 200"));
    let seen = master.requests();
    assert_eq!(seen.len(), 4, "{seen:?}");
    let host = proxy.addr().to_string();
    for seen in &seen {
        assert_eq!((seen.get("host"), seen.get("x-forwarded-proto")), (&*host, "http"));
    }
    assert_eq!((&*seen[0].line, seen[0].get("cookie")), ("GET /a?b=c HTTP/1.1", "a=1; b=2"));
    assert_eq!((seen[1].get("content-length"), seen[1].body.len()), ("300000", 300_000));
    assert_eq!((seen[2].get("transfer-encoding"), seen[2].get("content-length")), ("chunked", ""));
    let data = seen[2].body.iter().filter(|byte| **byte == b'x').count();
    assert_eq!((data, seen[3].line.starts_with("HEAD ")), (300_000, true));
    until_count(&proxy, 0, Category::Ok, 4);
    for copy in &shadow.requests() {
        let request = seen.iter().find(|seen| seen.line == copy.line).unwrap();
        assert_eq!(request.headers.len() + 1, copy.headers.len(), "only the marker is added");
    }

    let load = gake_testkit::command("h2load")
        .args(["-n", "300", "-c", "3", "-m", "20", &url])
        .output()
        .unwrap();
    let load = String::from_utf8_lossy(&load.stdout).into_owned();
    assert!(load.contains("300 succeeded, 0 failed, 0 errored"), "{load}");
    until_count(&proxy, 0, Category::Ok, 304);
    stop(proxy);
}

#[test]
fn http2_is_negotiated_in_the_tls_handshake() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    fs::write(path("cert.pem"), cert.pem()).unwrap();
    fs::write(path("key.pem"), signing_key.serialize_pem()).unwrap();
    let master = Backend::hello();
    let mut config = config(&master, &[]);
    config.tls = Some(ServerTls { cert: path("cert.pem"), key: path("key.pem") });
    let proxy = start(config);
    let url = format!("https://localhost:{}/", proxy.addr().port());
    let trust = path("cert.pem");
    let trust = ["--cacert", trust.to_str().unwrap()];
    assert_eq!(curl(&[&trust[..], &["--http2"]].concat(), &url), "hello 2 200");
    assert_eq!(curl(&[&trust[..], &["--http1.1"]].concat(), &url), "hello 1.1 200");
    assert_eq!(master.requests()[0].get("x-forwarded-proto"), "https");
    stop(proxy);
}

/// The preface, and SETTINGS with an initial window of 0.
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
                         \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00";
/// `GET / HTTP/2` for `h` on the first stream.
const GET: &[u8] = b"\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x01h";

/// Opens a connection and sends these bytes.
fn opened(addr: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut client = Client::new(addr).0;
    client.set_read_timeout(Some(LONG)).unwrap();
    client.write_all(bytes).unwrap();
    client
}

/// Reads until a frame of this type; returns its stream.
fn frame(client: &mut TcpStream, kind: u8) -> u32 {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        std::io::copy(&mut client.take(length.into()), &mut std::io::sink()).unwrap();
        if head[3] == kind {
            return u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        }
    }
}

#[test]
fn idle_and_stalled_http2_clients_time_out() {
    let master = Backend::hello();
    let mut config = config(&master, &[]);
    config.timeouts.head = Duration::from_millis(200);
    config.timeouts.idle = Duration::from_millis(200);
    let proxy = start(config);
    // The response finds no window: its stream is reset, then the idle connection closes.
    let mut client = opened(proxy.addr(), &[OPENING, GET].concat());
    assert_eq!(frame(&mut client, 1), 1, "the head of the response");
    assert_eq!(frame(&mut client, 3), 1, "a reset");
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    // A client without requests.
    let _ = opened(proxy.addr(), OPENING).read_to_end(&mut rest);
    let stats = stop(proxy).stats;
    assert_eq!((stats.open, stats.client_timeouts, stats.broken_responses), (0, 1, 0));
}

/// Writes a frame with a whole header block.
fn respond(backend: &mut TcpStream, stream: u32, is_last: bool, block: &[u8]) {
    let head = [0, 0, block.len() as u8, 1, 4 + u8::from(is_last)];
    backend.write_all(&[&head, &stream.to_be_bytes()[..], block].concat()).unwrap();
}

#[test]
fn a_response_without_a_status_is_malformed_and_spoils_no_other() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut backend = listener.accept().unwrap().0;
        backend.read_exact(&mut [0; 24]).unwrap();
        backend.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        let field = b"\x00\x01a\x01b";
        for number in 0..5 {
            let stream = frame(&mut backend, 1);
            match number {
                // No status: with a body, without one, after an interim response.
                0 => respond(&mut backend, stream, false, field),
                1 => respond(&mut backend, stream, true, field),
                2 => {
                    respond(&mut backend, stream, false, b"\x08\x03103");
                    respond(&mut backend, stream, true, field);
                }
                // A status, and trailers without one.
                3 => {
                    respond(&mut backend, stream, false, b"\x88");
                    respond(&mut backend, stream, true, field);
                }
                _ => respond(&mut backend, stream, true, b"\x89"),
            }
        }
        let _ = backend.read_to_end(&mut Vec::new());
    });
    let mut config = Config::new(BackendConfig::new("master", &url).unwrap());
    // Each thread has its own connection.
    config.threads = 1;
    let proxy = start(config);
    let statuses: Vec<_> = (0..5).map(|_| get(proxy.addr(), "/").status).collect();
    assert_eq!(statuses, [502, 502, 502, 200, 204]);
    stop(proxy);
}
