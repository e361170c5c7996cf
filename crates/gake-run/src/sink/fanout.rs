//! Distribution of figures to the sinks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_engine::{JoinedSecond, LogBatch, LogSender, log_channel};

use super::mailbox::{Mailbox, SinkItem};
use super::threads::spawn;
use super::{Loss, Sink, SinkLosses, SinkSecond, SinkStart, SinkStep};
use crate::RunError;

/// Seconds that may wait for a sink.
const SECONDS_MAX: usize = 64;

/// Batches of readings that may wait for a sink.
const READINGS_MAX: usize = 1_024;

/// Seconds that are kept until all sinks are done with them.
const SHARED_MAX: usize = 4;

/// The sinks of a run in progress.
pub(crate) struct Fanout {
    feeds: Vec<SinkFeed>,
    /// Seconds whose memory is reused once every sink has dropped them.
    shared: Vec<Arc<SinkSecond>>,
    distributor: Option<JoinHandle<()>>,
}

/// One sink's queue, thread and losses.
struct SinkFeed {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<SinkWorker>,
    takes_outcomes: bool,
    seconds_lost: u64,
    readings_lost: u64,
    /// Counted by the thread that distributes outcomes.
    outcomes_lost: Arc<AtomicU64>,
}

/// A sink and its errors; its thread returns it.
struct SinkWorker {
    sink: Box<dyn Sink>,
    /// The first one.
    error: Option<(SinkStep, std::io::Error)>,
    /// Failed to take outcomes, and gets no more.
    is_cut: bool,
}

impl Fanout {
    /// Begins every sink and starts its thread. The sender is for the workers, if a sink takes
    /// outcomes.
    ///
    /// # Errors
    /// When a sink cannot take the run.
    pub(crate) fn start(
        mut sinks: Vec<Box<dyn Sink>>,
        start: &SinkStart<'_>,
    ) -> Result<(Self, Option<LogSender>), RunError> {
        for sink in &mut sinks {
            sink.begin(start).map_err(RunError::Sink)?;
        }
        let wanted: Vec<_> = sinks.iter().filter_map(|sink| sink.takes().outcomes).collect();
        let alone = wanted.len() == 1;
        let feeds = sinks.into_iter().map(|sink| SinkFeed::start(sink, alone));
        let feeds = feeds.collect::<Result<Vec<_>, _>>()?;
        let mut fanout = Self { feeds, shared: Vec::new(), distributor: None };
        let (batches, bytes) = (
            wanted.iter().map(|bounds| bounds.batches).max(),
            wanted.iter().map(|bounds| bounds.bytes).max().unwrap_or(0),
        );
        let Some(batches) = batches else { return Ok((fanout, None)) };
        let (sender, receiver) = log_channel(batches, bytes);
        let takers = fanout.feeds.iter().filter(|feed| feed.takes_outcomes);
        let takers: Vec<_> = takers
            .map(|feed| (Arc::clone(&feed.mailbox), Arc::clone(&feed.outcomes_lost)))
            .collect();
        let distribute = move || distribute(&receiver, &takers);
        fanout.distributor = Some(spawn("gake-outcomes", distribute).map_err(RunError::cannot)?);
        Ok((fanout, Some(sender)))
    }

    /// Passes a second to every sink. Calls `done` with seconds that all are done with.
    pub(crate) fn second(
        &mut self,
        second: JoinedSecond,
        asked: Option<f64>,
        mut done: impl FnMut(JoinedSecond),
    ) {
        if self.feeds.is_empty() {
            done(second);
            return;
        }
        let second = Arc::new(SinkSecond { second, asked });
        for feed in &mut self.feeds {
            let offered = feed.mailbox.offer(SinkItem::Second(Arc::clone(&second)));
            feed.seconds_lost += u64::from(offered.is_err());
        }
        self.shared.push(second);
        let mut waiting = Vec::with_capacity(self.shared.len());
        for second in self.shared.drain(..) {
            match Arc::try_unwrap(second) {
                Ok(free) => done(free.second),
                Err(second) => waiting.push(second),
            }
        }
        // Seconds that a sink holds for long are not reused.
        let held = waiting.len().saturating_sub(SHARED_MAX);
        waiting.drain(..held);
        self.shared = waiting;
    }

