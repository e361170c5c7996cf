//! Runs for tests, made with the real recorder.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::plan::{ExpectedStatus, Plan, Stage, Timeouts};
use gake_core::record::{
    Counts, Exchange, ExchangeEnd, Fault, GaugeReading, Generator, LevelUnit, Outcome, Phase,
    ResponseSummary, Run, RunEnd, RunEvent, ScenarioRun, Series, SeriesPoint, Tally, TargetSetting,
    TcpSample, WatchRecord,
};
use gake_core::schedule::Process;
use gake_core::work::{Arrival, Gauges};

use crate::runfile::Second;

pub(crate) const MS: Nanos = 1_000_000;

pub(crate) fn plan() -> Plan {
    let seconds = Duration::from_secs(10);
    let stages = vec![Stage::step(1000.0, seconds)];
    let load = Load::Open { stages, process: Process::Uniform };
    Plan {
        duration: Some(seconds),
        connections: 64,
        max_in_flight: 64,
        timeouts: Timeouts { connect: Duration::from_secs(5), ..Timeouts::default() },
        threads: 2,
        ..Plan::new("http://127.0.0.1:8080/fast", load)
    }
}

pub(crate) fn responded(number: u64, due: Nanos, took: Nanos, status: u16) -> Outcome {
    let write = due + 20_000.min(took / 4);
    Outcome {
        arrival: Arrival { number, due },
        blocked: 0,
        fired: write,
        exchange: Exchange {
            write,
            written: true,
            first_byte: Some(due + took - took / 20),
            done: due + took,
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes: 12 }),
            bytes_in: 212,
            bytes_out: 74,
            ..Exchange::unfinished(0)
        },
    }
}

pub(crate) fn faulted(number: u64, due: Nanos, took: Nanos, fault: Fault) -> Outcome {
    let outcome = responded(number, due, took, 0);
    let exchange = Exchange {
        first_byte: None,
        end: ExchangeEnd::Fault(fault),
        bytes_in: 0,
        ..outcome.exchange
    };
    Outcome { exchange, ..outcome }
}

/// A long-tailed time between 0.8 ms and 200 ms, determined by the number.
fn took(number: u64) -> Nanos {
    let x = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
    (0.8e6 + 0.7e6 * (-(1.0 - x).ln()).powf(2.2)).min(2e8) as Nanos
}

/// The outcomes of one second at 1,000/s; `trouble` adds failures.
pub(crate) fn second_of(second: u64, labels: usize, trouble: bool) -> Vec<Outcome> {
    let outcome = |n: u64| {
        let number = second * 1_000 + n;
        let due = number * MS;
        let mut outcome = match n {
            0 if trouble => faulted(number, due, 30 * SECOND, Fault::Timeout(Phase::FirstByte)),
            1 | 2 if trouble => faulted(number, due, MS, Fault::Reset),
            3 if trouble && second == 4 => {
                faulted(number, due, MS, Fault::Malformed("bad status line"))
            }
            _ if trouble && n % 50 == 7 => responded(number, due, took(number), 503),
            _ => responded(number, due, took(number), 200),
        };
        if second == 0 && n < 12 {
            outcome.exchange.connect = Some(180_000 + n * 9_000);
            outcome.exchange.tcp = Some(TcpSample { rtt: 90_000, retransmits: 0 });
        }
        if labels > 1 {
            outcome.exchange.label = (n % labels as u64) as u16;
        }
        outcome
    };
    (0..1_000).map(outcome).collect()
}

pub(crate) fn tallies(seconds: u64, labels: usize, trouble: bool) -> Vec<Tally> {
    let of = |second| {
        let mut tally = Tally::new(labels);
        let outcomes = second_of(second, labels, trouble);
        for outcome in &outcomes {
            tally.record(outcome, &ExpectedStatus::default());
            tally.in_flight_ns += u128::from(outcome.exchange.done - outcome.fired);
        }
        tally.fired = tally.counts.sent;
        tally.counts.opened = if second == 0 { 12 } else { 0 };
        tally
    };
    (0..seconds).map(of).collect()
}

/// The second of a tally as the run file takes it.
pub(crate) fn second(at: u64, tally: &Tally) -> Second<'_> {
    Second {
        at,
        asked: Some(1_000.0),
        tally,
        scenarios: &[],
        // A few bytes of a test; the counts must outlive this call.
        warmup: Box::leak(Box::default()),
        gauges: Gauges { open: 12, peak: 12 },
        cpu: 80 * MS,
        tenths: &[],
    }
}

pub(crate) fn run(plan: Plan, tallies: &[Tally]) -> Run {
    let seconds = tallies.len() as u64;
    let mut tally = Tally::new(plan.labels.len());
    let mut series = Series::default();
    for (at, part) in (0..).zip(tallies) {
        tally.merge(part);
        let mut point = SeriesPoint::new(at, part);
        (point.asked, point.open, point.cpu) = (Some(1_000.0), 12, 80 * MS);
        series.push(point);
    }
    let trouble = tally.counts.failed > 0;
    Run {
        plan,
        started_unix_ns: 1_700_000_000_123_456_789,
        measured: seconds * SECOND,
        sending: seconds * SECOND,
        completing: seconds * SECOND + 3 * MS,
        elapsed: seconds * SECOND + 3 * MS,
        ending: RunEnd::Done,
        asked_rate: Some(1_000.0),
        tally,
        warmup: Counts::default(),
        series,
        peak_connections: 12,
        generator: Generator {
            cpu: seconds * 80 * MS,
            busiest: if trouble { 0.91 } else { 0.043 },
            run_delay: 3 * MS,
            rss_bytes: 14_200_000,
            threads: 2,
            cores: 2,
            miscounted: 0,
            abandoned: 0,
        },
        events: if trouble {
            vec![RunEvent::new(4 * SECOND, "the run file could not be written")]
        } else {
            Vec::new()
        },
        agents: Vec::new(),
        watched: WatchRecord::default(),
        bodies: gake_core::record::FailedBodies::default(),
        scenarios: Vec::new(),
        origin: gake_core::record::Provenance::default(),
    }
}

