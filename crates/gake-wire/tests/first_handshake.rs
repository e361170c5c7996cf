//! Nothing that a process pays once is left to its first handshake.

#![allow(clippy::unwrap_used)] // the helpers are tests too

use std::sync::Arc;
use std::time::Duration;

use gake_wire::{Protocol, TlsOptions};
use rustix::time::{ClockId, clock_gettime};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// The CPU that a client's first flight takes.
fn hello_cpu(config: &Arc<ClientConfig>) -> Duration {
    let start = thread_cpu();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    connection.write_tls(&mut Vec::new()).unwrap();
    thread_cpu() - start
}

/// Alone in its file: each file is a process of its own, whose random numbers are not seeded yet.
#[test]
fn the_first_hello_costs_what_later_ones_do() {
    let config = TlsOptions::default().config(Protocol::Http1).unwrap();
    let first = hello_cpu(&config);
    let mut later: Vec<_> = (0..9).map(|_| hello_cpu(&config)).collect();
    later.sort();
    // Seeding takes 20 ms and more.
    let bound = 4 * later[4] + Duration::from_millis(4);
    assert!(first < bound, "{first:?} against {:?}", later[4]);
}
