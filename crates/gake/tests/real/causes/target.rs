//! Limits of servers.

use std::path::PathBuf;
use std::process::Command;

use super::{Need, load, port_of};
use crate::database::{KEPT, LOCK, MariaDb, SLEEP};
use crate::group::Group;
use crate::nginx::Nginx;
use crate::support::*;
use crate::tomcat::{Settings, tomcat};
use crate::{slow, source};

pub fn go_binary() -> PathBuf {
    go_program("go")
}

fn go() -> Peer {
    Peer::start(&mut Command::new(go_binary()))
}

/// A server that only waits, loaded.
fn waiting(wait: &str, flags: &str) -> Json {
    let peer = go();
    load(&format!("{}/?wait={wait}", peer.url), &[&port_of(&peer.url)], flags)
}

pub fn open_without_limit() -> Json {
    waiting("5ms", "-r 100 -d 4s")
}

pub fn open_without_limit_slow() -> Json {
    waiting("5ms", "-r 10 -d 4s")
}

pub fn open_without_limit_fast() -> Json {
    waiting("5ms", "-r 1000 -d 4s")
}

pub fn closed_without_limit() -> Json {
    waiting("100ms", "-c 20 -d 4s")
}

pub fn one_user_without_limit() -> Json {
    waiting("10ms", "-c 1 -d 4s")
}

pub fn closed_without_limit_many() -> Json {
    waiting("500ms", "-c 200 -d 4s")
}

pub fn cpu() -> Json {
    let peer = go();
    load(&format!("{}/?work=100000", peer.url), &[&port_of(&peer.url)], "-c 16 -d 5s")
}

pub fn cpu_many() -> Json {
    let peer = go();
    load(&format!("{}/?work=100000", peer.url), &[&port_of(&peer.url)], "-c 64 -d 5s")
}

pub fn cpu_quota() -> Json {
    let group = Group::of_cpu().unwrap();
    let peer = Peer::start(&mut group.command(&go_binary()));
    load(&format!("{}/?work=20000", peer.url), &[&port_of(&peer.url)], "-c 8 -d 5s --warmup 1s")
}

/// 512 MB of data; 64 MB fit into memory.
pub fn memory() -> Json {
    let program = go_program("paged");
    let (group, folder) = (Group::of_memory().unwrap(), tempfile::tempdir().unwrap());
    let peer = Peer::start(group.command(&program).arg(folder.path().join("data")).arg("512"));
    load(&peer.url, &[&port_of(&peer.url)], "-c 8 -d 5s --warmup 1s")
}

/// Each request writes one block; the disk takes 400 a second.
pub fn disk() -> Json {
    let program = go_program("disk");
    let folder = tempfile::tempdir().unwrap();
    let group = Group::of_disk(folder.path()).unwrap();
    let peer = Peer::start(group.command(&program).arg(folder.path().join("data")));
    load(&peer.url, &[&port_of(&peer.url)], "-c 16 -d 5s --warmup 1s")
}

pub const CPU_GROUP: Need =
    Need { what: "a control group that bounds CPU", is_met: || Group::of_cpu().is_some() };

pub const MEMORY_GROUP: Need =
    Need { what: "a control group that bounds memory", is_met: || Group::of_memory().is_some() };

pub const DISK_GROUP: Need = Need {
    what: "a control group that bounds the disk of the folder for temporary files",
    is_met: || Group::of_disk(&std::env::temp_dir()).is_some(),
};

pub fn threads_few() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 30 -d 5s --warmup 1s")
}

pub fn threads_many() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 200 -d 6s --warmup 2s")
}

pub fn database_pool_few() -> Json {
    database(100, (5, KEPT, SLEEP), "-c 10 -d 4s --warmup 1s")
}

/// Room for every connection.
const TWENTY: Settings =
    Settings { threads: 20, max_connections: 8_192, accept_count: 1_000, sleep_ms: 200 };

pub fn threads() -> Json {
    let server = tomcat(TWENTY);
    load(&server.peer.url, &[&server.watch], "-c 60 -d 5s --warmup 1s")
}

pub fn threads_unwatched() -> Json {
    let server = tomcat(TWENTY);
    // The first request does not wait, which shows the time that one takes by itself.
    load(&server.peer.url, &[], "-c 100 -d 8s")
}

pub fn connections() -> Json {
    let settings =
        Settings { threads: 200, max_connections: 50, accept_count: 10, sleep_ms: 1_000 };
    let server = tomcat(settings);
    load(&server.peer.url, &[&server.watch], "-c 100 -d 12s --drain 1s")
}

pub fn worker_connections() -> Json {
    load(&Nginx::start(50).url, &[], "-c 100 -d 3s")
}

/// A server that accepts one connection in 50 ms, with four in its queue.
pub fn accept_queue() -> Json {
    let listener = slow::listen();
    let url = format!("http://{}/", listener.address());
    load(&url, &[], "-c 40 --no-keepalive -d 6s --drain 1s")
}

fn database(max_connections: u32, service: (u32, u32, &str), flags: &str) -> Json {
    let database = MariaDb::start(max_connections);
    let (pool, idle, query) = service;
    let service = database.service(pool, idle, query);
    let metrics = format!("prometheus:{}/metrics", service.url);
    load(&service.url, &[&metrics, &database.watch()], flags)
}

pub fn database_pool() -> Json {
    database(100, (5, KEPT, SLEEP), "-c 50 -d 4s --warmup 1s")
}

pub fn refused() -> Json {
    database(30, (0, KEPT, SLEEP), "-c 100 -d 4s --warmup 1s")
}

pub fn churn() -> Json {
    database(200, (0, 2, SLEEP), "-c 40 -d 4s --warmup 1s")
}

pub fn row_lock() -> Json {
    database(200, (0, KEPT, LOCK), "-c 20 -d 4s --warmup 1s")
}

pub fn row_lock_few() -> Json {
    database(200, (0, KEPT, LOCK), "-c 6 -d 4s --warmup 1s")
}

pub fn lock() -> Json {
    locked("-c 20 -d 4s --warmup 1s")
}

pub fn lock_many() -> Json {
    locked("-c 100 -d 4s --warmup 1s")
}

fn locked(flags: &str) -> Json {
    let program = go_program("lock");
    let peer = Peer::start(Command::new(program).arg("10ms"));
    let metrics = format!("prometheus:{}/metrics", peer.url);
    load(&peer.url, &[&metrics], flags)
}

pub fn collector() -> Json {
    collecting(port_of)
}

pub fn collector_exported() -> Json {
    collecting(|url| format!("prometheus:{url}/metrics"))
}

fn collecting(watch: fn(&str) -> String) -> Json {
    let mut command = command("java");
    // Hardly larger than what lives, and collected for every request.
    command.args(["-Xmx72m", "-Xmn4m", "-XX:+UseSerialGC", "-Dsun.net.httpserver.nodelay=true"]);
    command.arg(source("gc").join("Peer.java"));
    let peer = Peer::start(command.args(["80", "4"]));
    load(&peer.url, &[&watch(&peer.url)], "-c 8 -d 5s --warmup 1s")
}
