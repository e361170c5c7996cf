//! `overload`: a burst beyond the capacity, with and without a bound on the queue.

use std::ops::RangeInclusive;
use std::time::Duration;

use gake_core::plan::Stage;
use gake_core::record::{Metric, Point};
use gake_core::schedule::Process;
use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_run::spec::{Load, RunSpec};
use gake_text::units;

use super::bench::{Bench, Stopped, limited, load_on};
use super::server::Server;
use super::{own_capacity, theory};

/// Ten threads, 20 ms each.
const LAB: &str = "--threads 10 --service const:20ms";
/// What they serve a second.
const CAPACITY: f64 = 500.0;
/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// The load in the burst, and after it, as a share of the capacity.
const BURST: f64 = 1.5;
const AFTER: f64 = 0.8;
/// A server is itself again when it serves this share of what comes, for as many seconds.
const RECOVERED: f64 = 0.8;
const RECOVERED_FOR: u64 = 2;

/// How long each part lasts, in whole seconds.
#[derive(Clone, Copy)]
struct Parts {
    before: u64,
    burst: u64,
    after: u64,
}

impl Parts {
    /// Of a server with this capacity.
    fn stages(self, capacity: f64) -> Vec<Stage> {
        let parts = [(AFTER, self.before), (BURST, self.burst), (AFTER, self.after)];
        parts.map(|(of, s)| Stage::step(of * capacity, Duration::from_secs(s))).to_vec()
    }
}

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let parts = match bench.quick() {
        false => Parts { before: 4, burst: 8, after: 28 },
        true => Parts { before: 2, burst: 4, after: 9 },
    };
    if bench.is_own() {
        return own(bench);
    }
    unlimited(bench, parts)?;
    // Without a backlog there is nothing to recover from.
    let short = Parts { before: 1, after: 3, ..parts };
    bounded(bench, "a queue of 50", "--queue 50", 50, short)?;
    bounded(bench, "load shedding: no queue", "--queue 0", 0, short)?;
    let lasting = if bench.quick() { 6 } else { 8 };
    metastable(bench, Parts { after: lasting, ..parts })?;
    bounded(bench, "metastable, a queue of 50", "--queue 50 --metastable 200ms,1.6,5s", 50, short)
}

/// The same load on a server whose capacity is what a closed loop gets out of it.
fn own(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let parts = match bench.quick() {
        false => Parts { before: 5, burst: 8, after: 20 },
        true => Parts { before: 2, burst: 3, after: 5 },
    };
    let name = format!("a burst of {BURST} times the capacity");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server("")?;
    let Some(found) = own_capacity::measure(bench, &server)? else { return Ok(()) };
    let summary = bench.fire(&burst(&server, parts, found.rate))?;
    let points = summary.run.series.points();
    let burst_end = parts.before + parts.burst;
    let of = |from, to| units::rate(goodput(points, from, to));
    let told = format!(
        "{} asked before and after, {} in the burst; ok {}, {}, {}; recovery ({} of what \
         comes): {}",
        units::rate(AFTER * found.rate),
        units::rate(BURST * found.rate),
        of(0, parts.before),
        of(parts.before, burst_end),
        of(burst_end, parts.end()),
        units::percent(RECOVERED),
        told_recovery(back(points, parts, found.rate), parts)
    );
    bench.step(name, &server, summary, Vec::new());
    bench.note(told);
    Ok(())
}

fn fire(bench: &mut Bench<'_>, flags: &str, parts: Parts) -> Result<(Server, Summary), Stopped> {
    let server = bench.server(format!("{LAB} {flags}").trim_end())?;
    let summary = bench.fire(&burst(&server, parts, CAPACITY))?;
    Ok((server, summary))
}

/// The load on a server with this capacity.
fn burst(server: &Server, parts: Parts, capacity: f64) -> RunSpec {
    let load = Load::Open { stages: parts.stages(capacity), process: Process::Uniform };
    let mut spec = limited(load_on(server, "/fast", load), PATIENCE);
    // Whoever comes has a connection: what waits, waits in the server.
    spec.scenarios[0].connections = 2_000;
    spec.scenarios[0].max_in_flight = 2_000;
    spec
}

