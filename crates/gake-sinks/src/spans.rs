//! Exports spans of sampled requests to OpenTelemetry.

use gake_text::duration::parse_duration;
use gake_wire::SpanReceiver;

use crate::address::SinkAddress;
use crate::carrier::{Carrier, Push, RETRY};
use crate::format::{SpanWriter, span_post};
use crate::spill::Spill;

const BATCH: usize = 500;

/// Sends spans to a destination during a run.
pub struct SpanExporter {
    name: String,
    spans: SpanReceiver,
    writer: SpanWriter,
    push: Push,
}

impl SpanExporter {
    /// Prepares to send `spans` to an OpenTelemetry destination.
    ///
    /// # Errors
    /// One sentence, when it takes no spans.
    pub fn new(address: &SinkAddress, spans: SpanReceiver, spill: &Spill) -> Result<Self, String> {
        let Some(post) = span_post(address) else {
            return Err(format!(
                "{address} takes no traces: give otlp=http://host:4318 or otlp-grpc=http://host:4317"
            ));
        };
        let retry = address.option("retry").and_then(|text| parse_duration(text).ok());
        let push = Push::new(&post, retry.unwrap_or(RETRY), spill);
        Ok(Self { name: address.to_string(), spans, writer: SpanWriter::new(address), push })
    }

    /// The name in messages, without secrets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the start of the run, in Unix nanoseconds.
    pub fn begin(&mut self, started_unix_ns: u64) {
        self.writer.started = started_unix_ns;
    }

    /// Sends the finished spans; call it about once a second.
    pub fn tick(&mut self) {
        let spans: Vec<_> = self.spans.take().collect();
        for spans in spans.chunks(BATCH) {
            self.push.carry_samples(self.writer.write(spans));
        }
    }

    /// Ends the run. Blocks until everything is delivered or given up.
    pub fn finish(&mut self) {
        self.tick();
        self.push.finish();
    }

    /// One sentence on lost spans; `None` when everything was delivered.
    #[must_use]
    pub fn loss(&self) -> Option<String> {
        let mut lost = self.push.lost();
        if self.spans.lost() > 0 {
            lost.add(self.spans.lost(), "the destination is too slow");
        }
        let why = lost.why.map_or_else(String::new, |why| format!(": {why}"));
        (lost.rows > 0)
            .then(|| format!("{}: {} spans were not delivered{why}", self.name, lost.rows))
    }
}

impl std::fmt::Debug for SpanExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanExporter").field("name", &self.name).finish_non_exhaustive()
    }
}