    /// Passes readings to every sink.
    pub(crate) fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) {
        let readings: Arc<[GaugeReading]> = readings.into();
        for feed in &mut self.feeds {
            let offered = feed.mailbox.offer(SinkItem::Readings(at, Arc::clone(&readings)));
            feed.readings_lost += u64::from(offered.is_err());
        }
    }

    /// Drains the queue of every sink and ends it. Returns losses, including the `log_lost`
    /// outcomes that did not reach the sinks.
    pub(crate) fn finish(self, run: &Run, log_lost: u64) -> Vec<Loss> {
        // On a busy machine, threads of the lowest class may wait minutes for a core. They end
        // here, and this thread does the rest.
        for feed in &self.feeds {
            feed.mailbox.close();
        }
        if let Some(distributor) = self.distributor {
            // It ends when the workers' senders are dropped.
            let _ = distributor.join();
        }
        let mut losses = Vec::new();
        for (number, feed) in self.feeds.into_iter().enumerate() {
            let sentences = feed.finish(run, log_lost).into_iter();
            losses.extend(sentences.map(|text| Loss { sink: number, text }));
        }
        losses
    }
}

impl SinkFeed {
    /// `alone`: no other sink takes outcomes, so that the workers' channel is the queue.
    fn start(sink: Box<dyn Sink>, alone: bool) -> Result<Self, RunError> {
        let bounds = sink.takes().outcomes;
        let batches = if alone { 1 } else { bounds.map_or(0, |bounds| bounds.batches) };
        let mailbox = Arc::new(Mailbox::new([SECONDS_MAX, batches, READINGS_MAX]));
        let reader = Arc::clone(&mailbox);
        let thread = spawn("gake-sink", move || feed(sink, &reader)).map_err(RunError::cannot)?;
        Ok(Self {
            mailbox,
            thread,
            takes_outcomes: bounds.is_some(),
            seconds_lost: 0,
            readings_lost: 0,
            outcomes_lost: Arc::default(),
        })
    }

    fn finish(self, run: &Run, log_lost: u64) -> Vec<String> {
        let log_lost = if self.takes_outcomes { log_lost } else { 0 };
        let mut losses = SinkLosses {
            seconds: self.seconds_lost,
            readings: self.readings_lost,
            outcomes: self.outcomes_lost.load(Relaxed) + log_lost,
            error: None,
        };
        let Ok(mut worker) = self.thread.join() else {
            // Unreachable: the thread catches panics of the sink.
            return losses.sentences("a sink");
        };
        while let Some(item) = self.mailbox.rest() {
            worker.give(&item, &self.mailbox);
        }
        losses.error = worker.error;
        if let Err(error) = worker.sink.end(run)
            && losses.error.is_none()
        {
            losses.error = Some((SinkStep::End, error));
        }
        worker.sink.losses(&losses)
    }
}

/// Passes items to a sink until its mailbox is closed.
fn feed(sink: Box<dyn Sink>, mailbox: &Mailbox) -> SinkWorker {
    let mut worker = SinkWorker { sink, error: None, is_cut: false };
    while let Some(item) = mailbox.take() {
        worker.give(&item, mailbox);
    }
    worker
}