/// A target watched for three seconds.
pub(crate) fn watched() -> WatchRecord {
    let reading = |source: &str, name: &str, unit, value| GaugeReading {
        source: source.to_owned(),
        name: name.to_owned(),
        unit,
        value,
    };
    let mut watched = WatchRecord::default();
    for second in 0..3_u64 {
        let n = second as f64;
        watched.add(
            second * SECOND,
            &[
                reading("port:8080", "cpu", LevelUnit::Share, 0.25 * n),
                reading("port:8080", "rss", LevelUnit::Bytes, 48e6),
                reading("port:8080", "accept_queue", LevelUnit::Count, 3.0 * n),
                reading("port:8080", "listen_overflows", LevelUnit::PerSecond, 0.0),
                reading("actuator:http://h/actuator", "pool", LevelUnit::Share, 0.5),
            ],
        );
    }
    watched.settings.push(TargetSetting {
        source: "actuator:http://h/actuator".to_owned(),
        name: "server.tomcat.threads.max".to_owned(),
        value: "200".to_owned(),
    });
    watched
}

pub(crate) fn healthy() -> Run {
    run(plan(), &tallies(10, 0, false))
}

/// A run with labels in which much goes wrong.
pub(crate) fn troubled() -> Run {
    let labels = ["catalogue", "basket", "checkout"].map(str::to_owned).to_vec();
    let plan = Plan { labels, target: "targets.txt".to_owned(), ..plan() };
    run(plan, &tallies(10, 3, true))
}

/// A run with custom metrics: checks, times, numbers, bytes, a gauge.
pub(crate) fn counting() -> Run {
    let mut run = healthy();
    let table = &mut run.tally.series;
    let mut add = |name: &str, kind, unit, tag: (&str, &str), values: &[f64]| {
        let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
        let series = table.intern(&metric, &Tags::new([tag]));
        values.iter().zip(0..).for_each(|(value, at)| table.add(series, *value, at));
    };
    use MetricKind::{Counter, Gauge, Rate, Trend};
    use MetricUnit::{Bytes, Number, Time};
    let times: Vec<_> = (1..=1_000).map(|n| f64::from(n) * 12_345.0).collect();
    let status = ("check", "the status is 200, and the body is whole");
    add("checks", Rate, Number, status, &[&[1.0; 99][..], &[0.0]].concat());
    add("waits", Trend, Time, ("name", "login"), &times);
    add("items", Trend, Number, ("name", "home"), &[1.5, 2.0, -1.0, f64::NAN]);
    add("read", Counter, Bytes, ("name", "home"), &[7e6, 4e6]);
    add("users", Gauge, Number, ("name", "home"), &[7.0, 4.0]);
    run
}

/// Compares with a golden file; `GAKE_BLESS=1` writes the file instead.
pub(crate) fn bless(path: &std::path::Path, text: &str) {
    if std::env::var_os("GAKE_BLESS").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not what the code makes. Look at the difference, and if it is meant, write the \
         file with: GAKE_BLESS=1 cargo test -p gake-report\n{text}",
        path.display()
    );
}

/// Two concurrent scenarios: requests in an open loop, and users whose iterations have four
/// requests each.
pub(crate) fn several() -> Run {
    let browse = Plan { name: "browse".to_owned(), ..plan() };
    let load = Load::PerUser { users: 5, iterations: 500 };
    let start = Duration::from_secs(2);
    let buy = Plan { name: "buy".to_owned(), start, ..Plan::new("journey.js", load) };
    let whole = Plan { threads: 2, ..Plan::new("mixed.toml", Vec::new()) };
    let (browsed, mut bought) = (tallies(10, 0, false), tallies(10, 0, true));
    for tally in &mut bought {
        tally.counts.started /= 4;
        tally.counts.interrupted = 0;
    }
    let both: Vec<_> = browsed
        .iter()
        .zip(&bought)
        .map(|(a, b)| {
            let mut sum = a.clone();
            sum.merge(b);
            sum
        })
        .collect();
    let scenario = |plan: &Plan, tallies: Vec<Tally>| {
        let one = run(plan.clone(), &tallies);
        ScenarioRun {
            plan: one.plan,
            measured: one.measured,
            sending: one.sending,
            completing: one.completing,
            asked_rate: plan.load.is_open().then_some(1_000.0),
            tally: one.tally,
            warmup: one.warmup,
        }
    };
    let scenarios = vec![scenario(&browse, browsed), scenario(&buy, bought)];
    let plan = Plan { load: vec![browse, buy].into(), ..whole };
    Run { scenarios, asked_rate: None, ..run(plan, &both) }
}
