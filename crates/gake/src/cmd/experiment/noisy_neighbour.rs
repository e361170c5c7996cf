//! `noisy-neighbour`: two tenants of one pool, one of them busy.

use std::time::Duration;

use gake_run::spec::{Load, ScenarioSpec};
use gake_text::units::{self, plural};

use super::bench::{Bench, Stopped, load_on};
use super::server::Server;
use super::{own_capacity, theory};

/// Threads of the pool.
const THREADS: f64 = 10.0;
const SERVICE: Duration = Duration::from_millis(50);
/// Requests a second of the light tenant.
const RATE: f64 = 40.0;
/// Users of the busy one, who never pause.
const USERS: usize = 40;
/// On the user's own server, the light tenant has this share of its capacity, as it has of the
/// lab's.
const LIGHT: f64 = 0.2;
/// The steps.
const ALONE: &str = "alone";
const BESIDE: &str = "beside a busy neighbour";
const APART: &str = "each with a pool of its own";
const LAB: &str = "--threads 10 --service const:50ms";

/// The load of both.
#[derive(Debug, Clone, Copy)]
struct Tenants {
    /// Requests a second of the light one.
    rate: f64,
    /// Users of the busy one, who never pause.
    users: usize,
}

const ON_LAB: Tenants = Tenants { rate: RATE, users: USERS };

/// Runs the steps; the figures are those of the light tenant.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return own(bench);
    }
    if bench.wants(ALONE) {
        let server = bench.server(LAB)?;
        step(bench, ALONE, &server, None, ON_LAB)?;
    }
    if bench.wants(BESIDE) {
        let server = bench.server(LAB)?;
        step(bench, BESIDE, &server, Some(&server), ON_LAB)?;
    }
    if bench.wants(APART) {
        let (server, other) = (bench.server(LAB)?, bench.server(LAB)?);
        step(bench, APART, &server, Some(&other), ON_LAB)?;
    }
    Ok(())
}

/// The same on one server, whose capacity is what a closed loop gets out of it.
fn own(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let (alone, beside) = (bench.wants(ALONE), bench.wants(BESIDE));
    bench.leave_out(&[APART.to_owned()], "it needs two servers, and --target is one");
    if !alone && !beside {
        return Ok(());
    }
    let server = bench.server("")?;
    let Some(found) = own_capacity::measure(bench, &server)? else { return Ok(()) };
    let tenants = Tenants { rate: LIGHT * found.rate, users: 2 * found.users };
    bench.note(format!(
        "the light tenant has {}, the busy one {}",
        units::rate(tenants.rate),
        plural(tenants.users as u64, "user")
    ));
    if alone {
        step(bench, ALONE, &server, None, tenants)?;
    }
    if beside {
        step(bench, BESIDE, &server, Some(&server), tenants)?;
    }
    Ok(())
}

fn step(
    bench: &mut Bench<'_>,
    name: &str,
    server: &Server,
    neighbours: Option<&Server>,
    tenants: Tenants,
) -> Result<(), Stopped> {
    let duration = bench.seconds(10.0, 3.0);
    let mut spec = load_on(server, "/fast", Load::rate(tenants.rate, duration));
    spec.scenarios[0].name = "light".to_owned();
    // Until the queue is as long as it gets.
    spec.warmup = Duration::from_secs(1);
    if let Some(other) = neighbours {
        let busy = ScenarioSpec::new(other.source("/fast"), Load::closed(tenants.users));
        let duration = Some(duration);
        spec.scenarios.push(ScenarioSpec { name: "busy".to_owned(), duration, ..busy });
    }
    let shares = neighbours.is_some_and(|other| std::ptr::eq(other, server));
    let summary = bench.fire(&spec)?;
    let subject = neighbours.is_some().then_some(0);
    let scenario = subject.and_then(|subject| summary.run.scenarios.get(subject));
    let tally = scenario.map_or(&summary.run.tally, |scenario| &scenario.tally);
    let mean = tally.latency.response().mean();
    let expectations = if shares {
        // The busy tenant's throughput is what is left, and its users are all in the system:
        // R = N / (T / S − λ), for everybody in the queue.
        let left = THREADS / SERVICE.as_secs_f64() - RATE;
        let expected = Duration::from_secs_f64(USERS as f64 / left);
        let text = format!("{USERS} / (10 / 50 ms − {RATE}/s) = {} ms", expected.as_millis());
        let range = expected.mul_f64(0.8)..=expected.mul_f64(1.4);
        vec![theory::time("mean", mean, range, text), theory::cause(&summary, "target_pool", &[])]
    } else {
        let text = "50 ms: 40/s need two of ten threads".to_owned();
        vec![theory::time("mean", mean, SERVICE..=SERVICE.mul_f64(1.6), text)]
    };
    bench.step_of(name.to_owned(), server, summary, subject, expectations);
    Ok(())
}
