//! Where figures go during a run: files, databases, another program's results.
//!
//! Each [`Sink`] runs on its own thread behind a bounded queue. What finds no room there is
//! lost to that sink alone, counted and reported; the load and the other sinks continue.

mod export;
mod fanout;
mod functions;
mod live_page;
mod log;
mod mailbox;
mod run_file;
mod spans;
mod threads;

use std::io;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Outcome, Provenance, Run, TargetSetting};
use gake_engine::JoinedSecond;

pub use export::ExportSink;
pub(crate) use fanout::Fanout;
pub use functions::OutcomeSink;
pub use live_page::LivePage;
pub use log::LogSink;
pub use run_file::RunFileSink;
pub use spans::SpanSink;

/// Takes the figures of a run during the run.
///
/// [`begin`](Sink::begin) and [`end`](Sink::end) are called by the thread that drives the run,
/// everything between them on the sink's own thread, in order of time. An error is kept and
/// reported at the end; after one in [`outcomes`](Sink::outcomes) no more come, after any other
/// the sink is called again.
pub trait Sink: Send {
    /// Its name in messages, such as the name of its file.
    fn name(&self) -> String;

    /// What it takes besides seconds.
    fn takes(&self) -> Takes {
        Takes::default()
    }

    /// The run is about to start; nothing has been sent.
    ///
    /// # Errors
    /// Why it cannot take a run, in a sentence; the run does not start then.
    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String>;

    /// What was recorded in one second.
    ///
    /// # Errors
    /// When it is lost.
    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        let _ = second;
        Ok(())
    }

    /// Requests of one worker that ended, in the order in which they did.
    ///
    /// # Errors
    /// When they are lost; no more come then.
    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        let _ = outcomes;
        Ok(())
    }

    /// Readings of the watched target at an instant of the run.
    ///
    /// # Errors
    /// When it is lost.
    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> io::Result<()> {
        let _ = (at, readings);
        Ok(())
    }

    /// The run is over. Losses that happened before are not among its events yet.
    ///
    /// # Errors
    /// When the end is lost.
    fn end(&mut self, run: &Run) -> io::Result<()>;

    /// What was lost, in sentences; called at the very end.
    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        losses.sentences(&self.name())
    }
}

/// What a sink takes besides seconds and readings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Takes {
    /// Whether it takes every outcome, and how many may wait.
    pub outcomes: Option<OutcomeBounds>,
}

/// How many outcomes may wait for a sink.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeBounds {
    /// Batches of up to 2,048 outcomes.
    pub batches: usize,
    /// Bytes of answers in them, where answers are kept.
    pub bytes: usize,
}

/// A run that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct SinkStart<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// When it starts, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The commands, hosts, versions and objectives.
    pub origin: &'a Provenance,
    /// The settings in force at the watched target, as far as they are known.
    pub settings: &'a [TargetSetting],
}

/// One second of a run, reduced once for all sinks.
#[derive(Debug)]
pub struct SinkSecond {
    /// What was recorded in it, of all workers.
    pub second: JoinedSecond,
    /// Arrivals that the plan asked for in it; `None` in a closed loop.
    pub asked: Option<f64>,
}

impl SinkSecond {
    /// The second as run files hold it.
    fn as_recorded(&self) -> gake_report::Second<'_> {
        let Self { second, asked } = self;
        gake_report::Second {
            at: second.second.saturating_sub(1),
            asked: *asked,
            tally: &second.tally,
            scenarios: &second.scenarios,
            warmup: &second.warmup,
            gauges: second.gauges,
            cpu: second.cpu,
            tenths: &second.tenths,
        }
    }
}

/// What a sink lost.
#[derive(Debug, Default)]
pub struct SinkLosses {
    /// Seconds for which its queue had no room.
    pub seconds: u64,
    /// Readings likewise.
    pub readings: u64,
    /// Outcomes likewise.
    pub outcomes: u64,
    /// The first error, and what it was about.
    pub error: Option<(SinkStep, io::Error)>,
}

/// The call of a sink in which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkStep {
    /// A second.
    Second,
    /// Outcomes.
    Outcomes,
    /// Readings.
    Readings,
    /// The end of the run.
    End,
    /// It panicked.
    Panic,
}

impl SinkLosses {
    /// What the sink `name` lost, in sentences.
    #[must_use]
    pub fn sentences(&self, name: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        for (count, what) in [
            (self.seconds, "seconds"),
            (self.readings, "samples of the target"),
            (self.outcomes, "requests"),
        ] {
            if count > 0 {
                sentences.push(format!(
                    "{name}: {count} {what} are missing: it was too slow to take them; they are in \
                     the figures"
                ));
            }
        }
        if let Some((step, error)) = &self.error {
            let what = match step {
                SinkStep::Second => "seconds are lost",
                SinkStep::Outcomes => "its requests are cut",
                SinkStep::Readings => "what the target said is lost",
                SinkStep::End => "it has no end",
                SinkStep::Panic => "its writer failed; this is a bug",
            };
            sentences.push(format!("{name}: {what}: {error}"));
        }
        sentences
    }
}

/// A loss of a sink, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The sink's place in the list that the run was given.
    pub sink: usize,
    /// What was lost.
    pub text: String,
}
