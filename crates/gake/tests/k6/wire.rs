//! What a script's requests say on the wire.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{gake, start};
use crate::ran;

/// A server that records its requests and responds with `status` and these headers.
struct Recorder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    /// How many requests there were when each connection ended.
    ends: Arc<Mutex<Vec<usize>>>,
}

impl Recorder {
    fn start(answer: fn(&str) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let ends = Arc::new(Mutex::new(Vec::new()));
        let (taken, ended) = (Arc::clone(&requests), Arc::clone(&ends));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (taken, ended) = (Arc::clone(&taken), Arc::clone(&ended));
                thread::spawn(move || {
                    serve(stream.unwrap(), &taken, answer);
                    ended.lock().unwrap().push(taken.lock().unwrap().len());
                });
            }
        });
        Self { address, requests, ends }
    }

    /// The requests that a script sends, with its agent and this server without their names.
    fn of_script(&self, script: &str, args: &[&str]) -> (Vec<String>, String) {
        let url = format!("http://{}", self.address);
        let printed = ran(&script.replace("URL", &url), args);
        let requests = std::mem::take(&mut *self.requests.lock().unwrap()).into_iter();
        let port = format!(":{}", self.address.port());
        let requests = requests.map(|text| text.replace(&port, ":PORT").replace("\r\n", "\n"));
        (requests.collect(), printed)
    }
}

fn plain(_: &str) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
}

