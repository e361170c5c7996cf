//! Extensions of k6 that need no other program: SQLite, server-sent events, made-up data.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::thread;

use crate::common::{Ran, ran};

/// What a script prints, one line for each `console.log`, in a folder of its own.
fn printed(folder: &Path, text: &str) -> (Ran, String) {
    let script = folder.join("script.js");
    std::fs::write(&script, text).unwrap();
    let log = folder.join("console.txt");
    let output = format!("--console-output={}", log.display());
    let ran = ran(&["as", "k6", "run", "--quiet", &output, &script.display().to_string()]);
    let lines = std::fs::read_to_string(log).unwrap_or_default();
    let message = |line: &str| {
        let start = line.find("msg=").map_or(0, |at| at + 4);
        let end = line.rfind(" source=console").unwrap_or(line.len());
        let text = &line[start..end];
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        text.replace("\\\"", "\"")
    };
    let lines = lines.lines().map(message).collect::<Vec<_>>().join("\n");
    (ran, lines)
}

#[test]
fn sqlite_answers_in_init_code_and_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("shop.db");
    let script = format!(
        "import sql from 'k6/x/sql';
        import driver from 'k6/x/sql/driver/sqlite3';
        const db = sql.open(driver, '{}', {{ max_idle_conns: 3 }});
        const items = db.query('SELECT 1 AS one');
        const thrown = (f) => {{ try {{ f(); }} catch (e) {{ return `${{e}}`; }} }};
        export function setup() {{
            db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, ok BOOLEAN, at DATETIME)');
        }}
        export default function () {{
            const made = db.exec(\"INSERT INTO t (name, ok) VALUES ('a', 1), ('b', 0)\");
            console.log(items[0].one, made.rowsAffected(), made.lastInsertId());
            console.log(JSON.stringify(db.query('SELECT * FROM t WHERE name = $1', 'b')));
            db.exec('UPDATE t SET at = ? WHERE id = ?', '2024-01-02 03:04:05', 1);
            console.log(String(db.query('SELECT at FROM t WHERE id = 1')[0].at));
            console.log(thrown(() => db.query('SELECT * FROM none')));
            console.log(thrown(() => db.queryWithTimeout('soon', 'SELECT 1')));
            console.log(thrown(() => sql.open('sqlite3', 'x')));
            db.close();
            console.log(thrown(() => db.query('SELECT 1')));
        }}",
        database.display()
    );
    let (ran, lines) = printed(folder.path(), &script);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        lines,
        "1 2 2\n\
        [{\"id\":2,\"name\":\"b\",\"ok\":false,\"at\":null}]\n\
        2024-01-02 03:04:05 +0000 UTC\n\
        GoError: no such table: none\n\
        GoError: time: invalid duration \"soon\"\n\
        GoError: unsupported database: invalid driver parameter type\n\
        GoError: sql: database is closed"
    );
}

/// A server that responds to each request with the head and body for its path.
fn sse_server<R: Into<Vec<u8>> + 'static>(response: fn(&str) -> R) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let _ = stream.write_all(&response(&head).into());
        }
    });
    url
}

