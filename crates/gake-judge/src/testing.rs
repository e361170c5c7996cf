//! Synthetic runs for tests, built with the real recorder.

use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::{ExpectedStatus, Plan, Stage, Timeouts};
use gake_core::record::{
    Counts, Exchange, ExchangeEnd, Fault, GaugeReading, Generator, LevelUnit, Outcome,
    ResponseSummary, Run, RunEnd, Series, Tally, WatchRecord,
};
use gake_core::schedule::Process;
use gake_core::work::Arrival;

pub(crate) const MS: Nanos = 1_000_000;

/// Builds a run of 10 s.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunBuilder {
    pub(crate) outcomes: Vec<(Outcome, u64)>,
    labels: Vec<String>,
    asked: Option<f64>,
    closed: bool,
    in_flight: Option<f64>,
}

/// One request with a response: due at 0, written after `late`, its first byte after `first`, its
/// last after `done`.
pub(crate) fn answered(late: Nanos, first: Nanos, done: Nanos, status: u16) -> Outcome {
    Outcome {
        arrival: Arrival { number: 0, due: 0 },
        blocked: 0,
        fired: late,
        exchange: Exchange {
            write: late,
            written: true,
            first_byte: Some(first),
            done,
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes: 12 }),
            bytes_in: 200,
            bytes_out: 100,
            ..Exchange::unfinished(0)
        },
    }
}

impl RunBuilder {
    /// `count` requests with status 200 after `took`.
    pub(crate) fn of(count: u64, took: Nanos) -> Self {
        Self::default().more(count, took)
    }

    pub(crate) fn more(self, count: u64, took: Nanos) -> Self {
        // 10 µs of lateness; the body comes with the head.
        self.add(count, answered(10_000.min(took / 2), took - took / 100, took, 200))
    }

    pub(crate) fn add(mut self, count: u64, outcome: Outcome) -> Self {
        self.outcomes.push((outcome, count));
        self
    }

    pub(crate) fn status(self, status: u16, count: u64) -> Self {
        self.add(count, answered(10_000, 5 * MS, 5 * MS, status))
    }

    pub(crate) fn fault(self, fault: Fault, count: u64) -> Self {
        let outcome = answered(10_000, 0, 2 * MS, 0);
        let exchange =
            Exchange { first_byte: None, end: ExchangeEnd::Fault(fault), ..outcome.exchange };
        self.add(count, Outcome { exchange, ..outcome })
    }

    pub(crate) fn connects(self, count: u64, took: Nanos) -> Self {
        let outcome = answered(10_000, 5 * MS, 5 * MS, 200);
        let exchange = Exchange { connect: Some(took), ..outcome.exchange };
        self.add(count, Outcome { exchange, ..outcome })
    }

    pub(crate) fn label(mut self, name: &str, count: u64, took: Nanos) -> Self {
        if self.labels.is_empty() {
            self.labels.push("first".to_owned());
        }
        self.labels.push(name.to_owned());
        let mut outcome = answered(10_000, took, took, 200);
        outcome.exchange.label = self.labels.len() as u16 - 1;
        self.add(count, outcome)
    }

    pub(crate) fn asked(mut self, asked: f64) -> Self {
        self.asked = Some(asked);
        self
    }

    /// A closed loop without think time.
    pub(crate) fn closed(mut self) -> Self {
        self.closed = true;
        self
    }

    /// Overrides the mean in flight, which otherwise follows Little's law exactly.
    pub(crate) fn in_flight(mut self, mean: f64) -> Self {
        self.in_flight = Some(mean);
        self
    }

    pub(crate) fn run(self) -> Run {
        let measured = 10 * SECOND;
        let mut tally = Tally::new(self.labels.len());
        let expect = ExpectedStatus::default();
        for (outcome, count) in &self.outcomes {
            for _ in 0..*count {
                tally.record(outcome, &expect);
            }
        }
        tally.counts.opened =
            tally.latency.of(gake_core::record::LatencyMetric::Connect).count().max(1);
        tally.in_flight_ns = match self.in_flight {
            Some(mean) => (mean * measured as f64) as u128,
            None => crate::stats::fired_time(&tally),
        };
        let rate = tally.counts.sent as f64 / 10.0;
        let length = Duration::from_secs(10);
        let open =
            Load::Open { stages: vec![Stage::step(rate, length)], process: Process::Uniform };
        let closed = Load::Closed { users: 64, think: Duration::ZERO };
        let plan = plan(if self.closed { closed } else { open }, self.labels);
        Run {
            asked_rate: (!self.closed)
                .then(|| self.asked.unwrap_or(tally.counts.sent as f64) / 10.0),
            plan,
            started_unix_ns: 1_700_000_000_000_000_000,
            measured,
            sending: measured,
            completing: measured,
            elapsed: measured,
            ending: RunEnd::Done,
            warmup: Counts::default(),
            tally,
            series: Series::default(),
            peak_connections: 10,
            generator: Generator {
                cpu: SECOND,
                busiest: 0.1,
                run_delay: 0,
                rss_bytes: 10_000_000,
                threads: 1,
                cores: 2,
                miscounted: 0,
                abandoned: 0,
            },
            events: Vec::new(),
            agents: Vec::new(),
            watched: WatchRecord::default(),
            bodies: gake_core::record::FailedBodies::default(),
            scenarios: Vec::new(),
            origin: gake_core::record::Provenance::default(),
        }
    }
}

fn plan(load: Load, labels: Vec<String>) -> Plan {
    let timeouts = Timeouts { connect: Duration::from_secs(5), ..Timeouts::default() };
    let plan = Plan::new("http://localhost:8080/fast", load);
    Plan {
        duration: Some(Duration::from_secs(10)),
        connections: 64,
        max_in_flight: 64,
        timeouts,
        labels,
        ..plan
    }
}

/// 1,000 requests a second for 10 s, with responses in about 5 ms over a few connections.
pub(crate) fn healthy() -> Run {
    RunBuilder::of(9_000, 5 * MS).more(990, 8 * MS).connects(10, MS / 2).run()
}

/// Adds readings of a source, a second apart.
pub(crate) fn watch(run: &mut Run, source: &str, name: &str, unit: LevelUnit, values: &[f64]) {
    for (second, value) in values.iter().enumerate() {
        let (source, name) = (source.to_owned(), name.to_owned());
        let reading = GaugeReading { source, name, unit, value: *value };
        run.watched.add(second as u64 * SECOND, &[reading]);
    }
}
