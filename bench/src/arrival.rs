//! Arrival error: how far requests reach the server from where the rate puts them.
//!
//! The perfect grid has one arrival every `1/rate`; its offset is fitted by the
//! median, so a constant delay is no error. Arrivals are taken in the order in
//! which they came.
//!
//! A core that the hypervisor takes away delays every tool alike, and p99 at 1,000/s is
//! the worst 45 arrivals of a run: one such gap decides it. So rounds go on until each tool
//! has had enough undisturbed ones, within a bound, and the least disturbed are kept. They
//! are chosen by the stolen time alone, never by the error.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::Bench;
use super::calls::{self, Call};
use super::process::{Ended, Launch, OURSELVES};
use super::recording::Recording;
use super::report::Report;
use super::stats::{median, quantile, rotated};
use super::stolen;

/// Not looked at: connections open and clocks settle.
const DROPPED: Duration = Duration::from_millis(500);
const RATES: [u64; 2] = [1_000, 10_000];
/// Stolen from both cores together in a run that counts as undisturbed: one tick, the
/// resolution of the kernel's figure.
pub const UNDISTURBED_MS: f64 = 10.0;
/// Rounds at most, in multiples of those that were asked for.
pub const PATIENCE: usize = 4;

/// The absolute error of a run, in milliseconds, and what arrived.
#[derive(Clone, Copy)]
pub struct Error {
    /// Taken by the hypervisor from both cores during the run.
    pub stolen_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    max_ms: f64,
    rate: f64,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let seconds = bench.pick(5, 2, 2);
    for rate in RATES {
        report.heading(format!(
            "arrival: error at the server against a perfect grid, {rate}/s, {seconds} s a run, \
             the first 0.5 s dropped"
        ));
        one_rate(bench, report, rate, seconds);
    }
    report.line("  the floor: the bench's own spinning sender; what machine and method add");
    report.line("  wrk and ab have no open loop; wrk2 is not in Debian");
    Ok(())
}

fn one_rate(bench: &Bench, report: &mut Report, rate: u64, seconds: u64) {
    let tools: Vec<_> = bench.tools().collect();
    // The target is known only when a recorder runs; the labels are known now.
    let calls = |url: &str| -> Vec<Call> {
        tools.iter().flat_map(|tool| calls::open_loop(*tool, url, rate, seconds)).collect()
    };
    let mut labels = vec!["the floor".to_owned()];
    labels.extend(calls("").into_iter().map(|call| call.label));
    let mut errors: Vec<Vec<Error>> = vec![Vec::new(); labels.len()];
    let wanted = bench.options.rounds;
    let patience = bench.pick(PATIENCE, 2, PATIENCE);
    let mut rounds = 0;
    while rounds < wanted * patience && errors.iter().any(|errors| undisturbed(errors) < wanted) {
        for (at, label) in rotated(&labels, rounds) {
            let limit = Duration::from_secs(seconds + 30);
            let fire = |url: &str| match at.checked_sub(1) {
                Some(at) => bench.run(&calls(url).swap_remove(at), limit),
                None => metronome(bench, url, rate, seconds),
            };
            match measure(bench, fire, limit).and_then(|run| error(&run, rate)) {
                Ok(error) => errors[at].push(error),
                Err(error) => report.line(format!("  round {}: {label}: {error:#}", rounds + 1)),
            }
        }
        rounds += 1;
    }
    for errors in &mut errors {
        errors.sort_by(|a, b| a.stolen_ms.total_cmp(&b.stolen_ms));
        errors.truncate(wanted);
    }
    let head = ["tool", "p50 ms", "p99 ms", "max ms", "arrived/s", "stolen ms (max)"];
    let rows: Vec<_> =
        labels.iter().zip(&errors).map(|(label, errors)| row(label, errors)).collect();
    report.table(&head, &rows);
    report.line(format!(
        "  medians of the {wanted} runs of {rounds} in which the hypervisor took least of the cores"
    ));
}

fn undisturbed(errors: &[Error]) -> usize {
    errors.iter().filter(|error| error.stolen_ms <= UNDISTURBED_MS).count()
}

