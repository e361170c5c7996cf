//! Client CPU per request: closed loop, 50 keep-alive connections, against wrk.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::calls::{self, Call};
use super::nginx::Nginx;
use super::peers::Tool;
use super::report::Report;
use super::stats::{median, range, rotated};
use super::{Bench, process::Ended};

/// One run of one tool.
struct Sample {
    cpu_us: f64,
    user_us: f64,
    rate: f64,
    /// The server's count less the tool's own, where it tells.
    miscount: Option<i128>,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let seconds = bench.pick(5, 1);
    report.heading(format!(
        "cpu: closed loop, {} keep-alive connections, {seconds} s a run, requests counted by nginx",
        calls::CONNECTIONS
    ));
    let nginx = Nginx::start(&bench.dir, bench.server_core)?;
    let calls: Vec<Call> =
        bench.tools().map(|tool| calls::closed_loop(tool, &nginx.url(), seconds)).collect();
    let mut rounds = Vec::new();
    for round in 0..bench.options.rounds {
        let mut samples: Vec<Option<Sample>> = calls.iter().map(|_| None).collect();
        for (at, call) in rotated(&calls, round) {
            match measure(bench, &nginx, call, seconds) {
                Ok(sample) => samples[at] = Some(sample),
                Err(error) => report.line(format!("  round {}: {error:#}", round + 1)),
            }
        }
        rounds.push(samples);
    }
    let head =
        ["tool", "µs/request", "of it user", "requests/s", "CPU × wrk", "(min–max)", "rate × wrk"];
    let rows: Vec<_> = (0..calls.len()).map(|at| row(&calls, &rounds, at)).collect();
    report.table(&head, &rows);
    say_miscounts(&rounds, report);
    Ok(())
}

fn measure(bench: &Bench, nginx: &Nginx, call: &Call, seconds: u64) -> Result<Sample> {
    let before = nginx.served()?;
    let ended = bench.run(call, Duration::from_secs(seconds + 30))?;
    // The second question counts itself too.
    let served = nginx.served()? - before - 1;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / served as f64;
    Ok(Sample {
        cpu_us: each(ended.cpu()),
        user_us: each(ended.user),
        rate: served as f64 / ended.wall.as_secs_f64(),
        miscount: own_count(call, &ended).map(|own| i128::from(served) - i128::from(own)),
    })
}

/// gake says how many requests it sent; that must be what the server saw.
fn own_count(call: &Call, ended: &Ended) -> Option<u64> {
    let json = (call.tool == Tool::Gake).then(|| serde_json::from_slice::<Value>(&ended.stdout));
    json?.ok()?["requests"]["sent"].as_u64()
}

fn row(calls: &[Call], rounds: &[Vec<Option<Sample>>], at: usize) -> Vec<String> {
    let wrk = calls.iter().position(|call| call.tool == Tool::Wrk);
    let of = |value: fn(&Sample) -> f64| -> Vec<f64> {
        rounds.iter().filter_map(|round| round[at].as_ref().map(value)).collect()
    };
    let against = |value: fn(&Sample) -> f64| -> Vec<f64> {
        let pairs =
            rounds.iter().filter_map(|round| Some((round[at].as_ref()?, round[wrk?].as_ref()?)));
        pairs.map(|(own, wrk)| value(own) / value(wrk)).collect()
    };
    let ratios = against(|sample| sample.cpu_us);
    let (least, most) = range(&ratios);
    vec![
        calls[at].label.clone(),
        format!("{:.2}", median(&of(|sample| sample.cpu_us))),
        format!("{:.2}", median(&of(|sample| sample.user_us))),
        format!("{:.0}", median(&of(|sample| sample.rate))),
        format!("{:.2}", median(&ratios)),
        format!("({least:.2}–{most:.2})"),
        format!("{:.2}", median(&against(|sample| sample.rate))),
    ]
}

fn say_miscounts(rounds: &[Vec<Option<Sample>>], report: &mut Report) {
    let counts: Vec<i128> =
        rounds.iter().flatten().flatten().filter_map(|sample| sample.miscount).collect();
    let equal = counts.iter().filter(|miscount| **miscount == 0).count();
    if !counts.is_empty() {
        report.line(format!(
            "  gake's own count of requests sent equals nginx's in {equal} of {} runs",
            counts.len()
        ));
    }
}
