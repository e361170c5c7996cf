//! How late this machine wakes a thread, and how long a busy one waits for a core.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos};
use gake_core::record::Histogram;
use gake_engine::{RunClock, Timer};
use gake_text::units::duration;
use tokio::runtime::{Builder, LocalOptions};

use super::check::{Check, at_most};
use super::parse;

/// The number of sleeps.
const SLEEPS: u64 = 500;

/// The length of a sleep.
const SLEEP: Nanos = 1_000_000;

/// How long the thread is kept busy.
const BUSY: Duration = Duration::from_millis(200);

/// How late wake-ups are, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// The middle one.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The latest.
    pub max: Nanos,
}

/// Measures how late the engine's timer is, on a thread set up as a worker is.
///
/// # Errors
/// When it cannot be measured, and why.
pub fn lateness() -> Result<Lateness, String> {
    let thread = std::thread::Builder::new().name("gake-doctor".to_owned()).spawn(|| {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
        runtime.block_on(async {
            let clock = RunClock::starting_in(0);
            let timer = Timer::new(clock.clone())?;
            let mut late = Histogram::new();
            let mut due = clock.now();
            for _ in 0..SLEEPS {
                // After a late wake-up the next sleep is a whole one again.
                due = due.max(clock.now()) + SLEEP;
                timer.sleep_until(due).await;
                late.record(clock.now().saturating_sub(due));
            }
            Ok::<_, std::io::Error>(Lateness {
                p50: late.quantile(0.5),
                p99: late.quantile(0.99),
                max: late.max(),
            })
        })
    });
    let measured = thread.map_err(|error| error.to_string())?.join();
    measured.map_err(|_| "its thread ended".to_owned())?.map_err(|error| error.to_string())
}

/// Its rating.
pub fn check(lateness: &Result<Lateness, String>) -> Check {
    let name = "timer lateness";
    match lateness {
        Err(reason) => Check::new(name, super::check::Status::Bad, format!("unknown: {reason}")),
        Ok(late) => {
            let [p50, p99, max] = [late.p50, late.p99, late.max].map(|ns| duration(ns as f64));
            let status = at_most(late.p99 as f64, 200e3, 1e6);
            Check::new(name, status, format!("p50 {p50}, p99 {p99}, max {max}")).advise(
                "arrivals of an open loop are late by that: stop other programs, or use --spin",
            )
        }
    }
}

/// The share of its time that a busy thread waits for a core, 0 to 1; `None` where the kernel
/// does not say.
pub fn contention() -> Option<f64> {
    let delay = || parse::run_delay(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?);
    let (begun, before) = (Instant::now(), delay()?);
    while begun.elapsed() < BUSY {
        std::hint::spin_loop();
    }
    let waited = delay()?.saturating_sub(before);
    Some(waited as f64 / begun.elapsed().as_nanos() as f64)
}