/// Without a limit the queue grows past the clients' patience, and what is served is nobody's.
fn unlimited(bench: &mut Bench<'_>, parts: Parts) -> Result<(), Stopped> {
    let name = "no limit".to_owned();
    if !bench.wants(&name) {
        return Ok(());
    }
    let (server, summary) = fire(bench, "", parts)?;
    // Waiting grows by (1.5 − 1) s a second, and shrinks by (1 − 0.8) s.
    let patience = PATIENCE.as_secs_f64();
    let deaf_from = patience / (BURST - 1.0);
    let backlog = (BURST - 1.0) * parts.burst as f64;
    let deaf_after = (backlog - patience) / (1.0 - AFTER);
    let burst_end = parts.before + parts.burst;
    let points = summary.run.series.points();
    // The waiting time of what is answered must lie beyond the patience for the whole second.
    let from = parts.before + deaf_from.ceil() as u64 + 1;
    let dead = goodput(points, from, burst_end);
    let recovered = goodput(points, burst_end + deaf_after.ceil() as u64 + 1, parts.end());
    let expectations = vec![
        theory::rate(
            "burst",
            dead,
            0.0..=0.1 * CAPACITY,
            format!(
                "0: after {patience} s / (1.5 − 1) = {deaf_from} s of it all wait longer than they \
                 have patience"
            ),
        ),
        theory::rate(
            "after",
            recovered,
            0.7 * AFTER * CAPACITY..=1.3 * CAPACITY,
            format!(
                "{:.0}/s again {deaf_after:.0} s after the burst: a backlog of {backlog} s less \
                 {patience} s shrinks by 1 − 0.8 s a second",
                AFTER * CAPACITY
            ),
        ),
        recovery(
            points,
            parts,
            Some((0.6 * deaf_after) as u64..=deaf_after.ceil() as u64 + 3),
            format!("{deaf_after:.0} s after the burst"),
        ),
        theory::cause(&summary, "target_pool", &[]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// What is over the queue's end is refused at once, and the rest is in time.
fn bounded(
    bench: &mut Bench<'_>,
    name: &str,
    flags: &str,
    queue: u32,
    parts: Parts,
) -> Result<(), Stopped> {
    if !bench.wants(name) {
        return Ok(());
    }
    let (server, summary) = fire(bench, flags, parts)?;
    let points = summary.run.series.points();
    let (from, to) = (parts.before + 1, parts.before + parts.burst);
    let (burst, after) = (goodput(points, from, to), goodput(points, to + 1, parts.end()));
    let longest = Duration::from_millis(20) * (queue / 10 + 1);
    let ok = summary.run.tally.latency.of(Metric::OkResponse);
    let mut expectations = vec![
        theory::rate(
            "burst",
            burst,
            0.8 * CAPACITY..=1.05 * CAPACITY,
            format!("{CAPACITY:.0}/s: the capacity, and the rest is refused"),
        ),
        theory::time(
            "p99 of ok",
            ok.quantile(0.99) as f64,
            Duration::from_millis(20)..=longest + Duration::from_millis(60),
            format!("at most ({queue}/10 + 1) × 20 ms = {} ms", longest.as_millis()),
        ),
        theory::rate(
            "after",
            after,
            0.9 * AFTER * CAPACITY..=1.1 * AFTER * CAPACITY,
            format!("{:.0}/s at once: there is no backlog", AFTER * CAPACITY),
        ),
        recovery(points, parts, Some(0..=1), "at once".to_owned()),
    ];
    if queue > 0 {
        // Without a queue a thread is free until the next request comes: the pool is never full.
        expectations.push(theory::cause(&summary, "target_pool", &[]));
    }
    bench.step(name.to_owned(), &server, summary, expectations);
    Ok(())
}

/// Overload makes the server slower, and the normal load then keeps it overloaded.
fn metastable(bench: &mut Bench<'_>, parts: Parts) -> Result<(), Stopped> {
    let name = "metastable, no limit".to_owned();
    if !bench.wants(&name) {
        return Ok(());
    }
    let (server, summary) = fire(bench, "--metastable 200ms,1.6,5s", parts)?;
    let points = summary.run.series.points();
    let end = parts.end();
    let text = format!(
        "0: overloaded it serves {CAPACITY:.0} / 1.6 = {:.0}/s, less than the {:.0}/s that come",
        CAPACITY / 1.6,
        AFTER * CAPACITY
    );
    let expectations = vec![
        theory::rate("after", goodput(points, end - 4, end), 0.0..=0.1 * CAPACITY, text),
        recovery(points, parts, None, "never, while the load lasts".to_owned()),
        theory::cause(&summary, "target_pool", &[]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

impl Parts {
    fn end(self) -> u64 {
        self.before + self.burst + self.after
    }
}

/// How long after the burst it serves what comes again; `None` expects that it does not.
fn recovery(
    points: &[Point],
    parts: Parts,
    expected: Option<RangeInclusive<u64>>,
    theory: String,
) -> Expectation {
    let after = back(points, parts, CAPACITY);
    let met = match (after, expected) {
        (Some(after), Some(expected)) => expected.contains(&after),
        (after, expected) => after.is_none() && expected.is_none(),
    };
    Expectation { what: "recovery", theory, seen: told_recovery(after, parts), met }
}

/// Seconds from the end of the burst until a server of this capacity serves what comes again.
fn back(points: &[Point], parts: Parts, capacity: f64) -> Option<u64> {
    let burst_end = parts.before + parts.burst;
    let is_back =
        |from: &u64| goodput(points, *from, from + RECOVERED_FOR) >= RECOVERED * AFTER * capacity;
    let back = (burst_end..=parts.end() - RECOVERED_FOR).find(is_back);
    back.map(|second| second - burst_end)
}

fn told_recovery(after: Option<u64>, parts: Parts) -> String {
    after.map_or_else(
        || format!("not within {} s", parts.after),
        |after| format!("{after} s after the burst"),
    )
}

/// Answers that were ok, a second, in these seconds of the run.
fn goodput(points: &[Point], from: u64, to: u64) -> f64 {
    let within = points.iter().filter(|point| (from..to).contains(&point.second));
    let (ok, seconds) =
        within.fold((0, 0), |(ok, s), point| (ok + point.counts.ok, s + point.seconds));
    ok as f64 / seconds.max(1) as f64
}

#[cfg(test)]
mod tests {
    use gake_core::record::Counts;

    use super::*;

    /// A run with these answers that were ok, second by second.
    fn points(ok: &[u64]) -> Vec<Point> {
        let point = |(second, ok): (u64, &u64)| Point {
            second,
            seconds: 1,
            counts: Counts { ok: *ok, ..Counts::default() },
            ..Point::default()
        };
        (0..).zip(ok).map(point).collect()
    }

    #[test]
    fn a_server_has_recovered_when_it_serves_what_comes_again() {
        let parts = Parts { before: 1, burst: 2, after: 5 };
        let seen = |ok: &[u64], expected| recovery(&points(ok), parts, expected, String::new());
        let late = [400, 500, 0, 0, 390, 20, 500, 400];
        assert_eq!(seen(&late, Some(3..=3)).seen, "3 s after the burst");
        assert!(seen(&late, Some(3..=3)).met && !seen(&late, Some(0..=1)).met);
        assert!(!seen(&late, None).met);
        let never = [400, 500, 0, 0, 0, 0, 0, 400];
        assert_eq!(seen(&never, None).seen, "not within 5 s");
        assert!(seen(&never, None).met && !seen(&never, Some(0..=9)).met);
        assert!(seen(&[400, 500, 500, 400, 400, 400, 400, 400], Some(0..=0)).met);
    }
}