#[test]
fn events_are_handled_one_by_one() {
    let url = sse_server(|head| {
        if head.starts_with("GET /moved") {
            return "HTTP/1.1 302 Found\r\nLocation: /events\r\nContent-Length: 0\r\n\r\n"
                .to_owned();
        }
        let own = head.lines().find(|line| line.starts_with("X-Own")).unwrap_or_default();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
            id: 1\nevent: tick\ndata: {own}\ndata: more\n: note\n\nnoise\nid: 2\ndata: last\n\n\
            data: never\n\n"
        )
    });
    let script = format!(
        "import sse from 'k6/x/sse';
        export const options = {{ thresholds: {{ sse_event: ['count==4'], http_reqs: ['count==3'] }},
            blockHostnames: ['blocked.test'] }};
        export default function () {{
            const params = {{ headers: {{ 'X-Own': 'mine' }}, tags: {{ a: 'b' }} }};
            for (const path of ['/events', '/moved']) {{
                const response = sse.open('{url}' + path, params, (client) => {{
                    client.on('open', () => console.log('open'));
                    client.on('error', (e) => console.log(e.error().trim()));
                    client.on('event', (event) => {{
                        console.log(JSON.stringify(event));
                        if (event.id === '2') client.close();
                    }});
                }});
                console.log(response.status, response.headers['Content-Type'], response.error);
            }}
            console.log(sse.open('http://blocked.test/', () => 1).error);
            try {{ sse.open('{url}'); }} catch (e) {{ console.log(e.message); }}
        }}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (ran, lines) = printed(folder.path(), &script);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{lines}");
    let once = "open\n\
        {\"id\":\"1\",\"comment\":\"note\",\"name\":\"tick\",\"data\":\"X-Own: mine\\\\nmore\"}\n\
        unknown event: noise\n\
        {\"id\":\"2\",\"comment\":\"\",\"name\":\"\",\"data\":\"last\"}\n\
        200 text/event-stream \n";
    let rest = "Get \"http://blocked.test/\": hostname (blocked.test) is in a blocked pattern \
        (blocked.test)\ninvalid number of arguments to sse.open";
    assert_eq!(lines.replace("\\\\\\\\n", "\\\\n"), format!("{once}{once}{rest}"));
}

#[test]
fn compressed_events_are_decoded() {
    // `gzip` of an event: `id: 1`, `data: zipped`.
    const EVENT: &[u8] = &[
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x4c, 0xb1, 0x52, 0x30,
        0xe4, 0x4a, 0x49, 0x2c, 0x49, 0xb4, 0x52, 0xa8, 0xca, 0x2c, 0x28, 0x48, 0x4d, 0xe1, 0xe2,
        0x02, 0x00, 0x72, 0xc7, 0x45, 0xa8, 0x14, 0x00, 0x00, 0x00,
    ];
    let url = sse_server(|head| {
        assert!(head.to_ascii_lowercase().contains("accept-encoding: gzip\r\n"), "{head}");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\
                    Connection: close\r\n\r\n";
        [head.as_bytes(), EVENT].concat()
    });
    let script = format!(
        "import sse from 'k6/x/sse';
        export default function () {{
            const response = sse.open('{url}', (client) => {{
                client.on('event', (event) => console.log(event.id, event.data));
            }});
            console.log(response.status, response.headers['Content-Encoding']);
        }}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (ran, lines) = printed(folder.path(), &script);
    assert_eq!((ran.code, lines.as_str()), (Some(0), "1 zipped\n200 undefined"), "{ran:?}");
}

#[test]
fn a_response_that_fails_at_once_has_an_end() {
    let url = sse_server(|_| "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops".to_owned());
    let script = format!(
        "import sse from 'k6/x/sse';
        export default function () {{
            console.log(sse.open('{url}', (client) => client.on('event', () => 1)).status);
            console.log(sse.open('http://127.0.0.1:1/', () => 1).error);
        }}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (_, lines) = printed(folder.path(), &script);
    let refused = "Get \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(lines, format!("500\n{refused}"));
}

#[test]
fn a_seed_makes_the_same_data() {
    let script = "import faker, { Faker } from 'k6/x/faker';
        const [a, b] = [new Faker(11), new Faker(11)];
        export default function () {
            console.log(a.person.firstName() === b.person.firstName(), a.call('email') === b.call('email'));
            console.log(typeof faker.zen.city(), faker.none, faker.person.none, Object.keys(faker).length);
            try { faker.strings.digitN(); } catch (e) { console.log(`${e}`); }
        }";
    let folder = tempfile::tempdir().unwrap();
    let (_, lines) = printed(folder.path(), script);
    let expected = "true true\nstring undefined undefined 29\nTypeError: missing parameter: count";
    assert_eq!(lines, expected);
}

#[test]
fn other_extensions_are_refused_with_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let (ran, _) =
        printed(folder.path(), "import x from 'k6/x/kafka'; export default function () {}");
    let expected = "unknown modules [\\\"k6/x/kafka\\\"] were tried to be loaded, but couldn't: the \
        extensions of this program are k6/x/dns, k6/x/faker, k6/x/redis, k6/x/sse, k6/x/sql";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    let old = "import x from 'k6/experimental/redis'; export default function () {}";
    let (refused, _) = printed(folder.path(), old);
    assert!(refused.stderr.contains("has been removed"), "{}", refused.stderr);
}

/// A name server on UDP: `nx...` does not exist, others have two addresses or a text.
fn name_server() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // The question ends with its name's end, a type and a class.
            let end = 12 + buffer[12..length].iter().position(|byte| *byte == 0).unwrap() + 5;
            let (is_unknown, is_text) = (buffer[13..].starts_with(b"nx"), buffer[end - 3] == 16);
            let record = |kind: u8, data: &[u8]| {
                let head = [0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8];
                [&head[..], data].concat()
            };
            let answers = match (is_unknown, is_text) {
                (true, _) => Vec::new(),
                (_, true) => vec![record(16, b"\x05hello\x06 world")],
                _ => vec![record(1, &[192, 0, 2, 1]), record(1, &[192, 0, 2, 2])],
            };
            let head = [0x81, if is_unknown { 0x83 } else { 0x80 }, 0, 1, 0, answers.len() as u8];
            let answer =
                [&buffer[..2], &head, &[0; 4], &buffer[12..end], &answers.concat()].concat();
            let _ = socket.send_to(&answer, from);
        }
    });
    address
}

