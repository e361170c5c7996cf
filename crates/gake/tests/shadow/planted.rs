//! A secret of its own in every field of every channel: none is in anything that a process writes,
//! sends to a sink or serves.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;

use crate::proxy::{Proxy, ask};
use crate::secrets::files;
use crate::support::*;

/// The secrets of a test, by the field where each is planted.
#[derive(Default)]
struct Planted {
    seed: u64,
    secrets: BTreeMap<String, String>,
}

impl Planted {
    fn new(seed: u64) -> Self {
        Self { seed, secrets: BTreeMap::new() }
    }

    /// `text` with a secret in place of each `«field»`; a field whose name ends in `*` has one of a
    /// known shape.
    fn fill(&mut self, text: &str) -> String {
        let mut filled = String::new();
        for (number, part) in text.split(['«', '»']).enumerate() {
            match number % 2 {
                0 => filled += part,
                _ => filled += &self.secret(part),
            }
        }
        filled
    }

    fn secret(&mut self, field: &str) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
        if let Some(known) = self.secrets.get(field) {
            return known.clone();
        }
        let mut secret = if field.ends_with('*') { "ghp_7" } else { "" }.to_owned();
        let length = if field.ends_with('*') { 40 } else { 14 };
        while secret.len() < length {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A text of letters only may be a word.
            let from = if secret.len() == 7 { LETTERS.len() - 8 } else { 0 };
            let at = (self.seed >> 33) as usize % (LETTERS.len() - from);
            secret.push(char::from(LETTERS[from + at]));
        }
        self.secrets.insert(field.to_owned(), secret.clone());
        secret
    }

    /// Adds a line to `found` for each secret in something that was written.
    fn look(&self, place: &str, bytes: &[u8], found: &mut String) {
        let plain = String::from_utf8_lossy(bytes);
        let wide: Vec<u16> =
            bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        let wide = String::from_utf16_lossy(&wide);
        for (field, secret) in &self.secrets {
            let at = [&*plain, &wide].iter().find_map(|text| Some((*text, text.find(secret)?)));
            if let Some((text, at)) = at {
                let from = text.floor_char_boundary(at.saturating_sub(60));
                let _ = writeln!(found, "{field} in {place}: {:?}", &text[from..at + secret.len()]);
            }
        }
    }

    /// The same for every file below a folder.
    fn look_below(&self, folder: &Path, found: &mut String) -> Vec<PathBuf> {
        let files = files(folder);
        for path in &files {
            self.look(
                &path.file_name().unwrap().to_string_lossy(),
                &fs::read(path).unwrap(),
                found,
            );
        }
        files
    }
}

/// Takes whatever is sent to it, and keeps the bodies; a request has the credentials of the address
/// in its head.
struct Taker {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<u8>>>,
}

impl Taker {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::<Mutex<Vec<u8>>>::default();
        let taken = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = Arc::clone(&taken);
                thread::spawn(move || take(stream, &taken));
            }
        });
        Self { address, bodies }
    }
}

