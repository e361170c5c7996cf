//! NTLM against a server that challenges as [MS-NLMP] says. k6 1.8.1 sends it the same messages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::common::{gake, start};

const SCRIPT: &str = "import http from 'k6/http';
export default () => {
  const response = http.post(__ENV.URL, 'body', { auth: 'ntlm' });
  console.log(response.status, response.body, Object.keys(response.request.headers).join());
};
";

/// A request as the server saw it: which connection, the kind of its message, its body.
type Seen = (usize, Option<u8>, String);

/// Serves connections until the process ends: 401 until a last message comes.
fn server() -> (u16, mpsc::Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, seen_by) = mpsc::channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (seen, stream) = (seen.clone(), stream.unwrap());
            thread::spawn(move || serve(number, stream, &seen));
        }
    });
    (port, seen_by)
}

fn serve(number: usize, mut stream: TcpStream, seen: &mpsc::Sender<Seen>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut message, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                match line.trim_end() {
                    "" => break,
                    _ => continue,
                }
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => message = value.strip_prefix("NTLM ").map(str::to_owned),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let kind = message.map(|message| STANDARD.decode(message).unwrap()[8]);
        let (status, offer) = match kind {
            None => (401, "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n".to_owned()),
            Some(1) => (401, format!("WWW-Authenticate: NTLM {}\r\n", challenge())),
            Some(_) => (200, String::new()),
        };
        let _ = seen.send((number, kind, String::from_utf8(body).unwrap()));
        let answer = format!("HTTP/1.1 {status} X\r\n{offer}Content-Length: 2\r\n\r\nhi");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A challenge of a server that says nothing about itself.
fn challenge() -> String {
    let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
    message.extend([0, 0, 0, 0, 48, 0, 0, 0]);
    message.extend(0xa009_0205_u32.to_le_bytes());
    message.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    message.extend([0; 8]);
    message.extend([0, 0, 0, 0, 48, 0, 0, 0]);
    STANDARD.encode(message)
}

#[test]
fn ntlm_logs_in_on_one_connection() {
    let (port, seen) = server();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ntlm.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let url = format!("URL=http://CORP%5Cann:secret@127.0.0.1:{port}/");
    let args = ["as", "k6", "run", "-e", &url, "--summary-mode", "full"];
    let ran = start(gake(&args).arg(&script)).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("msg=\"200 hi User-Agent\""), "{ran:?}");
    let reqs = ran.stdout.lines().find(|line| line.contains("http_reqs")).unwrap();
    assert!(reqs.contains(": 3 "), "each message is a request: {reqs}");
    let seen: Vec<Seen> = seen.try_iter().collect();
    let kinds: Vec<_> = seen.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [None, Some(1), Some(3)]);
    assert_eq!(seen[1].0, seen[2].0, "a login is of a connection");
    assert!(seen.iter().all(|(_, _, body)| body == "body"), "{seen:?}");
}
