//! One sink: a format and a carrier.

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Outcome, Run};

use crate::address::{SinkAddress, SinkKind};
use crate::carrier::{self, Carrier, FigureBatch, RETRY};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};
use crate::format::{self, FigureFormat};
use crate::spill::Spill;

/// Maximum queued batches of outcomes, for raw points.
const OUTCOME_BATCHES: usize = 32;

/// Sends the figures of a run to one destination during the run.
///
/// Only [`check`](Exporter::check) and [`finish`](Exporter::finish) block on the destination.
pub struct Exporter {
    name: String,
    format: Box<dyn FigureFormat>,
    carrier: Box<dyn Carrier>,
    labels: Vec<String>,
    takes_outcomes: bool,
    /// The batch of the run's begin, carried by the same thread as the rest, whose scheduling class
    /// the carrier's threads inherit.
    begun: Option<FigureBatch>,
}

impl Exporter {
    /// Prepares a destination: creates its file or binds its port. What it does not take in time
    /// waits in `spill`.
    ///
    /// # Errors
    /// One sentence on why it cannot.
    pub fn new(address: &SinkAddress, spill: &Spill) -> Result<Self, String> {
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
                Box::new(carrier::Push::new(&format::post(address), option("retry", RETRY), spill))
            }
            SinkKind::Prometheus => Box::new(carrier::PageCarrier::bind(
                address.address(),
                option("linger", Duration::ZERO),
            )?),
            SinkKind::StatsD => Box::new(carrier::Datagrams::new(address.address())?),
            SinkKind::Graphite => {
                let lines = carrier::LineCarrier::new(address.address());
                Box::new(carrier::Reconnecting::new(lines, spill))
            }
            SinkKind::Nats => Box::new(carrier::Reconnecting::new(address.nats()?, spill)),
            SinkKind::Json | SinkKind::Csv => {
                Box::new(carrier::FileCarrier::create(address.address())?)
            }
            SinkKind::Parquet => Box::new(carrier::FileCarrier::create_whole(address.address())?),
        };
        let format = format::of(address);
        let takes_outcomes = format.takes_outcomes();
        let (name, labels) = (address.to_string(), Vec::new());
        Ok(Self { name, format, carrier, labels, takes_outcomes, begun: None })
    }

    /// The name in messages, without secrets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The maximum of queued batches of outcomes, if it takes outcomes.
    #[must_use]
    pub fn outcome_batches(&self) -> Option<usize> {
        self.takes_outcomes.then_some(OUTCOME_BATCHES)
    }

    /// Checks that the destination accepts data; blocks for at most a few seconds.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn check(&mut self) -> Result<(), String> {
        self.carrier.check()
    }

    /// Begins a run.
    pub fn begin(&mut self, start: &ExportStart<'_>) {
        self.labels = start.labels.to_vec();
        self.begun = Some(self.format.begin(start));
    }

    /// Exports one second.
    pub fn second(&mut self, second: &ExportSecond<'_>) {
        let batch = self.format.second(second);
        self.carry(batch);
    }

    /// Exports ended requests, if [`outcome_batches`](Exporter::outcome_batches) is not `None`.
    pub fn outcomes(&mut self, outcomes: &[Outcome]) {
        let batch = self.format.outcomes(outcomes, &self.labels);
        self.carry_begun();
        if batch.rows > 0 {
            self.carrier.carry_samples(batch);
        }
    }

    /// Exports readings of the target at an instant of the run.
    pub fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) {
        let batch = self.format.readings(at, readings);
        self.carry(batch);
    }

    /// Exports an event at an instant of the run, such as the begin of a stage.
    pub fn event(&mut self, at: Nanos, title: &'static str, text: &str) {
        let batch = self.format.event(at, title, text);
        self.carry(batch);
    }

    /// Ends the run. Blocks until everything is delivered or given up.
    pub fn finish(&mut self, run: &Run, verdict: &ExportVerdict) {
        let batch = self.format.end(run, verdict);
        self.carry(batch);
        self.carrier.finish();
    }

    /// One sentence on lost figures; `None` when everything was delivered.
    #[must_use]
    pub fn loss(&self) -> Option<String> {
        self.carrier.lost().sentence(&self.name)
    }

    fn carry(&mut self, batch: FigureBatch) {
        self.carry_begun();
        if batch.rows > 0 {
            self.carrier.carry(batch);
        }
    }

    fn carry_begun(&mut self) {
        if let Some(begun) = self.begun.take().filter(|batch| batch.rows > 0) {
            self.carrier.carry(begun);
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("name", &self.name).finish_non_exhaustive()
    }
}
