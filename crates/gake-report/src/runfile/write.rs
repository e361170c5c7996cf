//! Writing a run file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, FaultCount, GaugeReading, Histogram, Provenance, Run, RunEvent, SeriesPoint, Tally,
    TargetSetting,
};
use gake_core::work::Gauges;
use gake_files::Access;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::lines::{EndLine, Exact, FORMAT, Line, PREFIX, RunLine, SecondLine};
use super::{hdr, tag};
use crate::forms::plan::finished;
use crate::forms::watched::ReadingsForm;

/// One second of a run, of all workers.
#[derive(Debug, Clone, Copy)]
pub struct Second<'a> {
    /// Where it starts, in seconds since the start of the run.
    pub at: u64,
    /// Arrivals the plan asked for in it; `None` in a closed loop.
    pub asked: Option<f64>,
    /// What was recorded in it, after the warm-up.
    pub tally: &'a Tally,
    /// What each scenario recorded in it, when the run has several.
    pub scenarios: &'a [Tally],
    /// The counts of the warm-up in it.
    pub warmup: &'a Counts,
    /// Levels.
    pub gauges: Gauges,
    /// CPU time of the workers in it.
    pub cpu: Nanos,
    /// Its tenths as they are drawn; empty when the run is drawn by the second.
    pub tenths: &'a [SeriesPoint],
}

/// A run file on disk.
pub type RunFile = RunFileWriter<File>;

/// Writes a run file, each second at once and flushed.
///
/// After an error the writer can be used further: what could not be written is lost and the
/// reader says so.
pub struct RunFileWriter<W: Write> {
    out: W,
    labels: Vec<String>,
    /// The plan as it was when the run began.
    begun: Plan,
    serializer: V2DeflateSerializer,
    /// Whether the last write failed, perhaps in the middle of a line.
    broken: bool,
}

impl<W: Write> std::fmt::Debug for RunFileWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl RunFileWriter<File> {
    /// Creates the file, over an older one of that name, and writes its head.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path, plan: &Plan, started_unix_ns: u64) -> io::Result<Self> {
        Self::new(gake_files::create(path, Access::Owner)?, plan, started_unix_ns)
    }
}

