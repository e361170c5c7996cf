//! A misbehaving shadow affects neither clients nor other shadows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gake_shadow::{Category, ProxySummary, RunningProxy};

use crate::backend::{Backend, ok};
use crate::client::{Client, post};
use crate::{bad, config, shadow_at, start, stop, until_count};

const REQUESTS: u64 = 200;

/// Sends requests with and without keep-alive, and expects a response to each.
fn expect_responses(proxy: &RunningProxy) {
    let mut kept = Client::new(proxy.addr());
    for _ in 0..REQUESTS / 2 {
        assert_eq!(kept.get("/").body, "hello");
        assert_eq!(Client::new(proxy.addr()).get("/").body, "hello");
    }
}

/// Runs a proxy with a bad and a good shadow: the master and the good one serve every request.
fn with_bad_shadow(
    bad: &Backend,
    change: impl FnOnce(&mut gake_shadow::config::Config),
) -> (ProxySummary, u64) {
    let (master, good) = (Backend::hello(), Backend::hello());
    let mut config = config(&master, &[bad, &good]);
    config.shadows[0].timeout = Duration::from_millis(300);
    change(&mut config);
    let queue_bytes = config.shadows[0].queue_bytes;
    let proxy = start(config);
    expect_responses(&proxy);
    assert_eq!(master.requests().len() as u64, REQUESTS);
    let state = &proxy.control().shadows()[0];
    assert!(state.waiting <= 8 && state.bytes <= queue_bytes, "{state:?}");
    until_count(&proxy, 1, Category::Ok, REQUESTS);
    let summary = stop(proxy);
    assert_eq!(summary.ledgers[0].received, REQUESTS);
    (summary, good.requests().len() as u64)
}

/// Few lanes and a short queue, so that copies must be shed.
fn narrow(config: &mut gake_shadow::config::Config) {
    (config.shadows[0].queue, config.shadows[0].connections) = (8, 2);
    config.shadows[0].breaker.failures = 0;
}

#[test]
fn a_shadow_that_hangs_is_shed() {
    let (summary, good) = with_bad_shadow(&bad::hangs(), |config| {
        narrow(config);
        config.shadows[0].timeout = Duration::from_secs(1);
    });
    let ledger = &summary.ledgers[0];
    assert_eq!(ledger.count(Category::Ok), 0);
    // Two copies run and eight wait; timeouts admit two more per second.
    assert!(ledger.count(Category::ShedQueue) >= REQUESTS / 2, "{ledger}");
    assert!(ledger.count(Category::Timeout) >= 2, "{ledger}");
    assert_eq!(good, REQUESTS);
}

#[test]
fn a_shadow_that_refuses_or_resets_opens_its_breaker() {
    for bad in [Backend::refusing(), bad::resets()] {
        let (summary, _) = with_bad_shadow(&bad, |config| {
            config.shadows[0].queue = 8;
            config.shadows[0].breaker.failures = 5;
            config.shadows[0].breaker.pause = Duration::from_secs(3600);
        });
        let ledger = &summary.ledgers[0];
        assert!(ledger.count(Category::ConnErr) >= 5, "{ledger}");
        assert!(ledger.count(Category::ShedBreaker) > 0, "{ledger}");
        // Plus those in flight when the breaker opened.
        assert!(ledger.count(Category::ConnErr) <= 5 + 8 + 128, "{ledger}");
    }
}

#[test]
fn a_dripping_shadow_times_out() {
    let (summary, _) = with_bad_shadow(&bad::drips(), narrow);
    let ledger = &summary.ledgers[0];
    assert!(ledger.count(Category::Timeout) >= 2, "{ledger}");
    assert_eq!(ledger.count(Category::Ok), 0);
}

#[test]
fn a_shadow_that_sends_a_gigabyte_is_not_read_to_its_end() {
    let (bad, sent) = bad::floods();
    let limit = 100_000;
    let (summary, _) = with_bad_shadow(&bad, |config| {
        narrow(config);
        config.limits.response_body = limit;
        config.shadows[0].timeout = Duration::from_secs(30);
    });
    let ledger = &summary.ledgers[0];
    let cut = ledger.count(Category::Cut);
    assert!(cut > 0, "{ledger}");
    // At most the limit and one more read.
    assert!(ledger.bytes_in <= cut * (limit + (128 << 10)), "{ledger:?}");
    assert!(sent.load(Ordering::SeqCst) < 1 << 30, "unread data is not sent");
}

#[test]
fn a_shadow_that_never_reads_holds_bounded_memory() {
    let (master, size) = (Backend::responding(|seen| ok(&seen.body.len().to_string())), 500_000);
    let mut config = config(&master, &[]);
    config.shadows.push(shadow_at(0, &bad::never_reads().url()));
    config.shadows[0].queue_bytes = 4 * size as u64;
    config.shadows[0].timeout = Duration::from_secs(5);
    let proxy = start(config);
    let body = "x".repeat(size);
    for _ in 0..20 {
        assert_eq!(post(proxy.addr(), "/", &body).body, size.to_string());
        assert!(proxy.control().shadows()[0].bytes <= 4 * size as u64);
    }
    let ledger = &stop(proxy).ledgers[0];
    assert_eq!(ledger.count(Category::Ok), 0);
    // Four fit; more only if the test takes longer than their timeout.
    assert!(ledger.count(Category::ShedQueue) >= 4, "{ledger}");
}

#[test]
fn concurrent_clients_are_served_and_accounted_for() {
    let (master, slow) = (
        Backend::hello(),
        Backend::responding(|_| {
            std::thread::sleep(Duration::from_millis(5));
            ok("late")
        }),
    );
    let mut config = config(&master, &[&slow]);
    config.shadows[0].queue = 10;
    let proxy = start(config);
    let addr = proxy.addr();
    let clients: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::new(addr);
                (0..50).for_each(|_| assert_eq!(client.get("/").body, "hello"));
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let summary = stop(proxy);
    assert_eq!(summary.stats.requests, 800);
    let ledger = &summary.ledgers[0];
    assert_eq!(ledger.received, 800);
    assert_eq!(ledger.count(Category::Ok) + ledger.shed(), 800, "{ledger}");
    assert_eq!(ledger.count(Category::Ok), slow.requests().len() as u64);
}
