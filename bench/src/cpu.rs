//! Client CPU per request: closed loop over keep-alive connections, against wrk at nginx, and
//! against the floor at a minimal server.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::calls::{self, Call};
use super::floor::{self, FloorServer};
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
    against_peers(bench, report)?;
    against_floor(bench, report)
}

/// All tools at nginx, in multiples of wrk.
fn against_peers(bench: &Bench, report: &mut Report) -> Result<()> {
    let (seconds, connections) = (bench.pick(5, 2, 1), calls::CONNECTIONS);
    report.heading(format!(
        "cpu: closed loop, {connections} keep-alive connections, {seconds} s a run, requests \
         counted by nginx"
    ));
    let nginx = Nginx::start(&bench.dir, bench.server_core)?;
    let clients: Vec<_> = bench
        .tools()
        .map(|tool| Client::Tool(calls::closed_loop(tool, &nginx.url(), connections, seconds)))
        .collect();
    compare(bench, report, &clients, seconds, &|| nginx.served())
}

/// gake and wrk at a server that keeps them busy, in multiples of the floor.
fn against_floor(bench: &Bench, report: &mut Report) -> Result<()> {
    let seconds = bench.pick(5, 3, 1);
    let server = FloorServer::start(bench.server_core)?;
    let tools: Vec<_> =
        bench.tools().filter(|tool| matches!(tool, Tool::Gake | Tool::Wrk)).collect();
    for connections in [50, 500] {
        report.heading(format!(
            "cpu against the floor: closed loop, {connections} keep-alive connections, {seconds} s \
             a run, a minimal server"
        ));
        let url = server.url();
        let call = |tool| calls::closed_loop(tool, &url, connections, seconds);
        let mut clients = vec![Client::Floor { url: url.clone(), connections }];
        clients.extend(tools.iter().map(|tool| Client::Tool(call(*tool))));
        compare(bench, report, &clients, seconds, &|| server.served())?;
    }
    Ok(())
}

/// Who is measured.
enum Client {
    Tool(Call),
    Floor { url: String, connections: u64 },
}

impl Client {
    fn label(&self) -> &str {
        match self {
            Self::Tool(call) => &call.label,
            Self::Floor { .. } => "the floor",
        }
    }

    /// Whether others are measured in multiples of it.
    fn is_yardstick(&self) -> bool {
        match self {
            Self::Tool(call) => call.tool == Tool::Wrk,
            Self::Floor { .. } => true,
        }
    }

    fn run(&self, bench: &Bench, seconds: u64) -> Result<Ended> {
        match self {
            Self::Tool(call) => bench.run(call, Duration::from_secs(seconds + 30)),
            Self::Floor { url, connections } => {
                floor::run_client(url, *connections, seconds, bench.client_core)
            }
        }
    }
}

/// Measures clients in turn, and prints a row for each in multiples of the first yardstick.
fn compare(
    bench: &Bench,
    report: &mut Report,
    clients: &[Client],
    seconds: u64,
    served: &dyn Fn() -> Result<u64>,
) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..bench.options.rounds {
        let mut samples: Vec<Option<Sample>> = clients.iter().map(|_| None).collect();
        for (at, client) in rotated(clients, round) {
            match measure(bench, client, seconds, served) {
                Ok(sample) => samples[at] = Some(sample),
                Err(error) => report.line(format!("  round {}: {error:#}", round + 1)),
            }
        }
        rounds.push(samples);
    }
    let yardstick = clients.iter().position(Client::is_yardstick);
    let name = yardstick.map_or("", |at| clients[at].label());
    let head = [
        "tool".to_owned(),
        "µs/request".to_owned(),
        "of it user".to_owned(),
        "requests/s".to_owned(),
        format!("CPU × {name}"),
        "(min–max)".to_owned(),
        format!("rate × {name}"),
    ];
    let rows: Vec<_> =
        (0..clients.len()).map(|at| row(clients[at].label(), &rounds, at, yardstick)).collect();
    report.table(&head.each_ref().map(String::as_str), &rows);
    say_miscounts(&rounds, report);
    Ok(())
}

fn measure(
    bench: &Bench,
    client: &Client,
    seconds: u64,
    served: &dyn Fn() -> Result<u64>,
) -> Result<Sample> {
    let before = served()?;
    let ended = client.run(bench, seconds)?;
    // The second question counts itself too.
    let served = served()? - before - 1;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / served as f64;
    Ok(Sample {
        cpu_us: each(ended.cpu()),
        user_us: each(ended.user),
        rate: served as f64 / ended.wall.as_secs_f64(),
        miscount: own_count(client, &ended).map(|own| i128::from(served) - i128::from(own)),
    })
}

/// gake says how many requests it sent; that must be what the server saw.
fn own_count(client: &Client, ended: &Ended) -> Option<u64> {
    let is_gake = matches!(client, Client::Tool(call) if call.tool == Tool::Gake);
    let json = is_gake.then(|| serde_json::from_slice::<Value>(&ended.stdout));
    json?.ok()?["requests"]["sent"].as_u64()
}

fn row(
    label: &str,
    rounds: &[Vec<Option<Sample>>],
    at: usize,
    yardstick: Option<usize>,
) -> Vec<String> {
    let of = |value: fn(&Sample) -> f64| -> Vec<f64> {
        rounds.iter().filter_map(|round| round[at].as_ref().map(value)).collect()
    };
    let against = |value: fn(&Sample) -> f64| -> Vec<f64> {
        let pairs = rounds
            .iter()
            .filter_map(|round| Some((round[at].as_ref()?, round[yardstick?].as_ref()?)));
        pairs.map(|(own, other)| value(own) / value(other)).collect()
    };
    let ratios = against(|sample| sample.cpu_us);
    let (least, most) = range(&ratios);
    vec![
        label.to_owned(),
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
            "  gake's own count of requests sent equals the server's in {equal} of {} runs",
            counts.len()
        ));
    }
}
