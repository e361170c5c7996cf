//! Tests of the proxy over sockets, with scripted backends and raw clients.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

mod admin;
mod backend;
mod bad;
mod client;
mod config;
mod differential;
mod faults;
mod frame_path;
mod hooks;
mod hostile;
mod http2;
mod isolation;
mod latency;
mod lengths;
mod nginx;
mod passing;
mod spoofed;
mod streams;
mod tls;

use std::cell::Cell;
use std::time::{Duration, Instant};

use gake_shadow::config::{Backend as BackendConfig, Config, Shadow};
use gake_shadow::hooks::{HookSet, Selection};
use gake_shadow::{Category, Ledger, Proxy, RunningProxy};

use backend::Backend;

/// Generous for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Settings for a master and shadows named `s0`, `s1` ..., which get every method.
pub(crate) fn config(master: &Backend, shadows: &[&Backend]) -> Config {
    let mut config = Config::new(BackendConfig::new("master", &master.url()).unwrap());
    config.threads = 2;
    for (number, shadow) in shadows.iter().enumerate() {
        config.shadows.push(shadow_at(number, &shadow.url()));
    }
    config
}

pub(crate) fn shadow_at(number: usize, url: &str) -> Shadow {
    let mut shadow = Shadow::new(BackendConfig::new(&format!("s{number}"), url).unwrap());
    shadow.methods = gake_shadow::config::methods(&["all".to_owned()]).unwrap();
    shadow
}

thread_local! {
    /// Whether this test's proxies use the frame path.
    pub(crate) static ON_FRAME_PATH: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn start(config: Config) -> RunningProxy {
    let mut proxy = Proxy::new(config).unwrap();
    if ON_FRAME_PATH.get() {
        // A selecting hook forces the frame path.
        proxy = proxy.hooks(HookSet::new().on_select_backends(|_| Selection::All));
    }
    proxy.start().unwrap()
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn ledger(proxy: &RunningProxy, shadow: usize) -> Ledger {
    proxy.control().shadows()[shadow].ledger.clone()
}

pub(crate) fn until_count(proxy: &RunningProxy, shadow: usize, category: Category, count: u64) {
    let begun = Instant::now();
    while ledger(proxy, shadow).count(category) < count {
        assert!(begun.elapsed() < LONG, "{count} {}: {}", category.name(), ledger(proxy, shadow));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops a proxy, and checks that every ledger balances.
pub(crate) fn stop(proxy: RunningProxy) -> gake_shadow::ProxySummary {
    let summary = proxy.stop(Duration::from_secs(20));
    for ledger in &summary.ledgers {
        assert_eq!((ledger.balance(), ledger.in_flight), (0, 0), "{ledger}");
    }
    summary
}

/// A deterministic generator.
pub(crate) struct Generator(pub(crate) u64);

impl Generator {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    pub(crate) fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}
