//! `capacity`: the same server under an open and under a closed loop; then under objectives,
//! and in other dimensions.

use std::time::Duration;

use gake_core::plan::Stage;
use gake_core::schedule::Process;
use gake_judge::queueing::erlang_c;
use gake_run::spec::{Load, RunSpec};
use gake_text::units;

use super::bench::{Bench, Stopped, closed, goodput, load_on};
use super::server::Server;
use super::{capacity_dimensions, capacity_objectives, theory};

/// A server with eight threads and an exponential service time of 20 ms: M/M/8.
pub(super) const LAB: &str = "--threads 8 --service exp:20ms";
pub(super) const THREADS: u32 = 8;
pub(super) const SERVICE: f64 = 0.02;
/// What it serves a second at most.
pub(super) const CAPACITY: f64 = 400.0;

/// Beyond the capacity a backlog of this many requests waits in the server, and none here.
const CONNECTIONS: usize = 4_000;
/// Loads of the open loop, as shares of the capacity.
const LOADS: [f64; 3] = [0.5, 0.7, 0.9];
const BEYOND: f64 = 1.1;

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return own(bench);
    }
    closed_loop(bench, THREADS)?;
    closed_loop(bench, 3 * THREADS)?;
    for load in LOADS {
        open_loop(bench, load)?;
    }
    beyond(bench, BEYOND)?;
    capacity_objectives::run(bench)?;
    capacity_dimensions::run(bench)
}

/// The same on a server whose capacity is what a closed loop gets out of it.
fn own(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let server = bench.server("")?;
    let mut capacity = 0.0;
    for users in [THREADS, 3 * THREADS] {
        let name = format!("closed loop, {users} users");
        // The open loops need what the last one gets.
        if users == THREADS && !bench.wants(&name) {
            continue;
        }
        let duration = bench.seconds(10.0, 4.0);
        let summary = bench.fire(&closed(&server, "", users as usize, duration))?;
        capacity = goodput(&summary);
        if bench.wants(&name) {
            bench.step(name, &server, summary, Vec::new());
        }
    }
    if capacity < 1.0 {
        bench.note("no open loop: hardly an answer to the closed loop was ok".to_owned());
        return Ok(());
    }
    for load in LOADS.into_iter().chain([BEYOND]) {
        let rate = load * capacity;
        let name = format!("open loop, {} ({:.0} %)", units::rate(rate), load * 100.0);
        if bench.wants(&name) {
            let mut spec = poisson(&server, rate, bench.seconds(10.0, 5.0));
            spec.scenarios[0].connections = CONNECTIONS;
            spec.scenarios[0].max_in_flight = CONNECTIONS;
            let summary = bench.fire(&spec)?;
            bench.step(name, &server, summary, Vec::new());
        }
    }
    Ok(())
}

/// Users wait for their answers and so never ask for more than there is: the queue is as long as
/// there are users, whatever the world outside wants.
fn closed_loop(bench: &mut Bench<'_>, users: u32) -> Result<(), Stopped> {
    let name = format!("closed loop, {users} users");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(LAB)?;
    let duration = bench.seconds(10.0, 4.0);
    let summary = bench.fire(&closed(&server, "/fast", users as usize, duration))?;
    let run = &summary.run;
    let rate = goodput(&summary);
    let mean = run.tally.latency.response().mean();
    let response = f64::from(users) / CAPACITY;
    let at = |factor: f64| Duration::from_secs_f64(factor * response);
    let text = format!("{users} / 400/s = {:.0} ms, whatever is asked", response * 1e3);
    let mut expectations = vec![
        theory::rate(
            "rate",
            rate,
            0.8 * CAPACITY..=1.1 * CAPACITY,
            format!("{THREADS} / 20 ms = {CAPACITY:.0}/s"),
        ),
        theory::time("mean", mean, at(0.9)..=at(1.3), text),
    ];
    if users > THREADS {
        expectations.push(theory::cause(&summary, "target_pool", &[]));
    }
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// Arrivals do not wait for answers: R = S + C(c, a) · S / (c − a), with a = λ · S.
fn open_loop(bench: &mut Bench<'_>, load: f64) -> Result<(), Stopped> {
    let rate = load * CAPACITY;
    let name = format!("open loop, {rate:.0}/s");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(LAB)?;
    let summary = bench.fire(&poisson(&server, rate, bench.seconds(20.0, 6.0)))?;
    let busy = rate * SERVICE;
    let wait = erlang_c(THREADS, busy) * SERVICE / (f64::from(THREADS) - busy);
    let expected = Duration::from_secs_f64(SERVICE + wait);
    // Waiting near the capacity comes in long bursts: a short run sees few of them.
    let (low, high) = if load < 0.8 { (0.9, 1.4) } else { (0.6, 2.5) };
    let text = format!(
        "20 ms + C({THREADS}, {busy:.1}) × 20 ms / ({THREADS} − {busy:.1}) = {:.1} ms (Erlang)",
        expected.as_secs_f64() * 1e3
    );
    let mean = summary.run.tally.latency.response().mean();
    let expectations =
        vec![theory::time("mean", mean, expected.mul_f64(low)..=expected.mul_f64(high), text)];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// More comes than is served: the queue grows for as long as it lasts.
fn beyond(bench: &mut Bench<'_>, load: f64) -> Result<(), Stopped> {
    let rate = load * CAPACITY;
    let name = format!("open loop, {rate:.0}/s");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(LAB)?;
    let duration = bench.seconds(20.0, 8.0);
    let mut spec = poisson(&server, rate, duration);
    spec.scenarios[0].connections = CONNECTIONS;
    spec.scenarios[0].max_in_flight = CONNECTIONS;
    let summary = bench.fire(&spec)?;
    // The last one waits for all that were too many.
    let longest = duration.mul_f64(load - 1.0);
    let text = format!(
        "({load} − 1) × {} s = {:.1} s: the backlog of the last arrival",
        duration.as_secs(),
        longest.as_secs_f64()
    );
    let max = summary.run.tally.latency.response().max() as f64;
    let served = summary.run.series.points().iter();
    let served = served.filter(|point| (1..duration.as_secs()).contains(&point.second));
    let (ok, seconds) = served.fold((0, 0), |(ok, s), p| (ok + p.counts.ok, s + p.seconds));
    let expectations = vec![
        theory::rate(
            "rate",
            ok as f64 / seconds.max(1) as f64,
            0.85 * CAPACITY..=1.08 * CAPACITY,
            format!("{CAPACITY:.0}/s, of {rate:.0}/s asked"),
        ),
        theory::time("max", max, longest.mul_f64(0.5)..=longest.mul_f64(2.5), text),
        theory::cause(&summary, "target_pool", &[]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// Arrivals at random onto `/fast`, at a mean rate.
pub(super) fn poisson(server: &Server, rate: f64, duration: Duration) -> RunSpec {
    let stages = vec![Stage::step(rate, duration)];
    load_on(server, "/fast", Load::Open { stages, process: Process::Poisson })
}