fn row(label: &str, errors: &[Error]) -> Vec<String> {
    let of = |value: fn(&Error) -> f64| median(&errors.iter().map(value).collect::<Vec<_>>());
    vec![
        label.to_owned(),
        format!("{:.3}", of(|error| error.p50_ms)),
        format!("{:.3}", of(|error| error.p99_ms)),
        format!("{:.3}", of(|error| error.max_ms)),
        format!("{:.0}", of(|error| error.rate)),
        format!("{:.0}", errors.iter().map(|error| error.stolen_ms).fold(0.0, f64::max)),
    ]
}

/// What a recorder saw of a run.
pub struct Seen {
    /// In nanoseconds, one for each arrival.
    instants: Vec<u64>,
    stolen_ms: f64,
}

/// Fires at a recorder.
pub fn measure(
    bench: &Bench,
    fire: impl Fn(&str) -> Result<Ended>,
    limit: Duration,
) -> Result<Seen> {
    let recording = Recording::start(bench.server_core, None, limit * 2)?;
    let before = stolen::milliseconds()?;
    fire(&recording.url())?;
    let stolen_ms = stolen::milliseconds()? - before;
    Ok(Seen { instants: recording.finish()?, stolen_ms })
}

fn metronome(bench: &Bench, url: &str, rate: u64, seconds: u64) -> Result<Ended> {
    let program = Path::new(OURSELVES);
    let args = ["metronome".to_owned(), url.to_owned(), rate.to_string(), seconds.to_string()];
    let (core, limit) = (bench.client_core, Duration::from_secs(seconds + 30));
    let launch = Launch { program, args: &args, stdin: None, core: Some(core), limit };
    launch.run()?.accept("the metronome", &[0])
}

/// The error of a run against the grid of its rate.
pub fn error(seen: &Seen, rate: u64) -> Result<Error> {
    let Seen { instants, stolen_ms } = seen;
    let first = instants.first().copied().unwrap_or_default();
    let from = first + u64::try_from(DROPPED.as_nanos())?;
    let kept: Vec<u64> = instants.iter().copied().filter(|at| *at >= from).collect();
    let (Some(begin), Some(end)) = (kept.first(), kept.last()) else {
        bail!("nothing arrived after the first {} ms", DROPPED.as_millis());
    };
    let period_ms = 1e3 / rate as f64;
    let since_ms = |at: u64| (at - begin) as f64 / 1e6;
    let offsets: Vec<f64> = kept
        .iter()
        .enumerate()
        .map(|(number, at)| since_ms(*at) - number as f64 * period_ms)
        .collect();
    let fitted = median(&offsets);
    let errors: Vec<f64> = offsets.iter().map(|offset| (offset - fitted).abs()).collect();
    Ok(Error {
        stolen_ms: *stolen_ms,
        p50_ms: quantile(&errors, 0.5),
        p99_ms: quantile(&errors, 0.99),
        max_ms: quantile(&errors, 1.0),
        rate: (kept.len() - 1) as f64 / ((end - begin) as f64 / 1e9),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(late_ns: impl Fn(u64) -> u64) -> Seen {
        let late = |number| 7_000_000 + number * 1_000_000 + late_ns(number);
        Seen { instants: (0..3_000).map(late).collect(), stolen_ms: 0.0 }
    }

    #[test]
    fn a_perfect_grid_has_no_error_wherever_it_begins() {
        let found = error(&grid(|_| 123_456), 1_000).unwrap();
        assert!(found.max_ms < 1e-6 && (found.rate - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn late_arrivals_are_the_error() {
        let found =
            error(&grid(|number| if number % 50 == 0 { 300_000 } else { 0 }), 1_000).unwrap();
        assert!(found.p50_ms < 1e-6);
        assert!((found.p99_ms - 0.3).abs() < 1e-6 && (found.max_ms - 0.3).abs() < 1e-6);
    }

    #[test]
    fn the_beginning_is_dropped_and_nothing_is_no_measurement() {
        let late = error(&grid(|number| if number < 400 { 50_000 } else { 0 }), 1_000).unwrap();
        assert!(late.max_ms < 1e-6);
        assert!(error(&Seen { instants: Vec::new(), stolen_ms: 0.0 }, 1_000).is_err());
    }
}
