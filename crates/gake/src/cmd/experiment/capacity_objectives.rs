//! The capacity under an objective: on latency, on the CPU of the target, on its memory.

use std::ops::RangeInclusive;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::Gauge;
use gake_judge::Summary;
use gake_judge::queueing::{self, mmc_tail};
use gake_run::spec::{Load, RunSpec};
use gake_text::units;

use super::bench::{Bench, Stopped, load_on};
use super::capacity::{CAPACITY, LAB, SERVICE, THREADS, poisson};
use super::server::Server;
use super::theory;

/// The objective on latency: 95 of 100 answers within this time, in seconds.
const WITHIN: f64 = 0.1;
const SHARE: f64 = 0.05;
/// Rates on either side of the capacity, as shares of it. Near it, queues are long for long: a run
/// says little there.
const BELOW: f64 = 0.8;
const ABOVE: f64 = 1.2;

/// The objective on CPU, in cores.
const CORES: f64 = 0.3;
const CPU: &str = "CPU of 0.3 cores";
/// How long the process of the lab is sampled, a few times on a busy machine, and from when on.
const SAMPLED: Duration = Duration::from_secs(10);
const SETTLED: Nanos = 1_500_000_000;

/// Requests a second at which the cost of one is measured.
const PROBE: f64 = 1_000.0;
/// At most this rate is asked for, whatever a request costs.
const PROBE_MAX: f64 = 10_000.0;

/// Idle connections of the runs on memory: two for the cost of a connection, one that it predicts.
const IDLE: [usize; 3] = [2_000, 4_000, 8_000];
/// Connections that are not idle ones.
const OTHERS: u64 = 1_100;

/// Runs the steps. They compare levels over time, for which a quick run is too short.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.quick() {
        let names = [latency_name(BELOW), latency_name(ABOVE), CPU.to_owned(), memory_name()];
        bench.leave_out(&names, "they compare levels over time, for which --quick is too short");
        return Ok(());
    }
    under_latency(bench, BELOW)?;
    under_latency(bench, ABOVE)?;
    under_cpu(bench)?;
    under_memory(bench)
}

/// The rate at which M/M/c just meets the objective.
fn latency_capacity() -> f64 {
    queueing::capacity(|rate| mmc_tail(THREADS, SERVICE, rate, WITHIN), SHARE, 1.0, CAPACITY)
}

fn latency_name(share: f64) -> String {
    format!("p95<100ms, {:.0}/s", share * latency_capacity())
}

/// Below the capacity the objective is met, above it is missed.
fn under_latency(bench: &mut Bench<'_>, share: f64) -> Result<(), Stopped> {
    let name = latency_name(share);
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(LAB)?;
    let capacity = latency_capacity();
    let rate = (share * capacity).round();
    let summary = bench.fire(&poisson(&server, rate, Duration::from_secs(20)))?;
    let p95 = summary.run.tally.latency.response().quantile(0.95) as f64;
    let bound = Duration::from_secs_f64(WITHIN);
    let (range, text): (RangeInclusive<Duration>, _) = match share < 1.0 {
        true => (Duration::ZERO..=bound, "at most"),
        false => (bound..=Duration::MAX, "more than"),
    };
    let theory = format!("{text} 100 ms: M/M/{THREADS} meets it up to {capacity:.0}/s");
    bench.step(name, &server, summary, vec![theory::time("p95", p95, range, theory)]);
    Ok(())
}

/// U = λ · D: what a request costs at one rate says at which rate the bound is reached.
fn under_cpu(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = CPU.to_owned();
    if !bench.wants(&name) {
        return Ok(());
    }
    let probe = bench.server("--service const:0ms")?;
    let summary = bench.fire(&with_process(&probe, PROBE))?;
    let Some(cores) = gauge(&summary, "cores").and_then(settled) else {
        bench.note(format!("\"{name}\" is left out: the CPU of the lab was not read"));
        return Ok(());
    };
    let rate = (CORES * PROBE / cores).min(PROBE_MAX).round();
    let server = bench.server("--service const:0ms")?;
    let summary = bench.fire(&with_process(&server, rate))?;
    let seen = gauge(&summary, "cores").and_then(settled).unwrap_or(0.0);
    let each = cores / PROBE;
    let expected = rate * each;
    let theory = format!(
        "{} × {} a request = {expected:.2} cores",
        units::rate(rate),
        units::duration(each * 1e9)
    );
    // What a request costs falls with the rate, as wake-ups are shared.
    let met = theory::amount("cores", seen, 0.4 * expected..=1.3 * expected, theory);
    bench.step(name, &server, summary, vec![met]);
    Ok(())
}

fn memory_name() -> String {
    format!("memory of {} idle connections", units::count(IDLE[2] as u64))
}

/// What two numbers of idle connections take says what a third one does.
fn under_memory(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = memory_name();
    if !bench.takes(&name, IDLE[2] as u64 + OTHERS) {
        return Ok(());
    }
    let mut taken = Vec::new();
    for (number, idle) in IDLE.into_iter().enumerate() {
        let server = bench.server("--max-connections 12000")?;
        let mut spec = with_process(&server, 100.0);
        spec.connection.idle_connections = idle;
        let summary = bench.fire(&spec)?;
        // It grows until all are open, and does not shrink.
        let Some(rss) = gauge(&summary, "rss").and_then(Gauge::max) else {
            bench.note(format!("\"{name}\" is left out: the memory of the lab was not read"));
            return Ok(());
        };
        taken.push(rss);
        if number + 1 < IDLE.len() {
            continue;
        }
        let each = (taken[1] - taken[0]) / (IDLE[1] - IDLE[0]) as f64;
        let more = each * (IDLE[2] - IDLE[1]) as f64;
        let theory = format!(
            "{} + {} × {} each",
            units::bytes(taken[1]),
            units::count((IDLE[2] - IDLE[1]) as u64),
            units::bytes(each)
        );
        let range = taken[1] + 0.5 * more..=taken[1] + 1.6 * more;
        let met = theory::bytes("memory", rss, range, theory);
        bench.step(name.clone(), &server, summary, vec![met]);
    }
    Ok(())
}

/// An open loop beside which the process of the lab is sampled.
fn with_process(server: &Server, rate: f64) -> RunSpec {
    let mut spec = load_on(server, "/fast", Load::rate(rate, SAMPLED));
    server.watch_process(&mut spec);
    spec
}

/// A level of the lab's process, if it was read when the load had settled.
fn gauge<'a>(summary: &'a Summary, name: &'a str) -> Option<&'a Gauge> {
    let is_process =
        |gauge: &&Gauge| ["pid:", "port:"].iter().any(|kind| gauge.source.starts_with(kind));
    let mut gauges = summary.run.watched.named(name).filter(is_process);
    gauges.next().filter(|gauge| settled(gauge).is_some())
}

/// Its mean, the beginning aside.
fn settled(gauge: &Gauge) -> Option<f64> {
    gauge.mean_from(SETTLED)
}
