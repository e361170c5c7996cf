//! A run of an hour, made with the real recorder and written as a run file.

use std::path::Path;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::{ExpectedStatus, Plan, Stage, Timeouts};
use gake_core::record::{
    Counts, Exchange, ExchangeEnd, Fault, GAUGES_MAX, GaugeReading, Generator, LevelUnit, Outcome,
    Phase, Provenance, ResponseSummary, Run, RunEnd, Series, Tally, TargetSetting, WatchRecord,
};
use gake_core::schedule::Process;
use gake_core::work::{Arrival, Gauges};
use gake_report::{RunFile, Second};

/// What a target and a label may hold that a page must not take for markup.
pub const HOSTILE: &str =
    "</script><script>window.broken=1</script><img src=x onerror=window.broken=1>";

const HOUR: u64 = 3_600;
const RATE: u64 = 200;
const MS: Nanos = 1_000_000;

fn plan() -> Plan {
    let hour = Duration::from_secs(HOUR);
    let stages = vec![Stage::step(RATE as f64, hour)];
    let load = Load::Open { stages, process: Process::Uniform };
    Plan {
        duration: Some(hour),
        warmup: Duration::from_secs(120),
        connections: 64,
        max_in_flight: 64,
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            first_byte: None,
            total: Duration::from_secs(10),
        },
        threads: 2,
        labels: vec!["catalogue".to_owned(), HOSTILE.to_owned(), "checkout".to_owned()],
        ..Plan::new(format!("http://shop.example:8080/{HOSTILE}"), load)
    }
}

/// A number between 0 and 1, the same for the same `n`.
fn chance(n: u64) -> f64 {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// How loaded the server is in a second, 0 to 1: a slow swing, and an incident in the middle.
fn load(second: u64) -> f64 {
    let swing = 0.25 * (1.0 + (second as f64 / 600.0 * std::f64::consts::TAU).sin());
    if (1_700..2_100).contains(&second) { 1.0 } else { swing }
}

fn outcome(number: u64, second: u64, place: u64) -> Outcome {
    let due = second * SECOND + place * (SECOND / RATE);
    let load = load(second);
    let tail = (-(1.0 - chance(number)).ln()).powf(1.8);
    let took = (2.0e6 * (1.0 + 8.0 * load * load) * (0.6 + tail)) as Nanos;
    let luck = chance(number ^ 0x5555_5555);
    let incident = load >= 1.0;
    let (took, end) = match luck {
        luck if incident && luck < 0.02 => {
            (10 * SECOND, ExchangeEnd::Fault(Fault::Timeout(Phase::FirstByte)))
        }
        luck if incident && luck < 0.09 => {
            (took, ExchangeEnd::Response(ResponseSummary { status: 503, body_bytes: 9 }))
        }
        luck if luck < 0.0004 => (MS, ExchangeEnd::Fault(Fault::Reset)),
        _ => (took, ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 512 })),
    };
    let fired = due + 15_000 + (chance(number ^ 0xaaaa) * 60_000.0) as Nanos;
    let write = fired + 4_000;
    Outcome {
        arrival: Arrival { number, due },
        blocked: 0,
        fired,
        exchange: Exchange {
            label: (number % 3) as u16,
            write,
            written: true,
            first_byte: Some(write + took / 2),
            done: write + took,
            end,
            bytes_in: 700,
            bytes_out: 120,
            ..Exchange::unfinished(0)
        },
    }
}

fn tally(second: u64, labels: usize) -> Tally {
    let mut tally = Tally::new(labels);
    for place in 0..RATE {
        let outcome = outcome(second * RATE + place, second, place);
        tally.record(&outcome, &ExpectedStatus::default());
        tally.in_flight_ns += u128::from(outcome.exchange.done - outcome.fired);
    }
    tally.fired = RATE;
    tally
}

/// What the target says of itself: one more than is kept, most of which never change.
fn levels(second: u64) -> Vec<GaugeReading> {
    let level = |name: &str, unit, value| GaugeReading {
        source: format!("pid:{HOSTILE}"),
        name: name.to_owned(),
        unit,
        value,
    };
    let mut levels = vec![
        level("cpu", LevelUnit::Share, load(second)),
        level("threads", LevelUnit::Count, 20.0 + (100.0 * load(second)).round()),
        level(HOSTILE, LevelUnit::Bytes, 1e6 * (second % 600) as f64),
    ];
    if second == 0 {
        let flat = levels.len()..=GAUGES_MAX;
        levels.extend(flat.map(|n| level(&format!("level_{n}"), LevelUnit::Count, 1.0)));
    }
    levels
}

/// Writes the run file.
pub fn write(path: &Path) {
    let plan = plan();
    let labels = plan.labels.len();
    let warmup = plan.warmup.as_secs();
    let mut file = RunFile::create(path, &plan, 1_760_000_000_000_000_000).unwrap();
    let setting = |name: &str| TargetSetting {
        source: "actuator:http://shop.example".to_owned(),
        name: name.to_owned(),
        value: "200".to_owned(),
    };
    file.settings(&[setting("server.tomcat.threads.max"), setting(HOSTILE)]).unwrap();
    let mut whole = Tally::new(labels);
    for at in 0..HOUR {
        // What is due in the warm-up is in no figure.
        let tally = if at < warmup { Tally::new(labels) } else { tally(at, labels) };
        let open = 12 + (40.0 * load(at)) as u64;
        let cpu = (0.05 * 1e9 * (1.0 + 0.3 * chance(at))) as Nanos;
        let second = Second {
            at,
            asked: Some(RATE as f64),
            tally: &tally,
            scenarios: &[],
            warmup: &Counts::default(),
            gauges: Gauges { open, peak: open },
            cpu,
            tenths: &[],
        };
        file.second(&second).unwrap();
        file.watched(at * SECOND, &levels(at)).unwrap();
        whole.merge(&tally);
    }
    let run = Run {
        plan,
        started_unix_ns: 1_760_000_000_000_000_000,
        measured: (HOUR - warmup) * SECOND,
        sending: (HOUR - warmup) * SECOND,
        completing: (HOUR - warmup) * SECOND,
        elapsed: HOUR * SECOND,
        ending: RunEnd::Done,
        asked_rate: Some(RATE as f64),
        tally: whole,
        warmup: Counts::default(),
        series: Series::default(),
        peak_connections: 52,
        generator: Generator {
            cpu: HOUR * 60 * MS,
            busiest: 0.06,
            run_delay: 0,
            rss_bytes: 21_000_000,
            threads: 2,
            cores: 2,
            miscounted: 0,
            abandoned: 0,
        },
        events: Vec::new(),
        agents: Vec::new(),
        watched: WatchRecord::default(),
        bodies: gake_core::record::FailedBodies::default(),
        scenarios: Vec::new(),
        origin: Provenance::default(),
    };
    file.finish(&run).unwrap();
}
