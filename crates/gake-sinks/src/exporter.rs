//! One destination of a run's figures.

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Outcome, Run};

use crate::address::{SinkAddress, SinkKind};
use crate::carrier::{self, Batch, Carrier, RETRY};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};
use crate::format::{self, Format};

/// Batches of outcomes that may wait, where raw points are asked for.
const OUTCOME_BATCHES: usize = 32;

/// Sends the figures of a run to one destination during the run.
///
/// Only [`check`](Exporter::check) and [`finish`](Exporter::finish) wait for the destination.
pub struct Exporter {
    name: String,
    format: Box<dyn Format>,
    carrier: Box<dyn Carrier>,
    labels: Vec<String>,
    takes_outcomes: bool,
    /// What the begin of the run gave: it is carried by the thread that carries the rest, whose
    /// scheduling class the carrier's own threads inherit.
    begun: Option<Batch>,
}

impl Exporter {
    /// Makes a destination ready: its file is created, its port bound.
    ///
    /// # Errors
    /// Why it cannot be made, in a sentence.
    pub fn new(address: &SinkAddress) -> Result<Self, String> {
        let option = |name, usual| match address.option(name) {
            Some(text) => gake_text::duration::parse_duration(text).unwrap_or(usual),
            None => usual,
        };
        let carrier: Box<dyn Carrier> = match address.kind() {
            SinkKind::InfluxDb
            | SinkKind::RemoteWrite
            | SinkKind::Otlp
            | SinkKind::OtlpGrpc
            | SinkKind::Grafana => {
                Box::new(carrier::Push::new(&format::post(address), option("retry", RETRY)))
            }
            SinkKind::Prometheus => {
                Box::new(carrier::Page::bind(address.address(), option("linger", Duration::ZERO))?)
            }
            SinkKind::StatsD => Box::new(carrier::Datagrams::new(address.address())?),
            SinkKind::Graphite => {
                let lines = carrier::Lines::new(address.address());
                Box::new(carrier::Reconnecting::new(lines))
            }
            SinkKind::Nats => Box::new(carrier::Reconnecting::new(address.nats()?)),
            SinkKind::Json | SinkKind::Csv => Box::new(carrier::File::create(address.address())?),
            SinkKind::Parquet => Box::new(carrier::File::create_whole(address.address())?),
        };
        let format = format::of(address);
        let takes_outcomes = format.takes_outcomes();
        let (name, labels) = (address.to_string(), Vec::new());
        Ok(Self { name, format, carrier, labels, takes_outcomes, begun: None })
    }

    /// Its name in messages, without secrets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many batches of outcomes may wait for it, if it takes outcomes.
    #[must_use]
    pub fn outcome_batches(&self) -> Option<usize> {
        self.takes_outcomes.then_some(OUTCOME_BATCHES)
    }

    /// Checks that the destination accepts data. Waits at most a few seconds for its answer.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn check(&mut self) -> Result<(), String> {
        self.carrier.check()
    }

    /// The run is about to start.
    pub fn begin(&mut self, start: &ExportStart<'_>) {
        self.labels = start.labels.to_vec();
        self.begun = Some(self.format.begin(start));
    }

    /// What was recorded in one second.
    pub fn second(&mut self, second: &ExportSecond<'_>) {
        let batch = self.format.second(second);
        self.carry(batch);
    }

    /// Requests that ended; nothing unless [`outcome_batches`](Exporter::outcome_batches) asks.
    pub fn outcomes(&mut self, outcomes: &[Outcome]) {
        let batch = self.format.outcomes(outcomes, &self.labels);
        self.carry(batch);
    }

    /// Readings of the watched target at an instant of the run.
    pub fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) {
        let batch = self.format.readings(at, readings);
        self.carry(batch);
    }

    /// Something that happened at an instant of the run, such as the begin of a stage.
    pub fn event(&mut self, at: Nanos, title: &'static str, text: &str) {
        let batch = self.format.event(at, title, text);
        self.carry(batch);
    }

    /// The run is over. Waits until everything is delivered or given up.
    pub fn finish(&mut self, run: &Run, verdict: &ExportVerdict) {
        let batch = self.format.end(run, verdict);
        self.carry(batch);
        self.carrier.finish();
    }

    /// What was lost, in a sentence; `None` when everything arrived.
    #[must_use]
    pub fn loss(&self) -> Option<String> {
        self.carrier.lost().sentence(&self.name)
    }

    fn carry(&mut self, batch: Batch) {
        for batch in self.begun.take().into_iter().chain([batch]) {
            if batch.rows > 0 {
                self.carrier.carry(batch);
            }
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("name", &self.name).finish_non_exhaustive()
    }
}