fn serve(mut stream: TcpStream, taken: &Mutex<Vec<String>>, answer: fn(&str) -> String) {
    let mut text = String::new();
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        text.push(char::from(byte[0]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let of = |wanted: &str| lines.clone().find(|(name, _)| *name == wanted).map(|one| one.1);
        let is_whole = match (of("Content-Length"), of("Transfer-Encoding")) {
            (Some(length), _) => body.len() >= length.parse::<usize>().unwrap(),
            (None, Some(_)) => body.ends_with("0\r\n\r\n"),
            (None, None) => true,
        };
        if is_whole {
            let response = answer(&text);
            taken.lock().unwrap().push(std::mem::take(&mut text));
            let _ = stream.write_all(response.as_bytes());
        }
    }
}

#[test]
fn headers_are_written_as_go_writes_them() {
    let script = "import http from 'k6/http';
        export default function () {
            http.post('URL/a', 'abc', { headers: {
                'x-api-KEY': ' 1 ', 'Content-length': 'undefined', accept: 'b', Accept: 'a',
                Host: 'one', host: 'two', 'transfer-encoding': 'chunked' } });
            http.get('URL/b', { headers: { 'User-Agent': '', 'Content-Length': '' } });
            http.post('URL/c', '');
            http.post('URL/d');
            http.get('http://me@' + 'URL/e'.slice(7));
            console.log(http.get('URL/f', { headers: { 'X-A': 'a\\nb' } }).error);
        }";
    let (requests, printed) = Recorder::start(plain).of_script(script, &["--user-agent", "me"]);
    assert_eq!(
        requests,
        [
            "POST /a HTTP/1.1\nHost: two\nUser-Agent: me\nContent-Length: 3\nAccept: a\n\
             X-Api-Key: 1\n\nabc",
            "GET /b HTTP/1.1\nHost: 127.0.0.1:PORT\n\n",
            "POST /c HTTP/1.1\nHost: 127.0.0.1:PORT\nUser-Agent: me\nTransfer-Encoding: chunked\n\n\
             0\n\n",
            "POST /d HTTP/1.1\nHost: 127.0.0.1:PORT\nUser-Agent: me\nContent-Length: 0\n\n",
            "GET /e HTTP/1.1\nHost: 127.0.0.1:PORT\nUser-Agent: me\nAuthorization: Basic bWU6\n\n",
        ]
    );
    let warning = "The specified Content-Length header \\\"undefined\\\" in the POST request for ";
    assert!(printed.contains(warning), "{printed}");
    assert!(printed.contains("net/http: invalid header field value for"), "{printed}");
}

#[test]
fn a_batch_upper_cases_methods_of_objects_only() {
    let script = "import http from 'k6/http';
        export default function () {
            const object = { method: 'post', url: 'URL/a', body: { a: 1 }, name: 'x' };
            http.batch([object]);
            http.batch([{ method: 'get', url: 'URL/b', body: 'dropped' }]);
            http.batch([['get', 'URL/c']]);
            http.request('get', 'URL/d');
            console.log(JSON.stringify(http.batch([{ method: 'get' }, 'URL/e'])[1]));
        }";
    let (requests, printed) = Recorder::start(plain).of_script(script, &[]);
    let lines: Vec<_> = requests.iter().map(|request| request.lines().next().unwrap()).collect();
    let expected = ["POST /a HTTP/1.1", "GET /b HTTP/1.1", "get /c HTTP/1.1", "get /d HTTP/1.1"];
    assert_eq!(lines, expected);
    assert!(requests[0].ends_with("\n\na=1") && requests[1].ends_with("\n\n"), "{requests:?}");
    let warning = "A batch request failed\" error=\"batch request 0 doesn't have a url key\"";
    assert!(printed.contains(warning), "{printed}");
    assert!(printed.contains("msg=null"), "nothing of the others: {printed}");
}

#[test]
fn fields_of_forms_are_printed_as_go_prints_them() {
    let script = "import http from 'k6/http';
        export default function () {
            http.post('URL/a', { o: { b: [1, 'z', null], a: 1 }, d: new Date(1700000000600),
                s: 0.00001, t: 1732730000.123, n: null, l: [1, { q: 1 }] });
        }";
    let (requests, _) = Recorder::start(plain).of_script(script, &[]);
    let body = requests[0].split_once("\n\n").unwrap().1;
    let expected = "d=2023-11-14+22%3A13%3A20.6+%2B0000+UTC&l=1&l=&n=&o=&s=1e-05&\
                    t=1.732730000123e%2B09";
    assert_eq!(body, expected);
}

fn with_session(request: &str) -> String {
    let cookie = match request.starts_with("GET /login") {
        true => "Set-Cookie: session=\"a b\"; Path=/\r\n",
        false => "",
    };
    format!("HTTP/1.1 200 OK\r\n{cookie}Content-Length: 0\r\n\r\n")
}

#[test]
fn a_jar_that_is_kept_keeps_its_cookies() {
    let script = "import http from 'k6/http';
        let jar;
        export default function () {
            if (!jar) {
                jar = http.cookieJar();
                http.get('URL/login', { jar });
            }
            http.get('URL/kept', { jar, cookies: { own: '1' } });
            http.get('URL/new');
        }";
    let (requests, _) = Recorder::start(with_session).of_script(script, &["-i", "2"]);
    let cookies: Vec<_> = requests
        .iter()
        .map(|request| request.lines().find_map(|line| line.strip_prefix("Cookie: ")))
        .collect();
    let kept = Some("own=1; session=\"a b\"");
    // The jar of the first iteration is the one that was kept.
    assert_eq!(cookies, [None, kept, Some("session=\"a b\""), kept, None]);
}

fn redirecting(request: &str) -> String {
    match request.split(' ').nth(1).unwrap() {
        "/first" => "HTTP/1.1 302 F\r\nLocation: /second\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
    }
}

#[test]
fn a_redirect_says_what_go_says() {
    let script = "import http from 'k6/http';
        export default function () {
            const headers = { Host: 'h', 'Content-Type': 'a/b', Cookie: 'c=1', Authorization: 'q' };
            const r = http.post('URL/first', 'x', { headers, cookies: { own: '1' } });
            console.log(r.request.method, r.request.body, r.url.endsWith('/second'),
                r.request.headers.Cookie);
        }";
    let (requests, printed) =
        Recorder::start(redirecting).of_script(script, &["--user-agent", "me"]);
    let expected = "GET /second HTTP/1.1\nHost: h\nUser-Agent: me\nAuthorization: q\n\
                    Cookie: own=1\nReferer: http://127.0.0.1:PORT/first\n\n";
    assert_eq!(requests[1], expected);
    assert!(printed.contains("POST x true [ \\\"c=1; own=1\\\" ]"), "{printed}");
}

#[test]
fn bytes_are_one_sample_an_iteration_and_blocked_holds_the_opening() {
    let script = "import http from 'k6/http';
        export const options = { iterations: 2 };
        export function setup() { http.get('URL/s'); }
        export default function () { http.get('URL/a'); http.get('URL/b'); }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.json");
    let out = format!("json={}", path.display());
    let (requests, _) = Recorder::start(plain).of_script(script, &["--out", &out]);
    let text = std::fs::read_to_string(&path).unwrap();
    let points: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let values = |metric: &str| -> Vec<f64> {
        let of = |point: &&serde_json::Value| point["type"] == "Point" && point["metric"] == metric;
        points.iter().filter(of).map(|point| point["data"]["value"].as_f64().unwrap()).collect()
    };
    let response = plain("").len() as f64;
    // Of `setup`, and of each iteration; `teardown` is not there.
    assert_eq!(values("data_received"), [response, 2.0 * response, 2.0 * response]);
    assert_eq!(values("data_sent").len(), 3);
    assert_eq!(requests.len(), 5);
    let (blocked, connecting) = (values("http_req_blocked"), values("http_req_connecting"));
    assert!(blocked.iter().all(|blocked| *blocked > 0.0), "{blocked:?}");
    for (blocked, connecting) in blocked.iter().zip(&connecting) {
        assert!(blocked >= connecting, "{blocked} {connecting}");
    }
    assert!(values("http_req_receiving").iter().all(|receiving| *receiving > 0.0));
    assert!(values("http_req_sending").iter().all(|sending| *sending > 0.0));
}

#[test]
fn a_user_that_has_ended_keeps_its_connection() {
    let script = "import http from 'k6/http';
        import { sleep } from 'k6';
        export const options = { scenarios: { s: {
            executor: 'per-vu-iterations', vus: 3, iterations: 1 } } };
        export default function () {
            sleep(0.3 * (__VU - 1));
            http.get('URL/' + __VU);
        }";
    let recorder = Recorder::start(plain);
    let (requests, _) = recorder.of_script(script, &[]);
    assert_eq!(requests.len(), 3);
    let patience = std::time::Instant::now();
    while recorder.ends.lock().unwrap().len() < 3 && patience.elapsed().as_secs() < 10 {
        thread::sleep(std::time::Duration::from_millis(10));
    }
    // Taking the requests out left none; what matters is that no connection ended before the last.
    let ends = recorder.ends.lock().unwrap();
    assert!(ends.iter().all(|requests| *requests == 3 || *requests == 0), "{ends:?}");
}

fn refusing_tunnels(request: &str) -> String {
    match request.starts_with("CONNECT") {
        true => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(),
        false => plain(request),
    }
}

/// What k6 1.8.1 sends to a proxy of its environment and prints, but for the agent of CONNECT.
#[test]
fn scripts_use_the_proxies_of_the_environment() {
    let proxy = Recorder::start(refusing_tunnels);
    let target = Recorder::start(plain);
    let script = "import http from 'k6/http';
        import ws from 'k6/ws';
        export const options = { hosts: { 'direct.test': '127.0.0.1' } };
        export default function () {
            const get = (url) => { const r = http.get(url); console.log(r.status, r.error_code, r.error); };
            get('http://a.test/x?q=1');
            get('https://b.test/');
            get('http://direct.test:PORT/d');
            get('http://127.0.0.1:PORT/l');
            console.log(ws.connect('ws://c.test/', () => {}).error);
        }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.js");
    let script = script.replace("PORT", &target.address.port().to_string());
    std::fs::write(&path, script).unwrap();
    let lines = |requests: &Mutex<Vec<String>>| {
        let requests = std::mem::take(&mut *requests.lock().unwrap());
        let line = |text: String| text.lines().next().unwrap().to_owned();
        requests.into_iter().map(line).collect::<Vec<_>>()
    };
    for command in [["as", "k6", "run"].as_slice(), &["run"]] {
        let mut command = gake(&[command, &[path.to_str().unwrap()]].concat());
        command.env("HTTP_PROXY", format!("http://me:secret@{}", proxy.address));
        command
            .env("https_proxy", proxy.address.to_string())
            .env("NO_PROXY", "x, .direct.test,direct.test");
        let ran = start(&mut command).wait();
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        let proxied = proxy.requests.lock().unwrap().clone();
        assert!(
            proxied[0].contains("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"),
            "{proxied:?}"
        );
        assert_eq!(
            lines(&proxy.requests),
            [
                "GET http://a.test/x?q=1 HTTP/1.1",
                "CONNECT b.test:443 HTTP/1.1",
                "CONNECT c.test:80 HTTP/1.1"
            ]
        );
        assert_eq!(lines(&target.requests), ["GET /d HTTP/1.1", "GET /l HTTP/1.1"]);
        assert_eq!(printed.matches("msg=\"200 0 \"").count(), 3, "{printed}");
        assert!(printed.contains("msg=\"0 1000 Forbidden\""), "{printed}");
        assert!(printed.contains("msg=Forbidden source"), "{printed}");
        assert!(!printed.contains("secret"), "{printed}");
    }
    // A URL has no proxy but the one of its flags.
    let url = format!("http://{}/u", target.address);
    let mut command = gake(&["run", &url, "-n", "1"]);
    command.env("HTTP_PROXY", proxy.address.to_string()).env("http_proxy", "https://unusable");
    assert_eq!(start(&mut command).wait().code, Some(0));
    assert_eq!((lines(&proxy.requests).len(), lines(&target.requests).len()), (0, 1));
}

fn in_chunks(request: &str) -> String {
    let _ = request;
    "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n5;x=y\r\n entr\r\n0\r\n\r\n"
        .to_owned()
}

#[test]
fn a_refused_session_has_the_start_of_the_body() {
    let script = "import ws from 'k6/ws';
        export default function () {
            const r = ws.connect('URL/a'.replace('http', 'ws'), () => {});
            console.log(r.status, r.url, r.body, r.error);
        }";
    let (_, printed) = Recorder::start(in_chunks).of_script(script, &[]);
    assert!(printed.contains("msg=\"403  no entr \""), "{printed}");
}

#[test]
fn a_batch_has_the_cookies_from_before_it() {
    let answer =
        |_: &str| "HTTP/1.1 200 OK\r\nSet-Cookie: sid=1\r\nContent-Length: 2\r\n\r\nok".to_owned();
    let script = "import http from 'k6/http';
        export const options = { batchPerHost: 1 };
        export default function () {
            http.batch(['URL/a', 'URL/b']);
            http.get('URL/c');
        }";
    let (requests, _) = Recorder::start(answer).of_script(script, &[]);
    let has_cookie: Vec<_> = requests.iter().map(|text| text.contains("Cookie: sid=1")).collect();
    assert_eq!(has_cookie, [false, false, true], "{requests:?}");
}
