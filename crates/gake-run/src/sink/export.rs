//! A sink for an external destination: a database, a monitoring system, a file.

use std::io;

use gake_core::clock::Nanos;
use gake_core::record::{Outcome, Reading, Run};
use gake_sinks::{ExportSecond, ExportStart, Exporter};

use super::{OutcomeBounds, Sink, SinkLosses, SinkSecond, SinkStart, Takes};

/// Sends the figures of a run to a destination during the run.
#[derive(Debug)]
pub struct ExportSink {
    exporter: Exporter,
    labels: Vec<String>,
}

impl ExportSink {
    /// The sink of a destination.
    #[must_use]
    pub fn new(exporter: Exporter) -> Self {
        Self { exporter, labels: Vec::new() }
    }
}

impl Sink for ExportSink {
    fn name(&self) -> String {
        self.exporter.name().to_owned()
    }

    fn takes(&self) -> Takes {
        let bounds = |batches| OutcomeBounds { batches, bytes: usize::MAX };
        Takes { outcomes: self.exporter.outcome_batches().map(bounds) }
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        self.labels.clone_from(&run.plan.labels);
        self.exporter.begin(&ExportStart {
            target: &run.plan.target,
            labels: &run.plan.labels,
            started_unix_ns: run.started_unix_ns,
            command: run.origin.commands.first().map_or("", String::as_str),
        });
        Ok(())
    }

    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        let SinkSecond { second, asked } = second;
        self.exporter.second(&ExportSecond {
            at: second.second.saturating_sub(1),
            tally: &second.tally,
            asked: *asked,
            open: second.gauges.open,
            labels: &self.labels,
        });
        Ok(())
    }

    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        self.exporter.outcomes(outcomes);
        Ok(())
    }

    fn readings(&mut self, at: Nanos, readings: &[Reading]) -> io::Result<()> {
        self.exporter.readings(at, readings);
        Ok(())
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        self.exporter.finish(run);
        Ok(())
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        let mut sentences = losses.sentences(&self.name());
        sentences.extend(self.exporter.loss());
        sentences
    }
}