impl<W: Write> RunFileWriter<W> {
    /// Writes the head of a run file to `out`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W, plan: &Plan, started_unix_ns: u64) -> io::Result<Self> {
        let labels = plan.labels.clone();
        let serializer = V2DeflateSerializer::new();
        let begun = finished(plan);
        let mut writer = Self { out, labels, begun, serializer, broken: false };
        let run = Line::Run(Box::new(RunLine {
            format: FORMAT.to_owned(),
            gake: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns,
            plan: writer.begun.clone(),
        }));
        let started = started_unix_ns as f64 / SECOND as f64;
        let mut text = format!(
            "#[Histogram log format version 1.3]\n#[StartTime: {started:.3} (seconds since \
             epoch)]\n"
        );
        push(&mut text, &run)?;
        text.push_str(
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\"\n",
        );
        writer.write(&text)?;
        Ok(writer)
    }

    /// Appends where the run comes from. It belongs right after the head, so that a file that is
    /// cut off has it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn origin(&mut self, origin: &Provenance) -> io::Result<()> {
        if *origin == Provenance::default() {
            return Ok(());
        }
        let mut text = String::new();
        push(&mut text, &Line::Origin(origin.into()))?;
        self.write(&text)
    }

    /// Appends a second.
    ///
    /// # Errors
    /// When it cannot be written; the second is then lost.
    pub fn second(&mut self, second: &Second<'_>) -> io::Result<()> {
        let tally = second.tally;
        let mut text = String::new();
        let mut exact = Vec::new();
        for tag in tag::all(&self.labels) {
            let Some(histogram) = tag.histogram(&tally.latency, tally.labels()) else { continue };
            if histogram.is_empty() {
                continue;
            }
            let name = tag.text(&self.labels);
            self.push_histogram(&mut text, &name, second.at, histogram)?;
            exact.push(Exact {
                tag: name,
                count: histogram.count(),
                min: histogram.min(),
                max: histogram.max(),
                sum: histogram.sum().to_string(),
            });
        }
        let line = Line::Second(Box::new(SecondLine {
            at: second.at,
            asked: second.asked,
            counts: tally.counts,
            warmup: *second.warmup,
            statuses: tally.statuses().to_vec(),
            faults: tally.faults().iter().map(|(f, count)| FaultCount::new(*f, *count)).collect(),
            labels: tally.labels().iter().map(|label| label.counts).collect(),
            in_flight_ns: tally.in_flight_ns.to_string(),
            fired: Some(tally.fired),
            open: second.gauges.open,
            peak: second.gauges.peak,
            cpu_ns: second.cpu,
            exact,
            series: tally.series.clone(),
            scenarios: second.scenarios.to_vec(),
            tenths: second.tenths.to_vec(),
        }));
        push(&mut text, &line)?;
        self.write(&text)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        let mut text = String::new();
        push(&mut text, &Line::Event(event.into()))?;
        self.write(&text)
    }

    /// Appends what the watched target said `at` an instant of the run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn watched(&mut self, at: Nanos, readings: &[GaugeReading]) -> io::Result<()> {
        let mut text = String::new();
        push(&mut text, &Line::Watched(ReadingsForm::new(at, readings)))?;
        self.write(&text)
    }

    /// Appends settings in force at the watched target.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn settings(&mut self, settings: &[TargetSetting]) -> io::Result<()> {
        if settings.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        push(&mut text, &Line::Settings(settings.iter().map(Into::into).collect()))?;
        self.write(&text)
    }

    /// Appends the end of the run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, run: &Run) -> io::Result<()> {
        let plan = finished(&run.plan);
        let end = Line::End(Box::new(EndLine {
            ending: (&run.ending).into(),
            measured_ns: run.measured,
            sending_ns: run.sending,
            completing_ns: Some(run.completing),
            elapsed_ns: run.elapsed,
            asked_rate: run.asked_rate,
            peak_connections: run.peak_connections,
            generator: (&run.generator).into(),
            events: run.events.iter().map(Into::into).collect(),
            agents: run.agents.clone(),
            plan: (plan.load != self.begun.load).then_some(plan),
            sent: run.tally.counts.sent,
            dropped: run.tally.counts.dropped,
            bodies: run.bodies.clone(),
            scenarios: run.scenarios.iter().map(Into::into).collect(),
        }));
        let mut text = String::new();
        push(&mut text, &end)?;
        self.write(&text)
    }

    /// `Tag=name,start,length,max,histogram`; the maximum is in milliseconds, as the format's
    /// other writers have it for nanoseconds.
    fn push_histogram(
        &mut self,
        text: &mut String,
        name: &str,
        at: u64,
        histogram: &Histogram,
    ) -> io::Result<()> {
        let buckets = hdr::from_histogram(histogram).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        self.serializer.serialize(&buckets, &mut bytes).map_err(io::Error::other)?;
        let max_ms = histogram.max() as f64 / 1e6;
        // Writing to a String cannot fail.
        let _ = write!(text, "Tag={name},{at}.000,1.000,{max_ms:.3},");
        STANDARD.encode_string(&bytes, text);
        text.push('\n');
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        // A broken line must not swallow the next one.
        let repaired = if self.broken { self.out.write_all(b"\n") } else { Ok(()) };
        let result = repaired
            .and_then(|()| self.out.write_all(text.as_bytes()))
            .and_then(|()| self.out.flush());
        self.broken = result.is_err();
        result
    }
}

fn push(text: &mut String, line: &Line) -> io::Result<()> {
    let json = serde_json::to_string(line)?;
    text.push_str(PREFIX);
    text.push_str(&json);
    text.push('\n');
    Ok(())
}
