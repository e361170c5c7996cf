//! A PostgreSQL that is watched: by passwords of both kinds, and when it has no connection left.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::*;

/// Debian's user that owns nothing; the server refuses to run as root.
const NOBODY: u32 = 65_534;
const PASSWORD: &str = "p@ss word";
const ENCODED: &str = "p%40ss%20word";

pub struct Postgres {
    child: Child,
    directory: TempDir,
    port: u16,
}

/// A command as a user who is not root.
fn as_nobody(program: &str, directory: &TempDir) -> Command {
    let mut command = command(program);
    command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

impl Postgres {
    pub fn start(max_connections: u32, method: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("password"), PASSWORD).unwrap();
        if rustix::process::geteuid().is_root() {
            for path in [directory.path().to_owned(), directory.path().join("password")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let made = as_nobody("initdb", &directory)
            .args(["-D", "data", "-U", "me", "--pwfile=password", "--no-sync", "-A", method])
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Self::spawn(&directory, port, max_connections);
        let database = Self { child, directory, port };
        database.wait();
        database
    }

    /// Ends all of its processes as a crash would, and starts it again with what is in its log.
    pub fn crash(&mut self, max_connections: u32) {
        kill_process(Pid::from_child(&self.child), Signal::QUIT).unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.directory, self.port, max_connections);
        self.wait();
    }

    fn spawn(directory: &TempDir, port: u16, max_connections: u32) -> Child {
        as_nobody("postgres", directory)
            .args(["-D", "data", "-k", ".", "-h", "127.0.0.1", "-p", &port.to_string()])
            .args(["-c", &format!("max_connections={max_connections}"), "-c", "fsync=off"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn wait(&self) {
        eventually("PostgreSQL listens", || {
            let status = self.directory.path().join("data/postmaster.pid");
            fs::read_to_string(status).is_ok_and(|text| text.contains("ready"))
        });
    }

    /// Its URL, with what an account needs.
    pub fn dsn(&self) -> String {
        format!("postgres://me:{ENCODED}@127.0.0.1:{}/postgres", self.port)
    }

    fn watch(&self, dsn: &str) -> Ran {
        let dsn = dsn.replace("PORT", &self.port.to_string());
        ran(&["watch", &dsn, "-o", "json", "--every", "400ms", "-d", "1500ms"])
    }
}

/// A certificate for 127.0.0.1, and its key.
pub fn certificate() -> (String, String) {
    let signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (signed.cert.pem(), signed.signing_key.serialize_pem())
}

#[test]
fn a_server_that_wants_tls_gets_it_and_is_checked_when_asked() {
    let database = Postgres::start(20, "scram-sha-256");
    let data = database.directory.path().join("data");
    let (cert, key) = certificate();
    for (name, text) in [("server.crt", &cert), ("server.key", &key)] {
        let path = data.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    // The database refuses clients without it.
    fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(data.join("postgresql.conf"))
        .unwrap()
        .write_all(b"ssl = on\n")
        .unwrap();
    let _ = kill_process(Pid::from_child(&database.child), Signal::HUP);
    let watch = |options: &str| {
        database.watch(&format!("postgres://me:{ENCODED}@127.0.0.1:PORT?{options}"))
    };
    eventually("it speaks TLS", || watch("sslmode=require").code == Some(0));
    let plain = watch("sslmode=disable");
    assert!(plain.code == Some(1) && plain.stderr.contains("28000"), "{plain:?}");
    let roots = database.directory.path().join("roots.pem");
    fs::write(&roots, &cert).unwrap();
    let checked = watch(&format!("sslmode=verify-full&sslrootcert={}", roots.display()));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("db_open"), "{checked:?}");
    // The system trusts no certificate of a test.
    let unknown = watch("sslmode=verify-full");
    assert!(unknown.code == Some(1) && unknown.stderr.contains("TLS"), "{unknown:?}");
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once: its files go too.
        let _ = kill_process(Pid::from_child(&self.child), Signal::QUIT);
        let _ = self.child.wait();
    }
}

#[test]
fn its_connections_are_counted_with_every_kind_of_authentication() {
    for method in ["scram-sha-256", "md5", "password"] {
        let database = Postgres::start(20, method);
        let watch = || database.watch(&format!("postgres://me:{ENCODED}@127.0.0.1:PORT"));
        // A rate needs two readings, which a busy machine may not have within the time.
        let has_rates = |sampled: &Ran| sampled.stdout.contains("\"db_connects\"");
        let sampled = (0..4).map(|_| watch()).find(has_rates).unwrap_or_else(watch);
        assert_eq!(sampled.code, Some(0), "{method}: {sampled:?}");
        let line: serde_json::Value =
            serde_json::from_str(sampled.stdout.lines().last().unwrap()).unwrap();
        let level = |name: &str| line["levels"][name].as_f64();
        // Three are kept for the owner; the one who asks is at work.
        assert_eq!(level("db_max_connections"), Some(17.0), "{method}: {line}");
        assert!(level("db_open") >= Some(1.0) && level("db_running") >= Some(1.0), "{line}");
        assert_eq!(level("db_lock_waits"), Some(0.0), "{line}");
        assert!(has_rates(&sampled), "{sampled:?}");
        assert_eq!(line["source"], format!("postgres://127.0.0.1:{}", database.port));
    }
}

#[test]
fn a_refused_login_has_a_reason_without_the_password() {
    let database = Postgres::start(20, "scram-sha-256");
    let refused = database.watch("postgres://me:hunter2@127.0.0.1:PORT");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("28P01"), "{refused:?}");
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
    let malformed = database.watch("postgres://me:hunter2@127.0.0.1:0");
    assert_eq!(malformed.code, Some(2), "{malformed:?}");
    assert!(!format!("{malformed:?}").contains("hunter2"), "{malformed:?}");
    // There is no listener.
    let absent = database.watch("postgres://me@/no/such/socket");
    assert!(absent.stderr.contains("postgres:///no/such/socket"), "{absent:?}");
}
