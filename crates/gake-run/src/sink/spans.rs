//! A sink for the spans of sampled requests.

use std::io;

use gake_core::record::Run;
use gake_sinks::SpanExporter;

use super::{Sink, SinkLosses, SinkSecond, SinkStart};

/// Sends the spans of sampled requests to a destination during the run.
#[derive(Debug)]
pub struct SpanSink(SpanExporter);

impl SpanSink {
    /// The sink of a destination.
    #[must_use]
    pub fn new(exporter: SpanExporter) -> Self {
        Self(exporter)
    }
}

impl Sink for SpanSink {
    fn name(&self) -> String {
        format!("{} (traces)", self.0.name())
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        self.0.begin(run.started_unix_ns);
        Ok(())
    }

    fn second(&mut self, _: &SinkSecond) -> io::Result<()> {
        self.0.tick();
        Ok(())
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        self.0.finish();
        Ok(())
    }

    /// Spans of a second that found no room are sent with the next one.
    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        let failed = losses.error.is_some().then(|| losses.sentences(&self.name()));
        failed.into_iter().flatten().chain(self.0.loss()).collect()
    }
}
