//! `gc`: pauses of the whole server, as a garbage collector makes them.

use std::time::Duration;

use gake_judge::Summary;
use gake_run::spec::Load;

use super::bench::{Bench, Stopped, closed, load_on};
use super::server::Server;
use super::theory::{self, span};

/// Requests a second of the open loop.
const RATE: f64 = 200.0;
/// What a machine that others use may add to a quantile.
const SLACK: Duration = Duration::from_millis(60);

/// Pauses: how long, how often.
#[derive(Clone, Copy)]
struct Pauses {
    length: Duration,
    every: Duration,
    /// How many there are in a run.
    count: u32,
}

impl Pauses {
    fn flags(self) -> String {
        let ms = |time: Duration| time.as_millis();
        let (half, length, every) = (ms(self.every) / 2, ms(self.length), ms(self.every));
        format!("--stall {half}ms+{length}ms --stall-every {every}ms")
    }

    fn name(self, kind: &str) -> String {
        format!("{kind} loop, {} every {}", span(self.length), span(self.every))
    }

    fn run_time(self) -> Duration {
        self.every * self.count
    }

    /// The quantile of the response time of evenly spread arrivals: one that comes u after the
    /// start of a pause of length L waits L − u, so that P(wait > x) = (L − x) / P.
    fn quantile(self, quantile: f64) -> Duration {
        self.length.saturating_sub(self.every.mul_f64(1.0 - quantile))
    }

    fn theory(self, quantile: f64) -> String {
        let percent = 100.0 * (1.0 - quantile);
        format!(
            "{} − {percent:.1} % × {} = {}",
            span(self.length),
            span(self.every),
            span(self.quantile(quantile))
        )
    }
}

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return own(bench);
    }
    let ms = Duration::from_millis;
    let rare = match bench.quick() {
        false => Pauses { length: ms(200), every: ms(5_000), count: 6 },
        true => Pauses { length: ms(200), every: ms(2_000), count: 3 },
    };
    without(bench, rare)?;
    seen_open(bench, rare)?;
    hidden_closed(bench, rare)?;
    let seconds = if bench.quick() { 6 } else { 8 };
    let often = Pauses { length: ms(400), every: ms(1_000), count: seconds };
    named(bench, often)
}

/// The same two loops on a server whose pauses are its own.
fn own(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let server = bench.server("")?;
    let duration = bench.seconds(30.0, 8.0);
    for (name, spec) in [
        (format!("open loop, {RATE}/s"), open(&server, duration)),
        ("closed loop, 1 user".to_owned(), closed(&server, "", 1, duration)),
    ] {
        if bench.wants(&name) {
            let summary = bench.fire(&spec)?;
            bench.step(name, &server, summary, Vec::new());
        }
    }
    Ok(())
}

fn without(bench: &mut Bench<'_>, pauses: Pauses) -> Result<(), Stopped> {
    let name = "open loop, no pauses".to_owned();
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server("")?;
    let summary = bench.fire(&open(&server, pauses.run_time()))?;
    let p99 = quantile(&summary, 0.99);
    let none = Duration::ZERO..=SLACK;
    let expected = vec![theory::time("p99", p99, none, "no pauses: next to nothing".to_owned())];
    bench.step(name, &server, summary, expected);
    Ok(())
}

/// An open loop sees each pause with the requests that came in it.
fn seen_open(bench: &mut Bench<'_>, pauses: Pauses) -> Result<(), Stopped> {
    let name = pauses.name("open");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(&pauses.flags())?;
    let summary = bench.fire(&open(&server, pauses.run_time()))?;
    let within = |at: f64| {
        let expected = pauses.quantile(at);
        expected.saturating_sub(Duration::from_millis(10))..=expected + SLACK
    };
    let at = if bench.quick() { 0.95 } else { 0.99 };
    let response = summary.run.tally.latency.response();
    let half = pauses.length / 2;
    let long = response.count() - response.count_up_to(half.as_nanos() as u64);
    let expected = RATE * half.as_secs_f64() * f64::from(pauses.count);
    let text = format!(
        "{RATE}/s × {} × {} pauses = {expected:.0} requests over {}",
        span(half),
        pauses.count,
        span(half)
    );
    let range = (0.8 * expected) as u64..=(1.7 * expected) as u64;
    let expectations = vec![
        theory::time("p50", quantile(&summary, 0.5), Duration::ZERO..=SLACK, "untouched".into()),
        match bench.quick() {
            true => theory::time("p95", quantile(&summary, at), within(at), pauses.theory(at)),
            false => theory::time("p99", quantile(&summary, at), within(at), pauses.theory(at)),
        },
        theory::number("long", long, range, text),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// A closed loop of one user sends one request into each pause, and then waits with it.
fn hidden_closed(bench: &mut Bench<'_>, pauses: Pauses) -> Result<(), Stopped> {
    let name = pauses.name("closed");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(&pauses.flags())?;
    let summary = bench.fire(&closed(&server, "/fast", 1, pauses.run_time()))?;
    let response = summary.run.tally.latency.response();
    let half = pauses.length / 2;
    let long = response.count() - response.count_up_to(half.as_nanos() as u64);
    let count = u64::from(pauses.count);
    let text = format!("one request for each of {count} pauses");
    let expectations = vec![
        theory::number("long", long, count.saturating_sub(1)..=count + 2, text),
        theory::time(
            "p99",
            quantile(&summary, 0.99),
            Duration::ZERO..=half,
            format!("hidden: {count} of {} requests", response.count()),
        ),
        theory::time(
            "max",
            response.max() as f64,
            pauses.length.mul_f64(0.8)..=pauses.length + 5 * SLACK,
            format!("{}: the pause", span(pauses.length)),
        ),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// Pauses that take much of the time are named as the cause.
fn named(bench: &mut Bench<'_>, pauses: Pauses) -> Result<(), Stopped> {
    let name = pauses.name("open");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(&pauses.flags())?;
    let summary = bench.fire(&open(&server, pauses.run_time()))?;
    let (low, high) = (pauses.quantile(0.8), pauses.quantile(0.8) + 2 * SLACK);
    let low = low.saturating_sub(Duration::from_millis(20));
    let expectations = vec![
        theory::time("p80", quantile(&summary, 0.8), low..=high, pauses.theory(0.8)),
        theory::cause(&summary, "target_gc", &["target_silent"]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

fn open(server: &Server, duration: Duration) -> gake_run::spec::RunSpec {
    load_on(server, "/fast", Load::rate(RATE, duration))
}

fn quantile(summary: &Summary, at: f64) -> f64 {
    summary.run.tally.latency.response().quantile(at) as f64
}
