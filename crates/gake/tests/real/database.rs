//! A service that asks a MariaDB: first its pool is too small, then the database has enough.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::*;

/// A query that holds its connection for 20 ms.
pub const SLEEP: &str = "SELECT SLEEP(0.02)";
/// The same, under the lock of one row.
pub const LOCK: &str = "INSERT INTO d.t VALUES (1, 0) ON DUPLICATE KEY \
    UPDATE n = n + SLEEP(0.02) RETURNING id";
/// What a pool that keeps its connections keeps idle.
pub const KEPT: u32 = 1_000;

/// What is acknowledged has left the process.
const DURABLE: [&str; 2] = ["--skip-networking", "--innodb-flush-log-at-trx-commit=2"];

/// A MariaDB of its own: no network, no accounts, one table.
pub struct MariaDb {
    child: Child,
    directory: TempDir,
}

impl MariaDb {
    pub fn start(max_connections: u32) -> Self {
        Self::start_with(max_connections, &["--skip-networking"])
    }

    /// One that keeps what it has acknowledged when it is killed.
    pub fn durable(max_connections: u32) -> Self {
        let mut database = Self::start_with(max_connections, &DURABLE);
        // The first pages of a new database are on its disk once it was stopped in order.
        kill_process(Pid::from_child(&database.child), Signal::TERM).unwrap();
        database.again(max_connections);
        database
    }

    /// Kills it as a crash would, and starts it again with what is on its disk.
    pub fn crash(&mut self, max_connections: u32) {
        self.child.kill().unwrap();
        self.again(max_connections);
    }

    fn again(&mut self, max_connections: u32) {
        self.child.wait().unwrap();
        let _ = fs::remove_file(self.directory.path().join("socket"));
        self.child = Self::spawn(&self.directory, max_connections, &DURABLE);
        self.wait();
    }

    pub fn start_with(max_connections: u32, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        let table = "CREATE DATABASE IF NOT EXISTS d;\n\
            CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;\n\
            CREATE TABLE IF NOT EXISTS d.users (id INT PRIMARY KEY AUTO_INCREMENT, \
            name VARCHAR(255), mail VARCHAR(255)) ENGINE=InnoDB;\n";
        fs::write(directory.path().join("init"), table).unwrap();
        let child = Self::spawn(&directory, max_connections, flags);
        let mut database = Self { child, directory };
        database.wait();
        database
    }

    fn spawn(directory: &TempDir, max_connections: u32, flags: &[&str]) -> Child {
        let at = directory.path();
        let mut command = command("mariadbd");
        command.args(["--no-defaults", "--skip-grant-tables", "--skip-log-bin"]);
        command.arg("--innodb-flush-log-at-trx-commit=0").args(flags);
        command.arg(format!("--init-file={}", at.join("init").display()));
        // It refuses to run as root without this flag.
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        command.arg(format!("--max-connections={max_connections}"));
        command.arg(format!("--datadir={}", at.join("data").display()));
        command.arg(format!("--socket={}", at.join("socket").display()));
        command.arg(format!("--pid-file={}", at.join("pid").display()));
        let log = File::create(at.join("log")).unwrap();
        let child = command.stderr(log).spawn();
        child.unwrap()
    }

    fn wait(&mut self) {
        let at = self.directory.path().to_owned();
        eventually("MariaDB listens", || {
            let ended = self.child.try_wait().unwrap();
            let log = fs::read_to_string(at.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "{log}");
            at.join("socket").exists() && log.contains("ready for connections")
        });
    }