fn take(stream: TcpStream, bodies: &Mutex<Vec<u8>>) {
    serve_requests(stream, |head, body| {
        bodies.lock().unwrap().extend(body);
        let body = match head.starts_with("GET /metrics") {
            true => "requests_total 1\nprocess_cpu_seconds_total 1\n",
            false => "{\"id\":1,\"n\":0}",
        };
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
}

/// The page of a run and its events, read from the beginning to the end of the run.
fn watch_page(started: &Started) -> thread::JoinHandle<Vec<u8>> {
    let address = || {
        let stderr = started.stderr();
        assert!(!stderr.contains("error: "), "{stderr}");
        let rest = stderr.split_once("live page: http://")?.1.to_owned();
        Some(rest.split_once('/')?.0.to_owned())
    };
    eventually("the page is served", || address().is_some());
    let address = address().unwrap();
    thread::spawn(move || {
        let mut seen = Vec::new();
        for path in ["/", "/events"] {
            let Ok(mut stream) = TcpStream::connect(&address) else { break };
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let _ = stream.read_to_end(&mut seen);
        }
        seen
    })
}

/// All outputs of a run.
const OUTPUTS: &str = "--body-errors --save --web=127.0.0.1:0 --out r.hlog --html r.html -o text \
                       -o json=r.json -o markdown=r.md -o junit=r.xml -o openmetrics=r.om \
                       -o csv=r.csv --sink json=live.json --sink csv=live.csv --log every.csv";

/// Runs `gake run` with all outputs. Returns what they contain that they must not.
fn run_planted(planted: &Planted, args: &[&str], inputs: &[(&str, String)]) -> String {
    let (folder, taker) = (tempfile::tempdir().unwrap(), Taker::start());
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    for (name, text) in inputs {
        fs::write(input.join(name), text).unwrap();
    }
    let written = folder.path().join("out");
    fs::create_dir(&written).unwrap();
    let sink = format!("influxdb=http://{}/db", taker.address);
    let args: Vec<String> =
        args.iter().map(|arg| arg.replace("TAKER", &taker.address.to_string())).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outputs = words(OUTPUTS);
    let all = [&["run"], &args[..], &outputs[..], &["--sink", &sink]].concat();
    let started = start(gake(&all).current_dir(&written));
    let page = watch_page(&started);
    let ran = started.wait();
    let mut found = String::new();
    planted.look("stdout", ran.stdout.as_bytes(), &mut found);
    planted.look("stderr", ran.stderr.as_bytes(), &mut found);
    let page = page.join().unwrap();
    assert!(page.len() > 10_000, "{ran:?}");
    planted.look("live page", &page, &mut found);
    let bodies = taker.bodies.lock().unwrap();
    assert!(bodies.windows(5).any(|part| part == b"gake_"), "{ran:?}");
    planted.look("influxdb", &bodies, &mut found);
    let files = planted.look_below(&written, &mut found);
    assert!(files.len() >= 11, "{files:?} {ran:?}");
    found
}

/// Secrets in everything that a script sends, names, logs and throws.
const SCRIPT: &str = r#"
import http from 'k6/http';
import ws from 'k6/ws';
import { WebSocket } from 'k6/websockets';
import grpc from 'k6/net/grpc';
import exec from 'k6/execution';
import { SharedArray } from 'k6/data';
import { check, fail, group, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
const base = `http://${__ENV.HOST}`;
// Names of metrics and scenarios are identifiers: a secret there is shown.
const rows = new SharedArray('rows', () => open('./rows.csv').trim().split('\n').map((line) => line.split(',')));
const custom = new Counter('custom');
const trend = new Trend('waits');
export const options = {
  tags: { url_of_run: 'https://h/?token=«tag of run»', api_key: '«tag by name»' },
  scenarios: {
    main: { executor: 'per-vu-iterations', vus: 1, iterations: 1, tags: { place: 'https://me:«tag of scenario»@h/' } },
    other: { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'other', env: { TOKEN: '«env of scenario»' } },
  },
  thresholds: {
    'http_reqs{name:/x?token=«threshold tag»}': ['count>=3'],
    'custom': ['count>100'],
    'waits{password:«threshold by name»}': ['p(95)<1'],
  },
};
export function setup() { console.log({ password: '«setup log»' }); return { token: '«setup data»' }; }
export function teardown(data) { console.log('token=' + data.token); }
const wide = (text) => new Uint16Array([...text].map((c) => c.charCodeAt(0))).buffer;
const pack = (name, value) => {
  const text = (t) => [0xd9, t.length, ...[...t].map((c) => c.charCodeAt(0))];
  return new Uint8Array([0x81, ...text(name), ...text(value), 0, 255]).buffer;
};
export function other() { console.log(__ENV); }
export default function (data) {
  const sent = (body, headers) => http.post(`${base}/echo?status=500`, body, { headers });
  http.get(`${base}/status/500?token=«query»&user[password]=«nested query»#access_token=«fragment»`, {
    headers: { Authorization: 'Bearer «authorization»', 'X-Api-Key': '«named header»',
      'X-Upstream': 'Bearer «unknown header»', Cookie: 'a=«cookie header»', Referer: 'https://h/?code=«referer»' },
    cookies: { sid: '«cookie»' },
    tags: { name: '/x?token=«name tag»', password: '«tag of request»' },
  });
  http.cookieJar().set(base, 'session', '«jar»');
  sent('{"password":"«json»","deep":[{"credentials":{"«json name below»":"«json below»"}}]}');
  sent(JSON.stringify({ text: JSON.stringify({ token: '«json in json»' }) }));
  sent({ pin: '«form object»', note: 'https://me:«url in form»@h/' });
  sent('user=me&password=«form»', { 'Content-Type': 'application/x-www-form-urlencoded' });
  sent({ token: http.file('«multipart file»', 'a.txt'), password: '«multipart field»' });
  sent('<a><password><v>«xml child»</v></password><token>«xml»</token></a>');
  sent('password:\n  «yaml»');
  sent('-----BEGIN PRIVATE KEY-----\n«pem»\n-----END PRIVATE KEY-----');
  sent(wide('{"password":"«utf16»"}'));
  sent(pack('password', '«msgpack»'), { 'Content-Type': 'application/msgpack' });
  sent('\x00\x00\x00\x00\x20\x0a\x0e«grpc body»', { 'Content-Type': 'application/grpc' });
  http.get('http://me:«url user»@127.0.0.1:1/?api_key=«refused query»');
  try { http.get('http://me:«bad url»@127.0.0.1:1x/?api_key=«bad query»'); } catch (e) { console.log(String(e)); }
  http.batch([['GET', `${base}/status/404?token=«batch»`]]);
  const client = new grpc.Client();
  try {
    client.connect(__ENV.HOST, { plaintext: true, reflect: true, metadata: { authorization: 'Bearer «grpc metadata»' } });
    console.log(client.invoke('gake.lab.v1.Echo/Say', { text: 'password=«grpc message»' }, { metadata: { 'x-token': '«grpc call»' } }));
    client.invoke('gake.lab.v1.Echo/Say', { nothing: 'password=«grpc wrong»' });
  } catch (e) { console.error(`${e}`); }
  ws.connect(`ws://${__ENV.HOST}/ws?token=«ws query»`, { headers: { 'X-Token': '«ws header»' } }, (socket) => {
    socket.on('open', () => socket.send('{"password":"«ws message»"}'));
    socket.on('message', (message) => { console.log(message); socket.close(1000, 'token=«ws reason»'); });
    socket.on('error', (e) => console.error(e));
  });
  new WebSocket(`ws://me:«websocket user»@127.0.0.1:1/?token=«websocket query»`).onerror = (e) => console.warn(e);
  console.log('data: {"access_token":"«event data»"}\n\n');
  console.log('password=«log pair»', { token: '«log object»', list: [{ secret: '«log list»' }] });
  console.warn('Authorization: Bearer «log header»', 'curl -H "X-Api-Key: «log curl»" https://me:«log url»@h/');
  console.error(new Error('token: «log error»'), JSON.stringify({ rows: [{ pwd: '«log json»' }] }));
  console.log({ password: rows[0][1] }, __ENV);
  check(null, { 'https://h/?token=«check name» is ok': () => false, 'password=«check pair»': () => true });
  group('login password=«group»', () => trend.add(3, { password: '«threshold by name»' }));
  custom.add(1, { token: '«tag of sample»', target: 'https://h/?sig=1&token=«url tag»' });
  exec.vu.tags.session_token = '«tag of user»';
  http.get(`${base}/fast`);
  setTimeout(() => { throw new Error('api_key=«thrown later»'); }, 1);
  Promise.reject(new Error('secret: «rejected»'));
  sleep(1);
  try { fail('password=«fail»'); } catch (e) { console.error(e); }
  throw new Error('Cannot log in: {"password":"«thrown»"} at https://me:«thrown url»@h/');
}"#;

#[test]
fn no_output_of_a_scripts_run_has_a_planted_secret() {
    let (mut planted, lab) = (Planted::new(43), lab());
    let script = planted.fill(SCRIPT);
    let rows = planted.fill("me,«data row»\n");
    let args =
        planted.fill("-e PASSWORD=«env» -e API_URL=https://me:«env url»@h/?token=«env query»");
    let args = format!("../in/s.js -e HOST={} {args}", lab.addr());
    let found = run_planted(&planted, &words(&args), &[("s.js", script), ("rows.csv", rows)]);
    assert_eq!(found, "");
}

#[test]
fn no_output_of_a_run_has_a_planted_secret() {
    let (mut planted, lab) = (Planted::new(44), lab());
    let shared = format!(
        "http://me:«url user»@{}/status/500?access_token=«query»&row=${{password}} -r 20 -d 1s \
         -H Authorization:Bearer\u{1f}«authorization» -H X-Api-Key:«named» -H X-Other:Bearer\u{1f}«other» \
         -H Cookie:sid=«cookie» --data-file ../in/rows.csv \
         --annotate grafana=http://TAKER?token=«grafana token» \
         --sink influxdb=http://me:«sink user»@TAKER/db?token=«sink token» \
         --watch prometheus:http://me:«watch user»@TAKER/metrics?token=«watch query» \
         --reconcile http:http://me:«reconcile user»@TAKER/count?token=«reconcile query»#n",
        lab.addr()
    );
    let rows = planted.fill("name,password\nme,«data row»\nyou,«second row»\n");
    let mut found = String::new();
    for body in [
        "--data {\"password\":\"«json»\",\"row\":\"${password}\"}",
        "-F password=«form field» -F note=https://me:«form url»@h/ --user me:«user»",
    ] {
        let line = planted.fill(&format!("{shared} {body}"));
        let args: Vec<String> = words(&line).iter().map(|arg| arg.replace('\u{1f}', " ")).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        found += &run_planted(&planted, &args, &[("rows.csv", rows.clone())]);
    }
    assert_eq!(found, "");
}

/// What hooks of the proxy say about traffic.
const HOOKS: &str = "
export const options = { requestBody: 'text', munge: ['s'] };
export function mungeRequest(backend, request) {
  // The fields of a message of gRPC have no names by which a text could be judged.
  const body = request.headers['content-type'] === 'application/grpc' ? '' : request.body;
  console.log(request.uri, request.headers, body);
  if (request.method === 'PUT') throw new Error('cannot munge ' + body + request.uri);
  return request;
}";

#[test]
fn no_output_of_the_proxy_has_a_planted_secret() {
    let mut planted = Planted::new(45);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("out")).unwrap();
    fs::write(at("hooks.js"), HOOKS).unwrap();
    let (master, shadow) = (lab(), lab());
    let (master, shadow) =
        (format!("m=http://{}", master.addr()), format!("s=http://{}", shadow.addr()));
    let flags = ["--master", &master, "--shadow", &shadow, "--shadow-methods", "all", "--script"];
    let outputs = ["--record", &at("out/r.gakerec"), "--diff-out", &at("out/d.json")];
    let hooks = [&at("hooks.js"), "--script-timeout", "60s"];
    let proxy = Proxy::start(&[&flags[..], &hooks, &outputs].concat());
    let mut answers = String::new();
    for (number, (kind, body)) in BODIES.iter().enumerate() {
        let body = planted.fill(body);
        let headers = planted.fill(&format!(
            "Content-Type: {kind}\r\nAuthorization: Basic «authorization {number}»\r\n\
             X-Token: «named {number}»\r\nX-Any: Bearer «bearer {number}»\r\nCookie: a=«cookie {number}»\r\n"
        ));
        let target = planted.fill(&format!(
            "/echo?token=«query {number}»&n={number}&u=https%3A%2F%2Fme%3A«url {number}»%40h%2F"
        ));
        for method in ["POST", "PUT"] {
            answers += &ask(&proxy.url, method, &target, &headers, &body);
        }
    }
    proxy.settled();
    let admin = ["/status", "/ledger", "/metrics"].map(|path| proxy.admin(path)).concat();
    let ended = proxy.end(Signal::INT);
    let mut found = String::new();
    planted.look("admin", admin.as_bytes(), &mut found);
    planted.look("stdout", ended.stdout.as_bytes(), &mut found);
    planted.look("stderr", ended.stderr.as_bytes(), &mut found);
    assert!(ended.stderr.contains("mungeRequest threw"), "{ended:?}");
    for more in [
        &["report", &at("out/d.json"), "--html", &at("out/d.html")][..],
        &["convert", &at("out/r.gakerec"), &at("out/r.gor")],
    ] {
        let ran = ran(&[&["shadow"], more].concat());
        planted.look("stdout of a report", ran.stdout.as_bytes(), &mut found);
        planted.look("stderr of a report", ran.stderr.as_bytes(), &mut found);
    }
    let files = planted.look_below(folder.path(), &mut found);
    assert!(files.len() >= 5, "{files:?}");
    assert_eq!(found, "");
}

/// Bodies of clients by their types.
const BODIES: &[(&str, &str)] = &[
    ("application/json", r#"{"a":{"password":"«json»"},"b":[{"token":["«list»"]}]}"#),
    ("application/json", r#"{"credentials":{"«name below»":{"x":"«value below»"}}}"#),
    ("application/x-ndjson", "{\"a\":1}\n{\"api_key\":\"«line»\"}\n"),
    ("application/x-www-form-urlencoded", "user=me&password=«form»&user%5Bpin%5D=«nested form»"),
    (
        "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n«multipart»\r\n--b\r\n\
         Content-Disposition: form-data; name*=UTF-8''token\r\n\r\nx\r\n«multipart star»\r\n--b--\r\n",
    ),
    ("application/xml", "<a><password>\n«xml»</password><token><v>«xml child»</v></token></a>"),
    ("text/html", "<input name=\"csrf_token\" value=\"«input»\">"),
    ("application/yaml", "a: 1\npassword:\n  «yaml»\n"),
    (
        "text/plain",
        "-----BEGIN RSA PRIVATE KEY-----\n«pem»\n«pem two»\n-----END RSA PRIVATE KEY-----\n",
    ),
    ("text/plain", "password=\n«next line»\nsecret: «colon»"),
    ("", "{\"password\":\"«no type»\"}"),
    ("application/msgpack", "\u{1}\0password\0«text in binary»"),
    ("application/grpc", "\0\0\0\0\u{10}\u{a}\u{e}«grpc»"),
    ("application/octet-stream", "\0\0token=«pair in binary»\0"),
];