#[test]
fn name_servers_are_asked_and_names_looked_up() {
    let server = name_server();
    let script = format!(
        "import dns from 'k6/x/dns';
        export const options = {{ blockHostnames: ['*.blocked.test'], thresholds: {{
            dns_resolutions: ['count==5'], dns_resolution_failed: ['rate==0.6'],
            dns_lookups: ['count==2'] }} }};
        const show = async (f) => {{
            try {{ console.log(JSON.stringify(await f())); }}
            catch (e) {{ console.log(String(e), JSON.stringify(e)); }}
        }};
        export default async function () {{
            await show(() => dns.resolve('a.test', 'A', '{server}'));
            await show(() => dns.resolve('a.test', 'TXT', '{server}'));
            await show(() => dns.resolve('nx.test', 'A', '{server}'));
            await show(() => dns.resolve('a.test', 'MX', '{server}'));
            await show(() => dns.resolve('x.blocked.test', 'A', '{server}'));
            await show(() => dns.resolve('a.test', 'A', 'dns.test'));
            await show(() => dns.lookup('127.0.0.1'));
            await show(() => dns.lookup('x.blocked.test'));
        }}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (ran, lines) = printed(folder.path(), &script);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{lines}");
    let blocked = "BlockedHostname";
    let query = "DNS query blocked by k6 option blockHostnames: x.blocked.test";
    let lookup = "blocked hostname: x.blocked.test";
    let error = |name: &str, message: &str, kind: u8| {
        format!("{{\"name\":\"{name}\",\"message\":\"{message}\",\"kind\":{kind}}}")
    };
    let expected = [
        "[\"192.0.2.1\",\"192.0.2.2\"]".to_owned(),
        "[\"hello world\"]".to_owned(),
        format!(
            "NonExistingDomain: DNS query failed {}",
            error("NonExistingDomain", "DNS query failed", 3)
        ),
        "resolve operation failed with unsupported record type, MX is an invalid DNS record type {}"
            .to_owned(),
        format!("Refused: {query} {}", error(blocked, query, 5)),
        "parsing nameserver address failed: invalid nameserver IP address: dns.test {}".to_owned(),
        "[\"127.0.0.1\"]".to_owned(),
        format!("Refused: {lookup} {}", error(blocked, lookup, 5)),
    ];
    assert_eq!(lines, expected.join("\n"));
}

/// A server that sends back what it gets.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    let _ = stream.write_all(&buffer[..length]);
                    if &buffer[..length] == b"bye" {
                        break;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn sockets_have_events_in_order() {
    let port = echo_server();
    let script = format!(
        "import {{ Socket }} from 'k6/x/tcp';
        export const options = {{ thresholds: {{ tcp_sockets: ['count==2'], tcp_reads: ['count==3'],
            tcp_writes: ['count==3'], tcp_errors: ['count==2'], data_sent: ['count==11'],
            'tcp_socket_duration{{a:b}}': ['avg>0'] }} }};
        export default async function () {{
            const socket = new Socket({{ tags: {{ a: 'b' }} }});
            const events = [socket.ready_state];
            const closed = new Promise((resolve) => socket.on('close', resolve));
            socket.on('connect', () => events.push(socket.ready_state));
            socket.on('data', (data) => {{
                events.push(String.fromCharCode(...data));
                if (socket.bytes_read < 8) socket.write('YWhvaQ==', {{ encoding: 'base64' }});
                else socket.destroy();
            }});
            console.log(await socket.connect(String({port}), '127.0.0.1'), socket.remote_ip);
            console.log(await socket.write(new Uint8Array([72, 101, 121, 33])));
            await closed;
            console.log(events.join(), socket.bytes_written, socket.ready_state);
            for (const call of [() => socket.write('x'), () => other.connect(1, '127.0.0.1'),
                () => other.write('zz', {{ encoding: 'hex' }})]) {{
                try {{ await call(); }} catch (e) {{ console.log(String(e), e.method); }}
            }}
            await other.connect({{ port: {port}, host: '127.0.0.1' }});
            const ended = new Promise((resolve) => other.on('close', resolve));
            other.on('timeout', () => other.write('bye'));
            other.setTimeout(20);
            await ended;
        }}
        const other = {{ get it() {{ return (this.own ??= new Socket()); }},
            connect(...all) {{ return this.it.connect(...all); }},
            write(...all) {{ return this.it.write(...all); }},
            on(...all) {{ return this.it.on(...all); }},
            setTimeout(time) {{ return this.it.setTimeout(time); }} }};"
    );
    let folder = tempfile::tempdir().unwrap();
    let (ran, lines) = printed(folder.path(), &script);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{lines}");
    let refused = "dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(
        lines,
        format!(
            "null 127.0.0.1\nundefined\ndisconnected,open,Hey!,ahoi 8 destroyed\n\
            no active connection undefined\nTCP error during connect: {refused} connect\n\
            TCP error during write: encoding/hex: invalid byte: U+007A 'z' write"
        )
    );
}

#[test]
fn a_socket_ends_with_its_iteration() {
    let port = echo_server();
    let run = |options: &str, handler: &str| {
        let script = format!(
            "import {{ Socket }} from 'k6/x/tcp';
            export const options = {{ {options} }};
            export default async function () {{
                const socket = new Socket();
                socket.on('data', () => {{ {handler} }});
                await socket.connect({port}, '127.0.0.1');
                await socket.write('x');
            }}"
        );
        let folder = tempfile::tempdir().unwrap();
        printed(folder.path(), &script).0
    };
    // The end of the scenario cuts it.
    let cut = "scenarios: { a: { executor: 'constant-vus', vus: 1, duration: '1s', \
        gracefulStop: '0s' } }";
    let open = run(cut, "");
    assert!(open.code == Some(0) && open.stdout.contains("tcp_sockets"), "{open:?}");
    // So does a handler that throws.
    let thrown = run("iterations: 1", "throw new Error('from a handler')");
    assert!(thrown.code == Some(0) && thrown.stderr.contains("from a handler"), "{thrown:?}");
}