    /// A service with `pool` connections to it at most, 0 is without bound, and `idle` that are
    /// kept.
    pub fn service(&self, pool: u32, idle: u32, query: &str) -> Peer {
        let mut command = Command::new(go_program("db"));
        command.arg(self.socket());
        Peer::start(command.args([pool, idle].map(|n| n.to_string())).arg(query))
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// What tells of its connections.
    pub fn watch(&self) -> String {
        format!("mysql://root@{}", self.socket().display())
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn load(service: &Peer, database: &MariaDb) -> Json {
    let metrics = format!("prometheus:{}/metrics", service.url);
    let watch = ["--watch", &metrics, "--watch", &database.watch()];
    let flags = words("-c 100 -d 5s --warmup 1s");
    run(&[&[service.url.as_str()], &watch[..], &*flags].concat())
}

/// The experiment on a service of one's own, whose pool is the limit.
fn an_experiment_names_the_pool(database: &MariaDb) {
    let service = database.service(5, KEPT, SLEEP);
    let metrics = format!("prometheus:{}/metrics", service.url);
    let args = ["experiment", "pool", "--quick", "--target", &service.url, "-q", "-o", "json"];
    let only = ["--watch", &metrics, "--watch", &database.watch(), "--only", "40 users"];
    let ran = ran(&[&args[..], &only].concat()).done();
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let step = &json["steps"][0];
    assert_eq!(step["failed"], 0, "{step}");
    // Five connections, each held for 20 ms.
    assert!(step["goodput"].as_f64().unwrap() <= 5.0 * 50.0 * 1.05, "{step}");
    let findings = step["findings"].as_array().unwrap().iter();
    let causes: Vec<_> = findings.filter(|one| one["rank"] == "cause").collect();
    assert!(causes.iter().any(|cause| cause["id"] == "target_db_pool"), "{step}");
    // A cell of one's own server is no theory's.
    assert!(json["as_expected"].is_null(), "{step}");
}

/// What cannot be used is said in one line each, without the password.
fn what_cannot_be_used_is_said(database: &MariaDb) {
    let wrong = database.watch().replace("root@", "me:secret@");
    for (db, expected) in [
        (format!("{wrong}?dbname=none"), "1049"),
        (format!("{wrong}.gone?dbname=d"), "no connection"),
    ] {
        let refused = ran(&["experiment", "users-db", "-q", "--db", &db]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains(expected) && !refused.stderr.contains("secret"),
            "{refused:?}"
        );
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    }
}

#[test]
fn a_small_pool_is_named_and_after_it_the_databases_own_limit() {
    let database = MariaDb::start(30);
    let rates = [5, 20].map(|pool| {
        let json = load(&database.service(pool, KEPT, SLEEP), &database);
        assert_eq!(json.count("requests.failed"), 0, "{}", json.0);
        assert!(json.findings().contains(&"target_db_pool"), "{pool}: {}", json.at("verdict"));
        let rate = json.number("rate.completed");
        // A query holds its connection for 20 ms.
        assert!(rate <= f64::from(pool) * 50.0 * 1.02, "{pool}: {rate}");
        rate
    });
    // Four times as much on a quiet machine.
    assert!(rates[1] > 2.0 * rates[0], "{rates:?}");
    let json = load(&database.service(0, KEPT, SLEEP), &database);
    assert!(json.count("status.500") > 0, "{}", json.0);
    let findings = json.findings();
    assert_eq!(findings[0], "db_connections_refused", "{}", json.at("verdict"));
    assert!(findings.contains(&"server_errors"), "{findings:?}");
    assert!(!findings.contains(&"target_db_pool"), "{findings:?}");
    an_experiment_names_the_pool(&database);
    what_cannot_be_used_is_said(&database);
}

#[test]
fn a_database_is_watched_over_tls() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| files.path().join(name).display().to_string();
    let (cert, key) = crate::postgres::certificate();
    fs::write(file("cert.pem"), cert).unwrap();
    fs::write(file("key.pem"), key).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (cert, key) =
        (format!("--ssl-cert={}", file("cert.pem")), format!("--ssl-key={}", file("key.pem")));
    let port_flag = format!("--port={port}");
    let flags = ["--bind-address=127.0.0.1", &port_flag, &cert, &key];
    let _database = MariaDb::start_with(50, &flags);
    let watch = |options: &str| {
        let dsn = format!("mysql://root@127.0.0.1:{port}?{options}");
        ran(&["watch", &dsn, "-o", "json", "--every", "400ms", "-d", "1s"])
    };
    let checked = watch(&format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={}", file("cert.pem")));
    assert!(checked.stdout.contains("db_max_connections"), "{checked:?}");
    assert_eq!(watch("sslmode=require").code, Some(0));
    // The system trusts no certificate of a test.
    let unknown = watch("sslmode=verify-full");
    assert!(unknown.code == Some(1) && unknown.stderr.contains("TLS"), "{unknown:?}");
}
