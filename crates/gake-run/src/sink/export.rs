//! A sink for an external destination: a database, a monitoring system, a file.

use std::collections::VecDeque;
use std::io;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Outcome, Run};
use gake_judge::{Summary, Validity, Verdict};
use gake_sinks::{ExportSecond, ExportStart, ExportVerdict, Exporter};

use super::{OutcomeBounds, Sink, SinkInterests, SinkLosses, SinkSecond, SinkStart};

/// Sends the figures of a run to a destination.
#[derive(Debug)]
pub struct ExportSink {
    exporter: Exporter,
    labels: Vec<String>,
    /// Stages that have not started, the next one first: start and description.
    stages: VecDeque<(Nanos, String)>,
}

impl ExportSink {
    /// The sink of a destination.
    #[must_use]
    pub fn new(exporter: Exporter) -> Self {
        Self { exporter, labels: Vec::new(), stages: VecDeque::new() }
    }
}

/// The stages of an open loop that has several: start and description.
fn stages(plan: &Plan) -> VecDeque<(Nanos, String)> {
    let Some(Load::Open { stages, .. }) = plan.load.one() else { return VecDeque::new() };
    if stages.len() < 2 {
        return VecDeque::new();
    }
    let mut at = plan.warmup;
    let begins = stages.iter().map(|stage| {
        let begin = nanos(at);
        at = at.saturating_add(stage.duration);
        (begin, stage.to_string())
    });
    begins.collect()
}

/// The verdict as numbers, which every destination can store.
fn verdict(verdict: &Verdict) -> ExportVerdict {
    let (validity, level) = match verdict.validity {
        _ if verdict.nothing_ok.is_some() => ("nothing ok", 3),
        Validity::Valid => ("valid", 0),
        Validity::Suspect => ("suspect", 1),
        Validity::Invalid => ("invalid", 2),
    };
    let met = verdict.objectives.iter().filter(|objective| objective.met).count() as u64;
    let missed = verdict.objectives.len() as u64 - met;
    ExportVerdict { validity, level, met, missed }
}

impl Sink for ExportSink {
    fn name(&self) -> String {
        self.exporter.name().to_owned()
    }

    fn takes(&self) -> SinkInterests {
        let bounds = |batches| OutcomeBounds { batches, bytes: usize::MAX };
        SinkInterests { outcomes: self.exporter.outcome_batches().map(bounds) }
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        self.labels.clone_from(&run.plan.labels);
        self.stages = stages(run.plan);
        self.exporter.begin(&ExportStart {
            target: &run.plan.target,
            labels: &run.plan.labels,
            started_unix_ns: run.started_unix_ns,
            command: run.origin.commands.first().map_or("", |command| command),
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
        while let Some((at, text)) =
            self.stages.pop_front_if(|stage| stage.0 <= second.second * SECOND)
        {
            self.exporter.event(at, "stage", &text);
        }
        Ok(())
    }

    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        self.exporter.outcomes(outcomes);
        Ok(())
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> io::Result<()> {
        self.exporter.readings(at, readings);
        Ok(())
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        let (summary, _) = Summary::as_recorded(run.clone());
        for finding in &summary.verdict.findings {
            let text = format!("{}: {}", finding.id, finding.evidence);
            self.exporter.event(run.elapsed, "finding", &text);
        }
        self.exporter.finish(run, &verdict(&summary.verdict));
        Ok(())
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        let mut sentences = losses.sentences(&self.name());
        sentences.extend(self.exporter.loss());
        sentences
    }
}
