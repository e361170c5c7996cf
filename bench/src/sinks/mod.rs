//! What sinks cost the load: the same load with none, with one of every kind, and with those, a run
//! file and a log, in rounds.
//!
//! No sink comes twice in each round: what its two runs differ by is what chance makes of a
//! difference. As for the arrival error, rounds go on until enough were undisturbed, and those
//! with the least stolen time are kept.

mod receivers;
mod threads;

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Bench;
use super::arrival::{self, Error};
use super::calls::{self, Call};
use super::peers::Tool;
use super::process::Ended;
use super::report::Report;
use super::stats::{median, range, rotated};
use receivers::{Receivers, remove_files};
use threads::{Role, Threads};

const RATES: [u64; 2] = [1_000, 10_000];
/// How often the threads of the run are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The ways a load is run.
const WAYS: [Way; 4] = [
    Way { name: "no sink", sinks: false, files: false },
    Way { name: "no sink again", sinks: false, files: false },
    Way { name: "all sinks", sinks: true, files: false },
    Way { name: "all, --out, --log", sinks: true, files: true },
];

struct Way {
    name: &'static str,
    /// One of every kind.
    sinks: bool,
    /// A run file and a log of every request.
    files: bool,
}

/// One run of one way.
#[derive(Clone, Copy)]
struct Sample {
    error: Error,
    /// CPU time of the process by requests.
    cpu_us: f64,
    /// Of it the thread that sends, while it sends.
    worker_us: f64,
    /// CPU time of the threads of sinks in a second, in milliseconds.
    sinks_ms: f64,
}

type Round = [Option<Sample>; WAYS.len()];

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let receivers = Receivers::start()?;
    let seconds = bench.pick(10, 5, 4);
    for rate in RATES {
        report.heading(format!(
            "sinks: arrival error and CPU of gake with one of every kind, {rate}/s, {seconds} s a \
             run, the worker and all sinks on one core"
        ));
        let part = Part { bench, receivers: &receivers, rate, seconds };
        let (rounds, all) = part.rounds(report);
        part.tell(report, &rounds);
        report.line(format!(
            "  the {} rounds of {all} in which the hypervisor took least of the cores",
            rounds.len()
        ));
    }
    report.line("  receivers take everything at once, on the same core, in the lowest class");
    Ok(())
}

struct Part<'a> {
    bench: &'a Bench,
    receivers: &'a Receivers,
    rate: u64,
    seconds: u64,
}