impl SinkWorker {
    fn give(&mut self, item: &SinkItem, mailbox: &Mailbox) {
        let Self { sink, is_cut, .. } = self;
        let call = AssertUnwindSafe(|| match item {
            SinkItem::Second(second) => (SinkStep::Second, sink.second(second)),
            SinkItem::Outcomes(_) if *is_cut => (SinkStep::Outcomes, Ok(())),
            SinkItem::Outcomes(batch) => (SinkStep::Outcomes, sink.outcomes(batch)),
            SinkItem::Readings(at, readings) => (SinkStep::Readings, sink.readings(*at, readings)),
        });
        let (step, result) = catch_unwind(call).unwrap_or_else(|_| {
            mailbox.abandon();
            (SinkStep::Panic, Err(std::io::Error::other("a panic")))
        });
        self.is_cut |= step == SinkStep::Outcomes && result.is_err();
        if let Err(first) = result {
            self.error.get_or_insert((step, first));
        }
    }
}

/// Passes every batch to all sinks that take outcomes. A single one may block: the workers' channel
/// is its queue, and counts what is lost.
fn distribute(receiver: &Receiver<LogBatch>, takers: &[(Arc<Mailbox>, Arc<AtomicU64>)]) {
    for batch in receiver {
        let batch = Arc::new(batch);
        if let [(only, _)] = takers {
            only.put(SinkItem::Outcomes(batch));
            continue;
        }
        for (mailbox, lost) in takers {
            if mailbox.offer(SinkItem::Outcomes(Arc::clone(&batch))).is_err() {
                lost.fetch_add(batch.len() as u64, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::plan::Plan;
    use gake_core::record::{Provenance, RunEnd};
    use gake_engine::Collector;

    use super::super::SinkInterests;
    use super::*;
    use expect_test::expect;

    /// Reports each second, and blocks until it may continue.
    struct StuckSink {
        taken: Sender<()>,
        go_on: Receiver<()>,
    }

    impl Sink for StuckSink {
        fn name(&self) -> String {
            "a stuck sink".to_owned()
        }

        fn takes(&self) -> SinkInterests {
            SinkInterests::default()
        }

        fn begin(&mut self, _: &SinkStart<'_>) -> Result<(), String> {
            Ok(())
        }

        fn end(&mut self, _: &Run) -> io::Result<()> {
            Ok(())
        }

        fn second(&mut self, _: &SinkSecond) -> io::Result<()> {
            let _ = self.taken.send(());
            // The sender is dropped when it may continue.
            let _ = self.go_on.recv();
            Ok(())
        }
    }

    #[test]
    fn seconds_and_readings_that_find_the_queue_full_are_counted_and_reported() {
        let load = Load::Closed { users: 1, think: Duration::ZERO };
        let plan = Arc::new(Plan::new("http://127.0.0.1:1/", load));
        let (taken_sender, taken) = channel();
        let (hold, go_on) = channel::<()>();
        let sink: Box<dyn Sink> = Box::new(StuckSink { taken: taken_sender, go_on });
        let origin = Provenance::default();
        let start = SinkStart { plan: &plan, started_unix_ns: 1, origin: &origin, settings: &[] };
        let (mut fanout, _) = Fanout::start(vec![sink], &start).unwrap();
        fanout.second(JoinedSecond::default(), None, drop);
        taken.recv().unwrap();
        for _ in 0..SECONDS_MAX + 5 {
            fanout.second(JoinedSecond::default(), None, drop);
        }
        for _ in 0..READINGS_MAX + 7 {
            fanout.readings(0, &[]);
        }
        drop(hold);
        let run = Collector::new(&plan, 0, 0).finish(1, RunEnd::Done, 1);
        let losses: Vec<_> = fanout.finish(&run, 0).into_iter().map(|loss| loss.text).collect();
        let [seconds, readings] = &losses[..] else { panic!("{losses:?}") };
        expect!["a stuck sink: 5 seconds are missing: it was too slow to take them; they are in the figures"].assert_eq(seconds);
        expect!["a stuck sink: 7 samples of the target are missing: it was too slow to take them; they are in the figures"].assert_eq(readings);
        assert_eq!(taken.iter().count(), SECONDS_MAX, "queued seconds reached the sink");
    }
}
