//! Extensions of k6 against real servers: Redis, MariaDB, PostgreSQL.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::database::MariaDb;
use crate::postgres::{Postgres, certificate};
use crate::support::*;

/// A Redis of its own, with a password, in clear text and over TLS.
struct Redis {
    child: Child,
    folder: TempDir,
    port: u16,
    tls_port: u16,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Redis {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = certificate();
        let file = |name: &str| folder.path().join(name).display().to_string();
        fs::write(file("cert.pem"), cert).unwrap();
        fs::write(file("key.pem"), key).unwrap();
        let (port, tls_port) = (free_port(), free_port());
        let mut command = command("redis-server");
        command
            .args(["--port", &port.to_string(), "--tls-port", &tls_port.to_string()])
            .args(["--tls-cert-file", &file("cert.pem"), "--tls-key-file", &file("key.pem")])
            .args(["--tls-ca-cert-file", &file("cert.pem"), "--tls-auth-clients", "no"])
            .args(["--bind", "127.0.0.1", "--save", "", "--requirepass", "secret"])
            .args(["--dir", &folder.path().display().to_string()])
            .stdout(Stdio::null());
        let child = command.spawn().unwrap();
        eventually("Redis listens", || {
            [port, tls_port].iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        });
        Self { child, folder, port, tls_port }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a script in which `equal(name, value, expected)` ends the iteration of a wrong value.
fn passes(script: &str, flags: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    let helper = "const equal = (name, value, expected) => {
        const [a, b] = [value, expected].map((one) => JSON.stringify(one));
        if (a !== b) throw new Error(`${name}: ${a} instead of ${b}`);
    };\n";
    fs::write(&path, format!("{helper}{script}")).unwrap();
    let path = path.display().to_string();
    let args = [&["as", "k6", "run", "--quiet"], flags, &[path.as_str()]].concat();
    let ran = ran(&args);
    assert!(ran.code == Some(0) && !ran.stderr.contains("level=error"), "{ran:?}");
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
    ran
}

/// Every method of the client, and what k6 2.2 with xk6-redis returns.
const REDIS: &str = "import redis from 'k6/x/redis';
    const client = new redis.Client(__ENV.URL);
    const failed = async (call) => {
        try { return await call(); } catch (e) { return `failed: ${e}, ${e.error()}`; }
    };
    export default async function () {
        const c = client;
        const unsupported = (at) => `failed: unsupported type provided for argument at index ${at}, ` +
            'supported types are string, number, and boolean, unsupported type provided for ' +
            `argument at index ${at}, supported types are string, number, and boolean`;
        const nil = 'failed: redis: nil, redis: nil';
        for (const [name, call, expected] of [
            ['set', () => c.set('a', 1), 'OK'], ['set', () => c.set('f', 1.5, 100), 'OK'],
            ['set', () => c.set('t', true), 'OK'], ['set', () => c.set('t'), unsupported(1)],
            ['get', () => c.get('a'), '1'], ['get', () => c.get('t'), '1'],
            ['get', () => c.get('none'), nil], ['getSet', () => c.getSet('a', 'x'), '1'],
            ['getDel', () => c.getDel('a'), 'x'], ['del', () => c.del('t', 'none'), 1],
            ['exists', () => c.exists('f', 'f', 'q'), 2], ['incr', () => c.incr('n'), 1],
            ['incrBy', () => c.incrBy('n', 5), 6], ['decr', () => c.decr('n'), 5],
            ['decrBy', () => c.decrBy('n', 2), 3],
            ['mget', () => c.mget('n', 'none', 'f'), ['3', null, '1.5']],
            ['expire', () => c.expire('n', 50), true], ['ttl', () => c.ttl('n'), 50],
            ['persist', () => c.persist('n'), true], ['ttl', () => c.ttl('n'), -1e-9],
            ['ttl', () => c.ttl('none'), -2e-9], ['lpush', () => c.lpush('l', 'a', 2, true), 3],
            ['lpush', () => c.lpush('l', 'a', [1]), unsupported(2)],
            ['rpush', () => c.rpush('l', 'z'), 4],
            ['lrange', () => c.lrange('l', 0, -1), ['1', '2', 'a', 'z']],
            ['lindex', () => c.lindex('l', 1), '2'], ['lset', () => c.lset('l', 0, 'q'), 'OK'],
            ['lrem', () => c.lrem('l', 0, 'q'), 1], ['llen', () => c.llen('l'), 3],
            ['lpop', () => c.lpop('l'), '2'], ['rpop', () => c.rpop('l'), 'z'],
            ['hset', () => c.hset('h', 'f', 1), 1], ['hsetnx', () => c.hsetnx('h', 'f', 'x'), false],
            ['hget', () => c.hget('h', 'f'), '1'], ['hgetall', () => c.hgetall('h'), { f: '1' }],
            ['hkeys', () => c.hkeys('h'), ['f']], ['hvals', () => c.hvals('h'), ['1']],
            ['hlen', () => c.hlen('h'), 1], ['hincrby', () => c.hincrby('h', 'f', 4), 5],
            ['hdel', () => c.hdel('h', 'f', 'g'), 1], ['sadd', () => c.sadd('s', 1), 1],
            ['sismember', () => c.sismember('s', 1), true],
            ['smembers', () => c.smembers('s'), ['1']],
            ['srandmember', () => c.srandmember('s'), '1'], ['spop', () => c.spop('s'), '1'],
            ['srem', () => c.srem('s', 1), 0],
            ['sendCommand', () => c.sendCommand('MGET', 'n', 'none'), ['3', null]],
            ['sendCommand', () => c.sendCommand('ECHO', 'hi'), 'hi'],
            ['randomKey', async () => typeof await c.randomKey(), 'string'],
            ['several', () => Promise.all([c.set('p', 1), c.get('f')]), ['OK', '1.5']],
            ['isConnected', () => c.isConnected(), true],
        ]) equal(name, await failed(call), expected);
    }";

#[test]
fn a_redis_has_every_command() {
    let redis = Redis::start();
    let url = format!("URL=redis://:secret@127.0.0.1:{}/3", redis.port);
    passes(REDIS, &["-e", &url]);
    // k6 1.x has the module without an extension.
    let old = REDIS.replace("k6/x/redis", "k6/experimental/redis");
    let url = format!("URL=redis://default:secret@127.0.0.1:{}/4", redis.port);
    passes(&old, &["--k6-version", "1.8", "-e", &url]);
}

#[test]
fn connections_to_redis_obey_the_options() {
    let redis = Redis::start();
    let (port, tls_port) = (redis.port, redis.tls_port);
    let cert = redis.folder.path().join("cert.pem");
    let script = format!(
        "import redis from 'k6/x/redis';
        export const options = {{ hosts: {{ 'cache.test': '127.0.0.1' }},
            blockHostnames: ['blocked.test'], blacklistIPs: ['10.0.0.0/8'],
            thresholds: {{ data_sent: ['count>0'], data_received: ['count>0'] }} }};
        const cert = open('{}');
        const at = (host, port, own = {{}}) =>
            new redis.Client({{ password: 'secret', ...own, socket: {{ host, port, ...own.socket }} }});
        const tls = {{ socket: {{ tls: {{ ca: [cert] }} }} }};
        const ping = async (client) => {{
            try {{ return await client.sendCommand('PING'); }} catch (e) {{ return e.error(); }}
        }};
        const few = at('127.0.0.1', {port}, {{ socket: {{ poolSize: 2 }} }});
        const clients = {{
            named: at('cache.test', {port}), secure: at('127.0.0.1', {tls_port}, tls),
            blocked: at('blocked.test', {port}), listed: at('10.1.1.1', {port}),
            wrong: at('127.0.0.1', {port}, {{ password: 'no' }}),
            gone: at('127.0.0.1', 1, {{ maxRetries: -1 }}),
        }};
        export default async function () {{
            const got = {{}};
            for (const name of Object.keys(clients)) got[name] = await ping(clients[name]);
            equal('clients', got, {{
                named: 'PONG', secure: 'PONG',
                blocked: 'hostname (blocked.test) is in a blocked pattern (blocked.test)',
                listed: 'IP (10.1.1.1) is in a blacklisted range (10.0.0.0/8)',
                wrong: 'WRONGPASS invalid username-password pair or user is disabled.',
                gone: 'dial tcp 127.0.0.1:1: connect: connection refused',
            }});
            const untrusted = await ping(at('127.0.0.1', {tls_port}, {{ socket: {{ tls: {{}} }} }}));
            if (!untrusted.includes('x509')) throw new Error(untrusted);
            const all = await Promise.all(Array.from({{ length: 50 }}, () => ping(few)));
            equal('few', new Set(all).size, 1);
            const list = await few.sendCommand('CLIENT', 'LIST');
            if (list.trim().split('\\n').length > 5) throw new Error(list);
        }}",
        cert.display()
    );
    passes(&script, &[]);
}

#[test]
fn statements_reach_mariadb() {
    let port = free_port();
    let flags = ["--bind-address=127.0.0.1", &format!("--port={port}")];
    let _database = MariaDb::start_with(50, &flags);
    let script = format!(
        "import sql from 'k6/x/sql';
        import driver from 'k6/x/sql/driver/mysql';
        const dsn = 'me:secret@tcp(127.0.0.1:{port})/d';
        const db = sql.open(driver, dsn);
        const timed = sql.open(driver, dsn + '?parseTime=true&multiStatements=true');
        const text = (bytes) => String.fromCharCode(...bytes);
        const thrown = (call) => {{ try {{ call(); }} catch (e) {{ return `${{e}}`; }} }};
        const inInit = db.query('SELECT 6 * 7 AS n')[0].n;
        export default function () {{
            equal('init', inInit, 42);
            db.exec('CREATE OR REPLACE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9), ' +
                'u BIGINT UNSIGNED, f DOUBLE, n DECIMAL(5,2), at DATETIME(3))');
            const made = db.exec('INSERT INTO k (v, u, f, n, at) VALUES (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)',
                'Pan', 7, 1.5, '3.1', '2024-01-02 03:04:05.678', null, null, null, null, null);
            equal('made', [made.rowsAffected(), made.lastInsertId()], [2, 1]);
            for (const rows of [db.query('SELECT * FROM k'), db.query('SELECT * FROM k WHERE id > ?', 0)]) {{
                const [row, empty] = rows;
                equal('row', {{ ...row, v: text(row.v), n: text(row.n), at: text(row.at) }},
                    {{ id: 1, v: 'Pan', u: 7, f: 1.5, n: '3.10', at: '2024-01-02 03:04:05.678' }});
                equal('empty', empty, {{ id: 2, v: null, u: null, f: null, n: null, at: null }});
            }}
            equal('time', timed.query('SELECT at FROM k WHERE id = 1')[0].at.unixMilli(), 1704164645678);
            equal('several', timed.exec('DELETE FROM k WHERE id = 2; UPDATE k SET v = 1').rowsAffected(), 1);
            equal('long', db.query(\"SELECT REPEAT('x', 70000) AS r\")[0].r.length, 70000);
            equal('none', thrown(() => db.query('SELECT * FROM none')),
                \"GoError: Error 1146 (42S02): Table 'd.none' doesn't exist\");
            equal('few', thrown(() => db.query('SELECT ?, ?', 1)), 'GoError: sql: expected 2 arguments, got 1');
            equal('late', thrown(() => db.queryWithTimeout('50ms', 'SELECT SLEEP(5)')),
                'GoError: context deadline exceeded');
            equal('after', db.query('SELECT 1 AS one'), [{{ one: 1 }}]);
            equal('tls', thrown(() => sql.open(driver, dsn + '?tls=true').query('SELECT 1')),
                'GoError: TLS requested but server does not support TLS');
            equal('gone', thrown(() => sql.open(driver, 'me:secret@tcp(127.0.0.1:1)/d').query('SELECT 1')),
                'GoError: dial tcp 127.0.0.1:1: connect: connection refused');
            db.close();
            equal('closed', thrown(() => db.query('SELECT 1')), 'GoError: sql: database is closed');
        }}"
    );
    passes(&script, &[]);
}

#[test]
fn statements_reach_postgresql() {
    let database = Postgres::start(20, "scram-sha-256");
    let dsn = format!("{}?sslmode=disable", database.dsn());
    let script = format!(
        "import sql from 'k6/x/sql';
        import driver from 'k6/x/sql/driver/postgres';
        export const options = {{ thresholds: {{ data_sent: ['count>0'] }}, blockHostnames: ['no.test'] }};
        const db = sql.open(driver, '{dsn}');
        const thrown = (call) => {{ try {{ call(); }} catch (e) {{ return `${{e}}`; }} }};
        export default function () {{
            db.exec('CREATE TABLE k (id SERIAL PRIMARY KEY, v TEXT, f FLOAT8, n NUMERIC, ok BOOLEAN, ' +
                'at TIMESTAMPTZ, b BYTEA, j JSONB)');
            const made = db.exec('INSERT INTO k (v, f, n, ok, at, b) VALUES ($1, $2, $3, $4, $5, $6)',
                'Pan', 1.5, '3.10', true, new Date(86400000), 'ab');
            equal('made', made.rowsAffected(), 1);
            equal('last', thrown(() => made.lastInsertId()),
                'GoError: LastInsertId is not supported by this driver');
            const expected = [{{ id: 1, v: 'Pan', f: 1.5, n: [51, 46, 49, 48], ok: true,
                at: '1970-01-02T00:00:00Z', b: [97, 98], j: null }}];
            equal('simple', db.query(\"SET TIME ZONE 'UTC'; SELECT * FROM k\"), expected);
            equal('extended', db.query('SELECT * FROM k WHERE id = $1', 1), expected);
            equal('time', `${{db.query('SELECT at FROM k')[0].at}}`, '1970-01-02 00:00:00 +0000 UTC');
            equal('none', thrown(() => db.query('SELECT * FROM none')),
                'GoError: pq: relation \"none\" does not exist at column 15 (42P01)');
            equal('few', thrown(() => db.query('SELECT $1::int, $2::int', 1)),
                'GoError: pq: got 1 parameters but the statement requires 2');
            equal('after', db.query('SELECT 1 AS one'), [{{ one: 1 }}]);
            const other = (from, to) => thrown(() => sql.open(driver, '{dsn}'.replace(from, to)).query('SELECT 1'));
            equal('login', other('me:', 'me:secret'),
                'GoError: pq: password authentication failed for user \"me\" (28P01)');
            equal('tls', other('disable', 'require'), 'GoError: pq: SSL is not enabled on the server');
            equal('blocked', other('127.0.0.1', 'no.test'),
                'GoError: hostname (no.test) is in a blocked pattern (no.test)');
        }}"
    );
    passes(&script, &[]);
}
