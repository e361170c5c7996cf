//! The cost of a request on an open connection: no allocation, one read of the clock.

use std::cell::Cell;
use std::time::Duration;

use gake_testkit::{Counting, thread_counts};

use crate::client::{Setup, request};
use crate::pki::{Kind, pki};
use crate::server::{Again, Request, Server, ok, send};

thread_local! {
    /// Reads of the clock on this thread.
    pub static READS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

const TIMES: u64 = 200;

/// Allocations and reads of the clock of some requests, after a warm-up.
fn cost(setup: Setup) -> (u64, u64) {
    setup.run(async |client| {
        let mut lane = client.lane();
        lane.fire_ok(20).await;
        let before = (thread_counts().0, READS.get());
        lane.fire_ok(TIMES as usize).await;
        let after = (thread_counts().0, READS.get());
        assert!(client.counts().opened <= 2, "the connections are kept");
        // The test reads the clock once to fire.
        (after.0 - before.0, after.1 - before.1 - TIMES)
    })
}

#[test]
fn nothing_is_allocated_for_a_request() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for script in [vec![Request, ok(100), Again], vec![Request, send(response), Again]] {
        for pooled in [true, false] {
            let server = Server::start([script.clone()]);
            let setup = Setup::get(server.url("/")).with(|s| {
                s.settings.pooled = pooled;
                // Following redirects costs nothing without one.
                s.settings.max_redirects = 5;
                s.settings.timeouts.first_byte = Some(Duration::from_secs(10));
            });
            let (allocations, reads) = cost(setup);
            // The scan of deadlines reads the clock every 20 ms.
            assert_eq!(allocations, 0);
            assert!((TIMES..TIMES + TIMES / 4).contains(&reads), "{reads}");
        }
    }
}

#[test]
fn several_targets_cost_no_more_than_one() {
    let servers: Vec<_> = (0..2).map(|_| Server::start([vec![Request, ok(100), Again]])).collect();
    let requests = servers.iter().map(|server| request("GET", &server.url("/"))).collect();
    let (allocations, reads) = cost(Setup::of(requests));
    assert_eq!(allocations, 0);
    assert!((TIMES..TIMES + TIMES / 4).contains(&reads), "{reads}");
}

#[test]
fn a_stream_of_http2_allocates_nothing_either() {
    let lab = gake_lab::Lab::start(gake_lab::LabConfig { cores: 1, ..Default::default() }).unwrap();
    let setup = Setup::get(format!("http://{}/fast", lab.addr())).with(|s| {
        s.settings.protocol = gake_wire::Protocol::Http2;
        s.settings.timeouts.first_byte = Some(Duration::from_secs(10));
    });
    let (allocations, reads) = cost(setup);
    assert_eq!(allocations, 0);
    assert!((TIMES..TIMES + TIMES / 4).contains(&reads), "{reads}");
}

#[test]
fn a_message_of_a_websocket_allocates_nothing_either() {
    let lab = gake_lab::Lab::start(gake_lab::LabConfig { cores: 1, ..Default::default() }).unwrap();
    let setup = Setup::post(format!("ws://{}/ws", lab.addr()), "hello")
        .with(|s| s.settings.protocol = gake_wire::Protocol::WebSocket);
    let (allocations, reads) = cost(setup);
    assert_eq!(allocations, 0);
    assert!((TIMES..TIMES + TIMES / 4).contains(&reads), "{reads}");
}

#[test]
fn tls_allocates_little() {
    let server = Server::tls(pki().server(Kind::default()), [vec![Request, ok(100), Again]]);
    let mut setup = Setup::get(format!("https://127.0.0.1:{}/", server.addr.port()));
    setup.tls.cacert = vec![pki().path("ca.pem")];
    let (allocations, reads) = cost(setup);
    // rustls needs these for a record each way.
    assert!(allocations <= 10 * TIMES, "{allocations}");
    assert!((TIMES..TIMES + TIMES / 4).contains(&reads), "{reads}");
}

/// A user may take 4 KB: this much for the connection and the work, the rest for the engine's task,
/// the allocator and temporary growth.
const USER_BYTES: i64 = 1_168;

/// The future of a request, within each user's task.
const REQUEST_BYTES: usize = 896;

#[test]
fn an_idle_user_takes_little_memory() {
    const USERS: usize = 100;
    let server = Server::start([vec![Request, ok(100), Again]]);
    let setup = Setup::get(server.url("/")).with(|s| s.settings.pooled = false);
    setup.run(async |client| {
        // Shared state exists already.
        let mut first = client.lane();
        first.fire_ok(2).await;
        assert!(first.request_bytes() <= REQUEST_BYTES, "{}", first.request_bytes());
        let mut lanes = Vec::with_capacity(USERS);
        let before = thread_counts().1;
        for _ in 0..USERS {
            let mut lane = client.lane();
            lane.fire_ok(2).await;
            lanes.push(lane);
        }
        let bytes = (thread_counts().1 - before) / USERS as i64 + first.work_bytes() as i64;
        assert!(bytes <= USER_BYTES, "{bytes} bytes a user");
        assert_eq!(client.gauges().open as usize, USERS + 1);
    });
}
