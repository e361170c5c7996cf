//! Where figures go while a run goes on: files, databases, another program's results.
//!
//! Each [`Sink`] lives on a thread of its own behind a bounded queue. What finds no room there is
//! lost to that sink alone, counted and said; the load and the other sinks go on.

mod export;
mod fanout;
mod functions;
mod log;
mod mailbox;
mod run_file;
mod threads;

use std::io;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{Outcome, Provenance, Reading, Run, Setting};
use gake_engine::JoinedSecond;

pub use export::ExportSink;
pub(crate) use fanout::Fanout;
pub use functions::OutcomeSink;
pub use log::LogSink;
pub use run_file::RunFileSink;

/// Takes the figures of a run while it goes on.
///
/// [`begin`](Sink::begin) and [`end`](Sink::end) are called by whoever runs the load, everything
/// between them on the sink's own thread, in the order in which it happened. An error is kept and
/// said at the end; after one in [`outcomes`](Sink::outcomes) no more of them come, after any other
/// the sink is called again.
pub trait Sink: Send {
    /// What messages call it: the name of its file, for instance.
    fn name(&self) -> String;

    /// What it takes beside seconds.
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

    /// Some requests that ended, in the order in which they did on one worker.
    ///
    /// # Errors
    /// When they are lost; no more come then.
    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        let _ = outcomes;
        Ok(())
    }

    /// What the watched target said at an instant of the run.
    ///
    /// # Errors
    /// When it is lost.
    fn readings(&mut self, at: Nanos, readings: &[Reading]) -> io::Result<()> {
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

/// What a sink takes beside seconds and readings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Takes {
    /// Every outcome, when it takes those.
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
    /// What is asked.
    pub plan: &'a Plan,
    /// When it starts, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// Who asked, where, and with which objectives.
    pub origin: &'a Provenance,
    /// The settings in force at the watched target, as far as they are known.
    pub settings: &'a [Setting],
}

/// One second of a run, reduced once for all sinks.
#[derive(Debug)]
pub struct SinkSecond {
    /// What was recorded in it, of all workers.
    pub second: JoinedSecond,
    /// Arrivals that the plan asked for in it; `None` in a closed loop.
    pub asked: Option<f64>,
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

/// What a sink was called for.
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
    /// What was lost, in sentences about a sink of this name.
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