impl Part<'_> {
    /// The least disturbed rounds, and how many there were.
    fn rounds(&self, report: &mut Report) -> (Vec<Round>, usize) {
        let wanted = self.bench.options.rounds;
        let mut rounds: Vec<Round> = Vec::new();
        let mut count = 0;
        let calm = |round: &&Round| disturbed(round) <= arrival::UNDISTURBED_MS;
        while count < wanted * arrival::PATIENCE && rounds.iter().filter(calm).count() < wanted {
            let mut round = [None; WAYS.len()];
            for (at, way) in rotated(&WAYS, count) {
                match self.measure(way) {
                    Ok(sample) => round[at] = Some(sample),
                    Err(error) => {
                        report.line(format!("  round {}: {}: {error:#}", count + 1, way.name));
                    }
                }
            }
            count += 1;
            // The ways are compared within a round.
            if round.iter().all(Option::is_some) {
                rounds.push(round);
            }
        }
        rounds.sort_by(|a, b| disturbed(a).total_cmp(&disturbed(b)));
        rounds.truncate(wanted);
        (rounds, count)
    }

    fn call(&self, way: &Way, url: &str) -> Result<Call> {
        let calls = calls::open_loop(Tool::Gake, url, self.rate, self.seconds);
        let mut call = calls.into_iter().next().context("gake has no open loop")?;
        if way.sinks {
            call.args.extend(self.receivers.flags(&self.bench.dir));
        }
        if way.files {
            let file = |name: &str| self.bench.dir.join(name).display().to_string();
            call.args.extend(["--out".to_owned(), file("run.hlog")]);
            call.args.extend(["--log".to_owned(), file("log.csv")]);
        }
        Ok(call)
    }

    fn measure(&self, way: &Way) -> Result<Sample> {
        let limit = Duration::from_secs(self.seconds + 60);
        let seen = RefCell::new(None);
        self.receivers.scrape(way.sinks);
        let fire = |url: &str| {
            let call = self.call(way, url)?;
            let mut threads = Threads::default();
            let ended = self
                .bench
                .start(&call, limit)?
                .wait_watching(LOOK_EVERY, |pid| threads.look(pid))?
                .accept(&call.label, call.good_codes())?;
            let (cpu, stderr) = (ended.cpu(), ended.stderr.clone());
            seen.replace(Some((cpu, sent(&ended)?, threads, stderr)));
            Ok(ended)
        };
        let arrivals = arrival::measure(self.bench, fire, limit);
        self.receivers.scrape(false);
        remove_files(&self.bench.dir);
        let error = arrival::error(&arrivals?, self.rate)?;
        let (cpu, sent, threads, stderr) = seen.into_inner().context("nothing was run")?;
        if way.sinks {
            let stderr = String::from_utf8_lossy(&stderr);
            if let Some(line) = stderr.lines().find(|line| line.contains("missing")) {
                bail!("{line}");
            }
            self.receivers.taken()?;
        }
        let shares = threads.shares().context("its threads were not seen twice")?;
        Ok(Sample {
            error,
            cpu_us: cpu.as_secs_f64() * 1e6 / sent as f64,
            worker_us: shares[&Role::Worker] * 1e6 / self.rate as f64,
            sinks_ms: shares[&Role::Sink] * 1e3,
        })
    }

    fn tell(&self, report: &mut Report, rounds: &[Round]) {
        let head = [
            "way",
            "p50 ms",
            "p99 ms",
            "p99 more (min–max)",
            "µs/request",
            "of it worker",
            "worker more (min–max)",
            "sinks ms/s",
            "stolen ms (max)",
        ];
        let rows = WAYS.iter().enumerate().map(|(at, way)| {
            let of = |value: fn(&Sample) -> f64| samples(rounds, at).map(move |one| value(&one));
            let middle = |value| median(&of(value).collect::<Vec<_>>());
            let more = |value: fn(&Sample) -> f64| {
                let first = samples(rounds, 0).map(|one| value(&one));
                let more: Vec<f64> = of(value).zip(first).map(|(own, none)| own - none).collect();
                let (least, most) = range(&more);
                format!("{:+.3} ({least:+.3}–{most:+.3})", median(&more))
            };
            vec![
                way.name.to_owned(),
                format!("{:.3}", middle(|one| one.error.p50_ms)),
                format!("{:.3}", middle(|one| one.error.p99_ms)),
                more(|one| one.error.p99_ms),
                format!("{:.2}", middle(|one| one.cpu_us)),
                format!("{:.2}", middle(|one| one.worker_us)),
                more(|one| one.worker_us),
                format!("{:.2}", middle(|one| one.sinks_ms)),
                format!("{:.0}", of(|one| one.error.stolen_ms).fold(0.0, f64::max)),
            ]
        });
        report.table(&head, &rows.collect::<Vec<_>>());
    }
}

fn samples(rounds: &[Round], at: usize) -> impl Iterator<Item = Sample> + '_ {
    rounds.iter().filter_map(move |round| round[at])
}

/// The time that was stolen from the most disturbed run of a round, in milliseconds.
fn disturbed(round: &Round) -> f64 {
    round.iter().flatten().map(|sample| sample.error.stolen_ms).fold(0.0, f64::max)
}

/// How many requests it says that it sent.
fn sent(ended: &Ended) -> Result<u64> {
    let json: Value = serde_json::from_slice(&ended.stdout).context("its JSON")?;
    json["requests"]["sent"].as_u64().context("its JSON has no requests")
}
